"""Parts of a value are written where they belong, and nothing that reads them notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.arrays.groups import OpenNest
from difflab.execute.targets.llvm.arrays.loop_detection import elided
from difflab.graph.pytree import flatten
from difflab.lower.nests import (
    COPY,
    Instruction,
    Instructions,
    Ref,
)
from tests.support.rows import for_each

pytest.importorskip("llvmlite", reason="needs llvmlite: pip install 'difflab[native]'")

Vectors = Callable[[Any], Any]


def shifted(u: Any) -> Any:
    """The operand one place further, as a step of a method of lines has it."""
    return np.concatenate([np.ones(1), np.sin(u)])[:-1] * u


def read_on(x: Any) -> Any:
    """The second part is computed of the first."""
    first = np.sin(x)
    return np.concatenate([first, np.exp(first) * 2.0])


def read_on_after_a_sum(x: Any) -> Any:
    """The second part is computed of all of the first, in a later nest that writes it."""
    first = np.sin(x)
    return np.concatenate([first, first * np.sum(first)])


def read_backwards(x: Any) -> Any:
    """The second part reads the first in another order."""
    first = np.sin(x)
    return np.concatenate([first, first[::-1] * 2.0, first])


def used_elsewhere(x: Any) -> Any:
    """A part that is a result itself, and one of two concatenations."""
    part = np.sin(x)
    return part, np.concatenate([part, x]), np.concatenate([x, part, part]) * part[0]


def nested(x: Any) -> Any:
    """A concatenation within one, which is read before and after."""
    inner = np.concatenate([np.sin(x), np.cos(x)])
    return np.concatenate([inner, inner[1:] * 2.0]) + np.sum(inner)


def sums(x: Any) -> Any:
    """Parts that are joined of many terms, in one nest."""
    return np.stack([np.sum(x * x), np.sum(np.sin(x)), np.max(x * 2.0), np.min(x)])


def along_rows(x: Any) -> Any:
    """Parts of rows, which lie apart."""
    rows = np.stack([np.sin(x), np.cos(x)], axis=-1)
    return np.concatenate([rows * 2.0, np.exp(rows)], axis=1), np.concatenate([rows, rows + 1.0])


def products(x: Any) -> Any:
    """Products of matrices and accumulations as parts."""
    matrix = x[:, None] * x[None, :] + 1.0
    return np.concatenate([matrix @ x, np.cumsum(x * 2.0), np.ravel(matrix @ matrix)])


def neighbours(x: Any) -> Any:
    """Derivatives that overlap in each of the two orders."""
    return np.sin(x[:-1]) * np.cos(x[1:]), np.exp(x[1:]) / (1.0 + x[:-1])


def truths(x: Any) -> Any:
    """A truth value is a result, and a part among numbers."""
    large = x > 0.7
    return large, np.concatenate([large, x])


def looped(x: Any) -> Any:
    """A loop whose step ends with a concatenation, and one that keeps two."""

    def step(u: Any, _: Any) -> tuple[Any, Any]:
        following = np.concatenate([u[:1] * 0.5, np.sin(u[:-1]) + u[1:]])
        return following, np.concatenate([following, u])

    return dl.scan(step, x, length=5)


def chosen(x: Any) -> Any:
    """Two functions that write their result in place, of which one is called."""
    return dl.cond(x[0] > 0, lambda u: np.concatenate([u * 2.0, u]), read_on, x)


FUNCTIONS: list[Vectors] = [
    shifted,
    read_on,
    read_on_after_a_sum,
    read_backwards,
    used_elsewhere,
    nested,
    sums,
    along_rows,
    products,
    neighbours,
    truths,
    looped,
    chosen,
]


def parts(tree: Any) -> tuple[Any, ...]:
    """The arrays of a result."""
    return tuple(flatten(tree)[0])


def held(f: dl.Function, x: Any) -> None:
    """Machine code, with every access checked, gives what NumPy's kernels give."""
    target = NativeArrays(Schedule.of(f))
    wanted = dl.compile(f, target="numpy")(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for _ in range(2):  # also with what the first call left in memory
        for found, value in zip(target([x]), wanted, strict=True):
            np.testing.assert_allclose(
                found, value, rtol=1e-13, atol=1e-13 * np.max(np.abs(value), initial=0.0)
            )


@pytest.mark.parametrize("size", [1, 2, 3, 9, 16, 35])
@for_each("f", FUNCTIONS)
def test_values_and_gradients(f: Vectors, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    x = np.random.default_rng(size).uniform(0.2, 1.5, size)

    def total(x: Any) -> Any:
        return sum(np.sum(np.sin(part)) for part in parts(f(x)))

    held(dl.trace(lambda x: parts(f(x)), x), x)
    held(dl.trace(dl.grad(total), x), x)


def copied(out: Ref, *args: Ref, into: str = "", name: str = COPY, size: int = 3) -> Instruction:
    """An instruction on a few numbers."""
    return Instruction(name, (size,), out, args, into)


def at(root: int, offset: int = 0) -> Ref:
    """Neighbouring numbers of a value."""
    return Ref(root, offset, (1,))


MADE = copied(at(1), at(0), name="sin")
"""The part, value 1, of the only input; value 2 is what it is copied into."""

REFUSED = {
    "read before all parts are there": [
        MADE,
        copied(at(2), at(1)),
        copied(at(3), at(2), name="cos"),
        copied(at(2, 3), at(0)),
    ],
    "parts overlap": [MADE, copied(at(2), at(1)), copied(at(2, 2), at(0))],
    "numbers are joined to a part": [MADE, copied(at(2), at(1)), copied(at(2), at(0), into="add")],
    "joined, not written": [MADE, copied(at(2), at(1), into="maximum")],
    "the part changes": [MADE, copied(at(2), at(1)), copied(at(1), at(0), into="add")],
    "only some of the part": [MADE, copied(at(2), at(1), size=2)],
    "in another order": [MADE, copied(at(2), Ref(1, 2, (-1,)))],
    "apart": [MADE, copied(Ref(2, 0, (2,)), at(1))],
    "an input": [copied(at(2), at(0))],
    "computed in place": [MADE, copied(at(2), at(1)), copied(at(2, 3), at(0), name="exp")],
}


@for_each("why", REFUSED)
def test_what_is_not_written_in_place(why: str) -> None:
    program = Instructions(1, sizes={0: 3, 1: 3, 2: 6, 3: 3})
    for step in REFUSED[why]:
        program.add(step)
    assert elided(program) is program


def test_a_part_is_written_in_place() -> None:
    """What the refused cases change a little; a truth value stays one."""
    program = Instructions(1, sizes={0: 3, 1: 3, 2: 6})
    for step in (MADE, copied(at(2, 3), at(1)), copied(at(2), at(0))):
        program.add(step)
    program.outputs += [at(2), at(1)]
    assert elided(replace(program, truths={1})).outputs == program.outputs
    found = elided(program)
    assert found.code == [copied(at(2, 3), at(0), name="sin"), copied(at(2), at(0))]
    assert found.outputs == [at(2), at(2, 3)]


@for_each(
    ("before", "after", "together"),
    [
        (copied(at(1), at(0)), copied(at(1, 3), at(0)), True),
        (copied(at(1), at(0)), copied(at(1, 2), at(0)), False),
        (copied(at(1), at(0), into="add"), copied(at(1, 3), at(0), into="add"), True),
        (copied(at(1), at(0), into="add"), copied(at(1, 2), at(0), into="add"), False),
        (copied(at(1), at(0)), copied(at(2), at(1)), True),
        (copied(at(1), at(0)), copied(at(2), at(1, 1)), False),
        (copied(at(1), at(0), into="add"), copied(at(2), at(1)), False),
        (copied(at(2), at(1)), copied(at(1, 3), at(0)), True),
        (copied(at(2), at(1)), copied(at(1, 2), at(0)), False),
        (copied(Ref(1, 0, (2,)), at(0)), copied(Ref(1, 1, (2,)), at(0)), True),
        (copied(Ref(1, 0, (2,)), at(0)), copied(Ref(1, 2, (2,)), at(0)), False),
    ],
)
def test_what_shares_a_nest(before: Instruction, after: Instruction, *, together: bool) -> None:
    """Numbers that one instruction writes and another one writes or reads at other points."""
    nest = OpenNest()
    nest.add(before)
    assert nest.shares(after) == together


def copies(f: Vectors, x: Any) -> int:
    """How many numbers are copied."""
    code = NativeArrays(Schedule.of(dl.trace(f, x))).program.code
    return sum(step.work for step in code if step.name == COPY and not step.into)


def test_parts_are_not_copied() -> None:
    """Only what is given stands elsewhere before: a copy each of the ones and of the operand."""
    x = np.ones(100)
    assert copies(shifted, x) == 1
    assert copies(read_on, x) == 0
    assert copies(nested, x) == 1  # the neutral element of the sum
    assert copies(lambda x: np.concatenate([x, np.sin(x)]), x) == 100
    assert copies(read_backwards, x) == 100  # a part that stands twice


def test_zeros_are_written_only_where_nothing_else_is() -> None:
    """The derivative of a slice."""
    assert copies(dl.grad(lambda x: np.sum(np.sin(x[3:-1]))), np.ones(100)) == 4


def test_a_part_that_is_computed_of_another_shares_its_nest() -> None:
    layout = NativeArrays(Schedule.of(dl.trace(read_on, np.ones(100)))).layout
    assert [len(group.steps) for group in layout.groups[0]] == [3]
    assert layout.room == 200


def test_a_step_of_a_loop_writes_its_result_where_the_next_one_reads_it() -> None:
    """A state, the constants and two places for what is handed on; nothing for the step itself."""

    def steps(x: Any) -> Any:
        def step(u: Any, _: Any) -> tuple[Any, None]:
            return np.concatenate([u[:1] * 0.5, np.sin(u[:-1]) + u[1:]]), None

        return dl.scan(step, x, length=50)[0]

    (control,) = NativeArrays(Schedule.of(dl.trace(steps, np.ones(1000)))).layout.controls
    assert control.layouts[0].room == 0

"""Random nests of loops, choices and checkpoints, against Python's own loops and JAX.

A program changes a vector by operations, `scan`, `fori_loop`, `while_loop`, `cond` and
`checkpoint`, three deep. The node's value is held to the same program in Python; its derivatives
in both modes, every target's code (its accesses checked in some), batches and stacks are held to
JAX's forward mode, or without JAX to differences of values; so is the printed Python. The text of
the node and of its derivatives in both modes is read back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.language.printers import python
from tests.differential.nearness import assert_close
from tests.differential.search import Family

if find_spec("jax"):
    from tests.differential.jaxprs import loop_slopes
else:  # differences take their place
    loop_slopes = None

Library = Any
State = Callable[..., Any]
TOLERANCE = 1e-9
"""Of the largest number: steps contract, so that rounding does not grow; a wrong rule differs in
the first digits."""
DIFFERENCED = 1e-6
"""What differences with a step of 1e-6 leave."""
STEPS = (3, 4, 2, 3, 2, 1, 0)
"""Of a loop: faults of order are seen from two steps on."""

SIZES = (1, 2, 3, 9)
"""Of the vectors: what is kept of a step, and sums that are products, depends on them."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    "affine": lambda np, c, x, w: 0.5 * w * c + x,
    "cosine": lambda np, c, x, w: np.cos(c + x) * w,
    "constant": lambda np, c, x, w: 0.25 + 0.0 * c,
    "mixed": lambda np, c, x, w: np.tanh(c + np.sum(c * w)) + 0.5 * x,
    "moved": lambda np, c, x, w: np.concatenate([c[1:], c[:1]]) + 0.1 * x,
    "replaced": lambda np, c, x, w: w + 0.0 * c,
    "sine": lambda np, c, x, w: np.sin(c) * x,
    "square": lambda np, c, x, w: 0.2 * c * c - 0.5 * x * w,
    "where": lambda np, c, x, w: np.where(c > x, 0.5 * c * w, x - c),
}


@dataclass(frozen=True)
class Part:
    """One change of the vector: an operation, or a loop or choice with changes inside.

    Attributes
    ----------
    name : str
        Of `OPERATIONS`, or ``"scan"``, ``"fori"``, ``"while"``, ``"cond"``, ``"checkpoint"``.
    inside : tuple
        The changes of a step, or of each branch.
    steps : int
        How many steps a loop takes.
    flag : bool
        Whether a scan goes backwards, a while loop also ends by the vector's size, or a checkpoint
        keeps nothing.
    product : bool
        Whether a step of a scan ends with the product of a matrix.
    """

    name: str
    inside: tuple[tuple[Part, ...], ...] = ()
    steps: int = 0
    flag: bool = False
    product: bool = False


@dataclass(frozen=True)
class Program:
    """Changes of a vector of `size` numbers, a point by its seed, and how it is computed."""

    parts: tuple[Part, ...]
    size: int
    seed: int
    target: str
    bounds: bool
    jax: bool


PLAIN = st.sampled_from(sorted(OPERATIONS)).map(Part)


def nested(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    """Return loops and choices over changes."""
    body = st.lists(inner, min_size=1, max_size=3).map(tuple)

    def part(name: str, one: Any, other: Any, steps: int, flag: bool, product: bool) -> Part:
        return Part(name, (one, other) if name == "cond" else (one,), steps, flag, product)

    kinds = st.sampled_from(
        ("scan", "scan", "scan", "fori", "while", "while", "cond", "checkpoint")
    )
    return st.builds(part, kinds, body, body, st.sampled_from(STEPS), st.booleans(), st.booleans())


PARTS = st.recursive(PLAIN, lambda inner: PLAIN | nested(inner), max_leaves=6)
PROGRAMS = st.builds(
    Program,
    parts=st.lists(nested(PARTS), min_size=2, max_size=3).map(tuple),
    size=st.sampled_from(SIZES),
    seed=st.integers(0, 2**16),
    target=st.sampled_from(("native", "native", "auto", "numpy")),
    bounds=st.booleans(),
    jax=st.integers(0, 5).map(lambda number: number == 0),
)


class InPython:
    """Loops and choices as statements of Python."""

    numpy = np

    @staticmethod
    def scan(f: State, init: Any, xs: Any, reverse: bool) -> Any:
        """Loop over an array."""
        found = []
        for x in xs[::-1] if reverse else xs:
            init, y = f(init, x)
            found.append(y)
        return init, np.array(found[::-1] if reverse else found).reshape(xs.shape)

    @staticmethod
    def fori_loop(lower: int, upper: int, f: State, value: Any) -> Any:
        """Loop over numbers."""
        for number in range(lower, upper):
            value = f(number, value)
        return value

    @staticmethod
    def while_loop(test: State, f: State, value: Any) -> Any:
        """Loop while a condition holds."""
        while test(value):
            value = f(value)
        return value

    @staticmethod
    def cond(truth: Any, one: State, other: State, value: Any) -> Any:
        """Choose."""
        return one(value) if truth else other(value)

    @staticmethod
    def checkpoint(f: State) -> State:
        """Keep the values inside."""
        return f

    checkpoint_with = checkpoint


class InGraphs(InPython):
    """difflab's nodes."""

    scan = staticmethod(lambda f, init, xs, reverse: dl.scan(f, init, xs, reverse=reverse))
    fori_loop, while_loop, cond = map(staticmethod, (dl.fori_loop, dl.while_loop, dl.cond))
    checkpoint = staticmethod(lambda f: partial(dl.checkpoint, f))
    checkpoint_with = staticmethod(dl.checkpoint_with(dl.policies.everything))


def changed(lib: Library, parts: tuple[Part, ...], c: Any, x: Any, w: Any) -> Any:
    """Return the vector after the changes."""
    for part in parts:
        c = change(lib, part, c, x, w)
    return c


def change(lib: Library, part: Part, c: Any, x: Any, w: Any) -> Any:
    """Return the vector after one change."""
    xp = lib.numpy
    if part.name in OPERATIONS:
        return OPERATIONS[part.name](xp, c, x, w)
    body = part.inside[0]
    if part.name == "cond":
        one, other = (partial(changed, lib, inside, x=x, w=w) for inside in part.inside)
        return lib.cond(xp.sum(c) > 0.3, one, other, c)
    if part.name == "checkpoint":
        kept = lib.checkpoint if part.flag else lib.checkpoint_with
        return kept(lambda c, x, w: changed(lib, body, c, x, w))(c, x, w)
    if part.name == "scan":
        if not part.steps:
            return c
        xs = xp.stack([x * (0.5 + k) for k in range(part.steps)])
        matrix = xp.reshape(x, (-1, 1)) * xp.reshape(w, (1, -1)) / len(x)

        def step(c: Any, x: Any) -> Any:
            c = changed(lib, body, c, x, w)
            if part.product:
                c = xp.tanh(matrix @ c + x)
            return c, c * x

        c, ys = lib.scan(step, c, xs, part.flag)
        return c + 0.1 * xp.sum(ys, axis=0)
    if part.name == "fori":
        return lib.fori_loop(0, part.steps, lambda i, c: changed(lib, body, c, 0.1 * i * x, w), c)

    def going(value: Any) -> Any:
        number, c = value
        return (number < part.steps) & (xp.sum(c * c) < 4.0) if part.flag else number < part.steps

    start = (0.0 * c[0], c)
    return lib.while_loop(going, lambda v: (v[0] + 1, changed(lib, body, v[1], x, w)), start)[1]


def function_of(program: Program, lib: Library) -> Callable[..., Any]:
    """Return the program as a function of three vectors."""
    return lambda c, x, w: changed(lib, program.parts, c, x, w)


@contextmanager
def checked_mode(on: bool) -> Iterator[None]:
    """Let machine code check its accesses."""
    before = os.environ.pop("DIFFLAB_CHECK", None)
    if on:
        os.environ["DIFFLAB_CHECK"] = "bounds"
    try:
        yield
    finally:
        os.environ.pop("DIFFLAB_CHECK", None)
        if before is not None:
            os.environ["DIFFLAB_CHECK"] = before


def check(program: Program) -> None:
    """Raise AssertionError where two computations of a program differ."""
    rng = np.random.default_rng(program.seed)
    point = [rng.uniform(-1.0, 1.0, program.size) for _ in range(3)]
    plain = function_of(program, InPython)
    value = plain(*point)
    f = dl.trace(function_of(program, InGraphs), *point)
    slopes, tolerance = expected_slopes(program, plain, point)
    same(f(*point), value, "the node")
    derived = dl.jacobian(f, mode="reverse")
    for mode, each in (("forward", dl.jacobian(f, mode="forward")), ("reverse", derived)):
        same(each(*point), slopes, mode, tolerance)
    check_stacks(program, f, point)
    check_text(f, point)
    check_text(dl.jvp(f), [*point, *point])
    target = program.target
    if target == "native" and find_spec("llvmlite") is None:
        target = "numpy"
    check_text(dl.vjp(f), [*point, value], steady=False)
    check_printed(f, point, value)
    check_printed(derived, point, slopes, tolerance)
    with checked_mode(program.bounds):
        for function, wanted, what in ((f, value, "value"), (derived, slopes, "slopes")):
            fast = dl.compile(function, target)
            for _ in range(2):
                same(fast(*point), wanted, f"{target}: {what} ({fast.reason})", tolerance)
            batch = [np.stack([part, -part, 0.5 * part]) for part in point]
            found, rows = fast(*batch), [function(*[part[k] for part in batch]) for k in range(3)]
            same(found, np.stack(rows), f"{target}: {what} of a batch ({fast.reason})")
            same(function(*batch), np.stack(rows), f"{what} of a batch")


def check_stacks(program: Program, f: dl.Function, point: list[Any]) -> None:
    """Hold `vmap` in a trace, and the gradients of what it returns, to the examples."""
    batch = [np.stack([part, -part, 0.5 * part]) for part in point]
    mapped = [0 if program.seed >> place & 1 else None for place in range(3)]
    if mapped == [None] * 3:
        mapped[0] = 0
    given = [stack if axis == 0 else stack[0] for stack, axis in zip(batch, mapped, strict=True)]
    over = dl.vmap(function_of(program, InGraphs), tuple(mapped))
    examples = [
        [part[k] if axis == 0 else part for part, axis in zip(given, mapped, strict=True)]
        for k in range(3)
    ]
    rows = [f(*example) for example in examples]
    same(dl.trace(over, *given)(*given), np.stack(rows), "vmap")
    summed = lambda *args: np.sum(function_of(program, InGraphs)(*args))  # noqa: E731
    total = dl.gradient(dl.trace(summed, *point))
    slopes = np.stack([total(*example) for example in examples])
    if program.seed & 8:
        found = dl.vmap(dl.grad(summed, (0, 1, 2)), tuple(mapped))(*given)
        same(np.concatenate(found, axis=-1), slopes, "vmap of the gradient")
        return
    found = dl.grad(lambda *args: np.sum(over(*args)), (0, 1, 2))(*given)
    for place, (axis, one) in enumerate(zip(mapped, found, strict=True)):
        parts = np.split(slopes, 3, axis=-1)[place]
        same(one, parts if axis == 0 else np.sum(parts, axis=0), f"gradient of vmap, {place}")


def check_printed(
    f: dl.Function, point: list[Any], wanted: Any, tolerance: float = TOLERANCE
) -> None:
    """Hold the printed Python to the value."""
    source = python(f)
    names: dict[str, Any] = {}
    exec(source, names)
    found = names["f"](*[part.tolist() for part in point])
    same(np.reshape(found, np.shape(wanted)), wanted, source, tolerance)


def has_empty_arrays(f: dl.Function) -> bool:
    """Return whether the function, or one inside it, has an array without elements."""
    rows = filter(None, map(f.graph.primitive, range(len(f.graph))))
    inside = (inner for row in rows if row.holds is not None for inner in row.holds.functions)
    return any(0 in shape for shape in f.graph.shape_table) or any(map(has_empty_arrays, inside))


def check_text(f: dl.Function, point: list[Any], steady: bool = True) -> None:
    """Hold the function that is read back from text to the one that was written."""
    if point[0].size == 1 or has_empty_arrays(f):
        return  # the language has no arrays without elements, as `moved` and loops of no turn have
    written = str(f)
    assert "not in the language" not in written, written
    again = dl.parse(written)
    given = dict(zip(f.inputs, point, strict=True))
    outputs = (f(**given), again(**given))
    pairs = zip(*outputs, strict=True) if len(f.outputs) > 1 else [outputs]
    for value, found in pairs:
        same(found, value, written)
    if steady:
        assert str(dl.parse(str(again))) == str(again), written


def expected_slopes(program: Program, plain: State, point: list[Any]) -> tuple[Any, float]:
    """Return the Jacobian by JAX or by differences, and how near it is."""
    if program.jax and loop_slopes is not None:
        return loop_slopes(lambda lib: function_of(program, lib), point), TOLERANCE
    flat = np.concatenate(point)
    columns = []
    for place in range(flat.size):
        step = np.zeros(flat.size)
        step[place] = 1e-6
        above, below = (plain(*np.split(flat + side * step, 3)) for side in (1, -1))
        columns.append((above - below) / 2e-6)
    return np.stack(columns, axis=-1), DIFFERENCED


def same(found: Any, wanted: Any, what: str, tolerance: float = TOLERANCE) -> None:
    """Raise AssertionError unless two results are near."""
    assert_close(found, wanted, tolerance, what)


FAMILY = Family("loops", PROGRAMS, check, fixed=14, fresh=6)

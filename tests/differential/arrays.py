"""Random programs on arrays: every target against the plain evaluation, NumPy and JAX.

A program is a few steps on one to three small arrays; the function or a derivative of it is
compiled for a target and called at points, batches, again, with arrays of every layout. The plain
evaluation of the function itself is held to NumPy, and a share of programs with their reverse
gradients to JAX.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.repetition import rolled
from tests.differential.array_programs import Draw, Step, drawn_step, run
from tests.differential.judging import FORMULAS, agree, noise
from tests.differential.search import Family

JAX = find_spec("jax") is not None
NATIVE = find_spec("llvmlite") is not None
SIZES = (1, 2, 3, 3, 4, 5)
LONG_SIZES = (1, 2, 3, 9, 17, 40, 70)
"""Sizes of more than a vector, of whole blocks of them and of what is left."""
BATCHES = ((), (), (), (), (1,), (7,), (7,), (33,), (33,), (2, 3), (1000,))
KINDS = ("value", "value", "gradient", "gradient", "both", "forward", "reverse", "hessian")
WILD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e200, -1e200, 1e-310, 1.0, -1.0])
LARGEST = 40
LARGEST_LONG = 600
"""Numbers of an array, of the usual sizes and of the long ones."""
FEW = 14
"""Sweeps of a derivative that takes one for each input or output."""
LONGEST = 150
"""Operations that LLVM compiles: more take too long for so many programs."""


@dataclass(frozen=True)
class Setting:
    """How a program is compiled and called."""

    target: str
    batch: tuple[int, ...] = ()
    still: int = 0  # the inputs that have no batch, as bits
    threads: int = 1
    packed: bool = False
    layout: str = "plain"
    small: bool = False  # blocks of a few points, so that threads share small batches; few indices
    # that are looked up in a table
    bounds: bool = False


@dataclass(frozen=True)
class Program:
    """Steps on inputs, what is asked of them, and how."""

    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    kind: str
    setting: Setting
    outputs: int = 1
    form: str = "plain"
    points: str = "normal"
    jax: bool = False
    seed: int = 0

    def point(self, number: int, batch: tuple[int, ...] = ()) -> list[np.ndarray[Any, Any]]:
        """Return the inputs of a call."""
        rng = np.random.default_rng([self.seed, number])
        still = [bool(self.setting.still >> k & 1) for k in range(len(self.shapes))]
        return [
            self._numbers(rng, shape if alone and not all(still) else batch + shape)
            for shape, alone in zip(self.shapes, still, strict=True)
        ]

    def _numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        numbers = np.asarray(rng.normal(size=shape))
        if self.points == "even":  # many ties and zeros
            return np.round(2 * numbers) / 2 + 0.0
        if self.points == "wild":
            return np.where(rng.random(shape) < 0.15, rng.choice(WILD, shape), numbers)
        return numbers

    def values(self, inputs: Sequence[Any], xp: Any) -> list[Any]:
        """Return what the program gives."""
        return run(self.steps, inputs, xp)[-self.outputs :]

    def total(self, inputs: Sequence[Any], xp: Any) -> Any:
        """Return a number that all of the last value takes part in."""
        last = run(self.steps, inputs, xp)[-1]
        weights = np.cos(np.arange(math.prod(last.shape))).reshape(last.shape)
        return xp.sum(last * weights)

    @cached_property
    def function(self) -> Function:
        """The function, traced."""
        given = self.point(0)
        if self.kind in ("gradient", "both", "hessian"):
            return dl.trace(lambda *inputs: self.total(inputs, np), *given)
        return dl.trace(lambda *inputs: self.values(inputs, np), *given)

    @cached_property
    def asked(self) -> Function:
        """What is asked of it."""
        f = self.function
        if self.kind == "gradient":
            return dl.gradient(
                f, mode="forward" if self.seed % 3 == 0 and f.n <= FEW else "reverse"
            )
        if self.kind == "hessian" and f.n <= FEW:
            return dl.hessian(f)
        if self.kind in ("both", "hessian"):
            return dl.value_and_gradient(f)
        if self.kind == "forward" and f.n <= FEW:
            return dl.jacobian(f, mode="forward")
        return dl.jacobian(f, mode="reverse") if self.kind == "reverse" and f.m <= FEW else f


# --- drawing ------------------------------------------------------------------------------------


def _drawn_steps(
    draw: Draw, shapes: Sequence[tuple[int, ...]], seed: int, most: int
) -> tuple[Step, ...]:
    """Draw steps that NumPy computes without a large number or an array that is too large."""
    rng = np.random.default_rng(seed)
    values: list[Any] = [rng.normal(size=shape) for shape in shapes]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 7))):
        step = drawn_step(draw, [np.shape(value) for value in values])
        if step is None:
            continue
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(run([step], values, np)[-1])
        except IndexError:
            continue
        if value.size <= most and value.ndim <= 4 and np.all(np.abs(value) < 1e3):
            steps.append(step)
            values.append(value)
    return tuple(steps) or (Step("sin", (0,)),)


def _drawn_setting(draw: Draw, packed: bool, few: bool) -> Setting:
    targets = ("numpy", "native", "native", "auto", "python") if NATIVE else ("numpy", "python")
    return Setting(
        target=draw(st.sampled_from(targets)),
        batch=draw(st.sampled_from(BATCHES[:7] if few else BATCHES)),
        still=0 if packed else draw(st.sampled_from((0, 0, 1, 2, 5))),
        threads=draw(st.integers(1, 2)),
        packed=packed,
        layout=draw(st.sampled_from(("plain", "plain", "strided", "turned", "fixed"))),
        small=draw(st.booleans()),
        bounds=draw(st.integers(0, 3)) == 0,
    )


@st.composite
def programs(draw: Draw) -> Program:
    """Draw a program."""
    sizes = draw(st.sampled_from((*[SIZES] * 18, (0, *SIZES), LONG_SIZES)))
    most = LARGEST_LONG if sizes is LONG_SIZES else LARGEST
    size = st.sampled_from(sizes)
    shapes = tuple(
        tuple(draw(size) for _ in range(draw(st.integers(0, 3))))
        for _ in range(draw(st.integers(1, 3)))
    )
    shapes = tuple(shape if math.prod(shape) <= most else shape[:1] for shape in shapes)
    seed = draw(st.integers(0, 2**16))
    return Program(
        shapes=shapes,
        steps=_drawn_steps(draw, shapes, seed, most),
        kind=draw(st.sampled_from(KINDS)),
        setting=_drawn_setting(draw, draw(st.integers(0, 4)) == 0, few=most > LARGEST),
        outputs=draw(st.integers(1, 2)),
        form=draw(st.sampled_from(("plain", "plain", "rolled", "simplified"))),
        points=draw(st.sampled_from(("normal", "normal", "even", "wild"))),
        jax=draw(st.integers(0, 49)) == 25,
        seed=seed,
    )


# --- checking -----------------------------------------------------------------------------------


@contextmanager
def surroundings(program: Program) -> Iterator[None]:
    """Set bounds and sizes as the program asks."""
    setting = program.setting
    with ExitStack() as stack:
        few = {"UNROLLED_NATIVE": LONGEST, "UNROLLED_AUTO": LONGEST}
        stack.enter_context(patch.multiple("difflab.execute.choice", **few))
        if setting.bounds:
            stack.enter_context(patch.dict(os.environ, {"DIFFLAB_CHECK": "bounds"}))
        if setting.small:
            stack.enter_context(
                patch.multiple(
                    "difflab.execute.targets.numpy.target",
                    WORTH_THREADS=1,
                    SMALLEST=16,
                    CACHE_BYTES=1,
                )
            )
            if NATIVE:
                sizes = {
                    "WORTH_THREADS": 1,
                    "SHORT_BATCH_BYTES": 1,
                    "BLOCK": 64,
                    "STAGED_BYTES": 1024,
                }
                stack.enter_context(patch.multiple("difflab.execute.targets.llvm.target", **sizes))
                where = "difflab.execute.targets.llvm.arrays.expansion"
                stack.enter_context(patch.multiple(where, MOST_RUNS=1))
                stack.enter_context(patch.multiple("difflab.lower.records", _SMALL=8, _CHUNK=3))
        yield


def simplified(function: Function) -> Function:
    """Return the function written again by a builder that applies identities."""
    builder = Builder(simplify=True)
    shapes = zip(function.inputs, function.input_shapes, strict=True)
    inputs = [builder.input(name, shape) for name, shape in shapes]
    outputs = inline(function, builder, inputs)
    names, structure = function.output_names, function.structure
    return Function.build(builder, inputs, outputs, names, structure)


def formed(program: Program) -> Function:
    """Return what is asked of a program, in the form that it names."""
    if program.form == "rolled":
        with (
            patch.multiple("difflab.graph.repetition.roll", LEAST_LANES=1),
            patch.multiple("difflab.graph.repetition.chains", SHORTEST=3),
        ):
            return rolled(program.asked, least=0)
    if program.form == "simplified" and program.points != "wild":  # 0 times nan is 0 there
        return simplified(program.asked)
    return program.asked


def listed(results: Any) -> list[Any]:
    """Return the outputs of a call as a list."""
    return list(results) if isinstance(results, list | tuple) else [results]


def laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    """Return the same numbers, otherwise in memory."""
    if layout == "strided":
        wide = np.full((*array.shape, 3), np.nan)
        wide[..., 1] = array
        return wide[..., 1]
    if layout == "turned":
        return np.array(array.T, order="C").T
    if layout == "fixed":
        array = np.array(array)
        array.flags.writeable = False
    return array


def arguments(program: Program, inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Return what a call of the compiled function takes."""
    setting = program.setting
    if not setting.packed:
        return [laid_out(array, setting.layout) for array in inputs]
    flat = [array.reshape((*setting.batch, -1)) for array in inputs]
    return [laid_out(np.concatenate(flat, axis=-1), setting.layout)]


def check_calls(program: Program, function: Function) -> None:
    """Hold the compiled function to the plain one: twice, and again at the first point."""
    setting = program.setting
    try:
        fast = dl.compile(function, setting.target, setting.threads, packed=setting.packed)
    except UnsupportedError:
        assert setting.target == "python"
        return
    results: list[list[Any]] = []
    copies: list[list[Any]] = []
    for number in (0, 1, 0):
        inputs = program.point(number, setting.batch)
        given = arguments(program, inputs)
        before = [array.copy() for array in given]
        found = listed(fast(*given))
        wanted = listed(program.asked(*inputs))
        what = f"{setting.target} against the plain evaluation ({fast.reason})"
        agree(found, wanted, lambda n: noise(program.asked, inputs, wanted, n), what)  # noqa: B023
        for array, old in zip(given, before, strict=True):
            assert array.tobytes() == old.tobytes(), "an input was changed"
        check_owned(found, given)
        if setting.packed and len(setting.batch) == 1:
            check_rows(fast, np.ascontiguousarray(given[0]))
        results.append(found)
        copies.append([np.array(result) for result in found])
    for found, said in ((results[0], "a later call changed a result"), (results[2], "other bits")):
        for one, other in zip(found, copies[0], strict=True):
            assert bits(one) == bits(other), said


def check_rows(fast: Any, points: Any) -> None:
    """Rows of a file, which machine code may read and write itself, have the bits of the call.

    The call takes the same rows: NumPy's own products round strided arrays otherwise.
    """
    count = len(points)
    rows = np.full((count, fast.function.m), 0.5)
    fast.rows(points, count, rows)
    wanted = [np.asarray(result, dtype=float).reshape(count, -1) for result in listed(fast(points))]
    assert bits(rows) == bits(np.concatenate(wanted, axis=1)), "rows have other bits"


def bits(numbers: Any) -> bytes:
    """Return the bytes of numbers, with one kind of nan: of which sign it is means nothing."""
    return bytes(np.where(np.isnan(numbers), np.nan, numbers).tobytes())


def check_owned(found: Sequence[Any], given: Sequence[Any]) -> None:
    """No result shares memory with another or with an input, and each can be written."""
    results = [result for result in found if isinstance(result, np.ndarray) and result.size]
    for place, result in enumerate(results):
        assert result.flags.writeable, "a result cannot be written"
        for other in (*given, *results[:place]):
            assert not np.may_share_memory(result, other), "a result shares memory"


def check_numpy(program: Program) -> None:
    """Hold the plain evaluation at a point to NumPy's."""
    inputs = program.point(0)
    run_on = program.total if program.function.m == 1 and program.kind != "value" else None
    if program.kind in ("gradient", "both", "hessian"):
        assert run_on is not None
        wanted = [program.total(inputs, np)]
    else:
        wanted = program.values(inputs, np)
    found = listed(program.function(*inputs))
    moves = lambda n: noise(program.function, inputs, found, n)  # noqa: E731
    agree(found, wanted, moves, "plain against NumPy", FORMULAS)


def check_batch(program: Program) -> None:
    """Hold the plain evaluation of a batch to that of its last point."""
    batch = program.setting.batch
    if not batch:
        return
    inputs = program.point(0, batch)
    last = (-1,) * len(batch)
    point = [
        array if array.ndim == len(shape) else array[last]
        for array, shape in zip(inputs, program.shapes, strict=True)
    ]
    wanted = listed(program.asked(*point))
    found = [np.asarray(result)[last] for result in listed(program.asked(*inputs))]
    moves = lambda n: noise(program.asked, point, wanted, n)  # noqa: E731
    agree(found, wanted, moves, "a batch against its point")


def check_jax(program: Program) -> None:
    """Hold value and reverse gradient to JAX's, where no two numbers tie."""
    import jax
    import jax.numpy as jnp

    inputs = program.point(0)
    f = dl.trace(lambda *given: program.total(given, np), *inputs)
    both = dl.value_and_gradient(f)
    value, gradient = both(*inputs)
    with jax.enable_x64(True):
        given = [jnp.asarray(array) for array in inputs]
        numbers = tuple(range(len(given)))
        right, slopes = jax.value_and_grad(lambda *a: program.total(a, jnp), numbers)(*given)
        flat = np.concatenate([np.ravel(slope) for slope in slopes])
    wanted = [np.asarray(right), flat]
    found = [value, gradient]
    agree(found, wanted, lambda n: noise(both, inputs, found, n), "against JAX", FORMULAS)


def check(program: Program) -> None:
    """Hold everything that a program asks to everything that computes it."""
    if program.points != "wild":  # NumPy's formulas of softmax and its kin have no limits there
        check_numpy(program)
    asked = program.asked
    if program.setting.target == "native" and len(asked.graph) > LONGEST:
        return
    with surroundings(program):
        check_calls(program, formed(program))
    check_batch(program)
    if program.jax and JAX and program.points == "normal":  # conventions at ties are JAX's own
        check_jax(program)


FAMILY = Family("arrays", programs(), check, fixed=400, fresh=200)

"""Random formulas under every target, in both modes, and against mpmath.

A target is held to the plain evaluation of the same graph; forward mode to reverse mode; the
plain evaluation and its derivatives to mpmath's values and their high-precision differences. How
far they may differ is computed with them (`bounds.py`).

Different orders of the same operations may give nan in one and a number in the other only where
something that the result depends on is infinite, undefined, or has no finite slope; a branch that
is not taken is nothing that the result depends on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
from numpy.typing import NDArray

import difflab as dl
from difflab.core.primitive import Primitive, Select
from difflab.errors import UnsupportedError
from difflab.execute import Compiled, point_calls, workers
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.execute.targets.llvm import writer
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.graph.function import Function, evaluate
from difflab.graph.interpreters import MpmathInterpreter
from difflab.language import parse
from difflab.lower import records
from tests.differential.bounds import Bounded, bounded, exact_row
from tests.differential.formulas import VARIABLES, Formula, formulas
from tests.differential.search import Family

Array = NDArray[Any]

STEEP = 1e100
"""A slope above it is taken for an infinite one."""
DIGITS, MANY_DIGITS = 120, 1000
STEP = mpmath.mpf(10) ** -40
TRUNCATED = 1e-60
"""What differences leave of higher derivatives, the step's square times those."""
JUMP = 1e25
"""A slope by differences above it is a jump's."""
MODERATE = 1e9
"""Numbers up to it, and none below its inverse but zero, are held to mpmath."""
NEAR = 1e-30
"""How far off a kink differences with steps of `STEP` are on one side of it."""
HESSIAN_OPERATIONS = 6
BATCH = 45
"""Points of a batch whose arrays machine code reads: some vectors, and not a whole number."""

DERIVED: tuple[Callable[[Function], Function], ...] = (
    lambda f: f,
    dl.value_and_gradient,
    lambda f: dl.gradient(f, mode="forward"),
    lambda f: dl.hessian(f) if len(f.graph) - f.n <= HESSIAN_OPERATIONS else dl.gradient(f),
)


def check(formula: Formula) -> None:
    """Raise AssertionError where two computations of the formula differ."""
    function = parse(formula.text)
    if not function.n:
        return
    columns = [VARIABLES.index(name) for name in function.inputs]
    points = np.array(formula.points)[:, columns].T
    which, derivative = formula.choice % 16, DERIVED[formula.choice // 16 % 4]
    if which < 8:
        target = "python" if which < 5 else "numpy"
        if which == 7 and formula.choice >= 192 and find_spec("llvmlite"):
            target = "native"
        check_target(derivative(function), points, target)
        if which == 4 and find_spec("llvmlite"):
            check_machine_code(derivative(function), points)
    elif which < 12:
        check_modes(function if which < 11 else dl.gradient(function), points)
    else:
        check_truth(function, points)


def program_of(function: Function) -> ScalarProgram:
    return ScalarProgram.of(function)


def computes_constants(function: Function) -> bool:
    """Whether operations on constants are folded, whose errors are not known."""
    return bool(Schedule.of(function).known.keys() - function.graph.constants.keys())


def assert_near(
    what: str, found: Array, expected: Array, bound: Array, points: Array, names: Any
) -> None:
    """Hold ``(points, numbers)`` to each other."""
    with np.errstate(all="ignore"):
        near = (found == expected) | (np.isnan(found) & np.isnan(expected))
        near |= (np.abs(found - expected) <= bound) | (bound == np.inf)
    if np.all(near):
        return
    point, number = np.argwhere(~near)[0].tolist()
    at = dict(zip(names, points[:, point].tolist(), strict=True))
    raise AssertionError(
        f"{what} at {at}, number {number}: {found[point, number]!r}, not "
        f"{expected[point, number]!r}, which may be wrong by {bound[point, number]!r}"
    )


def flat(results: Any, count: int) -> Array:
    parts = results if isinstance(results, tuple) else (results,)
    return np.concatenate([np.reshape(part, (count, -1)).astype(float) for part in parts], axis=1)


def check_target(function: Function, points: Array, target: str) -> None:
    """Hold a target, and the evaluator, to the kernels of the program one by one."""
    program = program_of(function)
    expected, bound = bounded(program, points, outside=False).outputs(program)
    count = points.shape[1]
    plain = flat(function(*points), count)
    assert_near("evaluated", plain, expected, bound, points, function.inputs)
    fast = dl.compile(function, target)
    found = flat(fast(*points), count)
    assert_near(target, found, expected, bound, points, function.inputs)
    if target == "python":
        single = np.concatenate([flat(fast(*point), 1) for point in points.T.tolist()])
        assert_near("python at a point", single, expected, bound, points, function.inputs)
    if fast.reason.startswith("native"):
        few = {"LEAST": 0, "WINDOW": 40, "PIECE": 2, "MOST_PIECES": 2}
        with patch.multiple(writer, **few), patch.multiple(records, _SMALL=8, _CHUNK=3):
            run = NativeTarget(copies(program, count), [(count, function.n)], 1)
            joined = flat(tuple(run.point(points.T.ravel())), count)
        assert_near(
            "native at one point, many times", joined, expected, bound, points, function.inputs
        )
        columns = [np.resize(column, BATCH) for column in points]
        check_read_batches(fast, columns)
        check_read_batches(dl.compile(function, target, packed=True), [np.stack(columns, 1)])


def check_read_batches(fast: Compiled, arrays: list[Array]) -> None:
    """Hold batches whose arrays machine code reads to those that it is handed, bit by bit."""
    expected = fast(*arrays)
    fast._install(None, fast._batch_code())
    pairs = zip(leaves(fast(*arrays)), leaves(expected), strict=True)
    assert all(_bits(a) == _bits(b) for a, b in pairs), f"batch of {arrays}"


def check_machine_code(function: Function, points: Array) -> None:
    """Hold what "auto" goes over to at one point to what it begins with, bit by bit."""
    packed = bool(points[0, 0] > 0)
    calls = [(np.array(p),) if packed else tuple(p) for p in points.T.tolist()]
    began = dl.compile(function, "python", packed=packed)
    before = [began(*call) for call in calls]
    with patch.object(point_calls, "worth_compiling", lambda *_: 1):
        fast = dl.compile(function, packed=packed)
        first = fast(*calls[0])  # evaluated; the second one is planned, and has code compiled
        fast(*calls[0])
    workers.finish()
    after = [fast(*call) for call in calls]
    for found, expected, call in zip(
        [first, *after], [before[0], *before], calls[:1] + calls, strict=True
    ):
        pairs = zip(leaves(found), leaves(expected), strict=True)
        same = all(type(a) is type(b) and _bits(a) == _bits(b) for a, b in pairs)
        assert same, f"machine code at {call}: {found!r}, not {expected!r}"


def leaves(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _bits(result: Any) -> tuple[Any, ...]:
    """Return shape, dtype and bits of a result; a nan is a nan."""
    array = np.asarray(result)
    return array.shape, array.dtype, np.where(array == array, array, np.nan).tobytes()


def copies(program: ScalarProgram, count: int) -> ScalarProgram:
    """Return a program as often as wished, as one: a call of a function recurs in each."""
    whole = ScalarProgram(count * program.inputs)
    cells = {cell: whole.inputs + k for k, cell in enumerate(program.known)}
    whole.known.update({cells[cell]: value for cell, value in program.known.items()})
    following = itertools.count(whole.inputs + len(cells))
    parts = [
        cells | {cell: k * program.inputs + cell for cell in range(program.inputs)}
        for k in range(count)
    ]
    for step in program.steps:
        for own in parts:
            args = tuple([own[arg] for arg in step.args])
            own[step.node] = next(following)
            whole.steps.append(step._replace(node=own[step.node], args=args))
    for output in program.outputs:
        flat = [own[cell] for own in parts for cell in output.ravel().tolist()]
        whole.outputs.append(np.array(flat, np.int64).reshape(count, *output.shape))
    return whole


def check_modes(function: Function, points: Array) -> None:
    """Hold forward mode to reverse mode."""
    program = program_of(function)
    settled = ~unsettled(program, bounded(program, points, outside=True), points.shape[1])
    sides = []
    for mode in ("forward", "reverse"):
        derived = program_of(dl.jacobian(function, mode))
        sides.append(bounded(derived, points, outside=True).outputs(derived))
    (forward, one), (reverse, other) = sides
    bound = one + other
    bound[~settled & ~np.all(np.isfinite(forward) & np.isfinite(reverse), axis=1)] = np.inf
    assert_near("forward mode", forward, reverse, bound, points, function.inputs)


def unsettled(program: ScalarProgram, frame: Bounded, count: int) -> Array:
    """Return at which points something that the result depends on has no finite slope."""
    live: dict[int, Array] = {
        int(cell): np.full(count, True) for cells in program.outputs for cell in cells.ravel()
    }
    bad = np.full(count, False)
    for cell, row, args, _ in reversed(program.steps):
        mask = live.get(cell)
        if mask is None:
            continue
        operands = [frame.values[arg] for arg in args]
        value, bound = frame.values[cell], frame.bounds[cell]
        bad |= mask & (~np.isfinite(value) | (bound == np.inf))
        if not exact_row(row):
            bad |= mask & _steep(row, operands, value)
        for arg, part in zip(args, _passed(row, operands, value), strict=True):
            live[arg] = live.get(arg, False) | (mask & part)
    return bad


def _passed(row: Primitive, operands: list[Any], value: Array) -> Iterator[Any]:
    """Yield where the result depends on each operand."""
    for place, operand in enumerate(operands):
        if not isinstance(row.rule, Select):
            yield True
        elif row.truths:
            yield [True, operands[0] != 0, operands[0] == 0][place]
        else:
            yield (operand == value) | np.isnan(value)


def _steep(row: Primitive, operands: list[Any], value: Array) -> Array:
    steep = np.full(value.shape, False)
    with np.errstate(all="ignore"):
        for place, x in enumerate(operands):
            size = np.where(x == 0, 1e-300, np.abs(x) * 2.0**-30)
            for step in (size, -size):  # beyond the edge of a domain is nan
                moved = [x + step if k == place else other for k, other in enumerate(operands)]
                slope = np.abs(row.computer(np)(*moved) - value) / size
                steep |= ~(slope <= STEEP)
    return steep


def check_truth(function: Function, points: Array) -> None:
    """Hold value and gradient to mpmath at the points where all numbers are moderate."""
    derived = dl.value_and_gradient(function)
    program = program_of(derived)
    if computes_constants(derived):
        return
    found, bound = bounded(program, points, outside=True).outputs(program)
    alone = program_of(function)
    frame = bounded(alone, points, outside=True)
    rough = unsettled(alone, frame, points.shape[1]) | at_kinks(alone, frame, points.shape[1])
    size = np.abs(points)
    moderate = np.all((size == 0) | ((size < MODERATE) & (size > 1 / MODERATE)), axis=0)
    for place in np.flatnonzero(moderate & ~rough).tolist()[:2]:
        truth = exact(function, points[:, place].tolist(), DIGITS)
        bound[place, 1:] += TRUNCATED
        if np.any(np.abs(found[place] - truth) > bound[place]):
            truth = exact(function, points[:, place].tolist(), MANY_DIGITS)
        limit = np.where(np.isfinite(truth), bound[place], np.inf)
        assert_near(
            "value and gradient by mpmath",
            found[[place]],
            truth[None],
            limit[None],
            points[:, [place]],
            function.inputs,
        )


def at_kinks(program: ScalarProgram, frame: Bounded, count: int) -> Array:
    """Return at which points an operation is at its kink, or too near for differences to see it.

    What is made of kinks may be smooth, as ``clip(y, w, w)``, and its derivative is not what the
    conventions at each kink give.
    """
    bad = np.full(count, False)
    for _, row, args, _ in program.steps:
        if row.kinks is not None:
            with np.errstate(all="ignore"):
                bad |= ~(np.abs(row.kinks(*(frame.values[arg] for arg in args))) > NEAR)
    return bad


def exact(function: Function, point: list[float], digits: int) -> Array:
    """Return value and gradient; nan where mpmath has none, or there is a kink."""
    found = [np.nan] * (1 + len(point))
    try:
        with mpmath.workdps(digits):
            at = list(map(mpmath.mpf, point))
            middle = _value(function, at)
            found[0] = float(middle)
            for place, x in enumerate(at):
                # A smaller step where more digits are asked for: its truncation error is less.
                step = STEP ** (2 if digits == MANY_DIGITS else 1) * (abs(x) or 1)
                left, right = (
                    _value(function, [*at[:place], x + side, *at[place + 1 :]])
                    for side in (-step, step)
                )
                below, above = (middle - left) / step, (right - middle) / step
                size = max(abs(above), abs(below))
                if size < JUMP and abs(above - below) <= size * mpmath.mpf(10) ** -25:
                    found[1 + place] = float((above + below) / 2)
    except (UnsupportedError, ArithmeticError, ValueError, mpmath.libmp.NoConvergence):
        pass
    return np.array(found)


def _value(function: Function, at: list[Any]) -> Any:
    return +mpmath.mpf(evaluate(function, at, MpmathInterpreter())[0])


FAMILY = Family("scalar", formulas(), check, fixed=1200, fresh=300)

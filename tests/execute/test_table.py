"""Walks the table: every row under every target, against the graph's own evaluator.

The evaluator's values are held to mpmath by `tests/primitives/test_table.py`; here a target may
differ from them by four units in the last place, nan and inf included.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.autodiff import gradient
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute import compile
from difflab.execute.lower.schedule import ScalarProgram
from difflab.execute.targets.python.target import PythonTarget
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.language import parse
from difflab.primitives import TABLE
from tests.support.rows import failures, for_each
from tests.support.special_rows import NO_MACHINE_CODE

Array = NDArray[np.float64]
Rows = dict[str, Primitive]

ULPS = 4
LOOSE = {"beta": 16, "dcbrt": 8, "derfi": 8, "log_ndtr_derivative": 12}
"""Several functions of libmvec in one, squares, and differences of its logarithms."""
EXPONENTIALS = {"beta": 4}
"""Units for each unit of ln y, the exponent of e, in which a logarithm may be off by as many."""
SAMPLED = {name: row for name, row in TABLE.items() if row.samples and row.shape is None}
ROWS = for_each("name", SAMPLED)
NATIVE = pytest.param(
    "native",
    marks=pytest.mark.skipif(not find_spec("llvmlite"), reason="llvmlite is not installed"),
)
TARGETS = pytest.mark.parametrize("target", ["python", "numpy", NATIVE])
EDGES = (0.0, 0.5, 1.0, 2.5, 3.0, 40.0, 700.0, 800.0, 1e-160, 1e200, 1e300, 5e-324, math.inf)
EDGES = (math.nan, *EDGES, *(-x for x in EDGES))
COMBINATIONS = 1000
"""Drawn where there are more of them."""


def function_of(row: Primitive) -> Function:
    """Return the row as a function; an argument whose box is one value is a constant."""
    builder = Builder()
    inputs: list[int] = []
    nodes = []
    for letter, (low, high) in zip("abcd", row.samples, strict=False):
        number = builder.constant(int(low)) if low == high else builder.input(letter)
        inputs += [] if low == high else [number]
        nodes.append(Node(builder, number))
    return Function.build(builder, inputs, [row(*nodes).id], ["y"])


def samples(row: Primitive, number: int) -> Array:
    boxes = np.array([box for box in row.samples if box[0] < box[1]])
    rng = np.random.default_rng(5)
    return rng.uniform(boxes[:, 0], boxes[:, 1], (number, len(boxes)))


def edges(function: Function) -> Array:
    every = list(itertools.product(EDGES, repeat=function.n))
    if len(every) > COMBINATIONS:
        rng = np.random.default_rng(9)
        every = [every[k] for k in rng.choice(len(every), COMBINATIONS, replace=False)]
    return np.array(every)


def assert_close(
    found: Array, expected: Array, what: str, ulps: Any = ULPS, points: Array | None = None
) -> None:
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= ulps * np.spacing(np.abs(expected))
    wrong = np.flatnonzero(~(same | near))
    at = wrong if points is None else points[wrong]
    assert not wrong.size, f"{what}: {found[wrong][:5]}, not {expected[wrong][:5]} at {at[:5]}"


def allowed(name: str, expected: Array) -> Any:
    """Return the units that a row's values may differ by."""
    units = LOOSE.get(name, ULPS)
    if name not in EXPONENTIALS:
        return units
    with np.errstate(all="ignore"):
        exponents = np.abs(np.log(np.abs(expected)))
    return units + EXPONENTIALS[name] * np.nan_to_num(exponents, posinf=0.0)


def evaluated(function: Function, points: Array) -> Array:
    # As a batch: NumPy itself takes single numbers by another way, and gives (-inf)^0.5 = nan.
    return np.asarray(function.values(points)[:, 0], dtype=float)


def programs(target: str, *, derived: bool = False) -> Iterator[Rows]:
    """Yield the rows in groups that are compiled as one function of inputs of their own.

    Python code computes all of a function in a guarded way where one operation raises, and a
    function with a row that LLVM does not compute is left to NumPy: these rows are functions each.
    Rows of as many inputs are one group, which has as many points as each of them.
    """
    groups: dict[object, Rows] = {}
    for name, row in SAMPLED.items():
        if derived and row.boolean:  # a truth value has no derivative
            continue
        function = gradient(function_of(row)) if derived else function_of(row)
        used = {each.name for each in function.graph.primitives}
        alone = target == "python" or (target == "native" and used & NO_MACHINE_CODE)
        groups.setdefault(name if alone else function.n, {})[name] = row
    yield from groups.values()


def together(rows: Rows, *, total: bool = False) -> Function:
    """Return a function of all inputs of some rows, with an output per row or their sum."""
    builder = Builder()
    inputs: list[int] = []
    results: list[Node] = []
    for k, row in enumerate(rows.values()):
        nodes = []
        for letter, (low, high) in zip("abcd", row.samples, strict=False):
            number = builder.constant(int(low)) if low == high else builder.input(f"{letter}{k}")
            inputs += [] if low == high else [number]
            nodes.append(Node(builder, number))
        results.append(row(*nodes))
    if total:
        results = [functools.reduce(operator.add, results)]
    outputs = [f"y{k}" for k in range(len(results))]
    return Function.build(builder, inputs, [node.id for node in results], outputs)


Noted = Callable[[str], AbstractContextManager[None]]


def hold_rows(noted: Noted, rows: Rows, points: Sequence[Array], found: Array) -> None:
    """Hold the values of some rows, a column each, to those of the evaluator."""
    for (name, row), at, column in zip(rows.items(), points, found.T, strict=True):
        with noted(name):
            expected = evaluated(function_of(row), at)
            assert_close(column, expected, name, allowed(name, expected), at)


def compiled(rows: Rows, function: Function, target: str) -> Any:
    """Compile a function of some rows; where there are several, not by another target."""
    fast = compile(function, target)
    assert len(rows) == 1 or fast.reason.startswith(target), fast.reason
    return fast


@TARGETS
def test_rows_agree_with_the_evaluator_at_points(target: str) -> None:
    with failures(len(SAMPLED)) as noted:
        for rows in programs(target):
            fast = compiled(rows, together(rows), target)
            points = [
                np.concatenate([samples(row, 40), edges(function_of(row))]) for row in rows.values()
            ]
            found = [np.ravel(fast(*at)) for at in np.concatenate(points, axis=1).tolist()]
            hold_rows(noted, rows, points, np.array(found, dtype=float))


@TARGETS
def test_rows_agree_with_the_evaluator_in_batches(target: str) -> None:
    with failures(len(SAMPLED)) as noted:
        for rows in programs(target):
            fast = compiled(rows, together(rows), target)
            points = [
                np.concatenate([samples(row, 1000), edges(function_of(row))])
                for row in rows.values()
            ]
            found = fast(*np.concatenate(points, axis=1).T)
            columns = found if len(rows) > 1 else [found]
            hold_rows(noted, rows, points, np.array(columns, dtype=float).T)


@pytest.mark.parametrize("name", ["logcosh", "versine"])
@TARGETS
def test_rows_that_square_keep_four_ulp_of_the_truth(name: str, target: str) -> None:
    # Squaring doubles an error, and glibc's vector functions may err by 4 ULP.
    row = SAMPLED[name]
    points = samples(row, 4000)[:, 0]
    with mpmath.workdps(40):
        exact = [float(row.mpmath(mpmath.mp, mpmath.mpf(x))) for x in points.tolist()]
    assert_close(compile(function_of(row), target)(points), np.array(exact), f"{name} in {target}")


@TARGETS
def test_sums_of_logarithms_keep_the_digits_that_their_operands_have(target: str) -> None:
    # Where e^a + e^b is 1 the result is 0 and a last place of a or b is all there is to know.
    a, b = np.random.default_rng(7).uniform(-3, 0, (2, 4000))
    with mpmath.workdps(40):
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        exact = [mpmath.log(mpmath.exp(x) + mpmath.exp(y)) for x, y in pairs]
        found = compile(function_of(TABLE["logaddexp"]), target)(a, b).tolist()
        wrong = [abs(float(y - z)) for y, z in zip(found, exact, strict=True)]
    size = np.maximum(np.maximum(abs(a), abs(b)), np.abs(found))
    assert np.all(wrong <= ULPS * np.spacing(size))


@TARGETS
@pytest.mark.parametrize("points", [1, 5])
def test_the_square_root_by_a_power_is_ieee_754s(target: str, points: int) -> None:
    """pow(-inf, 0.5) is inf and pow(-0, 0.5) is 0, whichever way NumPy takes to it."""
    function = parse("[x^0.5, x^y, 1/(x^0.5)]")
    fast = compile(function, target)
    for x, expected in [(-math.inf, (math.inf, math.inf, 0.0)), (-0.0, (0.0, 0.0, math.inf))]:
        for call in (fast, function):
            assert [float(value) for value in call(x, 0.5)] == list(expected)
            batch = call(np.full(points, x), 0.5)
            assert [value.tolist() for value in batch] == [[value] * points for value in expected]


@TARGETS
def test_loggamma_of_a_subnormal_number_is_finite(target: str) -> None:
    fast = compile(parse("loggamma(x)"), target)
    with mpmath.workdps(30):
        exact = [float(mpmath.loggamma(x)) for x in (5e-324, 1e-310)]
    assert_close(np.array([fast(5e-324), fast(1e-310)]), np.array(exact), target)


@ROWS
def test_guarded_code_agrees_with_the_plain_code(name: str) -> None:
    function = function_of(SAMPLED[name])
    target = PythonTarget(ScalarProgram.of(function), function.input_shapes)
    points = np.concatenate([samples(SAMPLED[name], 40), edges(function)])
    found = np.array([target.guarded(point.tolist())[0] for point in points], dtype=float)
    assert_close(found, evaluated(function, points), name)


@TARGETS
def test_derivatives_of_rows_agree_with_the_evaluator(target: str) -> None:
    with failures(len(SAMPLED)) as noted:
        for rows in programs(target, derived=True):
            derivative = gradient(together(rows, total=True))
            fast = compiled(rows, derivative, target)
            points = np.concatenate([samples(row, 20) for row in rows.values()], axis=1)
            found = np.array([np.ravel(fast(*at)) for at in points.tolist()])
            expected = np.array([np.ravel(derivative(*at)) for at in points.tolist()])
            parts = np.split(np.arange(found.shape[1]), len(rows), axis=0)
            for name, part in zip(rows, parts, strict=True):
                with noted(name):
                    # Several operations, each of which may differ in the last place.
                    np.testing.assert_allclose(
                        found[:, part], expected[:, part], rtol=2e-15, atol=1e-300, err_msg=name
                    )


@ROWS
def test_row_works_on_arrays(name: str) -> None:
    row = SAMPLED[name]
    builder = Builder()
    boxes = [box for box in row.samples if box[0] < box[1]]
    nodes, inputs = [], []
    for letter, (low, high) in zip("abcd", row.samples, strict=False):
        fixed = low == high
        node = builder.constant(low) if fixed else builder.input(letter, (2, 3))
        inputs += [] if fixed else [node]
        nodes.append(Node(builder, node))
    function = Function.build(builder, inputs, [row(*nodes).id], ["y"])
    rng = np.random.default_rng(3)
    for batch in [(), (5,), (2, 4)]:
        values = [rng.uniform(low, high, (*batch, 2, 3)) for low, high in boxes]
        found = compile(function, "numpy")(*values)
        assert found.shape == (*batch, 2, 3)
        assert_close(found.ravel(), np.asarray(function(*values)).ravel(), name)
    with pytest.raises(UnsupportedError, match="computes with"):
        compile(function, "python")

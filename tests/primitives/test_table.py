"""Walks the table: every row in both modes and two orders against the referee and SymPy.

The referee differentiates mpmath values by differences and uses no derivative rule, so a wrong
rule cannot agree with it; the last section proves that by making every rule wrong in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from difflab.autodiff import jacobian, jvp, vjp
from difflab.core.primitive import Elementwise, Primitive, Select
from difflab.graph.builder import Builder
from difflab.graph.counts import count
from difflab.graph.function import Function, evaluate
from difflab.graph.interpreters import MpmathInterpreter, SympyInterpreter
from difflab.graph.node import Node
from difflab.primitives import TABLE, as_number, by_spelling
from difflab.referee.referee import refer
from difflab.referee.ulp import ulp_distance
from tests.support.rows import for_each, replaced_rule

Array = NDArray[np.float64]

FIRST_ORDER_ULPS = 8.0
SECOND_ORDER_RTOL = 2e-14
# These have zeros inside their box, near which only the absolute error is small.
KERNEL_ATOL = {"loggamma": 2.0**-51, "digamma": 2.0**-51, "ci": 2.0**-51}

SAMPLED = {name: row for name, row in TABLE.items() if row.samples and not row.structural}
ROWS = for_each("name", SAMPLED)
MODES = pytest.mark.parametrize("mode", ["forward", "reverse"])


def function_of(row: Primitive) -> Function:
    """Return the function that applies the row to inputs a, b, … and gives a number.

    An argument whose box is a single value, such as the order of polygamma, is a constant.
    """
    builder = Builder()
    inputs: list[int] = []
    nodes = []
    for letter, (low, high) in zip("abcd", row.samples, strict=False):
        number = builder.constant(int(low)) if low == high else builder.input(letter)
        inputs += [] if low == high else [number]
        nodes.append(Node(builder, number))
    result = row(*nodes)
    if row.boolean:
        result = as_number(result)
    return Function.build(builder, inputs, [result.id], ["y"])


def points_of(row: Primitive, number: int = 4) -> Iterator[Array]:
    """Yield points spread over the row's sampling box, the same on every run."""
    boxes = [box for box in row.samples if box[0] < box[1]]
    for k in range(1, number + 1):
        shares = [(k * math.sqrt(prime)) % 1 for prime in (2, 3, 5)[: len(boxes)]]
        yield np.array([a + s * (b - a) for s, (a, b) in zip(shares, boxes, strict=True)])


@cache
def truths(name: str, order: int) -> list[tuple[Array, Array]]:
    """Return points and the referee's derivatives there."""
    row = SAMPLED[name]
    found = []
    for point in points_of(row):
        truth = refer(function_of(row), point.tolist(), order=order, timeout=60.0)
        assert truth.status == "smooth", f"{name} is {truth.status} at {point}"
        found.append((point, truth.jacobian))
    return found


def check(row: Primitive, mode: str, order: int = 1) -> None:
    """Fail unless the row's derivative of that order agrees with the referee everywhere."""
    function = function_of(row)
    derivative = jacobian(function, mode)
    if order == 2:
        derivative = jacobian(derivative, mode)
    for point, truth in truths(row.name, order):
        found = derivative.values(point).reshape(truth.shape)
        largest = np.max(np.abs(truth))
        allowed = (
            FIRST_ORDER_ULPS * np.spacing(np.abs(truth))
            if order == 1
            else np.full(truth.shape, SECOND_ORDER_RTOL * largest)
        )
        wrong = ~(np.abs(found - truth) <= allowed)
        assert not wrong.any(), f"{row.name} at {point}: {found}, not {truth}"


# --- derivatives against the referee ----------------------------------------------------------


@ROWS
@MODES
@pytest.mark.parametrize("order", [1, 2])
def test_derivative_agrees_with_the_referee(name: str, mode: str, order: int) -> None:
    check(SAMPLED[name], mode, order)


@ROWS
def test_derivative_agrees_with_sympy(name: str) -> None:
    row = SAMPLED[name]
    function = function_of(row)
    if row.boolean or row.truths or not (row.sympy or row.expansion):
        pytest.skip("SymPy has no such function of numbers")
    if name in ("floor", "ceil", "mod"):
        pytest.skip("SymPy's own derivative of it does not end")
    symbols = sympy.symbols("a b c d", real=True)[: function.n]
    (expression,) = evaluate(function, symbols, SympyInterpreter())
    found = jacobian(function, "reverse")
    for point in points_of(row):
        values = dict(zip(symbols, map(sympy.Float, point, [40] * function.n), strict=True))
        truth = [float(sympy.diff(expression, s).subs(values).evalf(30)) for s in symbols]
        np.testing.assert_allclose(found.values(point), truth, rtol=4e-15, atol=0)


@ROWS
def test_forward_and_reverse_are_each_others_transpose(name: str) -> None:
    function = function_of(SAMPLED[name])
    push, pull = jvp(function), vjp(function)
    rng = np.random.default_rng(7)
    for point in points_of(SAMPLED[name]):
        x_dot, y_bar = rng.normal(size=function.n), rng.normal(size=1)
        y_dot = push.values(np.concatenate([point, x_dot]))[1:]
        x_bar = pull.values(np.concatenate([point, y_bar]))[1:]
        np.testing.assert_allclose(y_bar @ y_dot, x_bar @ x_dot, rtol=1e-13, atol=1e-13)


# --- values -----------------------------------------------------------------------------------


@ROWS
def test_kernel_is_accurate(name: str) -> None:
    row = SAMPLED[name]
    function = function_of(row)
    with mpmath.workdps(60):
        for point in points_of(row, 12):
            (truth,) = evaluate(function, [mpmath.mpf(v) for v in point], MpmathInterpreter())
            (found,) = function.values(point)
            allowed = row.ulps * math.ulp(float(truth))
            error = float(abs(mpmath.mpf(float(found)) - truth))
            assert error <= max(allowed, KERNEL_ATOL.get(name, 0.0)), f"off by {error} at {point}"


@for_each("name", [name for name, row in TABLE.items() if row.polynomial])
def test_polynomials_of_whole_exponents_have_no_higher_differences(name: str) -> None:
    x = np.arange(-4.0, 5.0)
    for exponent in range(5):
        with np.errstate(all="ignore"):
            values = TABLE[name].computer(np)(x, float(exponent))  # exact integers
        assert not np.any(np.diff(values, exponent + 1)), exponent


SMOOTH_UNARY = [
    name for name, row in SAMPLED.items() if row.arity == 1 and row.names and row.analytic
]
MAGNITUDES = (1e-300, 1e-100, 1e-17, 1e-8, 0.1, 0.75, 1.5, 3.0, 30.0, 800.0, 1e8, 1e100, 1e300)


@for_each("name", SMOOTH_UNARY)
def test_tiny_and_huge_arguments_keep_their_digits(name: str) -> None:
    row = SAMPLED[name]
    function = function_of(row)
    derivatives = [jacobian(function, mode) for mode in ("forward", "reverse")]
    signs = (1.0,) if name in ("gamma", "loggamma", "digamma") else (1.0, -1.0)
    checked = 0
    for x in (sign * size for size in MAGNITUDES for sign in signs):
        with mpmath.workdps(60):
            (truth,) = evaluate(function, [mpmath.mpf(x)], MpmathInterpreter())
            if mpmath.isnan(truth):
                continue
        (found,) = function.values(np.array([x]))
        assert ulp_distance(float(found), truth) <= row.ulps, x
        reference = refer(function, [x], timeout=60.0)
        if reference.status == "smooth":
            for derivative in derivatives:
                (slope,) = derivative.values(np.array([x]))
                assert ulp_distance(float(slope), reference.exact[0, 0]) <= FIRST_ORDER_ULPS, x
        checked += 1
    assert checked >= 4


@ROWS
def test_analytic_rows_take_a_complex_step(name: str) -> None:
    row = SAMPLED[name]
    if not row.analytic:
        pytest.skip("not analytic")
    function = function_of(row)
    derivative = jacobian(function, "reverse")
    for point in points_of(row):
        steps = point + 1e-30j * np.eye(point.size)
        found = function.values(steps)[:, 0].imag / 1e-30
        np.testing.assert_allclose(found, derivative.values(point), rtol=1e-13, atol=1e-15)


# --- the table itself -------------------------------------------------------------------------


def test_names_and_spellings_are_unique() -> None:
    assert all(TABLE[row.name] is row for row in TABLE.values())
    spellings = [spelling for row in TABLE.values() for spelling in row.names]
    assert len(spellings) == len(set(spellings)) == len(by_spelling)


@ROWS
def test_row_is_complete(name: str) -> None:
    row = SAMPLED[name]
    assert row.arity == len(row.samples)
    rule = row.rule
    assert isinstance(rule, Elementwise | Select)
    entries = rule.maps if isinstance(rule, Elementwise) else rule.conditions
    assert len(entries) == row.arity
    assert all(low <= high for low, high in row.samples)
    assert any(low < high for low, high in row.samples)
    assert row.expansion or (row.mpmath and row.latex)
    assert row.kinks is None or row.convention
    assert bool(row.names or row.infix) != bool(row.expansion or name == "as_number")


@ROWS
def test_sampling_box_is_inside_the_domain_and_away_from_kinks(name: str) -> None:
    row = SAMPLED[name]
    boxes = [box for box in row.samples if box[0] < box[1]]
    corners = np.array(np.meshgrid(*boxes)).reshape(len(boxes), -1).T
    assert np.isfinite(function_of(row).values(corners.astype(float))).all()
    if row.kinks is not None and not row.boolean and row.name not in ("minimum", "maximum"):
        distances = [abs(float(row.kinks(*corner))) for corner in corners]
        assert min(distances) > 0.01


# --- kinks ------------------------------------------------------------------------------------

# The derivative that each row promises at a kink, a jump or the edge of its domain.
CONVENTIONS: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("absolute", (0.0,), (0.0,)),
    ("relu", (0.0,), (0.0,)),
    ("sign", (0.0,), (0.0,)),
    ("heaviside", (0.0,), (0.0,)),
    ("floor", (2.0,), (0.0,)),
    ("ceil", (2.0,), (0.0,)),
    ("round", (2.5,), (0.0,)),
    ("mod", (4.0, 2.0), (1.0, -2.0)),
    ("minimum", (1.0, 1.0), (0.0, 1.0)),
    ("maximum", (1.0, 1.0), (0.0, 1.0)),
    ("clip", (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
    ("clip", (1.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
    ("hypot", (0.0, 0.0), (0.0, 0.0)),
    ("atan2", (0.0, 0.0), (math.nan, math.nan)),
    ("sqrt", (0.0,), (math.inf,)),
    ("cbrt", (0.0,), (math.inf,)),
    ("power", (0.0, 0.0), (0.0, -math.inf)),
    ("power", (0.0, 2.0), (0.0, 0.0)),
    ("power", (0.0, 1.0), (1.0, 0.0)),
    ("power", (-3.0, 2.0), (-6.0, math.nan)),
    *((name, (1.0, 1.0), (0.0, 0.0)) for name, row in TABLE.items() if row.boolean and row.kinks),
]


@MODES
@for_each(("name", "point", "expected"), CONVENTIONS)
def test_kink_takes_the_documented_value(
    name: str, point: tuple[float, ...], expected: tuple[float, ...], mode: str
) -> None:
    derivative = jacobian(function_of(TABLE[name]), mode)
    np.testing.assert_array_equal(
        derivative.values(np.array(point))[: len(point)].ravel(), expected
    )


def test_every_row_with_a_kink_has_its_convention_tested() -> None:
    kinky = {name for name, row in TABLE.items() if row.kinks is not None}
    assert kinky <= {name for name, _, _ in CONVENTIONS}


@pytest.mark.parametrize("name", ["absolute", "relu", "minimum", "maximum", "clip"])
def test_convention_lies_between_the_one_sided_derivatives(name: str) -> None:
    for row, point, expected in CONVENTIONS:
        if row != name:
            continue
        truth = refer(function_of(TABLE[name]), point, timeout=100.0)
        assert truth.status == "kink"
        left, right = (np.array(side, dtype=float).ravel() for side in (truth.left, truth.right))
        assert np.all(np.fmin(left, right) <= expected)
        assert np.all(expected <= np.fmax(left, right))


OUTSIDE = [
    ("log", (-1.0,)),
    ("log2", (-1.0,)),
    ("log10", (-1.0,)),
    ("log1p", (-2.0,)),
    ("sqrt", (-1.0,)),
    ("asin", (1.5,)),
    ("acos", (1.5,)),
    ("acosh", (0.5,)),
    ("atanh", (1.5,)),
    ("power", (-1.5, 0.5)),
]


@MODES
@for_each(("name", "point"), OUTSIDE)
def test_outside_its_domain_a_row_has_no_derivative(
    name: str, point: tuple[float, ...], mode: str
) -> None:
    function = function_of(TABLE[name])
    assert np.isnan(function.values(np.array(point))).all()
    assert np.isnan(jacobian(function, mode).values(np.array(point))).all()


@for_each("name", [name for name, row in SAMPLED.items() if row.arity == 1 and row.names])
def test_reverse_mode_over_a_chain_takes_at_most_four_functions(name: str) -> None:
    """The bound of Baur and Strassen holds row by row, primal values included."""
    builder = Builder()
    source = builder.input("a")
    node = Node(builder, source)
    for _ in range(12):
        node = SAMPLED[name](node)
        if SAMPLED[name].boolean:
            node = as_number(node)
    function = Function.build(builder, [source], [node.id], ["y"])
    derivative = jacobian(function, "reverse")
    assert count(derivative).operations <= 4 * count(function).operations


# --- a wrong rule is caught -------------------------------------------------------------------


def wrong_rules(row: Primitive, mode: str) -> Iterator[Elementwise | Select]:
    """Yield the row's rule with one argument's part made slightly wrong."""
    rule = row.rule
    if isinstance(rule, Elementwise):
        for k, entry in enumerate(rule.maps):
            if row.samples[k][0] < row.samples[k][1]:
                yield Elementwise((*rule.maps[:k], _wrong(entry), *rule.maps[k + 1 :]))
    elif isinstance(rule, Select):
        asked = [k for k, condition in enumerate(rule.conditions) if condition is not None]
        # Forward mode asks in turn, and at the sampled points the first answer decides.
        for k in asked[:1] if mode == "forward" else asked:
            condition = rule.conditions[k]
            assert condition is not None
            changed = (*rule.conditions[:k], _opposite(condition), *rule.conditions[k + 1 :])
            yield Select(changed)


def _wrong(entry: Callable[..., Any] | None) -> Callable[..., Any]:
    if entry is None:
        return lambda t, y, *a: t * 1e-3
    return lambda t, y, *a: entry(t, y, *a) * 1.0001


def _opposite(condition: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a: TABLE["logical_not"](condition(*a))


@ROWS
@MODES
def test_a_wrong_rule_is_caught(name: str, mode: str) -> None:
    row = SAMPLED[name]
    if row.boolean or (row.truths == (0,) and row.arity == 1):
        pytest.skip("a truth value takes no derivative whatever its rule says")
    wrongs = list(wrong_rules(row, mode))
    assert wrongs
    for wrong in wrongs:
        with replaced_rule(row, wrong), pytest.raises(AssertionError):
            check(row, mode)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("point", "slopes"),
    [
        ((0.5, 2.0, 1.0), (0.0, 0.0, 1.0)),  # min(max(x, low), high) is high everywhere near
        ((1.5, 2.0, 1.0), (0.0, 0.0, 1.0)),
        ((3.0, 2.0, 1.0), (0.0, 0.0, 1.0)),
        ((0.5, 1.0, 2.0), (0.0, 1.0, 0.0)),
    ],
)
def test_clip_with_bounds_in_the_wrong_order_depends_on_the_upper_one(
    mode: str, point: tuple[float, ...], slopes: tuple[float, ...]
) -> None:
    found = jacobian(function_of(TABLE["clip"]), mode)(*point)
    np.testing.assert_array_equal(np.ravel(found), slopes)
    low_high = MpmathInterpreter().operation(TABLE["clip"])(*point)
    assert low_high == min(max(point[0], point[1]), point[2])


def test_the_slope_of_mod_counts_whole_divisors_exactly() -> None:
    """0.3/1e-8 rounds up to 30000000, of which 29999999 fit."""
    assert 0.3 / 1e-8 == 30000000.0
    with mpmath.workdps(40):
        exact = -float(mpmath.floor(mpmath.mpf(0.3) / mpmath.mpf(1e-8)))
    assert jacobian(function_of(TABLE["mod"]), "reverse")(0.3, 1e-8)[0, 1] == exact == -29999999.0


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("x", [-50.5, -1000.3, -12345678.7, -1e11 - 0.25, -1e15 - 0.5])
def test_derivatives_of_digamma_far_below_zero_are_the_reflected_ones(order: int, x: float) -> None:
    # DLMF 5.5.4, differentiated: in 60 digits, where π cot πx has its period exactly.
    with mpmath.workdps(60):
        place = mpmath.mpf(x) - mpmath.floor(x)
        turned = mpmath.diff(lambda z: mpmath.pi * mpmath.cot(mpmath.pi * z), place, order)
        expected = (-1) ** order * mpmath.polygamma(order, 1 - mpmath.mpf(x)) - turned
        # mpmath's own takes as many steps as x is below 0
        spelled = TABLE["polygamma"].mpmath(mpmath, order, mpmath.mpf(x))
        assert abs(spelled / expected - 1) < 1e-40
    assert float(TABLE["polygamma"](order, x)) == pytest.approx(float(expected), rel=1e-15)


def test_signs_and_degrees_are_those_of_the_kernels() -> None:
    sums = [row for row in TABLE.values() if row.signs]
    products = [row for row in TABLE.values() if row.degrees]
    assert len(sums) == 3
    assert len(products) == 2
    for row in sums:
        args = (3.0, -0.5)[: row.arity]
        added = sum(sign * arg for sign, arg in zip(row.signs, args, strict=True))
        assert row.computer(np)(*args) == added
    for row in products:
        args = (3.0, -0.5)[: row.arity]
        multiplied = math.prod(arg**degree for arg, degree in zip(args, row.degrees, strict=True))
        assert row.computer(np)(*args) == multiplied


def test_views_share_memory_and_rows_in_order_keep_it() -> None:
    x = np.arange(4.0).reshape(2, 2)
    params: dict[str, dict[str, Any]] = {
        "broadcast": {"shape": (3, 2, 2), "rank": 2},
        "index": {"key": ((0, 2, 1), 1), "rank": 2},
        "reshape": {"shape": (4,), "rank": 2},
        "diagonal": {},
        "transpose": {"axes": (-1, -2)},
        "pack": {"ranks": (2,)},
    }
    for row in TABLE.values():
        if row.view or row.in_order:
            found = row.computer(np)(x, **params[row.name])
            assert np.shares_memory(found, x) == row.view
            assert bool(row.read_only) == (row.view and not found.flags.writeable)
            assert not row.in_order or found.ravel().tolist() == x.ravel().tolist()

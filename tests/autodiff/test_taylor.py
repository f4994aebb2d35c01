"""Taylor mode: expected values are FLINT's power series, mpmath's differences, JAX and algebra."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint
import mpmath
import numpy as np
import pytest

import difflab as dl
import difflab.primitives as table
from difflab.autodiff.functions.series import higher_derivative
from difflab.autodiff.transforms.partial import partial_derivative
from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.node import Node
from difflab.graph.rewritten import composed
from tests.support.orders import orders
from tests.support.rows import for_each

ROWS = {
    row.name: row
    for row in vars(table).values()
    if isinstance(row, Primitive) and row.shape is None and row.samples and not row.boolean
    if row.name != "float32"  # its derivative is a convention
}
MOST = 30

SERIES: dict[str, tuple[float, Callable[[Any], Any]]] = {
    "sin": (0.7, lambda s: s.sin()),
    "cos": (0.7, lambda s: s.cos()),
    "tan": (0.5, lambda s: s.tan()),
    "exp": (1.25, lambda s: s.exp()),
    "log": (1.75, lambda s: s.log()),
    "sqrt": (2.5, lambda s: s.sqrt()),
    "asin": (0.375, lambda s: s.asin()),
    "acos": (0.375, lambda s: s.acos()),
    "atan": (0.625, lambda s: s.atan()),
    "erf": (0.5, lambda s: s.erf()),
    "erfc": (0.5, lambda s: s.erfc()),
    "gamma": (2.25, lambda s: s.gamma()),
    "loggamma": (2.25, lambda s: s.lgamma()),
    "dlog": (1.75, lambda s: s.inv()),
}


def along_a_line(row: Primitive) -> Function:
    """Return the row along a line inside its domain, as a function of one number."""
    shares = (0.31, 0.62, 0.17, 0.44)[: len(row.samples)]
    point = [
        low + share * (high - low) for share, (low, high) in zip(shares, row.samples, strict=True)
    ]
    slopes = [1.0, -0.5, 0.25, 0.5][: len(point)]
    if orders(row):  # only the last argument varies
        slopes = [*[0.0] * orders(row), *slopes[: len(point) - orders(row)]]

    def along(nodes: list[Node]) -> list[Node]:
        (t,) = nodes
        args: list[Any] = [p + s * t if s else p for p, s in zip(point, slopes, strict=True)]
        return [row(*args)]

    return composed(along, [()])


def differences(function: Function, x: float, order: int) -> list[Any]:
    """Return the Taylor coefficients by differences of values with many digits."""
    with mpmath.workdps(30):
        whole: list[Any] = mpmath.taylor(
            lambda t: dl.evaluate(function, [t], MpmathInterpreter())[0], mpmath.mpf(x), order
        )
    return whole


SMALL_AFTER_LARGE = {"log_ndtr": 1e-12, "log_ndtr_derivative": 1e-12}
"""Rows whose coefficients at 0 fall a thousandfold, as differences of the ones before them."""


@for_each("name", ROWS)
def test_every_row_matches_differences(name: str) -> None:
    function, order = along_a_line(ROWS[name]), 6
    found = dl.taylor(function, order=order)(0.0)
    expected = differences(function, 0.0, order)
    for mine, exact in zip(found, expected, strict=True):
        bound = SMALL_AFTER_LARGE.get(name, 1e-13) * max(abs(exact), 1e-3)
        assert abs(mpmath.mpf(float(mine)) - exact) <= bound, name


@for_each("name", SERIES)
def test_order_30_matches_power_series_with_proved_digits(name: str) -> None:
    x, series = SERIES[name]
    flint.ctx.prec, before = 200, flint.ctx.prec
    flint.ctx.cap, cap = MOST + 1, flint.ctx.cap
    try:
        expected = [float(c.mid()) for c in series(flint.arb_series([x, 1])).coeffs()]
    finally:
        flint.ctx.prec, flint.ctx.cap = before, cap
    found = dl.taylor(lambda x: ROWS[name](x), x, MOST)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["sin", "exp", "tanh", "asinh", "atan2", "logaddexp", "power"])
def test_the_cost_grows_with_the_square_of_the_order(name: str) -> None:
    function = along_a_line(ROWS[name])
    few, many = (dl.count(dl.taylor(function, order=d)).operations for d in (10, 30))
    assert many <= 13 * few  # 9 for large orders; a cubic cost would be 27


def test_a_power_below_zero_costs_what_its_recurrence_costs() -> None:
    """A constant exponent below 0 needs no terms of its own at base 0, where it has none."""
    by_power, product = (
        dl.count(dl.taylor(dl.parse(text), order=20)).operations
        for text in ("(x + sin(x))^-1.5", "(x + sin(x))*exp(x)")
    )
    assert by_power < 3 * product


@pytest.mark.parametrize(
    "text", ["x^3", "x^10 + x^2", "x^0", "(x - 1)^5*x^2", "1/(1 - x)", "sqrt(1 + x)^3"]
)
def test_powers_at_zero(text: str) -> None:
    function = dl.parse(text if "x" in text else f"{text} + 0*x")
    found = dl.taylor(function, 0.0, 6)
    np.testing.assert_allclose(found, [float(c) for c in differences(function, 0.0, 6)], atol=1e-15)


def test_jet_agrees_with_jax() -> None:
    jet = pytest.importorskip("jax.experimental.jet")
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def f(np: Any, x: Any, w: Any) -> Any:
        return np.sum(np.sin(x * w[0]) * np.exp(w[1] - x)) + np.tanh(w @ w)

    draw = np.random.default_rng(0)
    primals = (draw.normal(size=3), draw.normal(size=2))
    series = tuple([draw.normal(size=p.shape) for _ in range(4)] for p in primals)
    value, slopes = dl.jet(lambda x, w: f(np, x, w), primals, series)
    expected, theirs = jet.jet(lambda x, w: f(jax.numpy, x, w), primals, series)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(slopes, np.array(theirs), rtol=1e-11)


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "det": np.linalg.det,
    "inv": np.linalg.inv,
    "solve": lambda a: np.linalg.solve(a, np.array([1.0, 2.0]) * a[0]),
    "cholesky": lambda a: np.linalg.cholesky(a + a.T),
    "eigenvalues": lambda a: np.linalg.eigh(a + a.T)[0],
    "eigenvectors": lambda a: np.linalg.eigh(a + a.T)[1] ** 2,
    "singular values": lambda a: np.linalg.svd(a)[1],
    "qr": lambda a: np.linalg.qr(a)[1] ** 2,
    "pinv": lambda a: np.linalg.pinv(a[:1]),
    "norm": lambda a: np.linalg.norm(a, axis=0),
    "product": lambda a: np.prod(a, axis=1),
    "matmul": lambda a: a @ a.T @ a[0],
    "softmax": lambda a: dl.arrays.softmax(a),
    "largest": lambda a: np.max(a) * a,
    "moved": lambda a: np.cumsum(np.concatenate([a.ravel(), a[1] ** 2])),
    "branches": lambda a: np.where(a > 0.5, np.sqrt(np.abs(a)), a * a),
}


@for_each("name", ARRAYS)
def test_arrays_match_nested_forward_mode(name: str) -> None:
    f = ARRAYS[name]
    at, along = np.array([[2.0, 0.25], [0.5, 3.0]]), np.array([[0.1, 0.2], [0.3, -0.1]])
    found = dl.taylor(f, at, 4, along)
    curve: Callable[[Any], Any] = lambda t: f(at + t * along)  # noqa: E731
    for order in range(5):
        slope = np.asarray(curve(0.0))
        scale = np.abs(found).max()
        expected = slope / math.factorial(order)
        np.testing.assert_allclose(found[order], expected, rtol=1e-11, atol=1e-13 * scale)
        curve = (lambda g: lambda t: dl.jvp(g, (t,), (1.0,))[1])(curve)


def test_untaken_branches_contribute_zero() -> None:
    found = dl.taylor(
        lambda x: np.sqrt(np.where(x > 0, x, 0.0)), np.array([-1.0, 4.0]), 2, np.array([1.0, 1.0])
    )
    np.testing.assert_allclose(found, [[0.0, 2.0], [0.0, 0.25], [0.0, -1 / 64]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hypot(relu(x), 2*x)", [2.0, -2.0, 0.0]),
        ("sqrt(relu(x)) + x", [-1.0, 1.0, 0.0]),
        ("atan2(1 + relu(x), x)", [3 * math.pi / 4, -0.5, -0.25]),
    ],
)
def test_an_untaken_branch_beside_another_argument_contributes_zero(
    text: str, expected: list[float]
) -> None:
    np.testing.assert_allclose(dl.taylor(dl.parse(text), -1.0, 2), expected, atol=1e-15)


def test_a_direction_that_is_zero_in_an_element_stays_away_from_it() -> None:
    root = higher_derivative(dl.parse("x: [2]; sum(sqrt(x))"), 1, 3, ["y"])
    assert float(root(np.array([0.0, 4.0]))) == pytest.approx(3 / 8 * 4**-2.5)


def test_loops_match_the_recurrence_written_out() -> None:
    turn = "4*y*(1 - y)"
    loop = dl.parse(f"iterate(y = x; 4 times; {turn})")
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(4):
        polynomial = 4 * polynomial * (1 - polynomial)
    expected = [
        polynomial.deriv(k)(0.3) / math.factorial(k) if k else polynomial(0.3) for k in range(4)
    ]
    np.testing.assert_allclose(dl.taylor(loop, 0.3, 3), expected, rtol=1e-9)


def test_trees_and_captured_values() -> None:
    scale = np.array([2.0, 3.0])
    value, slopes = dl.jet(
        lambda p: {"s": p["a"] * scale, "t": p["b"] ** 2},
        ({"a": np.ones(2), "b": 3.0},),
        ([{"a": np.ones(2), "b": 1.0}, {"a": np.zeros(2), "b": 0.0}],),
    )
    assert float(value["t"]) == 9.0
    assert [float(s) for s in slopes["t"]] == [6.0, 2.0]
    np.testing.assert_array_equal(slopes["s"], [[2.0, 3.0], [0.0, 0.0]])


def test_it_composes_with_grad_jit_and_compile() -> None:
    third = dl.grad(lambda x: dl.taylor(np.sin, x, 3)[3])(0.4)
    assert float(third) == pytest.approx(math.sin(0.4) / 6, rel=1e-14)
    assert dl.jit(lambda x: dl.taylor(np.exp, x, 2))(0.0).tolist() == [1.0, 1.0, 0.5]
    fast = dl.compile(dl.taylor(dl.parse("exp(2*x)"), order=3), target="python")
    np.testing.assert_allclose(fast(0.0), [1.0, 2.0, 2.0, 4 / 3], rtol=1e-15)


@pytest.mark.parametrize("text", ["sin(x)^2*exp(x)", "1/(1 + x^2)", "x^5*ln(x)"])
def test_high_partial_derivatives_take_the_smaller_graph(text: str) -> None:
    function, order = dl.parse(text), 8
    derived = partial_derivative(function, 0, order)
    exact = differences(function, 0.7, order)[order] * math.factorial(order)
    assert float(derived(0.7)) == pytest.approx(float(exact), rel=1e-11)
    assert dl.count(derived).operations <= dl.count(dl.taylor(function, order=order)).operations


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dl.taylor(np.sin, 1.0, 0), "integer from 1 to 170, not 0"),
        (lambda: dl.taylor(np.sin, 1.0, 10**30), "integer from 1 to 170"),
        (lambda: dl.taylor(np.sin, np.ones(2), 2), "needs a direction"),
        (lambda: dl.taylor(np.sin, np.ones(2), 2, np.ones(3)), "shape"),
        (lambda: dl.jet(np.sin, 1.0, ([1.0],)), "tuple or list"),  # type: ignore[arg-type]
        (lambda: dl.jet(np.sin, (1.0,), ()), "a tuple of 1 lists"),
        (lambda: dl.jet(np.sin, (1.0,), ([],)), "at least 1"),
        (lambda: dl.jet(np.sin, (1.0,), ([np.ones(2)],)), "shape"),
    ],
)
def test_bad_input_names_the_fault(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(dl.DifflabError, match=message):
        call()


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, 4.0])
def test_powers_whose_exponent_is_an_array_have_derivatives_at_0(exponent: float) -> None:
    powers = np.full(1, exponent)
    for order in range(1, 5):
        found = dl.directional(lambda x: np.sum(x**powers), np.zeros(1), np.ones(1), order=order)
        assert found == (math.factorial(order) if order == exponent else 0.0)


def test_a_power_above_1_has_its_slope_at_0() -> None:
    assert dl.directional(lambda x: x**2.5, 0.0, 1.0, order=2) == 0.0
    found = dl.directional(lambda x: x**2.5, 4.0, 3.0, order=4)
    assert found == pytest.approx(2.5 * 1.5 * 0.5 * -0.5 * 4.0**-1.5 * 3.0**4, rel=1e-14)


def falling(x: float, p: float, k: int) -> float:
    """Return the derivative p⋯(p - k + 1)·xᵖ⁻ᵏ of order k by mpmath; nan where there is none."""
    factor = mpmath.ff(p, k)
    if factor == 0:
        return 0.0
    if x == 0:
        return float(factor) if k == p else 0.0 if k < p else math.nan
    return float(factor * mpmath.mpf(x) ** (p - k))


@pytest.mark.parametrize("x", [0.0, -1.5, 0.7])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, 6.0])
def test_a_whole_power_whose_exponent_is_an_input(x: float, p: float) -> None:
    expected = [falling(x, p, k) for k in range(1, 8)]
    still = [0.0] * 7
    _, found = dl.jet(lambda x, n: x**n, (x, p), ([1.0, *still[1:]], still))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    _, found = dl.jet(lambda x: x ** np.array([p, 2.0]), (x,), ([1.0, *still[1:]],))
    np.testing.assert_allclose(np.array(found)[:, 0], expected, rtol=1e-12)
    function = dl.parse("x^n")  # the inputs in this order: n, x
    for order in (1, 2, 3):
        partial = dl.taylor(lambda t: function(p, t), x, order)[-1] * math.factorial(order)
        assert partial == pytest.approx(expected[order - 1], rel=1e-12)
        slopes = dl.directional(function, order=order)
        along = dict.fromkeys(slopes.inputs, 0.0) | {"n": p, "x": x, "x_dot": 1.0}
        assert np.ravel(slopes(**along))[-1] == pytest.approx(expected[order - 1], rel=1e-12)


@pytest.mark.parametrize("p", [2.5, 3.0, 5.5, 7.0])
def test_a_power_at_0_whose_exponent_moves(p: float) -> None:
    """The derivatives of t^(p + t) at t = 0 exist up to the order p; JAX has nan there."""
    whole = math.floor(p)
    one = [1.0] + [0.0] * (whole - 1)
    _, found = dl.jet(lambda x, n: x**n, (0.0, p), (one, one))
    np.testing.assert_allclose(found, [falling(0.0, p, k) for k in range(1, whole + 1)])
    value, slope = dl.jvp(lambda x, n: x**n, (0.0, p), (1.0, 1.0))
    assert (value, slope) == (0.0, found[0])


def test_a_power_whose_exponent_moves_away_from_0(rng: np.random.Generator) -> None:
    a, b, c = rng.uniform(0.5, 2.0, 3)
    with mpmath.workdps(40):
        truth = mpmath.taylor(lambda t: (a + b * t) ** (c + t * t), 0, 6)
    _, found = dl.jet(lambda t: (a + b * t) ** (c + t * t), (0.0,), ([1.0] + [0.0] * 5,))
    expected = [float(each * mpmath.factorial(k)) for k, each in enumerate(truth)][1:]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_derivatives_of_slopes_of_powers_at_0() -> None:
    """Those of p·xᵖ⁻¹ and of xᵖ·ln x, by the closed forms p·(p - 1)⋯ and 0 below order p."""
    one = ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    by_x, by_n = (dl.grad(lambda x, n: x**n, argnums=k) for k in (0, 1))
    _, found = dl.jet(by_x, (0.0, 4.0), one)
    np.testing.assert_array_equal(found, [falling(0.0, 4.0, k) for k in (2, 3, 4)])
    _, found = dl.jet(by_x, (0.0, 0.0), one)
    np.testing.assert_array_equal(found, [0, 0, 0])
    _, found = dl.jet(by_n, (0.0, 4.0), one)
    np.testing.assert_array_equal(found, [0, 0, 0])

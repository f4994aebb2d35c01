"""Quotients of Taylor remainders: every order against mpmath, near 0, at edges and far away."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.primitives import TABLE
from tests.support.rows import for_each

Form = Callable[[Any], Any]

# The plain quotients, by row and k. Differentiated by mpmath with many digits, without a rule.
FORMS: dict[tuple[str, int], Form] = {
    ("exp_remainder", 1): lambda x: mpmath.expm1(x) / x,
    ("exp_remainder", 2): lambda x: (mpmath.exp(x) - 1 - x) / x**2,
    ("cos_remainder", 1): lambda x: mpmath.sin(x) / x,
    ("cos_remainder", 2): lambda x: (1 - mpmath.cos(x)) / x**2,
    ("cos_remainder", 3): lambda x: (x - mpmath.sin(x)) / x**3,
    ("cosh_remainder", 1): lambda x: mpmath.sinh(x) / x,
    ("cosh_remainder", 2): lambda x: (mpmath.cosh(x) - 1) / x**2,
    ("cosh_remainder", 3): lambda x: (mpmath.sinh(x) - x) / x**3,
    ("log_remainder", 1): lambda x: mpmath.log(1 + x) / x,
    ("log_remainder", 2): lambda x: (mpmath.log(1 + x) - x) / x**2,
}
NEAR = [1e-12, -1e-8, 1e-5, -1e-3, 0.03]
MODERATE = [0.3, -0.45, -0.55, 0.8, -0.9, 1.7, 2.4, 3.1, 3.7, 4.2, 7.0, 15.0, 19.5]
FAR = [40.0, 123.0, 700.0]
ULPS = {"log_remainder": TABLE["log_remainder"].ulps}
OTHER_ULPS = 16.0
ORDERS = range(5)


def exact(form: Form, x: float, order: int) -> float:
    with mpmath.workdps(60):
        if x == 0.0:
            # The limit: the coefficient of a circle around 0, where nothing cancels.
            count, radius = 64, mpmath.mpf(1) / 4
            roots = [mpmath.expjpi(mpmath.mpf(2 * n) / count) for n in range(count)]
            total = mpmath.fsum(form(radius * z) / z**order for z in roots)
            return float(mpmath.re(total) / count / radius**order * mpmath.factorial(order))
    with mpmath.workdps(250):
        step = mpmath.mpf(10) ** -30 * abs(x)
        return float(mpmath.diff(form, mpmath.mpf(x), order, h=step))


def allowed(row: str, k: int, x: float, truth: float) -> float:
    """Return the largest error: of the envelope where the function oscillates about 0."""
    size = abs(truth)
    if row == "cos_remainder" and abs(x) > 2:
        size = max(size, abs(x) ** -min(k, 2) / 4)
    return ULPS.get(row, OTHER_ULPS) * math.ulp(size)


@for_each(("row", "k"), FORMS)
@pytest.mark.parametrize("order", ORDERS)
def test_no_order_cancels(row: str, k: int, order: int) -> None:
    for size in [0.0, *NEAR, *MODERATE, *FAR]:
        for x in {size, size if row == "log_remainder" else -size}:
            truth = exact(FORMS[row, k], x, order)
            found = float(TABLE[row](k, order, x))
            assert abs(found - truth) <= allowed(row, k, x, truth), (x, found, truth)


HIGHER = [
    (1, 2),
    (2, 0),
    (3, 0),
    (4, 0),
    (3, 2),
    (4, 3),
    (6, 2),
    (1, 12),
    (8, 8),
    (20, 20),
    (1, 40),
    (40, 40),
]
LINE = [*(10.0**e - 1 for e in (-6, -3, -1.7, -1.4, -1.2, -0.9, -0.4, -0.3)), -1e-3, 0.03, 0.9]
LINE += [3.0, 3.9, 4.1, 17.0, 27.9, 32.1, 38.0, 55.0, 106.1, 187.0, 600.0, 1e5, 1e12]


@for_each(("k", "j"), HIGHER)
def test_the_logarithms_errors_are_documented_for_high_orders(k: int, j: int) -> None:
    """Of ∫ tᵏ⁺ʲ⁻¹/(1 + xt)ʲ⁺¹ dt over [0, 1] and of its sign."""
    row = TABLE["log_remainder"]
    for x, found in zip(LINE, np.asarray(row(float(k), float(j), np.array(LINE))), strict=True):
        truth = (-1) ** (k + 1 + j) * integral(k, j, x)
        assert abs(found - truth) <= row.ulps * math.ulp(float(truth)), (x, found)


@mpmath.workdps(40)
def integral(k: int, j: int, x: float) -> Any:
    """Return j! ∫ tᵏ⁺ʲ⁻¹/(1 + xt)ʲ⁺¹ dt over [0, 1], as a polynomial in the logarithm of 1 + x.

    With v = 1 + xt the integrand is a sum of powers of v, which cancel: of many digits.
    """
    with mpmath.workdps(1200):
        above, x = 1 + mpmath.mpf(x), mpmath.mpf(x)
        total = mpmath.mpf(0)
        for i in range(k + j):
            power = i - j - 1
            part = mpmath.log(above) if power == -1 else (above ** (power + 1) - 1) / (power + 1)
            total += mpmath.binomial(k + j - 1, i) * (-1) ** (k + j - 1 - i) * part
        return mpmath.factorial(j) * total / x ** (k + j)


@for_each(("row", "k"), FORMS)
def test_nested_derivatives_and_taylor_coefficients_are_the_rows_of_higher_order(
    row: str, k: int
) -> None:
    function = dl.parse(f"{row}({k}, 0, x)")
    for x in (0.0, 1e-9, -0.3, 2.5):
        coefficients = dl.taylor(function, order=4)(x)
        derived = function
        for order in ORDERS:
            truth = exact(FORMS[row, k], x, order)
            room = allowed(row, k, x, truth) + 1e-300
            assert abs(float(derived(x)) - truth) <= room
            scaled = float(coefficients[order]) * math.factorial(order)
            assert abs(scaled - truth) <= 2 * room
            derived = dl.partial(derived, "x")


def test_derivatives_of_a_composition_do_not_cancel() -> None:
    """Of (1 − cos(u))/u² with u = x³ at 10⁻², where the plain form has no digit."""
    text, x = "u = x^3; (1 - cos(u))/u^2", 1e-2
    stable = dl.stabilise(dl.parse(text)).function
    truth = exact(lambda x: (1 - mpmath.cos(x**3)) / x**6, x, 1)
    found = float(dl.partial(stable, "x")(x))
    assert abs(found - truth) <= 8 * math.ulp(truth)
    assert abs(float(dl.partial(dl.parse(text), "x")(x)) - truth) > abs(truth)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("(exp(x) - 1)/x", 1.0),
        ("(1 - cos(x))/x^2", 0.5),
        ("(x - sin(x))/x^3", 1 / 6),
        ("ln(1 + x)/x", 1.0),
        ("(x - sinh(x))/x^3", -1 / 6),
        ("tan(x)/x", 1.0),
    ],
)
def test_at_zero_the_stable_form_is_the_limit(text: str, limit: float) -> None:
    stable = dl.stabilise(dl.parse(text)).function
    assert float(stable(0.0)) == pytest.approx(limit, rel=1e-15)
    assert math.isfinite(float(dl.gradient(stable)(0.0)[0]))


EDGES = [math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-310, 1e300, -1e300, 0.0, -0.0, 800.0]


@pytest.mark.parametrize("row", ["exp_remainder", "cos_remainder", "cosh_remainder"])
def test_edges_have_limits(row: str) -> None:
    with np.errstate(all="ignore"):
        found = np.asarray(TABLE[row](1, 0, np.array(EDGES)))
    far = {"exp_remainder": [math.inf, 0.0], "cos_remainder": [0.0, 0.0]}
    assert found[:2].tolist() == far.get(row, [math.inf, math.inf])
    assert np.isnan(found[2])
    assert found[[3, 4, 5, 8, 9]].tolist() == [1.0] * 5


def test_log_outside_its_domain_and_orders_that_are_none_are_nan() -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(np.asarray(TABLE["log_remainder"](1, 2, np.array([-1.5, -np.inf])))).all()
        assert np.isnan(float(TABLE["exp_remainder"](0.5, 0, 1.0)))
        assert np.isnan(float(TABLE["exp_remainder"](0, 0, 1.0)))
        assert np.isnan(float(TABLE["exp_remainder"](1, -1, 1.0)))
        mixed = np.asarray(TABLE["exp_remainder"](np.array([1.0, 2.0]), 0, np.array([0.0, 0.0])))
    assert mixed.tolist() == [1.0, 0.5]

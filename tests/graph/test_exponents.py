"""Powers whose exponent float64 would round: in floats as precise as others."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl

TARGETS = ("python", "numpy", "native", "exact")


def _ulps(found: Any, exponent: float, x: float, order: int) -> float:
    """Return the error of a derivative of x^exponent, by mpmath."""
    with mpmath.workdps(60):
        p, truth = mpmath.mpf(exponent), mpmath.mpf(1)
        for k in range(order):
            truth *= p - k
        truth *= mpmath.mpf(x) ** (p - order)
        return float(abs(mpmath.mpf(float(found)) - truth) / math.ulp(float(truth)))


@pytest.mark.parametrize("exponent", [0.1, 0.3, -1.1, 1.3])
@pytest.mark.parametrize(("order", "x"), [(1, 1e300), (1, 1e-80), (2, 1e90), (3, 1e-60), (3, 2.5)])
def test_derivatives_of_powers_keep_their_digits(exponent: float, order: int, x: float) -> None:
    derivative = dl.partial(dl.parse(f"x^{exponent}"), *["x"] * order)
    assert _ulps(derivative(x), exponent, x, order) < 4
    for target in TARGETS:
        if target == "native":
            pytest.importorskip("llvmlite")
        found = dl.compile(derivative, target=target)(x)
        assert _ulps(found, exponent, x, order) < (0.51 if target == "exact" else 4)


def test_recorded_and_eager_powers_keep_their_digits() -> None:
    assert _ulps(dl.grad(lambda x: x**0.1)(1e300), 0.1, 1e300, 1) < 4
    x = dl.tensor(1e300, requires_grad=True)
    (x**0.1).backward()
    assert _ulps(x.grad, 0.1, 1e300, 1) < 4


def test_the_slope_has_its_limits_at_zero_and_infinity() -> None:
    derivative = dl.partial(dl.parse("x^0.1"), "x")
    at = np.array([0.0, math.inf, -1.0, math.nan])
    for slope in (derivative, dl.compile(derivative, target="numpy")):
        assert np.array_equal(slope(at), [math.inf, 0.0, math.nan, math.nan], equal_nan=True)


def test_complex_steps_take_the_power() -> None:
    found = dl.partial(dl.parse("x^0.1"), "x")(2.0 + 1e-30j)
    assert found.imag / 1e-30 == pytest.approx(0.1 * -0.9 * 2.0**-1.9, rel=1e-14)


def test_partial_derivatives_need_no_slope_by_other_inputs() -> None:
    texts = {"gammainc(a, x)": 2, "betainc(a, b, x)": 3, "besselj(n, x)": 2}
    for text, count in texts.items():
        slope = dl.partial(dl.parse(text), "x")
        point = [2.0, 3.0][: count - 1]
        step = 1e-6
        f = dl.parse(text)
        expected = (f(*point, 0.5 + step) - f(*point, 0.5 - step)) / (2 * step)
        assert slope(*point, 0.5) == pytest.approx(expected, rel=1e-8)

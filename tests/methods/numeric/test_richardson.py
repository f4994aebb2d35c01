"""Richardson extrapolation: the weights by algebra, published accuracy, an error that holds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import difflab as dl
from difflab.differences.extrapolation import EVEN, FULL, extrapolated, plain, solve
from difflab.methods.numeric.finite import RICHARDSON
from difflab.methods.protocol import Problem
from tests.conftest import Reference

Array = NDArray[np.float64]

MARTINS = "exp(x)/sqrt(sin(x)^3 + cos(x)^3)"


@pytest.mark.parametrize("powers", [EVEN, FULL])
def test_weights_remove_their_powers(powers: tuple[int, ...]) -> None:
    """A candidate of column j is exact on series with the first j powers of the step."""
    levels, ratio = 7, 2.0
    weights = extrapolated(levels, ratio, powers, 5, 0)
    steps = ratio ** -np.arange(levels)
    # Rows are ordered by level, then by column 1, 2, ...
    row = 0
    for level in range(2, levels):
        for column in range(1, min(level, 5) + 1):
            for power in powers[:column]:
                assert abs(weights.value[row] @ steps**power) < 1e-12
                assert (
                    abs(weights.spread[row] @ steps**power) < 1e-12 or power == powers[column - 1]
                )
            assert weights.value[row].sum() == pytest.approx(1.0, abs=1e-12)
            assert weights.level[row] == level
            row += 1
    assert row == len(weights.value)


def test_weights_are_the_published_ones() -> None:
    # Two levels of a halved step: (4 D(h/2) - D(h)) / 3, which is Simpson's 4/3 and -1/3.
    first = extrapolated(7, 2.0, EVEN, 5, 0).value[0]
    np.testing.assert_allclose(first[:3], [0, -1 / 3, 4 / 3], atol=1e-15)
    # The one-sided three-point stencil (-3, 4, -1)/2: quotients weigh 2 and -1.
    side = plain(5, 2.0, FULL, 1).value[0]
    np.testing.assert_allclose(side[2:4], [-1, 2], atol=1e-15)


def test_solve_takes_the_smallest_error() -> None:
    weights = extrapolated(7, 2.0, EVEN, 5, 0)
    steps = 2.0 ** -np.arange(7)
    smooth = (np.sin(steps) / steps)[:, None]
    value, error, _ = solve(weights, smooth, 1e-16 / steps[:, None])
    assert abs(value[0] - 1.0) <= error[0] < 1e-12


@pytest.mark.parametrize("key", ["martins", "martins_x05", "moler"])
def test_published_derivatives(key: str, reference: Reference) -> None:
    case = reference("finite_difference")[key]
    if key == "moler":
        x, truth = math.pi / 4, float(case["derivative_at_double_pi_over_4"])
    else:
        x, truth = float(case["point"]), float(case["derivatives_0_to_5"][1])
    found = dl.differentiate(dl.parse(case["expr"]), x)
    assert abs(found.value - truth) <= 1e-11 * abs(truth)
    assert abs(found.value - truth) <= found.error <= 1e-10 * abs(truth)


def test_as_good_as_published_programs(reference: Reference) -> None:
    data = reference("finite_difference")
    # numDeriv::grad reaches 1e-12 on Martins' function; numdifftools claims 5e-14 on exp'(0).
    truth = float(data["martins"]["derivatives_0_to_5"][1])
    found = dl.differentiate(dl.parse(MARTINS), 1.5)
    assert abs(found.value - truth) <= 1e-12 * 5
    at_zero = dl.differentiate(np.exp, 0.0)
    assert abs(at_zero.value - 1.0) <= at_zero.error < 1e-12
    # SciPy's documentation: derivative of exp at 1 ... 2, true errors up to 7e-14.
    for x in data["scipy_docs"]["x"]:
        found = dl.differentiate(np.exp, x)
        assert abs(found.value - math.exp(x)) <= 1e-12 * math.exp(x)


def test_seed_gradient() -> None:
    f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    found = dl.differentiate(f, [2.0, 5.0])
    np.testing.assert_allclose(found.value, [5.5, 1.7163378145367738], rtol=1e-13)
    assert (found.error < 1e-11).all()


def test_one_batch_suffices_for_a_smooth_function() -> None:
    calls = []

    def values(points: Array) -> Array:
        calls.append(len(points))
        return np.log(points).sum(axis=1)[:, None]

    RICHARDSON.prepare(Problem(values, 3, 1))(np.array([0.5, 2.0, 30.0]))
    assert len(calls) == 1


@given(
    coefficients=st.lists(st.integers(-9, 9), min_size=1, max_size=7),
    x=st.floats(-4, 4, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-3),
    center=st.integers(-3, 3),
)
def test_error_holds_on_polynomials(coefficients: list[int], x: float, center: int) -> None:
    """Exact rational arithmetic is the truth; the function is evaluated in floating point."""

    def f(value: Any) -> Any:
        total = 0
        for coefficient in reversed(coefficients):
            total = total * (value - center) + coefficient
        return total

    exact, result = Fraction(x) - center, Fraction(0)
    for power, coefficient in enumerate(coefficients):
        if power:
            result += power * coefficient * exact ** (power - 1)
    found = dl.differentiate(f, x)
    assert abs(Fraction(float(found.value)) - result) <= Fraction(float(found.error)) + Fraction(
        1e-300
    )


@given(
    frequency=st.floats(0.1, 50),
    phase=st.floats(-3, 3),
    x=st.floats(-5, 5).filter(lambda x: x == 0 or abs(x) > 1e-3),
)
def test_error_holds_on_waves(frequency: float, phase: float, x: float) -> None:
    found = dl.differentiate(lambda t: np.sin(frequency * t + phase), x)
    truth = frequency * math.cos(frequency * x + phase)
    # The argument's own rounding is the function's, not the method's.
    own = 4e-16 * frequency**2 * abs(x) + 4e-16 * frequency
    assert abs(found.value - truth) <= found.error + own
    assert found.error <= 1e-7 * frequency

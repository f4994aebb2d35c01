"""Errors are exact ratios: neighbours are one ULP apart, subnormal and infinite included."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflab.referee.ulp import errors, exact, nearest, ulp_distance

mpf = mpmath.mpf
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_a_double_is_nearest_to_itself(x: float) -> None:
    assert nearest(mpf(x)) == x
    assert ulp_distance(x, mpf(x)) == 0.0


@given(st.floats(min_value=5e-324, max_value=1e300))
def test_the_next_double_is_one_ulp_away(x: float) -> None:
    assert ulp_distance(math.nextafter(x, math.inf), x) == 1.0


def test_nearest_rounds_once_among_subnormal_numbers() -> None:
    # Rounding to 53 bits first would give the even 0 here.
    just_above_half = mpf(2) ** -1075 * (1 + mpf(2) ** -52)
    assert nearest(just_above_half) == 5e-324
    assert nearest(mpf(2) ** -1075) == 0.0


@pytest.mark.parametrize(
    ("truth", "rounded"),
    [("1e309", math.inf), ("-1e309", -math.inf), ("1e-400", 0.0), ("1e99999", math.inf)],
)
def test_nearest_beyond_the_doubles(truth: str, rounded: float) -> None:
    assert nearest(mpf(truth)) == rounded


@pytest.mark.parametrize(
    ("value", "truth", "distance"),
    [
        (0.0, "3.7e-348", 0.0),  # the nearest double is 0; the gap is 7e-25 of its spacing
        (5e-324, "0", 1.0),
        (0.0, "1e-323", 2.0),
        (math.inf, "1e400", 0.0),
        (math.inf, "1", math.inf),
        (1.7e308, "1e400", math.inf),
    ],
)
def test_distances_at_the_ends_of_the_range(value: float, truth: str, distance: float) -> None:
    assert ulp_distance(value, mpf(truth)) == pytest.approx(distance, abs=1e-20, rel=0.03)


def test_errors_of_arrays() -> None:
    truth = np.array([[mpf(3), mpf(0)], [mpmath.nan, mpmath.inf]], dtype=object)
    found = errors(np.array([[3.0 + 2**-51, 0.5], [1.0, math.inf]]), truth)
    assert found.absolute.tolist()[0] == [2**-51, 0.5]
    assert found.relative.tolist()[0] == [2**-51 / 3, math.inf]
    assert found.ulps[0, 0] == 1.0
    assert np.isnan([kind[1, 0] for kind in (found.absolute, found.relative, found.ulps)]).all()
    assert found.absolute[1, 1] == 0.0


def test_exact_keeps_infinity_and_nan() -> None:
    assert exact(mpmath.inf) == math.inf
    assert exact(-mpmath.inf) == -math.inf
    assert math.isnan(float(exact(mpmath.nan)))
    assert exact(mpf(0)) == 0

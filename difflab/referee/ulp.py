"""Errors of a float64 against a high-precision value: absolute, relative, and in ULPs.

Everything is computed exactly, as a ratio of integers, and rounded once at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat

# Beyond these binary exponents a number rounds to infinity or to zero, so an exact ratio of
# integers is not needed.
_LARGEST, _SMALLEST = 1100, -1200


@dataclass(frozen=True)
class Errors:
    """Elementwise errors, each of the shape of the derivative.

    Attributes
    ----------
    absolute : ndarray
        ``|value - truth|``.
    relative : ndarray
        ``|value - truth| / |truth|``; infinite for a wrong value where the truth is zero.
    ulps : ndarray
        ``|value - truth|`` over the spacing of float64 at the truth; the spacing of the
        subnormal numbers, 5e-324, is the smallest.
    """

    absolute: NDArray[float64]
    relative: NDArray[float64]
    ulps: NDArray[float64]


def exact(number: Any) -> Fraction | float:
    """Return a float, a fraction or an mpmath real as a fraction; inf and nan as floats.

    Numbers far outside the range of float64 are returned as 0 or ±inf.

    Examples
    --------
    >>> exact(0.5), exact(float("inf"))
    (Fraction(1, 2), inf)
    """
    if isinstance(number, Fraction):
        return number
    parts = getattr(number, "_mpf_", None)
    if parts is None:
        value = float(number)
        return Fraction(value) if math.isfinite(value) else value
    sign, mantissa, exponent, bits = parts
    if not mantissa:
        return Fraction(0) if not exponent else float(number)
    if exponent + bits > _LARGEST:
        return -math.inf if sign else math.inf
    if exponent + bits < _SMALLEST:
        return Fraction(0)
    size = Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)
    return -size if sign else size


def nearest(number: Any) -> float:
    """Return the float64 nearest to an mpmath real, rounded once, also if it is subnormal.

    Examples
    --------
    >>> from mpmath import mpf
    >>> nearest(mpf("1e-400")), nearest(mpf("1e400"))
    (0.0, inf)
    """
    value = exact(number)
    if isinstance(value, float):
        return value
    size = _quotient(abs(value.numerator), value.denominator)
    return size if value >= 0 else -size


def ulp_distance(value: float, truth: Any) -> float:
    """Return ``|value - truth|`` in ulps of the truth.

    Examples
    --------
    >>> ulp_distance(1.0, 1.0 + 2**-52), ulp_distance(0.0, 5e-324), ulp_distance(1.0, 0.0) > 1e300
    (1.0, 1.0, True)
    """
    return _distances(value, exact(truth))[2]


def rough_ulps(value: NDArray[float64], truth: NDArray[float64]) -> NDArray[float64]:
    """Return the errors in ULPs against a rounded truth, to rank them; half a unit may be missing.

    Examples
    --------
    >>> rough_ulps(np.array([1.0, np.nan]), np.array([1.0 + 2**-51, 1.0])).tolist()
    [2.0, nan]
    """
    with np.errstate(all="ignore"):
        ulps: NDArray[float64] = np.abs(value - truth) / np.spacing(np.abs(truth))
    return ulps


def errors(value: NDArray[float64], truth: NDArray[Any], dtype: FloatFormat = DOUBLE) -> Errors:
    """Return the errors of an array against an array of mpmath values.

    If the truth or the value is nan, every error is nan.

    Parameters
    ----------
    value : ndarray of float64
        The result of a method.
    truth : ndarray of object
        mpmath numbers (or floats) of the same shape.
    dtype : FloatFormat
        The format whose units in the last place are counted.
    """
    pairs = zip(value.ravel().tolist(), truth.flat, strict=True)
    distances = [_distances(v, exact(t), dtype) for v, t in pairs]
    columns = np.array(distances, dtype=float64).reshape(-1, 3)
    absolute, relative, ulps = (columns[:, column].reshape(value.shape) for column in range(3))
    return Errors(absolute, relative, ulps)


def largest_errors(
    kinds: Errors, precise: NDArray[Any], truth: NDArray[float64], bounds: NDArray[float64]
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """Return the largest absolute error, relative error and error in ULPs at a point, or at N.

    Parameters
    ----------
    kinds : Errors
        The errors of the elements, ``(m, n)`` or ``(N, m, n)``.
    precise, truth, bounds : ndarray (m, n) or (N, m, n)
        The derivatives in mpmath, rounded, and the bounds of their errors.

    Returns
    -------
    tuple of ndarray () or (N,)
        Minus infinity where no element has such an error; nan where the method returned nan.
    """
    # A difference within the referee's own error bound counts as zero.
    visible = ~(np.isfinite(bounds) & (kinds.absolute <= bounds))
    exists = ~np.isnan(truth)
    zero = np.array([exact(t) == 0 for t in precise.flat], dtype=bool).reshape(truth.shape)
    nonzero = exists & ~zero
    pairs = ((kinds.absolute, exists), (kinds.relative, nonzero), (kinds.ulps, nonzero))
    absolute, relative, ulps = (
        np.where(index, np.where(visible, part, 0.0), -math.inf).max((-2, -1), initial=-math.inf)
        for part, index in pairs
    )
    return absolute, relative, ulps


def _distances(
    value: float, truth: Fraction | float, dtype: FloatFormat = DOUBLE
) -> tuple[float, float, float]:
    if math.isnan(value) or truth != truth:
        return math.nan, math.nan, math.nan
    closest = nearest(truth)
    if dtype is not DOUBLE and isinstance(truth, Fraction):
        closest = dtype.nearest(truth)
    if math.isinf(closest) or math.isinf(value):
        # Infinity is the correct result for a truth beyond the largest float64.
        distance = 0.0 if value == closest else math.inf
        return distance, distance, distance
    # Integers, not reduced fractions: a common divisor costs more than it saves.
    over, under = value.as_integer_ratio()
    top, bottom = truth.as_integer_ratio()
    gap, unit = abs(over * bottom - top * under), under * bottom
    if not gap:
        return 0.0, 0.0, 0.0
    spacing = math.ulp(closest) if dtype is DOUBLE else float(dtype.spacing(closest))
    ulp, ulp_unit = spacing.as_integer_ratio()
    relative = _quotient(gap, under * abs(top)) if top else math.inf
    return _quotient(gap, unit), relative, _quotient(gap * ulp_unit, unit * ulp)


def _quotient(over: int, under: int) -> float:
    """Return the quotient of two positive integers, rounded once."""
    try:
        return over / under
    except OverflowError:
        return math.inf

"""The referee of code that only computes in float64: differences of its values.

Code that branches on values or calls another library has no graph, and so no values of more digits.
Its derivative is extrapolated from differences on both sides of the point (L. F. Richardson, 1927;
C. Ridders, 1982), of which the rounding and the noise of the values limit the digits: the bound on
the error is the estimate of both, and a verdict takes it into account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import UnsupportedError
from difflab.referee.context import exact_number
from difflab.referee.limits import Regularity, worst
from difflab.referee.referee import Reference

__all__ = ["reference_by_values"]

Array = NDArray[float64]
Values = Callable[[NDArray[Any]], NDArray[Any]]

LEVELS = 22
"""Steps on either side of the point, each half of the one before."""
FIRST = 0.207
"""The largest step relative to the input; its digits keep steps from being periods."""
DEPTH = 7
"""Columns of the tableau of extrapolation."""
SECOND = 0.771
"""The steps of a second ladder over those of the first, whose result must be the same."""
_NEAR = 0.7316 * 2.0 ** np.array([-40.0, -31.0, -22.0])
"""Relative distances of neighbours of which fourth differences are noise alone: rounding to few
digits is seen at the larger ones."""
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_EPS = 2.0**-52
SURE = 10.0
"""How many error bounds the one-sided derivatives at a kink are apart at least."""
SAME = 1e-6
"""Relative difference of the one-sided derivatives that is no kink in any case."""


@dataclass(frozen=True, eq=False)
class _Limit:
    """A derivative of every output with respect to one input, and its error."""

    value: Array
    error: Array


def reference_by_values(
    values: Values, point: Sequence[float], *, order: int = 1, timeout: float = 10.0
) -> Reference:
    """Return the derivative of float64 values at a point, with its error.

    Parameters
    ----------
    values : callable
        Maps packed points ``(N, n)`` to values ``(N, m)``; nan outside of the domain.
    point : sequence of float
        The packed point.
    order : int
        1; there are no second derivatives.
    timeout : float
        Seconds after which the remaining elements are ``unresolved``.

    Raises
    ------
    UnsupportedError
        Second derivatives are asked for.

    Examples
    --------
    >>> found = reference_by_values(lambda x: np.abs(x) * x, [3.0])
    >>> round(float(found.jacobian[0, 0]), 9), found.status, found.digits >= 9
    (6.0, 'smooth', True)
    >>> reference_by_values(np.abs, [0.0]).status
    'kink'
    """
    if order != 1:
        raise UnsupportedError("second derivatives need more digits than float64 values have")
    began = perf_counter()
    x = np.array(point, dtype=float64)
    centre = _at(values, x[None])[0]
    noise, evaluations = _noise(values, x, centre), 1 + 8 * _NEAR.size
    shape = (centre.size, x.size)
    exact, left, right = (np.full(shape, math.nan) for _ in range(3))
    bounds = np.full(shape, math.inf)
    regularity = np.full(shape, str(Regularity.UNRESOLVED), dtype=object)
    judged = 0
    for j in range(x.size):
        if j and perf_counter() - began > timeout:
            break
        column = _column(values, x, j, centre, noise)
        for part, found in zip((exact, left, right, bounds, regularity), column, strict=True):
            part[:, j] = found
        evaluations += 4 * LEVELS
        judged += 1
    return _reference(
        x, centre, (exact, left, right), bounds, regularity.astype(str), evaluations, judged
    )


def _at(values: Values, points: Array) -> Array:
    with np.errstate(all="ignore"):
        found = np.asarray(values(points), dtype=float64)
    return np.where(np.isfinite(found), found, math.nan)


def _scale(x: Array) -> Array:
    size = np.abs(x)
    return np.where(size > 2.0**-1000, size, 1.0)


def _noise(values: Values, x: Array, centre: Array) -> Array:
    """Return a bound on the error of the values: of rounding, and of what else makes them jump."""
    seen = np.zeros(centre.shape)
    for distance in _NEAR:
        offsets = np.arange(1.0, 9.0)[:, None] * distance
        near = _at(values, x - np.copysign(offsets * _scale(x), x)) - centre
        fourth = np.array([_FOURTH @ near[k : k + 5] for k in range(4)])
        sizes = np.max(np.abs(np.nan_to_num(fourth)), axis=0)
        seen = np.maximum(seen, 3.0 * sizes / math.sqrt(70.0))
    found: Array = np.maximum(seen, _EPS * np.abs(np.nan_to_num(centre)))
    return found


def _column(
    values: Values, x: Array, j: int, centre: Array, noise: Array
) -> tuple[Any, Any, Any, Any, Any]:
    """Return derivative, sides, bound and regularity of every output by one input."""
    ladders = [_limits(values, x, j, centre, noise, FIRST * factor) for factor in (1.0, SECOND)]
    same = ladders[0][0] & ladders[1][0]
    limits = [_confirmed(*pair) for pair in zip(ladders[0][1], ladders[1][1], strict=True)]
    spread = np.fmax(ladders[0][2], ladders[1][2]) / _scale(x)[j]
    return _joined(centre, same, spread, *limits)


def _confirmed(one: _Limit, other: _Limit) -> _Limit:
    """Return the better of two limits; where they differ, by as much it may be wrong."""
    better = one.error <= other.error
    with np.errstate(all="ignore"):
        error = np.fmax(np.fmin(one.error, other.error), np.abs(one.value - other.value))
    return _Limit(np.where(better, one.value, other.value), error)


def _limits(
    values: Values, x: Array, j: int, centre: Array, noise: Array, first: float
) -> tuple[NDArray[np.bool_], tuple[_Limit, _Limit, _Limit], Array]:
    """Return which outputs do not change; derivatives from both sides, left and right; sizes."""
    steps = first * _scale(x)[j] * 0.5 ** np.arange(LEVELS)
    points = np.tile(x, (2 * LEVELS, 1))
    points[:LEVELS, j] += steps
    points[LEVELS:, j] -= steps
    found = _at(values, points)
    ahead, behind = points[:LEVELS, j] - x[j], x[j] - points[LEVELS:, j]
    above, below = found[:LEVELS], found[LEVELS:]
    same = (found == centre).all(axis=0)
    one = _extrapolated((above - centre) / ahead[:, None], steps, noise, 2.0, 9.0)
    other = _extrapolated((centre - below) / behind[:, None], steps, noise, 2.0, 9.0)
    both = _extrapolated((above - below) / (ahead + behind)[:, None], steps, noise, 4.0, 2.0)
    return same, (both, other, one), np.max(np.abs(np.nan_to_num(found)), axis=0)


def _extrapolated(
    quotients: Array, steps: Array, noise: Array, ratio: float, amplified: float
) -> _Limit:
    """Return the limit of difference quotients ``(LEVELS, m)`` at step zero, and its error.

    The error of an element of the tableau is its difference from those that it is made of, and the
    noise of the values over the step, amplified by the weights.
    """
    best = np.full(quotients.shape[1], math.nan)
    error = np.full(quotients.shape[1], math.inf)
    rounding = amplified * noise / steps[:, None]
    column = quotients
    for depth in range(1, DEPTH):
        weight = ratio**depth - 1.0
        with np.errstate(all="ignore"):
            after = column[1:] + (column[1:] - column[:-1]) / weight
            change = np.fmax(np.abs(after - column[1:]), np.abs(after - column[:-1]))
            total = change + rounding[depth:] + 4 * _EPS * np.abs(after)
        total = np.where(np.isnan(total), math.inf, total)
        index = np.argmin(total, axis=0)
        at = (index, np.arange(index.size))
        better = total[at] < error
        best, error = np.where(better, after[at], best), np.where(better, total[at], error)
        column = after
    return _Limit(best, error)


def _joined(
    centre: Array,
    same: NDArray[np.bool_],
    spread: Array,
    both: _Limit,
    left: _Limit,
    right: _Limit,
) -> tuple[Any, Any, Any, Any, Any]:
    """Return derivative, sides, bound and regularity from the limits on both sides."""
    size = np.fmax(np.abs(left.value), np.abs(right.value))
    with np.errstate(all="ignore"):
        gap = np.abs(left.value - right.value)
        apart = (gap > SURE * (left.error + right.error)) & (gap > SAME * size)
    known = np.isfinite(left.error), np.isfinite(right.error)
    sided = known[0] ^ known[1]
    single = np.where(known[1], right.value, left.value)
    value = np.where(apart, math.nan, np.where(sided, single, both.value))
    error = np.where(sided, np.fmin(left.error, right.error), both.error)
    regularity = np.full(centre.shape, str(Regularity.SMOOTH), dtype=object)
    regularity[apart] = str(Regularity.KINK)
    regularity[sided] = str(Regularity.ONE_SIDED)
    with np.errstate(all="ignore"):
        lost = ~np.isfinite(error) | ((error > 0.5 * np.abs(value)) & (error > SAME * spread))
    lost &= ~apart
    value, error = np.where(lost, math.nan, value), np.where(lost, math.inf, error)
    regularity[lost] = str(Regularity.UNRESOLVED)
    regularity[np.isnan(centre)] = str(Regularity.UNDEFINED)
    sides = [
        np.where(apart, side.value, np.where(known_one | ~sided, value, math.nan))
        for side, known_one in zip((left, right), known, strict=True)
    ]
    value, left_side, right_side, error = (
        np.where(same, 0.0, part) for part in (value, *sides, error)
    )
    regularity[same] = str(Regularity.SMOOTH)
    return value, left_side, right_side, error, regularity


def _reference(
    x: Array,
    centre: Array,
    parts: tuple[Array, Array, Array],
    bounds: Array,
    regularity: NDArray[np.str_],
    evaluations: int,
    judged: int,
) -> Reference:
    number = np.frompyfunc(exact_number, 1, 1)
    with np.errstate(all="ignore"):
        value, exact, left, right = (number(part) for part in (centre, *parts))
        digits = -np.log10(bounds / np.abs(parts[0]))
    shown = digits[np.isfinite(digits) & (parts[0] != 0)]
    finite = np.abs(centre[np.isfinite(centre)])
    return Reference(
        order=1,
        point=tuple(x.tolist()),
        magnitude=float(finite.max(initial=0.0)),
        rounded_in=False,
        value=tuple(value.tolist()),
        exact=exact,
        left=left,
        right=right,
        bounds=bounds,
        regularity=regularity,
        digits=max(int(shown.min()), 0) if shown.size else 0,
        status=worst(regularity),
        linear=np.ones(centre.size, dtype=bool),
        evaluations=evaluations,
        judged=judged,
        components=x.size,
        proved=np.zeros(parts[0].shape, dtype=bool),
        contradiction="",
    )

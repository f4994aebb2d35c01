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

from difflab.differences.extrapolation import EVEN, FULL, REJECT, SAFETY, Sides, extrapolated, solve
from difflab.differences.sampling import Sampler, ladder, lead_points, noise_of, scale_of
from difflab.errors import UnsupportedError
from difflab.referee.limits import Regularity, worst
from difflab.referee.referee import Reference
from difflab.referee.values import exact_number

Array = NDArray[float64]
Values = Callable[[NDArray[Any]], NDArray[Any]]

LEVELS = 22
"""Steps on either side of the point, each half of the one before."""
FIRST = 0.207
"""The largest step relative to the input; its digits keep steps from being periods."""
DEPTH = 6
"""Columns of the tableau of extrapolation."""
SECOND = 0.771
"""The steps of a second ladder over those of the first, whose result must be the same."""
NEAR = 0.7316 * 2.0 ** np.array([-40.0, -31.0, -22.0])
"""Relative distances of neighbours that show the noise: rounding to few digits, at the larger."""
SURE = 10.0
"""How many error bounds the one-sided derivatives at a kink are apart at least."""
COARSE = 0.1
"""Relative error above which values that are stairs leave a derivative open."""
SAME = 1e-6
"""Relative difference of the one-sided derivatives that is no kink in any case."""


@dataclass(frozen=True, eq=False)
class _Slopes:
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
    >>> truth = reference_by_values(lambda x: np.abs(x) * x, [3.0])
    >>> round(float(truth.jacobian[0, 0]), 9), truth.status, truth.digits >= 9
    (6.0, 'smooth', True)
    >>> reference_by_values(np.abs, [0.0]).status
    'kink'
    """
    if order != 1:
        raise UnsupportedError("second derivatives need more digits than float64 values have")
    began = perf_counter()
    x = np.array(point, dtype=float64)
    with np.errstate(all="ignore"):
        centre = np.asarray(values(x[None]), dtype=float64)[0]
        sampler = Sampler(values, x.size, centre.size)
        noise = _noise(sampler, x, centre)
        shape = (centre.size, x.size)
        exact, left, right = (np.full(shape, math.nan) for _ in range(3))
        bounds = np.full(shape, math.inf)
        regularity = np.full(shape, str(Regularity.UNRESOLVED), dtype=object)
        judged = 0
        for j in range(x.size):
            if j and perf_counter() - began > timeout:
                break
            column = _column(sampler, x, j, centre, noise)
            for part, entries in zip((exact, left, right, bounds, regularity), column, strict=True):
                part[:, j] = entries
            judged += 1
    spent, kinds = 1 + sampler.count, regularity.astype(str)
    return _reference(x, centre, (exact, left, right), bounds, kinds, spent, judged)


def _noise(sampler: Sampler, x: Array, centre: Array) -> Array:
    """Return a bound on the noise of the values: rounding errors and other jumps."""
    near = [sampler(lead_points(x, scale_of(x), distance)[1:]) for distance in NEAR]
    noise: Array = np.fmax.reduce([noise_of(np.vstack([centre, v])).noise for v in near])
    return noise


def _column(
    sampler: Sampler, x: Array, j: int, centre: Array, noise: Array
) -> tuple[Any, Any, Any, Any, Any]:
    """Return derivative, sides, bound and regularity of every output by one input."""
    # Relative to these units quotients are far from overflow.
    unit, scale = np.where(np.abs(centre) > 1e200, 2.0**600, 1.0), scale_of(x)[j]
    centre, noise = centre / unit, noise / unit
    ladders, stairs = [], np.zeros(centre.shape, dtype=bool)
    for first in (FIRST, SECOND * FIRST):
        steps = first * scale * 0.5 ** np.arange(LEVELS)[:, None]
        outputs, moved = ladder(sampler, x, np.array([j]), np.concatenate([steps, -steps]))
        shifts = np.abs(moved - x[j]) / scale
        sides, stepped = Sides.of(outputs[:, 0] / unit, shifts, centre, noise).unmasked()
        ladders.append(sides)
        stairs |= stepped
    limits = [_confirmed(*pair) for pair in zip(*map(_limits, ladders), strict=True)]
    seen = np.concatenate([part for sides in ladders for part in (sides.up, sides.down)])
    same = (seen == centre).all(axis=0)
    spread = np.max(np.abs(np.nan_to_num(seen, posinf=0.0, neginf=0.0)), axis=0)
    most = np.where(stairs, COARSE, 0.5)
    *parts, regularity = _joined(centre, same, spread, most, *limits)
    value, left, right, error = (part / scale * unit for part in parts)
    return value, left, right, error, regularity


def _confirmed(one: _Slopes, other: _Slopes) -> _Slopes:
    """Return the better of two limits; where they differ, by as much it may be wrong."""
    better = one.error <= other.error
    error = np.fmax(np.fmin(one.error, other.error), np.abs(one.value - other.value))
    return _Slopes(np.where(better, one.value, other.value), error)


def _limits(sides: Sides) -> tuple[_Slopes, _Slopes, _Slopes]:
    """Return the derivatives from both sides, from the left and from the right."""
    ways = ((EVEN, sides.central()), (FULL, sides.left()), (FULL, sides.right()))
    return tuple(_limit(powers, *quotients) for powers, quotients in ways)  # type: ignore[return-value]


def _limit(powers: tuple[int, ...], quotients: Array, rounding: Array) -> _Slopes:
    value, error, _ = solve(extrapolated(LEVELS, 2.0, powers, DEPTH, 0), quotients, rounding)
    lost = error >= REJECT
    return _Slopes(np.where(lost, math.nan, value), np.where(lost, math.inf, error / SAFETY))


def _joined(
    centre: Array,
    same: NDArray[np.bool_],
    spread: Array,
    most: Array,
    both: _Slopes,
    left: _Slopes,
    right: _Slopes,
) -> tuple[Any, Any, Any, Any, Any]:
    """Return derivative, sides, bound and regularity from the limits on both sides."""
    size = np.fmax(np.abs(left.value), np.abs(right.value))
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
    lost = ~np.isfinite(error) | ((error > most * np.abs(value)) & (error > SAME * spread))
    lost &= ~apart
    value, error = np.where(lost, math.nan, value), np.where(lost, math.inf, error)
    regularity[lost] = str(Regularity.UNRESOLVED)
    regularity[~np.isfinite(centre)] = str(Regularity.UNDEFINED)
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

r"""The derivative along a line, from few values, with an error bar.

The values at the 8 Chebyshev points of a window around the point give the odd part of the
function, whose derivative at the point is the slope, and the even part. Their last coefficients
are truncation or noise; they and the rounding of the values give the error bar. An even part
that grows linearly shows a kink at the point. If the window is too wide, or the bar too large,
other windows follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.testing.components.chebyshev import Chebyshev

__all__ = ["Slope", "best_of", "first_half", "slope_in", "slopes_along"]

Array = NDArray[float64]
MovedChanges = Callable[[float], Array]
"""Map a displacement to the changes of the ``m`` values; nan outside the domain."""

_NODES = Chebyshev(9)
_AT_NOISE = 0.2  # coefficients whose ratio exceeds this have reached the noise
_ROUNDED = 0.25  # noise of a coefficient that one rounding of the values explains
_RESOLVED = 0.1  # last coefficients above this share of the largest: the window is too wide
_STRAIGHT = 5.0  # a kink is at least this many error bars of the even part
_SLOW = 0.1  # even coefficients of the orders 4 and 8 whose ratio exceeds this are a kink's
_NARROWER, _WIDER = 16.0, 4.0
_SAME = 0.2  # ratio of the levels of one noise in two windows
_CLEAR = 0.5  # share of a jump below which a bar shows that there is none
_MOST = 4  # windows
_WIDEST = 0.5


@dataclass(frozen=True)
class Slope:
    """The derivatives of ``m`` values along a line.

    Attributes
    ----------
    value, bar : ndarray (m,)
        The derivative and a bound on its error; the bar is infinite outside the domain.
    half_jump : ndarray (m,)
        Half the difference of the one-sided derivatives at a kink; 0 without a kink.
    rise : ndarray (m,)
        The steepest mean slope from the point to a node.
    half : float
        The half-width of the window.
    level : ndarray (m,)
        The size of the last coefficients: noise, or truncation.
    resolved : ndarray of bool (m,)
        Whether the last coefficients are small.
    pairs : ndarray (4, m)
        The central differences at the pairs of nodes, from the widest.
    """

    value: Array
    bar: Array
    half_jump: Array
    rise: Array
    half: float
    level: Array
    resolved: NDArray[np.bool_]
    pairs: Array

    def closest(self) -> tuple[float, float]:
        """Return the distance whose central difference is closest to the slope, and its error."""
        error = np.abs(self.pairs[:, 0] - self.value[0]) + self.bar[0]
        best = int(error.argmin())
        return float(self.half * _NODES.positive[best]), float(error[best])


def first_half(eps: float, *, alone: bool) -> float:
    """Return the half-width of the first window, relative to the scale of the arguments.

    If one component moves alone, it may move further.

    Examples
    --------
    >>> first_half(2.0**-52, alone=False), first_half(2.0**-23, alone=True)
    (0.015625, 0.125)
    """
    if eps < 1e-12:
        return 2.0**-6
    return 2.0 ** (-3 if eps < 1e-6 or not alone else -1)


def slope_in(changes: MovedChanges, rounding: Array, half: float) -> Slope:
    """Return the derivative from 8 values in one window.

    Parameters
    ----------
    changes : callable
        The changes of the values from those at the point.
    rounding : ndarray (m,)
        The error of one value.
    half : float
        The half-width.
    """
    moves = half * _NODES.positive
    up = np.array([changes(t) for t in moves])
    down = np.array([changes(-t) for t in moves])
    odd, even = 0.5 * (up - down), 0.5 * (up + down)
    with np.errstate(all="ignore"):
        a, b = _NODES.to_odd @ odd, _NODES.to_even @ even
        size = np.abs(a)
        # Two coefficients of each part, in the order of decay: {5, 6} and {7, 8}.
        before = np.maximum(size[-2], np.abs(b[-2]))
        level = np.maximum(size[-1], np.abs(b[-1]))
        level = np.where(level > _AT_NOISE * before, np.maximum(level, before), level)
        level = np.maximum(level, _ROUNDED * rounding)
        slope, bar = (each / half for each in _truncated(a, level))
        largest = np.maximum(size.max(axis=0), np.abs(b).max(axis=0))
        resolved = (level <= _RESOLVED * largest) | (level <= 4.0 * rounding)
        rise = (np.maximum(np.abs(up), np.abs(down)) / moves[:, None]).max(axis=0)
        linear, kink = _linear_growth(even, moves, level)
        # A kink beside the point: the slope may be that of either side.
        bent = (level > 4.0 * rounding) & (np.abs(b[-1]) > _SLOW * np.abs(b[1]))
        bar = bar + np.where(bent & ~kink, linear, 0.0)
        jump = np.where(kink, linear, 0.0)
        finite = np.isfinite(slope) & np.isfinite(bar)
        pairs = odd / moves[:, None]
    return Slope(
        value=np.where(finite, slope, 0.0),
        bar=np.where(finite, bar, np.inf),
        half_jump=np.where(finite, jump, 0.0),
        rise=np.where(finite, rise, 0.0),
        half=half,
        level=np.where(finite, level, 0.0),
        resolved=resolved & finite,
        pairs=pairs,
    )


def _truncated(a: Array, level: Array) -> tuple[Array, Array]:
    """Return the slope from the first odd coefficients, as many as give the smallest bar.

    The bar is the noise of those, at most the terms that are left out, and those beyond.
    """
    terms = _NODES.slopes[:, None] * a
    kept = np.cumsum(terms, axis=0)
    left_out = np.cumsum(np.abs(terms)[::-1], axis=0)[::-1] - np.abs(terms)
    noise = (_NODES.growth + _NODES.orders + 2.0)[:, None] * level
    bars = noise + left_out
    best, columns = bars.argmin(axis=0), np.arange(a.shape[1])
    return kept[best, columns], bars[best, columns]


def _linear_growth(even: Array, moves: Array, level: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the linear growth of the even part, and whether it is that of a kink at the point."""
    even = np.nan_to_num(even)
    basis = np.stack([moves, moves**2, moves**4], axis=1)
    found, *_ = np.linalg.lstsq(basis / moves[0], even / moves[0], rcond=None)
    error = np.abs(even - basis @ found).max(axis=0) / moves[-1]
    smooth, *_ = np.linalg.lstsq(basis[:, 1:], even, rcond=None)
    misfit = np.abs(even - basis[:, 1:] @ smooth).max(axis=0)
    kink = misfit > _STRAIGHT * np.maximum(error * moves[-1], _ROUNDED * level)
    return np.abs(found[0]) + error, kink


def slopes_along(
    changes: MovedChanges, rounding: Array, half: float, enough: Array, most: int = _MOST
) -> list[Slope]:
    """Return the derivatives from windows until the bars are at most `enough` ``(m,)``.

    A narrower window follows, unless the error is rounding or noise, which is the same in both of
    the last windows: then a wider one.
    """
    found = [slope_in(changes, rounding, half)]
    wider = narrower = half
    while len(found) < most:
        last = found[-1]
        bent = (last.half_jump > 0).any()
        if (last.bar <= enough).all() and not bent:
            break
        noisy = (last.level <= 4.0 * rounding).all() or (
            len(found) > 1 and (last.level > _SAME * found[-2].level).all()
        )
        if noisy and not bent and wider * _WIDER <= _WIDEST:
            wider *= _WIDER
            half = wider
        else:
            narrower /= _NARROWER
            half = narrower
        found.append(slope_in(changes, rounding, half))
    return found


def best_of(windows: Sequence[Slope]) -> Slope:
    """Return the derivatives with the smallest bars, one window for each of the ``m`` values.

    The noise in narrower windows is also in wider ones, though their last coefficients may happen
    to be small. A kink that a narrower window does not show is beside the point.
    """
    ordered = sorted(windows, key=lambda slope: slope.half)
    levels = np.maximum.accumulate([slope.level for slope in ordered])
    with np.errstate(all="ignore"):
        grown = np.nan_to_num(levels / [slope.level for slope in ordered], nan=1.0, posinf=1.0)
    bars = np.array([slope.bar for slope in ordered]) * grown
    jumps = np.array([slope.half_jump for slope in ordered])
    for i in range(1, len(ordered)):
        beside = ((jumps[:i] == 0) & (bars[:i] < _CLEAR * jumps[i])).any(axis=0)
        bars[i] += np.where(beside, jumps[i], 0.0)
        jumps[i] = np.where(beside, 0.0, jumps[i])
    best, columns = bars.argmin(axis=0), np.arange(bars.shape[1])

    def picked(name: str) -> Array:
        found: Array = np.array([getattr(slope, name) for slope in ordered])[best, columns]
        return found

    first = ordered[int(best[0])]
    return Slope(
        value=picked("value"),
        bar=bars[best, columns],
        half_jump=jumps[best, columns],
        rise=picked("rise"),
        half=first.half,
        level=picked("level"),
        resolved=np.array([slope.resolved for slope in ordered])[best, columns],
        pairs=first.pairs,
    )

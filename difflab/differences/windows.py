"""The derivative along a line from several windows, sampled until one is good enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.window import ROUNDED, ROUNDINGS, Changes, Slope, Window, sampled

Array = NDArray[float64]

_NARROWER, _WIDER = 16.0, 4.0
_SAME = 0.2  # ratio of the levels of one noise in two windows
_CLEAR = 0.5  # share of a jump below which a bar shows that there is none
_MOST = 4  # windows
_WIDEST = 0.5


@dataclass(frozen=True)
class BestSlope(Slope):
    """The derivatives with the smallest bars, one window for each of the ``m`` values.

    Attributes
    ----------
    windows : list of Window
        All windows, from the narrowest.
    values : ndarray (K, m)
        The derivatives from each.
    best : ndarray of int (m,)
        The window of each value.
    """

    windows: list[Window]
    values: Array
    best: NDArray[np.intp]

    @property
    def half(self) -> float:
        """The half-width of the window of the first value."""
        return self._window.half

    def closest(self) -> tuple[float, float]:
        """Return the move whose central difference is closest to the first slope, and its error."""
        return self._window.closest(self)

    @property
    def _window(self) -> Window:
        return self.windows[int(self.best[0])]


def best_slope(windows: Sequence[Window], noise: Array | None = None) -> BestSlope:
    """Return the derivatives with the smallest bars, given the noise of a coefficient ``(m,)``.

    The noise in narrower windows is also in wider ones, though their last coefficients may happen
    to be small. A kink that a narrower window does not show is beside the point.
    """
    ordered = sorted(windows, key=lambda window: window.half)
    floors = [
        ROUNDED * window.rounding if noise is None else np.maximum(noise, window.rounding)
        for window in ordered
    ]
    slopes = [window.slope(floor) for window, floor in zip(ordered, floors, strict=True)]
    levels = np.nan_to_num(np.maximum([window.level for window in ordered], floors))
    with np.errstate(all="ignore"):
        grown = np.maximum.accumulate(levels) / levels
    bars = np.array([slope.bar for slope in slopes]) * np.nan_to_num(grown, nan=1.0, posinf=1.0)
    jumps = np.array([slope.half_jump for slope in slopes])
    for i in range(1, len(ordered)):
        beside = ((jumps[:i] == 0) & (bars[:i] < _CLEAR * jumps[i])).any(axis=0)
        bars[i] += np.where(beside, jumps[i], 0.0)
        jumps[i] = np.where(beside, 0.0, jumps[i])
    values = np.array([slope.value for slope in slopes])
    best, columns = bars.argmin(axis=0), np.arange(bars.shape[1])
    return BestSlope(
        value=values[best, columns],
        bar=bars[best, columns],
        half_jump=jumps[best, columns],
        rise=np.array([slope.rise for slope in slopes])[best, columns],
        windows=ordered,
        values=values,
        best=best,
    )


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


def windows_along(
    changes: Changes, rounding: Array, half: float, enough: Array, most: int = _MOST
) -> list[Window]:
    """Return windows until the bars are at most `enough` ``(m,)``.

    A narrower window follows, unless the error is rounding or noise, which is the same in both of
    the last windows: then a wider one.
    """
    found = [sampled(changes, rounding, half)]
    wider = narrower = half
    while len(found) < most:
        last, slope = found[-1], found[-1].slope()
        bent = (slope.half_jump > 0).any()
        if (slope.bar <= enough).all() and not bent:
            break
        noisy = (last.level <= ROUNDINGS * rounding).all() or (
            len(found) > 1 and (last.level > _SAME * found[-2].level).all()
        )
        if noisy and not bent and wider * _WIDER <= _WIDEST:
            wider *= _WIDER
            half = wider
        else:
            narrower /= _NARROWER
            half = narrower
        found.append(sampled(changes, rounding, half))
    return found


def slope_along(
    changes: Changes, rounding: Array, half: float, enough: Array, most: int = _MOST
) -> BestSlope:
    """Return the best derivatives of `windows_along`."""
    return best_slope(windows_along(changes, rounding, half, enough, most))

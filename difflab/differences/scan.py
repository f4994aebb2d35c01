r"""Estimates of the noise of a function's values, and of derivatives from noisy values.

Code that rounds its result, iterates to a tolerance or chooses its own steps returns values
whose errors are far larger than one rounding. Close to a point such errors are constant or
change smoothly, so neighbouring values do not reveal them: they appear as steps, and as jumps
further away. Therefore one component at a time is moved through windows of many sizes around the
point, in which the last coefficients show the noise (the idea is that of R. W. Hamming's tables of
differences and of J. J. Moré and S. M. Wild, *Estimating computational noise*, SIAM J. Sci.
Comput. 33, 2011). The noise of the noisiest window is used for all of them, and the slope comes
from the window where noise and truncation error together are smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.window import MANY, RESOLVED, Changes, Slope, Window, best_slope, sampled

Array = NDArray[float64]
BoolArray = NDArray[np.bool_]

_TOP = 0.3
_RATIO = 8.0
_LEAST = 4  # windows that are sampled at least
_NARROWEST = 2.0**-30
_WORSE = 4.0  # two windows in a row whose bars exceed the best by this factor end the scan
_ALIKE = 2.5  # largest ratio of the levels of one noise in neighbouring windows
_SMALL = 3e-4  # largest noise accepted from a single window, relative to the change there
_ASIDE = 0.65  # distance of the centre of windows that do not contain the point
_CLEAR = 1e2  # ratio of first to last coefficients that shows a smooth function
_KINKED = 0.7  # an even part whose ratio between windows exceeds this is that of a kink
_ABOVE_KINKS = 4.0
_ROUNDINGS = 8.0  # noise above this many units of rounding is more than rounding
_EPS = float(np.finfo(float64).eps)

_GROWTH, _GROWINGS, _HALVINGS = 16.0, 10, 30


@dataclass(frozen=True)
class LineScan:
    """Values sampled along one component, or along a direction.

    Attributes
    ----------
    noise : ndarray (m,)
        The size of the errors of the values; zero if it is not larger than rounding.
    pieces : ndarray (m,)
        The same for values that are smooth near the point and jump further away.
    rounding : ndarray (m,)
        The rounding of the values.
    """

    windows: list[Window]  # from the widest
    noise: Array
    pieces: Array
    rounding: Array

    def estimate(self, noise: Array) -> Slope:
        """Return the derivative from at least one window, with values off by `noise` ``(m,)``.

        The bar is infinite if no window resolves the function, and nan if a kink is closer than
        the windows can resolve.
        """
        slope = best_slope(self.windows, noise)
        with np.errstate(all="ignore"):
            # The errors of code that chooses its own steps have a smooth part, which is larger
            # than their jumps: the next narrower window shows it.
            narrower, columns = np.maximum(slope.best - 1, 0), np.arange(noise.size)
            apart = np.abs(slope.values[narrower, columns] - slope.value)
            least = RESOLVED * np.maximum(noise, self.rounding)
            changes = np.array([window.changes.max(axis=0) for window in self.windows])
            halves = np.array([window.half for window in self.windows])[:, None]
            rise = (changes * (changes > least) / halves).max(axis=0)
            # A kink inside the narrowest window may be at the point or next to it.
            near = _kinked(self.windows)[-1] & (slope.half_jump == 0) & (noise == 0)
        bar = slope.bar + np.where(noise > 0, apart, 0.0)
        return Slope(slope.value, np.where(near, np.nan, bar), slope.half_jump, rise)


def scan_line(
    changes: Changes, rounding: Array, x: float, wanted: BoolArray | None = None
) -> LineScan:
    """Sample values along one component, whose value is `x`.

    Parameters
    ----------
    changes : callable
        Map displacements of the component ``(K,)`` to the changes of the values ``(K, m)``; nan
        outside the domain.
    rounding : ndarray (m,)
        The error of the values at the point.
    x : float
        The value of the component.
    wanted : ndarray of bool (m,), optional
        The outputs to estimate.

    Examples
    --------
    >>> rounded = lambda t: np.round(np.sin(1.0 + t), 4)[:, None]
    >>> scan = scan_line(lambda t: rounded(t) - rounded(np.zeros(1)), np.array([1e-16]), 1.0)
    >>> bool(1e-5 < scan.noise[0] < 2e-4)
    True
    >>> slope = scan.estimate(scan.noise)
    >>> bool(abs(slope.value[0] - np.cos(1.0)) <= slope.bar[0] < 0.01)
    True
    """
    wanted = np.ones(rounding.shape, dtype=bool) if wanted is None else wanted
    with np.errstate(all="ignore"):
        windows = _windows(changes, rounding, x, wanted)
        stair = np.zeros_like(rounding)
        noise = pieces = stair
        if windows:
            rounding = windows[-1].rounding
            for output in np.flatnonzero(_flat(windows[-1]) & wanted):
                stair[output] = _stair(changes, int(output), windows, x)
            noise, pieces = _noise(windows)
        noise = np.maximum(noise, 0.5 * stair)
        noise = np.where(noise > _ROUNDINGS * rounding, noise, 0.0)
    return LineScan(windows, noise, np.minimum(pieces, noise), rounding)


def scan_aside(changes: Changes, rounding: Array) -> Array:
    """Return the jumps between smooth pieces ``(m,)`` on both sides of the point."""
    jumps = np.zeros_like(rounding)
    with np.errstate(all="ignore"):
        for side in (-_ASIDE, _ASIDE):
            middle = changes(np.array([side]))
            there = rounding + _EPS * np.abs(middle[0])
            window = sampled(partial(_beside, changes, side, middle), there, _TOP, MANY)
            if not np.isfinite(window.odd).all():
                continue
            noise, _ = _noise([window])
            jumps = np.fmax(jumps, np.where(noise > _ROUNDINGS * window.rounding, noise, 0.0))
    return jumps


def _beside(changes: Changes, side: float, middle: Array, moves: Array) -> Array:
    return changes(side + moves) - middle


def _windows(changes: Changes, rounding: Array, x: float, wanted: BoolArray) -> list[Window]:
    """Sample windows from the widest until narrower ones only increase the error bar."""
    size = abs(x)
    half, last = _TOP * max(size, 1.0), _NARROWEST * (min(size, 1.0) or 1.0)
    windows: list[Window] = []
    bars: list[Array] = []
    while half > last:
        window = sampled(changes, rounding, half, MANY)
        if np.isfinite(window.odd).all():
            windows.append(window)
            bars.append(window.slope(window.rounding).bar[wanted])
        half /= _RATIO
        if len(bars) >= _LEAST:
            best = np.min(bars, axis=0)
            if (np.minimum(bars[-1], bars[-2]) >= _WORSE * best).all() and np.isfinite(best).all():
                break
    return windows


def _flat(window: Window) -> BoolArray:
    flat: BoolArray = window.changes.max(axis=0) == 0
    return flat


def _noise(windows: list[Window]) -> tuple[Array, Array]:
    """Return the noise of the coefficients ``(m,)``, and that of jumps between smooth pieces.

    Code that iterates to a tolerance is smooth near the point and jumps further away.
    """
    level = np.array([window.level for window in windows])
    top = np.array([np.abs(window.coefficients[0]).max(axis=0) for window in windows])
    at_noise = np.array([window.at_noise for window in windows])
    # The odd part of a kink next to the point jumps as much in windows where curvature hides it.
    at_noise &= level > _ABOVE_KINKS * np.where(_kinked(windows), level, 0.0).max(axis=0)
    counts = at_noise & (top >= RESOLVED * level)
    alike = np.zeros_like(counts)
    low, high = np.minimum(level[1:], level[:-1]), np.maximum(level[1:], level[:-1])
    near = at_noise[1:] & at_noise[:-1] & (high <= _ALIKE * low)
    alike[1:] |= near
    alike[:-1] |= near
    # If narrow windows show a smooth function, a large jump further away is not noise.
    clear = top[-1] >= _CLEAR * level[-1]
    clear &= top[-1] > 0
    counts &= (alike & ~clear) | (level <= _SMALL * top)
    noise: Array = np.where(counts, level, 0.0).max(axis=0)
    return noise, np.where(clear & (noise > _CLEAR * level[-1]), noise, 0.0)


def _kinked(windows: list[Window]) -> BoolArray:
    """Return the mask ``(K, m)`` of windows whose even part is that of a kink.

    If the kink is not at the point itself, the odd part jumps by its distance.
    """
    change = np.array([window.even[-1] for window in windows])
    rise = np.array([window.even[-1] / window.moves[-1] for window in windows])
    clear = np.abs(change) > 2.0 * RESOLVED * np.array([window.level for window in windows])
    ratio = rise[1:] / rise[:-1]
    pair = (ratio > _KINKED) & (ratio < 1.0 / _KINKED) & clear[1:] & clear[:-1]
    result: BoolArray = np.zeros_like(clear)
    result[1:] |= pair
    result[:-1] |= pair
    # The window in which the distance to the kink becomes visible is no better.
    result[1:] |= result[:-1]
    return result


def _stair(changes: Changes, output: int, windows: list[Window], x: float) -> float:
    """Return the height of the first step of an output that is constant near the point."""

    def change(move: float) -> float:
        size = float(abs(changes(np.array([move]))[0, output]))
        return size if np.isfinite(size) else 0.0

    wider = [window.half for window in windows if not _flat(window)[output]]
    start = max(abs(x), windows[0].half)
    steps = wider[-1:] or [start * _GROWTH**k for k in range(1, _GROWINGS + 1)]
    far = next((sign * t for t in steps for sign in (1.0, -1.0) if change(sign * t)), 0.0)
    if far == 0.0:
        return 0.0
    near = float(np.copysign(windows[-1].moves[0], far))
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        near, far = (near, middle) if change(middle) else (middle, far)
    return change(far)

r"""Estimates of the noise of a function's values, and of derivatives from noisy values.

Code that rounds its result, iterates to a tolerance or chooses its own steps returns values
whose errors are far larger than one rounding. Close to a point such errors are constant or
change smoothly, so neighbouring values do not reveal them: they appear as steps, and as jumps
further away. Therefore one component at a time is moved through windows of many sizes around the
point. In each window, the odd part of the function is interpolated at Chebyshev points,

.. math:: \tfrac12 (f(x + t) - f(x - t)) = \sum_{j\ \mathrm{odd}} c_j T_j(t / H),

whose coefficients fall geometrically until they reach the level of the noise and stay there (J. L.
Aurentz and L. N. Trefethen, *Chopping a Chebyshev series*, ACM Trans. Math. Softw. 43, 2017; the
idea is that of R. W. Hamming's tables of differences and of J. J. Moré and S. M. Wild,
*Estimating computational noise*, SIAM J. Sci. Comput. 33, 2011). The noise of the noisiest window
is used for all of them, and the slope comes from the window where noise and truncation error
together are smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.testing.components.chebyshev import Chebyshev

__all__ = ["LineEstimate", "LineScan", "scan_aside", "scan_line"]

Array = NDArray[float64]
MovedValues = Callable[[Array], Array]
"""Map displacements of one component ``(K,)`` to the function's flattened values ``(K, m)``."""

_CHEBYSHEV = Chebyshev(17)
_POSITIVE, _ODD = _CHEBYSHEV.positive, _CHEBYSHEV.orders
_TO_COEFFICIENTS, _SLOPES, _SQUARES = _CHEBYSHEV.to_odd, _CHEBYSHEV.slopes, _CHEBYSHEV.growth

_TOP = 0.3
_RATIO = 8.0
_LEAST = 4  # windows that are sampled at least
_NARROWEST = 2.0**-30
_WORSE = 4.0  # two windows in a row whose bars exceed the best by this factor end the scan
_RESOLVED = 10.0  # factor by which the coefficients must fall for a function to be resolved
_LEVEL = 0.2  # coefficients whose ratio exceeds this have reached the noise
_ALIKE = 2.5  # largest ratio of the levels of one noise in neighbouring windows
_SMALL = 3e-4  # largest noise accepted from a single window, relative to the change there
_ASIDE = 0.65  # distance of the centre of windows that do not contain the point
_CLEAR = 1e2  # ratio of first to last coefficients that shows a smooth function
_KINKED = 0.7  # an even part whose ratio between windows exceeds this is that of a kink
_ABOVE_KINKS = 4.0
_SAFETY = 2.0
_ROUNDINGS = 8.0  # noise above this many units of rounding is more than rounding
_EPS = float(np.finfo(float64).eps)

_GROWTH, _GROWINGS, _HALVINGS = 16.0, 10, 30


@dataclass(frozen=True)
class LineEstimate:
    """Derivative estimates along one component, for each of the ``m`` outputs.

    Attributes
    ----------
    slope, bar : ndarray (m,)
        The derivative and a bound on its error: infinite if no window resolves the function,
        nan if a kink is closer than the windows can resolve.
    rise : ndarray (m,)
        The steepest mean slope from the point to the end of a window.
    half_jump : ndarray (m,)
        Half the difference of the one-sided derivatives at a kink; otherwise 0.
    """

    slope: Array
    bar: Array
    rise: Array
    half_jump: Array


@dataclass(frozen=True)
class _Window:
    """Values in one window: its half-width, the odd part's coefficients, and magnitudes."""

    half: float
    odd: Array  # (8, m) coefficients
    even: Array  # (m,) rise of the even part at the innermost nodes, over their distance
    inner: float  # that distance
    rise: Array  # (m,) largest change from the centre
    rounding: Array  # (m,)
    flat: NDArray[np.bool_]


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

    windows: list[_Window]
    noise: Array
    pieces: Array
    rounding: Array

    def estimate(self, noise: Array) -> LineEstimate:
        """Return the derivative, given values with errors of size `noise` ``(m,)``."""
        windows = self.windows
        if not windows:
            lost = np.full_like(noise, np.inf)
            return LineEstimate(0 * noise, lost, 0 * noise, 0 * noise)
        with np.errstate(all="ignore"):
            read = [_read(window, np.maximum(noise, window.rounding)) for window in windows]
            slopes, bars = (np.array(each) for each in zip(*read, strict=True))
            best, columns = bars.argmin(axis=0), np.arange(noise.size)
            least = np.maximum(noise, self.rounding)
            rises = [
                window.rise * (window.rise > _RESOLVED * least) / window.half for window in windows
            ]
            half_jump, error = _half_jump(windows, least)
            bar = bars[best, columns] + np.where(noise > 0, _apart(slopes, best), 0.0) + error
            level = np.abs([window.odd[-3:] for window in windows]).max(axis=1)
            # A kink inside the narrowest window may be at the point or next to it.
            near = _kinked(windows, level)[-1] & (half_jump == 0) & (noise == 0)
            return LineEstimate(
                slope=slopes[best, columns],
                bar=np.where(near, np.nan, bar),
                rise=np.max(rises, axis=0),
                half_jump=half_jump,
            )


def scan_line(
    values: MovedValues, center: Array, x: float, wanted: NDArray[np.bool_] | None = None
) -> LineScan:
    """Sample values along one component, whose value is `x`.

    Parameters
    ----------
    values : callable
        Map displacements of the component ``(K,)`` to values ``(K, m)``; nan outside the domain.
    center : ndarray (m,)
        The values at the point.
    x : float
        The value of the component.
    wanted : ndarray of bool (m,), optional
        The outputs to estimate.

    Examples
    --------
    >>> rounded = lambda t: np.round(np.sin(1.0 + t), 4)[:, None]
    >>> scan = scan_line(rounded, rounded(np.zeros(1))[0], 1.0)
    >>> bool(1e-5 < scan.noise[0] < 2e-4)
    True
    >>> found = scan.estimate(scan.noise)
    >>> bool(abs(found.slope[0] - np.cos(1.0)) <= found.bar[0] < 0.01)
    True
    """
    wanted = np.ones(center.shape, dtype=bool) if wanted is None else wanted
    with np.errstate(all="ignore"):
        windows = _windows(values, center, x, wanted)
        rounding = windows[-1].rounding if windows else _EPS * np.abs(center)
        stair = np.zeros_like(center)
        still = windows[-1].flat if windows else np.zeros(center.shape, dtype=bool)
        for output in np.flatnonzero(still & wanted):
            stair[output] = _stair(values, center, int(output), windows, x)
        noise, pieces = _noise(windows) if windows else (stair, stair)
        noise = np.maximum(noise, 0.5 * stair)
        noise = np.where(noise > _ROUNDINGS * rounding, noise, 0.0)
    return LineScan(windows, noise, np.minimum(pieces, noise), rounding)


def scan_aside(values: MovedValues, center: Array) -> Array:
    """Return the jumps between smooth pieces ``(m,)`` on both sides of the point."""
    found = np.zeros_like(center)
    with np.errstate(all="ignore"):
        for side in (-_ASIDE, _ASIDE):
            middle = values(np.array([side]))[0]
            window = _window(partial(_shifted, values, side), middle, _TOP)
            if window is None:
                continue
            noise, _ = _noise([window])
            found = np.fmax(found, np.where(noise > _ROUNDINGS * window.rounding, noise, 0.0))
    return found


def _shifted(values: MovedValues, side: float, moves: Array) -> Array:
    return values(side + moves)


def _windows(
    values: MovedValues, center: Array, x: float, wanted: NDArray[np.bool_]
) -> list[_Window]:
    """Sample windows from the widest until narrower ones only increase the error bar."""
    size = abs(x)
    half, last = _TOP * max(size, 1.0), _NARROWEST * (min(size, 1.0) or 1.0)
    found: list[_Window] = []
    bars: list[Array] = []
    while half > last:
        window = _window(values, center, half)
        if window is not None:
            found.append(window)
            bars.append(_read(window, window.rounding)[1][wanted])
        half /= _RATIO
        if len(bars) >= _LEAST:
            best = np.min(bars, axis=0)
            if (np.minimum(bars[-1], bars[-2]) >= _WORSE * best).all() and np.isfinite(best).all():
                break
    return found


def _window(values: MovedValues, center: Array, half: float) -> _Window | None:
    """Return one window; None if it leaves the domain."""
    moves = half * _POSITIVE
    ends = values(np.array([moves[0], -moves[0]]))
    if not np.isfinite(ends).all():
        return None
    rest = values(np.concatenate([moves[1:], -moves[1:]]))
    count = moves.size - 1
    up = np.concatenate([ends[:1], rest[:count]]) - center
    down = np.concatenate([ends[1:], rest[count:]]) - center
    if not (np.isfinite(up).all() and np.isfinite(down).all()):
        return None
    change = np.fmax(np.abs(up), np.abs(down)).max(axis=0)
    return _Window(
        half=half,
        odd=_TO_COEFFICIENTS @ (0.5 * (up - down)),
        even=0.5 * (up[-1] + down[-1]) / moves[-1],
        inner=float(moves[-1]),
        rise=change,
        rounding=_EPS * (np.abs(center) + change),
        flat=change == 0,
    )


def _read(window: _Window, noise: Array) -> tuple[Array, Array]:
    """Return a window's slope and its error bar, given the noise of the coefficients."""
    size = np.abs(window.odd)
    level = np.maximum(size[-3:].max(axis=0), noise)
    above = size > _SAFETY * level
    # The last coefficient above the noise, or the first.
    last = np.where(above.any(axis=0), len(size) - 1 - above[::-1].argmax(axis=0), 0)
    kept = np.arange(len(size))[:, None] <= last
    slope = (_SLOPES[:, None] * window.odd * kept).sum(axis=0) / window.half
    bar = _SAFETY * level * (_SQUARES[last] + _ODD[last] + 2.0) / window.half
    usable = (size.max(axis=0) >= _RESOLVED * level) | (level <= 4.0 * noise)
    return slope, np.where(usable, bar, np.inf)


def _apart(slopes: Array, best: NDArray[np.intp]) -> Array:
    """Return how far the slope of the next narrower window is from that of the best, ``(m,)``.

    The errors of code that chooses its own steps have a smooth part, which is larger than their
    jumps.
    """
    columns = np.arange(best.size)
    following = np.minimum(best + 1, len(slopes) - 1)
    gap: Array = np.abs(slopes[following, columns] - slopes[best, columns])
    return gap


def _noise(windows: list[_Window]) -> tuple[Array, Array]:
    """Return the noise of the coefficients ``(m,)``, and that of jumps between smooth pieces.

    Code that iterates to a tolerance is smooth near the point and jumps further away.
    """
    size = np.abs([window.odd for window in windows])
    level, top = size[:, -3:].max(axis=1), size.max(axis=1)
    at_noise = (level > 0) & (size[:, -2:].max(axis=1) >= _LEVEL * size[:, -4:-2].max(axis=1))
    # The odd part of a kink next to the point jumps as much in windows where curvature hides it.
    at_noise &= level > _ABOVE_KINKS * np.where(_kinked(windows, level), level, 0.0).max(axis=0)
    counts = at_noise & (top >= _RESOLVED * level)
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


def _kinked(windows: list[_Window], level: Array) -> NDArray[np.bool_]:
    """Return the mask ``(K, m)`` of windows whose even part is that of a kink.

    If the kink is not at the point itself, the odd part jumps by its distance.
    """
    rise = np.array([window.even for window in windows])
    inner = np.array([window.inner for window in windows])[:, None]
    clear = np.abs(rise) * inner > 2.0 * _RESOLVED * level
    ratio = rise[1:] / rise[:-1]
    pair = (ratio > _KINKED) & (ratio < 1.0 / _KINKED) & clear[1:] & clear[:-1]
    result: NDArray[np.bool_] = np.zeros_like(clear)
    result[1:] |= pair
    result[:-1] |= pair
    # The window in which the distance to the kink becomes visible is no better.
    result[1:] |= result[:-1]
    return result


def _half_jump(windows: list[_Window], noise: Array) -> tuple[Array, Array]:
    """Return half the jump of the derivative at a kink and its error; zero without a kink.

    The even part of a smooth function grows with the square of the distance, that of a kink
    linearly.
    """
    inner = np.array([window.inner for window in windows])[:, None]
    rise = np.array([window.even for window in windows])
    doubt = 4.0 * noise / inner
    jump, error = np.zeros_like(noise), np.zeros_like(noise)
    for output in range(noise.size):
        clear = np.flatnonzero(np.abs(rise[:, output]) > 5.0 * doubt[:, output])
        wide, narrow = rise[clear[:-1], output], rise[clear[1:], output]
        if clear.size > 1 and narrow[-1] / wide[-1] > _KINKED:
            bar = np.abs(wide - narrow) + doubt[clear[1:], output]
            jump[output], error[output] = narrow[bar.argmin()], bar.min()
    return jump, error


def _stair(
    values: MovedValues, center: Array, output: int, windows: list[_Window], x: float
) -> float:
    """Return the height of the first step of an output that is constant near the point."""
    near = 0.0
    far = 0.0
    for window in reversed(windows):
        if not window.flat[output]:
            far = window.half
            break
        near = window.half
    if far == 0.0:
        far = _beyond(values, center, output, max(abs(x), near))
    if far == 0.0:
        return 0.0
    near *= _POSITIVE[0]
    side = 1.0
    height = 0.0
    for sign in (1.0, -1.0):
        change = _change(values, center, output, sign * far)
        if change:
            side, height = sign, change
            break
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        change = _change(values, center, output, side * middle)
        if change:
            far, height = middle, change
        else:
            near = middle
    return height


def _beyond(values: MovedValues, center: Array, output: int, step: float) -> float:
    """Return a distance at which an output changes; zero if none is found."""
    for _ in range(_GROWINGS):
        step *= _GROWTH
        for sign in (1.0, -1.0):
            if _change(values, center, output, sign * step):
                return step
    return 0.0


def _change(values: MovedValues, center: Array, output: int, move: float) -> float:
    """Return the change of an output under a displacement; zero if it is not finite."""
    change = float(abs(values(np.array([move]))[0, output] - center[output]))
    return change if np.isfinite(change) else 0.0

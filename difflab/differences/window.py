r"""Values in a window around a point, and the derivative there with an error bar.

The odd part of the function is interpolated at Chebyshev points,

.. math:: \tfrac12 (f(x + t) - f(x - t)) = \sum_{j\ \mathrm{odd}} c_j T_j(t / H),

and likewise the even part. The coefficients fall geometrically until they reach the level of the
noise and stay there (J. L. Aurentz and L. N. Trefethen, *Chopping a Chebyshev series*, ACM Trans.
Math. Softw. 43, 2017). So the last ones are truncation or noise; they and the rounding of the
values give the error bar. An even part that grows linearly shows a kink at the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy import float64
from numpy.typing import NDArray

Array = NDArray[float64]
BoolArray = NDArray[np.bool_]
Changes = Callable[[Array], Array]
"""Map displacements ``(K,)`` to the changes of the values ``(K, m)``; nan outside the domain."""


class Chebyshev:
    r"""The odd and even part of :math:`f(t) = \sum_j c_j T_j(t/H)` from an odd number of nodes.

    Attributes
    ----------
    positive : ndarray (k,)
        The positive nodes relative to H, from the largest; the middle node is 0.
    orders : ndarray (k,)
        The odd orders j.
    to_odd, to_even : ndarray (k, k)
        From values of the odd or even part at the positive nodes, zero at 0, to its coefficients
        of the orders j, or j + 1.
    slopes : ndarray (k,)
        :math:`T_j'(0)` for odd j.
    growth : ndarray (k,)
        The norms of the first slopes: the noise of a slope relative to that of a coefficient.

    Examples
    --------
    >>> nodes = Chebyshev(9)
    >>> odd = nodes.to_odd @ np.sin(nodes.positive)
    >>> bool(abs(nodes.slopes @ odd - 1.0) < 1e-6)
    True
    """

    def __init__(self, nodes: int) -> None:
        angles = np.pi * (np.arange(nodes // 2) + 0.5) / nodes
        self.positive: Array = np.cos(angles)
        self.orders = np.arange(1, nodes, 2)
        self.to_odd: Array = (4.0 / nodes) * np.cos(np.outer(self.orders, angles))
        self.to_even: Array = (4.0 / nodes) * np.cos(np.outer(self.orders + 1, angles))
        self.slopes: Array = self.orders * (-1.0) ** (self.orders // 2)
        self.growth: Array = np.sqrt(np.cumsum(self.orders.astype(float64) ** 2))


FEW, MANY = Chebyshev(9), Chebyshev(17)
"""8 points for a slope; 16 for noise, which more coefficients distinguish from truncation."""

RESOLVED = 10.0
"""Factor by which the coefficients must fall for a function to be resolved."""
ROUNDED = 0.25
"""Noise of a coefficient that one rounding of the values explains."""
_AT_NOISE = 0.2  # coefficients whose ratio exceeds this have reached the noise
ROUNDINGS = 4.0
"""Roundings up to which a level is no truncation."""
_SAFETY = 2.0
_STRAIGHT = 5.0  # a kink is at least this many error bars of the even part
_SLOW = 0.1  # even coefficients of the orders 4 and 8 whose ratio exceeds this are a kink's
_EPS = 2.0**-52


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
    """

    value: Array
    bar: Array
    half_jump: Array
    rise: Array

    def per(self, length: float) -> Slope:
        """Return the derivatives by a variable that moves by `length` where this one moves by 1."""
        size = abs(length)
        return Slope(self.value / length, self.bar / size, self.half_jump / size, self.rise / size)


@dataclass(frozen=True)
class Window:
    """The odd and the even part of ``m`` values in one window.

    Attributes
    ----------
    nodes : Chebyshev
        The points.
    half : float
        The half-width.
    odd, even : ndarray (k, m)
        Both parts at the positive nodes.
    rounding : ndarray (m,)
        The error of one value.
    """

    nodes: Chebyshev
    half: float
    odd: Array
    even: Array
    rounding: Array

    @cached_property
    def moves(self) -> Array:
        """The distances of the nodes from the point ``(k,)``, from the largest."""
        return self.half * self.nodes.positive

    @cached_property
    def changes(self) -> Array:
        """The larger change of each value at either node of a pair, ``(k, m)``."""
        return np.abs(self.odd) + np.abs(self.even)

    @cached_property
    def coefficients(self) -> tuple[Array, Array]:
        """Those of the odd and of the even part, each ``(k, m)``."""
        return self.nodes.to_odd @ self.odd, self.nodes.to_even @ self.even

    @cached_property
    def _tail(self) -> tuple[Array, BoolArray]:
        # Where coefficients are few, those of the even part are needed as well.
        a, b = map(np.abs, self.coefficients)
        return _last(a if len(a) > 4 else np.maximum(a, b))

    @property
    def level(self) -> Array:
        """The size of the last coefficients: noise, or truncation."""
        return self._tail[0]

    @property
    def at_noise(self) -> BoolArray:
        """Whether the coefficients have stopped falling."""
        return self._tail[1]

    def slope(self, noise: Array | None = None) -> Slope:
        """Return the derivative at the point, given the noise of a coefficient ``(m,)``."""
        noise = ROUNDED * self.rounding if noise is None else noise
        with np.errstate(all="ignore"):
            a, b = self.coefficients
            level = np.maximum(self.level, noise)
            linear, kink = self._linear_growth(level)
            # The even part of a kink at the point says nothing about the odd part.
            level = np.where(kink, np.maximum(_last(np.abs(a))[0], noise), level)
            small = level <= ROUNDINGS * np.maximum(noise, self.rounding)
            value, bar = (each / self.half for each in _truncated(self.nodes, a, level))
            largest = np.maximum(np.abs(a).max(axis=0), np.abs(b).max(axis=0))
            resolved = small | (RESOLVED * level <= largest)
            # A kink beside the point: the slope may be that of either side.
            bent = ~small & (np.abs(b[3]) > _SLOW * np.abs(b[1]))
            bar = bar + np.where(bent & ~kink, linear, 0.0)
            rise = (self.changes / self.moves[:, None]).max(axis=0)
            finite = np.isfinite(value) & np.isfinite(bar)
        return Slope(
            value=np.where(finite, value, 0.0),
            bar=np.where(finite & resolved, bar, np.inf),
            half_jump=np.where(finite & kink, linear, 0.0),
            rise=np.where(finite, rise, 0.0),
        )

    def closest(self, slope: Slope) -> tuple[float, float]:
        """Return the move whose central difference is closest to the first slope, and its error."""
        error = np.abs(self.odd[:, 0] / self.moves - slope.value[0]) + slope.bar[0]
        best = int(error.argmin())
        return float(self.moves[best]), float(error[best])

    def _linear_growth(self, level: Array) -> tuple[Array, BoolArray]:
        """Return the linear growth of the even part, and whether it is a kink's at the point."""
        even, moves = np.nan_to_num(self.even), self.moves
        basis = np.stack([moves, moves**2, moves**4], axis=1)
        coefficients, *_ = np.linalg.lstsq(basis / moves[0], even / moves[0], rcond=None)
        error = np.abs(even - basis @ coefficients).max(axis=0) / moves[-1]
        smooth, *_ = np.linalg.lstsq(basis[:, 1:], even, rcond=None)
        misfit = np.abs(even - basis[:, 1:] @ smooth).max(axis=0)
        kink = misfit > _STRAIGHT * np.maximum(error * moves[-1], ROUNDED * level)
        return np.abs(coefficients[0]) + error, kink


def _last(size: Array) -> tuple[Array, BoolArray]:
    """Return the level of the last quarter of some coefficients, and whether it is of noise."""
    quarter = len(size) // 4
    last, before = size[-quarter:].max(axis=0), size[-2 * quarter : -quarter].max(axis=0)
    at_noise: BoolArray = last > _AT_NOISE * before
    return np.where(at_noise, np.maximum(last, before), last), at_noise


def sampled(changes: Changes, rounding: Array, half: float, nodes: Chebyshev = FEW) -> Window:
    """Return a window from values at its nodes; from two of them, if all values are nan there.

    Parameters
    ----------
    changes : callable
        The changes of the values from those at the point.
    rounding : ndarray (m,)
        The error of the value at the point.
    half : float
        The half-width.
    nodes : Chebyshev
        The points.
    """
    moves = half * nodes.positive
    samples = np.full((2, moves.size, rounding.size), np.nan)
    samples[:, 0] = changes(np.array([moves[0], -moves[0]]))
    if np.isfinite(samples[:, 0]).all(axis=0).any():
        samples[:, 1:] = changes(np.concatenate([moves[1:], -moves[1:]])).reshape(
            samples[:, 1:].shape
        )
    up, down = samples
    rounding = rounding + _EPS * np.abs(samples).max(axis=(0, 1))
    return Window(nodes, half, 0.5 * (up - down), 0.5 * (up + down), rounding)


def central_difference(changes: Changes, step: float) -> float:
    """Return the central difference of the first value."""
    above, below = changes(np.array([step, -step]))[:, 0]
    return float(above - below) / (2.0 * step)


def _truncated(nodes: Chebyshev, a: Array, level: Array) -> tuple[Array, Array]:
    """Return the slope from the first odd coefficients, as many as give the smallest bar.

    The bar is the noise of those, plus the excess of the omitted terms over the noise.
    """
    terms = nodes.slopes[:, None] * a
    excess = nodes.orders[:, None] * np.maximum(np.abs(a) - level, 0.0)
    left_out = np.cumsum(excess[::-1], axis=0)[::-1] - excess
    bars = _SAFETY * (nodes.growth + nodes.orders + 2.0)[:, None] * level + left_out
    best, columns = bars.argmin(axis=0), np.arange(a.shape[1])
    return np.cumsum(terms, axis=0)[best, columns], bars[best, columns]


# --- the best of several windows --------------------------------------------------------------

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
    windows = [sampled(changes, rounding, half)]
    wider = narrower = half
    while len(windows) < most:
        last, slope = windows[-1], windows[-1].slope()
        bent = (slope.half_jump > 0).any()
        if (slope.bar <= enough).all() and not bent:
            break
        noisy = (last.level <= ROUNDINGS * rounding).all() or (
            len(windows) > 1 and (last.level > _SAME * windows[-2].level).all()
        )
        if noisy and not bent and wider * _WIDER <= _WIDEST:
            wider *= _WIDER
            half = wider
        else:
            narrower /= _NARROWER
            half = narrower
        windows.append(sampled(changes, rounding, half))
    return windows


def slope_along(
    changes: Changes, rounding: Array, half: float, enough: Array, most: int = _MOST
) -> BestSlope:
    """Return the best derivatives of `windows_along`."""
    return best_slope(windows_along(changes, rounding, half, enough, most))

r"""The check of a gradient of many components along a few directions.

Along a direction v the derivative of :math:`f(x + tv) - t\langle g, v\rangle` at 0 is
:math:`\langle \nabla f - g, v\rangle`: zero if g is right. Random magnitudes prevent that errors
cancel. The first direction has the signs of g, so that the terms add up and rounding matters
least; the second has random signs, so that it also sees components whose g is zero.
`numeric_derivative` differentiates along one component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from difflab.differences.window import BestSlope, best_slope, first_half, slope_along, windows_along
from difflab.errors import PointError
from difflab.testing.checker.arguments import Point
from difflab.testing.checker.given import prepared
from difflab.testing.checker.leaves import CHUNK, Array
from difflab.testing.checker.probe import Probe
from difflab.testing.checker.truth import TRUSTED

_ROUNDINGS = 8.0
"""Units of rounding by which a right gradient is off, relative to its terms."""

LARGE = 100_000
"""Components from which few directions, and few windows, must do."""

_CALM, _FULL = 1, 4  # windows along one direction; a doubt adds others

_NARROWER = 4.0
_HALF = 0.5  # in 16 bits, a bar below half of the derivative still tells a sign or a missing part
_SURE = 0.05  # a bar below this share of an error confirms it

_RADIUS = 2.0  # units of rounding by which the arguments of the neighbours are moved


@dataclass(frozen=True)
class Directional:
    """The derivative along one direction, compared with the gradient under test.

    Attributes
    ----------
    along : ndarray (n,)
        The direction.
    error : BestSlope
        The derivative of f minus that of the gradient, with its bar.
    yours : float
        The derivative by the gradient.
    size : float
        The size of its terms.
    margin : float
        The tolerance of the error: its bar, and the rounding of the gradient.
    trusted : float
        Share of the derivative above which the bar is too wide for a verdict.
    """

    along: Array
    error: BestSlope
    yours: float
    size: float
    margin: float
    trusted: float

    @property
    def off(self) -> float:
        """The error: numeric derivative minus that of the gradient under test."""
        return float(self.error.value[0])

    @property
    def numeric(self) -> float:
        """The numeric derivative."""
        return self.yours + self.off

    @property
    def wrong(self) -> bool:
        """Whether the error exceeds its bound, also at a kink."""
        return not abs(self.off) <= self.margin + float(self.error.half_jump[0])

    @property
    def unjudged(self) -> bool:
        """Whether a wrong gradient would pass as well."""
        size = max(abs(self.yours), self.size, float(self.error.rise[0]))
        return not float(self.error.bar[0]) <= self.trusted * size


def _scales(point: Point, floor: bool) -> Iterator[tuple[int, int, Array]]:
    """Yield parts of the arguments and their displacements.

    The length is the magnitude of each number, and for zeros the leaf's mean magnitude; with
    `floor` it is at least that.
    """
    for leaf, start in zip(point.leaves, point.starts, strict=False):
        flat, squares = leaf.flat(), 0.0
        for a in range(0, leaf.size, CHUNK):
            part = leaf.read(flat, a, min(a + CHUNK, leaf.size))
            squares += float(part @ part)
        mean = np.sqrt(squares / leaf.size) or 1.0
        for a in range(0, leaf.size, CHUNK):
            part = np.abs(leaf.read(flat, a, min(a + CHUNK, leaf.size)))
            yield (
                int(start) + a,
                int(start) + a + part.size,
                (np.maximum(part, mean) if floor else np.where(part == 0, mean, part)),
            )


def at_random(point: Point, seed: int, *, floor: bool = False) -> Array:
    """Return a direction ``(n,)`` of random signs, and magnitudes on the scale of the arguments."""
    draw = np.random.default_rng(seed)
    along = np.empty(point.n)
    for a, b, scale in _scales(point, floor):
        part = draw.uniform(-1.0, 1.0, b - a)
        along[a:b] = np.sign(part) * (0.5 + 0.5 * np.abs(part)) * scale
    return along


def along_gradient(point: Point, gradient: Array, seed: int) -> Array:
    """Return a direction ``(n,)`` in which no two terms of the derivative have other signs."""
    along = at_random(point, seed, floor=True)
    for a in range(0, point.n, CHUNK):
        part = gradient[a : a + CHUNK]
        along[a : a + CHUNK] *= np.where(part * along[a : a + CHUNK] < 0, -1.0, 1.0)
    return along


def judged_along(
    probe: Probe,
    gradient: Array,
    along: Array,
    cotangent: Array | None = None,
    *,
    doubted: Directional | None = None,
    sensitivity: Callable[[Array], float] | None = None,
) -> Directional:
    """Compare the derivative along a direction.

    Parameters
    ----------
    probe : Probe
        The values.
    gradient : ndarray (n,)
        The gradient under test, of the sum of the values weighted by `cotangent`.
    along : ndarray (n,)
        The direction.
    cotangent : ndarray (m,), optional
        The weights, if there are several values.
    doubted : Directional, optional
        An error along the direction to confirm, in narrower windows.
    sensitivity : callable, optional
        Map a direction to the change of the derivative under test between neighbouring arguments.
    """
    yours, size = _terms(gradient, along)
    changes = probe.residual(along, gradient[None], cotangent)
    eps = probe.eps
    share = 1e-6 if eps < 1e-12 else 1e-3 if eps < 1e-6 else 3e-2
    half, enough = first_half(eps, alone=False), share * (abs(yours) + size)
    most = _CALM if probe.point.n >= LARGE else _FULL
    if doubted is not None:
        enough = _SURE * abs(doubted.off) if doubted.wrong else 0.0
        half, most = doubted.error.half / _NARROWER, _FULL
    rounding = probe.rounding_of(cotangent)
    windows = windows_along(changes, rounding, half, np.array([enough]), most)
    best = best_slope(windows if doubted is None else [*doubted.error.windows, *windows])
    margin = float(best.bar[0]) + _ROUNDINGS * eps * (abs(yours) + size)
    if sensitivity is not None:
        margin += sensitivity(along)
    trusted = TRUSTED if eps < 1e-6 else _HALF
    return Directional(along, best, yours, size, margin, trusted)


def _terms(gradient: Array, along: Array) -> tuple[float, float]:
    """Return the sum of the terms of a derivative along a direction, and their norm."""
    total, squares = 0.0, 0.0
    for a in range(0, along.size, CHUNK):
        terms = gradient[a : a + CHUNK] * along[a : a + CHUNK]
        total += float(terms.sum())
        squares += float(terms @ terms)
    return total, float(np.sqrt(squares))


def neighbours(point: Point, count: int) -> Iterator[Point]:
    """Yield points whose elements are displaced by a few units of rounding; zeros are kept."""
    for seed in range(count):
        along = np.random.default_rng(seed).choice((-_RADIUS, _RADIUS), point.n)
        for leaf, start in zip(point.leaves, point.starts, strict=False):
            along[start : start + leaf.size] *= leaf.eps * np.abs(leaf.numbers())
        tree, _ = point.displaced(along, 1.0, np.zeros((0, point.n)))
        yield Point(tree, point.root)


class NumericDerivative(NamedTuple):
    """A derivative, a bound on its error, and the name of the component."""

    value: float
    bar: float
    name: str


def numeric_derivative(f: Callable[[Any], Any], x: Any, index: int) -> NumericDerivative:
    """Return the derivative of a scalar function with respect to one component.

    Parameters
    ----------
    f : callable
        Function of `x` that returns a scalar, or a ``torch.nn.Module``.
    x : array or tree
        The point, as for `check_gradient`.
    index : int
        The component among all real numbers of `x`, in order; complex numbers are two.

    Raises
    ------
    difflab.errors.PointError
        There is no such component, or `f` does not return one number.

    Examples
    --------
    >>> slope = numeric_derivative(lambda p: np.sum(p["w"] ** 3), {"w": np.array([1.0, 2.0])}, 1)
    >>> slope.name, round(slope.value, 6), slope.bar < 1e-8
    ('p["w"][1]', 12.0, True)
    """
    f, point = prepared(f, x)
    if not 0 <= index < point.n:
        raise PointError(f"there is no component {index}: the arguments have {point.n}")
    probe = Probe(f, point)
    if probe.center.size != 1:
        raise PointError(f"f returns {probe.center.size} numbers, not one")
    along, length = np.zeros(point.n), point.magnitude(index)
    along[index] = length
    changes = probe.residual(along, np.zeros((1, point.n)), start=index, stop=index + 1)
    half = first_half(probe.eps, alone=True)
    slope = slope_along(changes, probe.rounding, half, np.zeros(1)).per(length)
    return NumericDerivative(float(slope.value[0]), float(slope.bar[0]), point.name(index))

"""The component of a gradient that is wrong, found by bisection along a direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.window import Changes, Slope, central_difference, sampled
from difflab.differences.windows import slope_along
from difflab.testing.lines.directions import Directional
from difflab.testing.trees.probe import Probe

Array = NDArray[float64]

_CLEAR = 16.0  # factor by which the error exceeds the noise of a central difference
_SMALLEST, _LARGEST = 2.0**-6, 0.5  # steps, relative to the window
_INTERPOLATED = 4  # divisions in a row by interpolants
_NONE = 0.125  # share of the error that is none in one of two halves


@dataclass(frozen=True)
class WrongPart:
    """The part of the arguments in which a gradient is wrong.

    Attributes
    ----------
    start, stop : int
        The components; one, unless the values are not finite.
    error : Slope or None
        The derivative of f minus the gradient's, with respect to the only component.
    """

    start: int
    stop: int
    error: Slope | None

    @property
    def single(self) -> bool:
        """Whether the part is one component."""
        return self.stop == self.start + 1


def located(
    probe: Probe, gradient: Array, found: Directional, cotangent: Array | None
) -> WrongPart:
    """Return where a gradient is wrong that is wrong along a direction.

    The error along one half of the components is measured; that along the other half is the rest.
    The half with the larger error is divided again.
    """

    def changes_of(start: int, stop: int) -> Changes:
        return probe.residual(found.along, gradient[None], cotangent, start, stop)

    halves = _Halves(changes_of, probe.rounding_of(cotangent), found)
    start, stop = _bisected(halves, probe.point.n, found.off)
    part = WrongPart(start, stop, None)
    if not part.single:
        return part
    return WrongPart(start, stop, _single(probe, gradient, found, cotangent, start))


class _Halves:
    """The errors of a gradient along parts of a direction.

    A central difference, of two evaluations, tells two halves apart if only one has an error. Its
    step is the smallest at which rounding does not hide the error, so that truncation is small.
    Where the difference leaves both halves in question, an interpolant of 8 evaluations decides,
    there and in the next three divisions.
    """

    def __init__(
        self, changes_of: Callable[[int, int], Changes], rounding: Array, found: Directional
    ) -> None:
        self.changes_of = changes_of
        self.rounding = rounding
        self.half = found.error.half
        self.bar = float(found.error.bar[0])
        self.interpolated = 0

    def left(self, start: int, middle: int, total: float) -> float:
        """Return the error along the first part of one whose error is `total`."""
        changes = self.changes_of(start, middle)
        step = self.half * max(_CLEAR * self.bar / abs(total), _SMALLEST)
        if not self.interpolated and step <= _LARGEST * self.half:
            error = central_difference(changes, step)
            if min(abs(error), abs(total - error)) <= _NONE * abs(total):
                return error
        self.interpolated = (self.interpolated + 1) % _INTERPOLATED
        return float(sampled(changes, self.rounding, self.half).slope().value[0])


def _bisected(halves: _Halves, n: int, total: float) -> tuple[int, int]:
    start, stop = 0, n
    while stop - start > 1 and total != 0.0:
        middle = (start + stop) // 2
        left = halves.left(start, middle, total)
        if not np.isfinite(left):
            break
        right = total - left
        if abs(left) >= abs(right):
            stop, total = middle, left
        else:
            start, total = middle, right
    return start, stop


def _single(
    probe: Probe, gradient: Array, found: Directional, cotangent: Array | None, index: int
) -> Slope:
    """Return the error with respect to one component."""
    length = float(found.along[index])
    changes = probe.residual(found.along, gradient[None], cotangent, index, index + 1)
    least = np.array([1e-3 * abs(gradient[index] * length)])
    rounding = probe.rounding_of(cotangent)
    return slope_along(changes, rounding, found.error.half, least, 2).per(length)

"""The component of a gradient that is wrong, found by bisection along a direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.testing.lines.directions import Directional
from difflab.testing.slopes.best import slope_along
from difflab.testing.slopes.window import Slope, central_difference
from difflab.testing.trees.probe import Probe

__all__ = ["WrongPart", "located"]

Array = NDArray[float64]

_CLEAR = 4.0  # an error must exceed the noise of the differences by this factor


@dataclass(frozen=True)
class WrongPart:
    """The part of the arguments in which a gradient is wrong.

    Attributes
    ----------
    start, stop : int
        The numbers; one, unless noise ended the bisection.
    error : Slope or None
        The derivative of f minus the gradient's, with respect to the only number.
    """

    start: int
    stop: int
    error: Slope | None

    @property
    def single(self) -> bool:
        """Whether the part is one number."""
        return self.stop == self.start + 1


def located(
    probe: Probe, gradient: Array, found: Directional, cotangent: Array | None
) -> WrongPart:
    """Return where a gradient is wrong that is wrong along a direction.

    The error along a half of the numbers is one central difference, two evaluations; that along
    the other half is the rest. The half with the larger error is divided again.
    """
    step, noise = found.error.closest()

    def error_of(start: int, stop: int) -> float:
        changes = probe.residual(found.along, gradient[None], cotangent, start, stop)
        return central_difference(changes, step)

    start, stop = _bisected(error_of, probe.point.n, found.off, _CLEAR * noise)
    part = WrongPart(start, stop, None)
    if not part.single:
        return part
    return WrongPart(start, stop, _single(probe, gradient, found, cotangent, start))


def _bisected(
    error_of: Callable[[int, int], float], n: int, total: float, least: float
) -> tuple[int, int]:
    start, stop = 0, n
    while stop - start > 1:
        middle = (start + stop) // 2
        left = error_of(start, middle)
        if not np.isfinite(left):
            break
        right = total - left
        if max(abs(left), abs(right)) <= least:
            break
        if abs(left) >= abs(right):
            stop, total = middle, left
        else:
            start, total = middle, right
    return start, stop


def _single(
    probe: Probe, gradient: Array, found: Directional, cotangent: Array | None, index: int
) -> Slope:
    """Return the error with respect to one number."""
    length = float(found.along[index])
    changes = probe.residual(found.along, gradient[None], cotangent, index, index + 1)
    least = np.array([1e-3 * abs(gradient[index] * length)])
    rounding = probe.rounding_of(cotangent)
    return slope_along(changes, rounding, found.error.half, least, 2).per(length)

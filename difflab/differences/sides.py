"""Values on both sides of a point, and their difference quotients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import REJECT, quotients_of, usable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sides:
    """Values on both sides of x: ``(K, N)``, N = components × outputs, steps positive."""

    up: Array
    down: Array
    step_up: Array
    step_down: Array
    center: Array
    noise: Array
    eps: float = 2.0**-52

    @classmethod
    def of(
        cls, values: Array, steps: Array, center: Array, noise: Array, eps: float = 2.0**-52
    ) -> Sides:
        """Return the sides from values ``(2K, N)`` at ``steps`` to the right, then to the left."""
        levels = len(values) // 2
        up, down, right, left = values[:levels], values[levels:], steps[:levels], steps[levels:]
        return cls(up, down, right, left, center, noise, eps)

    def defined(self, values: Array) -> NDArray[np.bool_]:
        """Return where `values` of one side are finite at all but the largest steps."""
        return np.asarray(np.isfinite(values[len(values) // 2 :]).all(axis=0))

    def right(self) -> tuple[Array, Array]:
        """Return forward quotients and their rounding."""
        return self._quotients(self.up, self.center, self.step_up)

    def left(self) -> tuple[Array, Array]:
        """Return backward quotients and their rounding."""
        return self._quotients(self.center, self.down, self.step_down)

    def central(self) -> tuple[Array, Array]:
        """Return central quotients and their rounding."""
        return self._quotients(self.up, self.down, self.step_up + self.step_down)

    def curvature(self) -> Array:
        """Return half the difference of forward and backward quotients."""
        gap = (self.up - self.center) + (self.down - self.center)
        return np.nan_to_num(gap / (self.step_up + self.step_down), posinf=0.0, neginf=0.0)

    def unmasked(self) -> tuple[Sides, NDArray[np.bool_]]:
        """Return the sides with the height of stairs as noise, and which outputs have stairs.

        ``log(x + sqrt(x^2 + 1))`` at -1e6 is constant near x, since its parts cancel, and a
        step function further out. Such steps are distinguished from a function that really is
        constant near x (as a maximum near its kink) by quotients that agree over several steps
        and on both sides, and differ from zero: then the height of a step is the noise.
        """
        right, right_rounding = self.right()
        left, left_rounding = self.left()
        usable = (right_rounding < REJECT) & (left_rounding < REJECT)
        still = (self.up == self.center) & (self.down == self.center)
        near = 0.25 * np.abs(right)
        slope = usable & (right != 0) & (np.abs(right - left) <= near)
        slope[1:] &= np.abs(np.diff(right, axis=0)) <= near[1:]
        slope[0] = False
        stairs = slope.any(axis=0) & still.any(axis=0)
        change = np.abs(np.concatenate([self.up, self.down]) - self.center)
        height = np.where(change > 0, change, np.inf).min(axis=0)
        noise = np.where(stairs, np.maximum(self.noise, height), self.noise)
        return replace(self, noise=noise), stairs

    def _quotients(self, high: Array, low: Array, width: Array) -> tuple[Array, Array]:
        return usable(*quotients_of(high, low, width, self.noise, self.eps))

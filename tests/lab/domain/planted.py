"""A method that is right but in a small box, for the seed formula, whose gradient is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.methods.protocol import Estimate, Family, Problem

SEED = "ln(x1) + x1*x2 - sin(x2)"
LOW, HIGH = np.array([0.1, -5.0]), np.array([10.0, 5.0])


def gradient(points: NDArray[Any]) -> NDArray[Any]:
    """Return the gradients ``(N, 1, 2)``, by hand."""
    x1, x2 = points.T
    return np.stack([1 / x1 + x2, x1 - np.cos(x2)], axis=1)[:, None, :]


@dataclass
class Planted:
    """Wrong by half where the point lies in a box of the unit square; silent in another."""

    low: Any = (2.0, 2.0)
    high: Any = (2.0, 2.0)
    silent: float = 2.0
    name: str = "planted"
    family: Family = Family.AUTOMATIC
    summary: str = "planted"
    orders: tuple[int, ...] = (1,)
    size: None = None
    operations: None = None

    def missing(self) -> None:
        return None

    def prepare(self, problem: Problem) -> Planted:
        return self

    def __call__(self, x: NDArray[Any]) -> Estimate:
        if self._unit(x[None])[0, 0] > self.silent:
            raise ValueError("it is too far to the right")
        return Estimate(self._found(x[None])[0], None, 1)

    def batch(self, points: NDArray[Any]) -> Estimate:
        if (self._unit(points)[:, 0] > self.silent).any():
            raise ValueError("one of them is too far to the right")
        return Estimate(self._found(points), None, len(points))

    def _unit(self, points: NDArray[Any]) -> NDArray[Any]:
        return (points - LOW) / (HIGH - LOW)

    def _found(self, points: NDArray[Any]) -> NDArray[Any]:
        unit = self._unit(points)
        inside = ((unit >= self.low) & (unit <= self.high)).all(axis=1)
        return gradient(points) * np.where(inside, 1.5, 1.0)[:, None, None]

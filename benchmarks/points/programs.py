"""The functions, each written once over the functions of any package, and their points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

__all__ = ["CASES", "Array", "Case", "arm", "chain", "seed"]

Array = NDArray[float64]

_UR5 = (
    # a, d, cos α and sin α of each joint: Denavit-Hartenberg parameters that Universal Robots
    # publishes for its UR5, in metres.
    (0.0, 0.089159, 0.0, 1.0),
    (-0.425, 0.0, 1.0, 0.0),
    (-0.39225, 0.0, 1.0, 0.0),
    (0.0, 0.10915, 0.0, 1.0),
    (0.0, 0.09465, 0.0, -1.0),
    (0.0, 0.0823, 1.0, 0.0),
)


def seed(m: Any, x: Sequence[Any]) -> list[Any]:
    """Return ln(x₁) + x₁·x₂ − sin(x₂); `m` has the functions."""
    return [m.log(x[0]) + x[0] * x[1] - m.sin(x[1])]


def chain(m: Any, x: Sequence[Any]) -> list[Any]:
    """Return Σ sin(xᵢ·xᵢ₊₁)·exp(−xᵢ²)/(1 + xᵢ₊₁²) + cos(x₇ᵢ mod ₙ)."""
    n = len(x)
    total = 0.0
    for i in range(n - 1):
        near = m.sin(x[i] * x[i + 1]) * m.exp(-x[i] * x[i]) / (1.0 + x[i + 1] * x[i + 1])
        total = total + near + m.cos(x[7 * i % n])
    return [total]


def arm(m: Any, x: Sequence[Any]) -> list[Any]:
    """Return the pose of the tool of a UR5, 3 × 4 elements, for the angles of its 6 joints."""
    pose: Any = None
    for angle, (a, d, cos_alpha, sin_alpha) in zip(x, _UR5, strict=True):
        c, s = m.cos(angle), m.sin(angle)
        joint = [
            [c, -s * cos_alpha, s * sin_alpha, a * c],
            [s, c * cos_alpha, -c * sin_alpha, a * s],
            [0.0, sin_alpha, cos_alpha, d],
        ]
        pose = joint if pose is None else [_row(row, joint) for row in pose]
    return [element for row in pose for element in row]


def _row(row: Sequence[Any], joint: Sequence[Sequence[Any]]) -> list[Any]:
    """Return a row of the product of two poses, without terms whose factor is 0."""
    found = []
    for k in range(4):
        terms = [r * j[k] for r, j in zip(row, joint, strict=False) if not _is_zero(j[k])]
        found.append(sum(terms[1:], terms[0]) if terms else 0.0)
    found[3] = found[3] + row[3]
    return found


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0


@dataclass(frozen=True)
class Case:
    """A derivative of a function at points.

    Attributes
    ----------
    code : callable
        From the functions of a package and the inputs to the list of outputs.
    kind : str
        "value and gradient", "jacobian" or "hessian".
    inputs : int
        The number of inputs.
    points : int
        The number of points of a call.
    """

    code: Callable[[Any, Sequence[Any]], list[Any]]
    kind: str
    inputs: int
    points: int = 1

    def x(self) -> Array:
        """Return the point ``(n,)``, or the points ``(points, n)`` around it."""
        start = np.array([2.0, 5.0]) if self.code is seed else np.linspace(0.1, 1.0, self.inputs)
        if self.points == 1:
            return start
        moves = np.random.default_rng(0).uniform(-0.5, 0.5, (self.points, self.inputs))
        return np.asarray(start + moves)

    def shape(self) -> tuple[int, ...]:
        """Return the shape of the derivative at a point."""
        outputs = len(self.code(math, self.x().reshape(-1, self.inputs)[0].tolist()))
        return {"hessian": (self.inputs,) * 2, "jacobian": (outputs, self.inputs)}.get(
            self.kind, (1 + self.inputs,)
        )


CASES = {
    "seed": Case(seed, "value and gradient", 2),
    "chain, n = 10": Case(chain, "value and gradient", 10),
    "chain, n = 40": Case(chain, "value and gradient", 40),
    "Hessian of the chain, n = 40": Case(chain, "hessian", 40),
    "Jacobian of an arm of 6 axes": Case(arm, "jacobian", 6),
    "seed at 10⁶ points": Case(seed, "value and gradient", 2, 1_000_000),
}

"""particle: steer a charged particle to the origin; derivatives inside a loop inside a derivative.

The force on the particle is a gradient. Its path is a loop until it falls below the x-axis, and
the descent that finds the control `w` differentiates that loop.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.descent import GRADIENTS, Gradient, argmin
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "miss"]

TIME_STEP = 0.1


def miss(w: Any, gradient: Gradient) -> Any:
    """Return the square of where the path crosses the x-axis.

    Parameters
    ----------
    w : number
        The control: how far the first charge is below the height 10.
    gradient : callable
        The transform that differentiates the potential.
    """
    charges = [np.stack([10.0 + 0.0 * w, 10.0 - w]), np.array([10.0, 0.0])]

    def potential(x: Any) -> Any:
        return sum(1.0 / np.sqrt(np.sum((x - charge) ** 2)) for charge in charges)

    slope = gradient(potential)

    def above(state: Any) -> Any:
        x, velocity = state
        return x[1] + TIME_STEP * velocity[1] > 0

    def step(state: Any) -> Any:
        x, velocity = state
        return x + TIME_STEP * velocity, velocity - TIME_STEP * slope(x)

    start = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    x, velocity = dl.while_loop(above, step, start)
    below = x + TIME_STEP * velocity
    return (below[0] - below[1] / velocity[1] * velocity[0]) ** 2


def _steered(modes: str, question: Any) -> Prepared:
    outer, inner = (GRADIENTS[mode] for mode in modes)

    def steer(w: Any) -> Any:
        return argmin(lambda w: miss(w[0], inner), np.reshape(w, (1,)), outer)[0]

    return compiled(steer, float(question["w"]), output=float)


FUNCTIONS: FunctionsByName = {modes: partial(_steered, modes) for modes in ("rr", "ff", "fr", "rf")}

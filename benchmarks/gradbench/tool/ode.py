r"""ode: the gradient of an initial value problem's solution by its coefficients.

.. math:: y_0' = x_0, \quad y_i' = x_i y_{i-1}, \quad y(0) = 0

up to t = 2, by s steps of the classical Runge–Kutta method: one loop, whose derivative is one
loop. The gradient is that of these steps; GradBench's own is that of the exact solution.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "solution"]

END = 2.0


def solution(x: Any, *, steps: int) -> Any:
    """Return y at the end, for the coefficients `x`.

    The state is u = (1, y), with which the slopes are x·u, each by the element before its own.
    They are linear in u: the weighted sum of the four slopes is the slope of that of the stages.
    """
    h = END / steps

    def slope(u: Any) -> Any:
        return x * u[:-1]

    def moved(u: Any, by: Any) -> Any:
        return np.concatenate([np.ones(1), u[1:] + by])

    def step(u1: Any, _: Any) -> tuple[Any, None]:
        u2 = moved(u1, (h / 2) * slope(u1))
        u3 = moved(u1, (h / 2) * slope(u2))
        u4 = moved(u1, h * slope(u3))
        return moved(u1, (h / 6) * slope(u1 + 2 * u2 + 2 * u3 + u4)), None

    u, _ = dl.scan(step, moved(np.zeros(len(x) + 1), np.zeros(len(x))), length=steps)
    return u[1:]


def _last(x: Any, *, steps: int) -> Any:
    return solution(x, steps=steps)[-1]


def _primal(question: Any) -> Prepared:
    f = partial(solution, steps=question["s"])
    return compiled(f, np.array(question["x"]), output=np.ndarray.tolist)


def _gradient(question: Any) -> Prepared:
    f = dl.grad(partial(_last, steps=question["s"]))
    return compiled(f, np.array(question["x"]), output=np.ndarray.tolist)


FUNCTIONS: FunctionsByName = {"primal": _primal, "gradient": _gradient}

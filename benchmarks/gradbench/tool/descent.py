"""The gradient descent of `particle` and `saddle`, as GradBench's text defines it.

A step that lowers the function is taken; after ten of them in a row the step size doubles. A step
that does not lower it is not taken, and the step size halves. The descent ends where the gradient
or the next step is shorter than 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import difflab as dl

__all__ = ["GRADIENTS", "Gradient", "argmax", "argmin"]

SHORTEST = 1e-5
FIRST = 1e-5
"""The first step size."""
IN_A_ROW = 10
"""Steps taken before the step size doubles."""

Gradient = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
"""A transform from a scalar function of a vector to its gradient."""
GRADIENTS: Mapping[str, Gradient] = {"f": dl.jacfwd, "r": dl.jacrev}
"""By forward and by reverse mode."""


def argmin(
    f: Callable[[Any], Any],
    start: Any,
    gradient: Gradient,
) -> Any:
    """Return where the descent from `start` ends.

    Parameters
    ----------
    f : callable
        A scalar function of a vector.
    start : array (n,)
        Where it begins.
    gradient : callable
        The transform that differentiates `f`: a value of `GRADIENTS`.
    """
    slope = gradient(f)

    def next_step(state: Any) -> Any:
        """Return the step size and how many steps were taken in a row."""
        _, _, _, eta, taken = state
        return np.where(taken == IN_A_ROW, 2 * eta, eta), np.where(taken == IN_A_ROW, 0.0, taken)

    def goes_on(state: Any) -> Any:
        x, _, g, _, _ = state
        eta, _ = next_step(state)
        step = x - (x - eta * g)
        return (np.sqrt(np.sum(g * g)) > SHORTEST) * (np.sqrt(np.sum(step * step)) > SHORTEST) > 0

    def body(state: Any) -> Any:
        x, value, g, _, _ = state
        eta, taken = next_step(state)
        there = x - eta * g
        below = f(there)
        return dl.cond(
            below < value,
            lambda: (there, below, slope(there), eta, taken + 1),
            lambda: (x, value, g, eta / 2, 0.0 * taken),
        )

    found, *_ = dl.while_loop(goes_on, body, (start, f(start), slope(start), FIRST, 0.0))
    return found


def argmax(
    f: Callable[[Any], Any],
    start: Any,
    gradient: Gradient,
) -> Any:
    """Return where the descent of -f from `start` ends."""
    return argmin(lambda x: -f(x), start, gradient)

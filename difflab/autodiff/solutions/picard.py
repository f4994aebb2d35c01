"""The iteration of a fixed point, as a function of the first values and the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.autodiff.solutions.implicit import Equations, finite, nan_unless, norm
from difflab.autodiff.solutions.newton import FLOOR, number, repeat, stagnant, unit
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where

NOISE = 1e4 * FLOOR
"""Relative length of a step up to which rounding decides how much shorter the next one is."""


@dataclass(frozen=True)
class Picard:
    """The iteration x ← g(x), whose error is ρ/(1 - ρ) of its last step at the rate ρ.

    It ends when this estimate is below the rounding error of x, or no longer decreases.

    Attributes
    ----------
    equations : Equations
        The residual is g(x) - x.
    xtol : float
        The relative error at which it has converged.
    maxiter : int
        The largest number of steps.
    """

    equations: Equations
    xtol: float
    maxiter: int

    def function(self) -> Function:
        """Return the fixed point (nan if it does not converge) and the statistics."""
        equations = self.equations
        return composed(self._solved, [*equations.shapes, *equations.parameters])

    def _solved(self, nodes: list[Node]) -> list[Node]:
        equations, count = self.equations, len(self.equations.shapes)
        x, params = equations.joined(nodes[:count]), nodes[count:]
        infinite = number(x, np.inf)
        first = [x, infinite, infinite, number(x, 0.5), norm(x), number(x, 0.0)]
        x, size, previous, rate, largest, steps = repeat(self._going, self._stepped, first, params)
        error, scale = _error(size, rate), unit(x, largest)
        near = np.logical_or(error <= self.xtol * scale, stagnant(size, previous, largest))
        found = nan_unless(np.logical_and(near, finite([x])), x)
        correction = where(scale > 0, error / scale, error)
        return [*equations.parts(found), steps, correction, number(x, 0.0)]

    def _going(self, value: list[Node], params: Sequence[Node]) -> Any:
        x, size, previous, rate, largest, steps = value
        error = _error(size, rate)
        begins = steps < 2.0
        far = np.logical_and(
            error > self.xtol * unit(x, largest),
            np.logical_not(stagnant(size, previous, largest)),
        )
        far = np.logical_or(far, size < previous)
        more = np.logical_or(begins, np.logical_and(far, error > FLOOR * norm(x)))
        return np.logical_and(more, steps < float(self.maxiter))

    def _stepped(self, value: list[Node], params: Sequence[Node]) -> list[Any]:
        x, size, _, rate, largest, steps = value
        (change,) = inlined(self.equations.flat, [x, *params])
        after, new = x + change, norm(change)
        largest = np.maximum(largest, norm(after))
        measured = np.logical_and(new > NOISE * unit(after, largest), steps > 0)
        return [after, new, size, where(measured, new / size, rate), largest, steps + 1.0]


def _error(size: Any, rate: Any) -> Any:
    """Return the estimate of the error behind a step."""
    return size * rate / np.maximum(1.0 - rate, FLOOR)

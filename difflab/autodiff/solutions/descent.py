"""Newton's method for a minimum, in bounds, as a function of first values and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.arrays import linalg
from difflab.autodiff.engine.argnums import gradients
from difflab.autodiff.recording import Contents
from difflab.autodiff.solutions.implicit import Equations, divided
from difflab.autodiff.solutions.newton import Newton, number, repeat, zero_if_solved
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined, selected
from difflab.primitives import where

MOST_SHIFTS = 60.0
"""How often the shift that makes a Hessian positive definite is multiplied by four."""


def stationary(objective: Function, count: int, *, bounded: bool) -> Function:
    """Return the equations of a minimum: the gradient vanishes, or the unknown is at its bound.

    The residual of an unknown x with the slope g is x - l where x - g < l, x - u where x - g > u,
    and g elsewhere. Lower and upper bounds are further parameters.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x, a: (x - a) ** 2, 1.0, 1.0)
    >>> float(stationary(f, 1, bounded=False)(5.0, 2.0))
    6.0
    >>> float(stationary(f, 1, bounded=True)(5.0, 2.0, 4.5, 9.0))
    0.5
    """
    whole = gradients(objective, tuple(range(count)))
    slopes = selected(whole, whole.outputs[1:], [f"y{k + 1}" for k in range(count)])
    if not bounded:
        return slopes
    shapes = list(objective.input_shapes[:count])

    def residual(nodes: list[Node]) -> list[Node]:
        x, lower, upper = nodes[:count], nodes[-2 * count : -count], nodes[-count:]
        gradient = inlined(slopes, nodes[: -2 * count])
        return [
            where(one - g < low, one - low, where(one - g > high, one - high, g))
            for one, g, low, high in zip(x, gradient, lower, upper, strict=True)
        ]

    return composed(residual, [*objective.input_shapes, *shapes, *shapes])


@dataclass(frozen=True)
class Descent(Newton):
    """Newton's method for a minimum: a multiple of the identity makes the Hessian definite.

    Steps are projected onto the bounds, and shortened until the objective decreases (Nocedal and
    Wright, *Numerical Optimization*, 2006, algorithms 3.2 and 3.3; Bertsekas 1982).

    Attributes
    ----------
    objective : Contents
        A function of the unknowns and the parameters.
    bounded : bool
        Whether the last parameters are bounds.
    """

    objective: Contents
    bounded: bool

    def step(self, x: Node, params: Sequence[Node]) -> Any:
        """Return the step; zero at a singular matrix where the equations hold exactly."""
        value, slope = self._system(x, params)
        free = self._free(x, params)
        unit = np.eye(x.shape[0]) if x.shape else 1.0
        size = np.maximum(np.max(np.abs(slope)) if x.shape else np.abs(slope), 1e-30)

        def indefinite(shift: list[Node], rest: list[Node]) -> Any:
            (count, shift_now), (slope, free, _) = shift, rest
            definite = _definite(slope + shift_now * unit, free)
            return np.logical_and(np.logical_not(definite), count < MOST_SHIFTS)

        def larger(shift: list[Node], rest: list[Node]) -> list[Any]:
            return [shift[0] + 1.0, np.maximum(4.0 * shift[1], 1e-3 * rest[2])]

        zero = number(x, 0.0)
        _, shift = repeat(indefinite, larger, [zero, zero], [slope, free, size])
        own = free[:, None] * unit if x.shape else free
        return zero_if_solved(value, -divided(slope + shift * own, value))

    def merit(self, x: Any, params: Sequence[Node]) -> Any:
        """Return the objective."""
        count = len(self.equations.shapes)
        rest = params[: len(params) - 2 * count] if self.bounded else params
        return inlined(self.objective.function, [*self.equations.parts(x), *rest])[0]

    def begun(self, x: Any, params: Sequence[Node]) -> Any:
        """Return the projection of the first value onto the bounds."""
        return self.moved(x, 0.0, params)

    def moved(self, x: Any, dx: Any, params: Sequence[Node]) -> Any:
        """Return the projection of x + dx onto the bounds."""
        if not self.bounded:
            return x + dx
        lower, upper = self._bounds(params)
        return np.minimum(np.maximum(x + dx, lower), upper)

    def enough(self, x: Any, last: Any, t: Any, limit: Any, params: Sequence[Node]) -> Any:
        """Return whether the objective decreases as the gradient predicts, in part."""
        del t
        (slope,) = inlined(self._gradient, [x, *self._own(params)])
        predicted = np.sum(slope * (last - x))
        return self.merit(last, params) <= limit + 1e-4 * predicted

    def valid(self, x: Any, params: Sequence[Node]) -> Any:
        """Return whether the Hessian is positive definite in the directions inside the bounds."""
        return _definite(self._system(x, params)[1], self._free(x, params))

    @property
    def _gradient(self) -> Function:
        """The gradient of the objective as a function of all unknowns as one."""
        function: Function = self.objective.function
        count = len(self.equations.shapes)
        return Equations(Contents(stationary(function, count, bounded=False))).flat

    def _own(self, params: Sequence[Node]) -> Sequence[Node]:
        """Return the parameters without bounds."""
        return params[: len(params) - 2 * len(self.equations.shapes)] if self.bounded else params

    def _bounds(self, params: Sequence[Node]) -> tuple[Any, Any]:
        count = len(self.equations.shapes)
        joined = self.equations.joined
        return joined(params[-2 * count : -count]), joined(params[-count:])

    def _system(self, x: Any, params: Sequence[Node]) -> tuple[Any, Any]:
        """Return the residual and its Jacobian."""
        equations = self.equations
        (value,), (slope,) = (inlined(f, [x, *params]) for f in (equations.flat, equations.slope))
        return value, slope

    def _free(self, x: Any, params: Sequence[Node]) -> Any:
        """Return 1 for unknowns that are not held at a bound, else 0."""
        if not self.bounded:
            return x * 0.0 + 1.0
        lower, upper = self._bounds(params)
        ahead = x - inlined(self._gradient, [x, *self._own(params)])[0]
        return where(np.logical_and(ahead >= lower, ahead <= upper), 1.0, 0.0)


def _definite(slope: Any, free: Any) -> Any:
    """Return whether the block of the free unknowns is positive definite."""
    if not slope.shape:
        return np.logical_or(slope > 0, free == 0)
    both = free[:, None] * free[None, :]
    block = where(both > 0, slope, np.eye(slope.shape[0]))
    return np.sum(linalg.cholesky(block)) < np.inf

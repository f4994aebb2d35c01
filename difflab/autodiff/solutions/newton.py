"""Iterations as functions of the first values and the parameters.

Newton's iteration with a line search for a root, and the iteration of a fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.autodiff.control.while_loops import append_while_loop
from difflab.autodiff.solutions.implicit import Equations, divided, finite, nan_unless, norm
from difflab.graph.control import WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where

SHORTEST = 2.0**-40
"""Length of a step, in Newton's steps, below which the search for a shorter one ends."""
CLOSE = 1e-6
"""Relative length of Newton's step below which it is taken as it is."""
FLOOR = 2.0**-52
"""Relative length of Newton's step below which nothing is gained."""
SHORTER = 0.9
"""A step shorter than this times the one before shows that the iteration still converges."""


def unit(x: Any, largest: Any) -> Any:
    """Return the length that tolerances refer to, given the largest iterate.

    It is the size of x. Near zero, where no step is short beside x, it is that of the largest
    iterate, or 1 if that is larger: iterates that begin far away say nothing about the solution.
    """
    return np.maximum(norm(x), np.minimum(largest, 1.0))


def stagnant(size: Any, previous: Any, largest: Any) -> Any:
    """Return whether a step is of the size of rounding errors, and not shorter than before."""
    return np.logical_and(size <= 4 * FLOOR * largest, size >= SHORTER * previous)


def repeat(
    going: Callable[..., Any],
    step: Callable[..., list[Any]],
    first: Sequence[Any],
    constants: Sequence[Node],
) -> list[Node]:
    """Append a loop: ``step(value, constants)`` while ``going(value, constants)``, on lists."""
    count = len(first)
    shapes = [node.shape for node in (*first, *constants)]
    test = composed(lambda nodes: [going(nodes[:count], nodes[count:])], shapes)
    body = composed(lambda nodes: step(nodes[:count], nodes[count:]), shapes)
    return append_while_loop(WhileLoop(test, body), [*first, *constants])


def number(like: Node, value: float) -> Node:
    """Return a number as a node of the same graph."""
    return Node(like.builder, like.builder.constant(value))


def zero_if_solved(value: Any, step: Any) -> Any:
    """Return a step; zero where there is none and the equations hold exactly.

    Where there is one it is zero as well, but its derivative is not.
    """
    none = np.logical_not(norm(step) < np.inf)
    return where(np.logical_and(norm(value) == 0, none), 0.0, step)


def _regular(slope: Any) -> Any:
    """Return a slope, nan for 0: printed Python raises where a number is divided by 0."""
    return slope if slope.shape else where(slope == 0, np.nan, slope)


@dataclass(frozen=True)
class Newton:
    """Newton's iteration x ← x - t F_x⁻¹ F, with the largest t of 1, ½, ¼, … that decreases ‖F‖.

    It ends when the steps no longer become shorter, at the accuracy of F itself, and converges if
    the last one is shorter than `tol` times the solution, or `unit` near zero (Deuflhard, *Newton
    Methods for Nonlinear Problems*, 2004, section 2.1).

    Attributes
    ----------
    equations : Equations
        What is solved.
    tol : float
        The relative length of the last step.
    maxiter : int
        The largest number of steps.
    """

    equations: Equations
    tol: float
    maxiter: int

    def function(self) -> Function:
        """Return the solution (nan if it does not converge) and the statistics.

        Its inputs are the first values of the unknowns and the parameters.
        """
        equations = self.equations
        shapes: list[Shape] = [*equations.shapes, *equations.parameters]
        return composed(self._solved, shapes)

    def _solved(self, nodes: list[Node]) -> list[Node]:
        equations, count = self.equations, len(self.equations.shapes)
        x, params = equations.joined(nodes[:count]), nodes[count:]
        x = self.begun(x, params)
        dx = self.step(x, params)
        first = [x, dx, number(x, np.inf), norm(x), number(x, 0.0)]
        x, dx, previous, largest, steps = repeat(self._going, self._stepped, first, params)
        last = self.moved(x, dx, params)
        size = norm(dx)
        largest = np.maximum(largest, norm(last))
        scale = unit(last, largest)
        near = np.logical_or(size <= self.tol * scale, stagnant(size, previous, largest))
        root, valid = nan_unless(near, last), self.valid(last, params)
        root = root if valid is None else nan_unless(valid, root)
        correction = where(scale > 0, size / scale, size)
        change = self._change(x, dx, last, params)
        return [*equations.parts(root), steps, correction, change]

    def step(self, x: Node, params: Sequence[Node]) -> Any:
        """Return Newton's step; zero at a singular Jacobian where the equations hold exactly."""
        (value,), (slope,) = (
            inlined(function, [x, *params])
            for function in (self.equations.flat, self.equations.slope)
        )
        return zero_if_solved(value, -divided(_regular(slope), value))

    def merit(self, x: Any, params: Sequence[Node]) -> Any:
        """Return the merit function, which each step decreases."""
        return norm(inlined(self.equations.flat, [x, *params])[0])

    def begun(self, x: Any, params: Sequence[Node]) -> Any:
        """Return the first value of the iteration."""
        return x

    def moved(self, x: Any, dx: Any, params: Sequence[Node]) -> Any:
        """Return the iterate after a step."""
        return x + dx

    def enough(self, x: Any, last: Any, t: Any, limit: Any, params: Sequence[Node]) -> Any:
        """Return whether the merit, `limit` before, decreases enough in t of a step."""
        return self.merit(last, params) < (1 - 1e-4 * t) * limit

    def valid(self, x: Any, params: Sequence[Node]) -> Any:
        """Return whether the point is a wanted solution; None where any solution is."""
        return None

    def _going(self, value: list[Node], params: list[Node]) -> Any:
        """Return whether to go on: the steps are not short, or still become shorter."""
        x, dx, previous, largest, steps = value
        size = norm(dx)
        far = np.logical_and(
            size > self.tol * unit(x, largest),
            np.logical_not(stagnant(size, previous, largest)),
        )
        gained = np.max(np.abs(dx) - FLOOR * np.abs(x)) > 0 if x.size else norm(x) > 0
        more = np.logical_and(np.logical_or(far, size < SHORTER * previous), gained)
        return np.logical_and(more, steps < float(self.maxiter))

    def _stepped(self, value: list[Node], params: list[Node]) -> list[Any]:
        x, dx, _, largest, steps = value
        t = self._length(x, dx, largest, params)
        x = self.moved(x, t * dx, params)
        return [x, self.step(x, params), norm(dx), np.maximum(largest, norm(x)), steps + 1.0]

    def _length(self, x: Node, dx: Node, largest: Node, params: Sequence[Node]) -> Any:
        """Return the largest t that decreases the merit enough; 1 near the solution."""
        far = norm(dx) > CLOSE * unit(x, largest)
        limit = self.merit(x, params)

        def longer(value: list[Node], rest: list[Node]) -> Any:
            (t,), (x, dx, limit, far, *params) = value, rest
            decreases = self.enough(x, self.moved(x, t * dx, params), t, limit, params)
            search = np.logical_and(far > 0, t > SHORTEST)
            return np.logical_and(search, np.logical_not(decreases))

        rest = [x, dx, limit, where(far, 1.0, 0.0), *params]
        return repeat(longer, lambda value, rest: [0.5 * value[0]], [number(x, 1.0)], rest)[0]

    def _change(self, x: Node, dx: Node, last: Node, params: Sequence[Node]) -> Any:
        """Return the relative change of the Jacobian in the last step, nan if it is singular."""
        before, after = (inlined(self.equations.slope, [at, *params])[0] for at in (x, last))
        size = norm(dx)
        moved = divided(_regular(before), after @ dx if dx.shape else after * dx)
        return where(size > 0, norm(moved - dx) / size, norm(moved))


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
        root = nan_unless(np.logical_and(near, finite([x])), x)
        correction = where(scale > 0, error / scale, error)
        return [*equations.parts(root), steps, correction, number(x, 0.0)]

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

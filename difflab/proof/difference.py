"""Bounds of the difference between a derivative graph and FLINT's derivative, on a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from difflab.balls.evaluation import PRECISIONS, evaluated
from difflab.balls.jets import Jet
from difflab.balls.library import Ball, arb, below, between, precision, upward
from difflab.graph.function import Function

BITS = PRECISIONS[1]
Box = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Bounded:
    """The statement that is proved on a box.

    Attributes
    ----------
    smooth : bool
        Whether the function has a derivative everywhere on the box.
    difference : float
        No component of the derivative graph differs by more from the derivative.
    lower, upper : list of float
        Bounds of the derivative's flattened components.
    """

    smooth: bool
    difference: float
    lower: list[float]
    upper: list[float]


def bounded(function: Function, derivative: Function, box: Box) -> Bounded:
    """Bound ``g(x) - f′(x)`` for all x of a box by its mean-value form, and by ``g(X) - f′(X)``.

    Parameters
    ----------
    function, derivative : Function
        f, and its Jacobian as difflab's rules give it.
    box : sequence of (float, float)
        The interval of each flattened input.
    """
    with precision(BITS):
        return _bounded(function, derivative, box)


def _bounded(function: Function, derivative: Function, box: Box) -> Bounded:
    balls = [between(low, high) for low, high in box]
    exact = evaluated(function, balls, BITS, 2)
    if any(output.fault is not None for output in exact):
        return Bounded(False, float("inf"), [], [])
    graph = evaluated(derivative, balls, BITS, 1)
    middle = [arb(low + (high - low) / 2) for low, high in box]
    centers = _differences(function, derivative, middle)
    steps = [ball - center for ball, center in zip(balls, middle, strict=True)]
    largest, lower, upper = 0.0, [], []
    for position, (component, center) in enumerate(zip(graph, centers, strict=True)):
        row, column = divmod(position, function.n)
        slope = exact[row].slopes.get(column, arb(0))
        bound = _largest(component.value - slope)
        if component.fault is None:
            mean = center
            for k, step in enumerate(steps):
                mean += (component.slopes.get(k, arb(0)) - _second(exact[row], column, k)) * step
            bound = min(bound, _largest(mean))
        largest = max(largest, bound)
        lower.append(below(slope))
        upper.append(upward(slope))
    return Bounded(True, largest, lower, upper)


def least_at(function: Function, derivative: Function, x: Sequence[float]) -> float:
    """Return how much the graph differs from the derivative at a point, at least."""
    balls = [arb(number) for number in x]
    with precision(BITS):
        return max((below(abs(d)) for d in _differences(function, derivative, balls)), default=0.0)


def _differences(function: Function, derivative: Function, balls: Sequence[Ball]) -> list[Ball]:
    """Return ``g - f′`` at a point; infinite balls where there is no derivative."""
    exact = evaluated(function, balls, BITS, 1)
    graph = evaluated(derivative, balls, BITS, 0)
    differences = []
    for position, component in enumerate(graph):
        row, column = divmod(position, function.n)
        known = exact[row].fault is None
        slope = exact[row].slopes.get(column, arb(0)) if known else arb(0, float("inf"))
        differences.append(component.value - slope)
    return differences


def _second(output: Jet, i: int, j: int) -> Ball:
    return (output.curves or {}).get((min(i, j), max(i, j)), arb(0))


def _largest(ball: Ball) -> float:
    bound = upward(abs(ball))
    return bound if bound == bound else float("inf")

"""The forward sweep: tangents from the inputs to the outputs.

For y = φ(a, b, …) the tangent is ẏ = ∂φ/∂a · ȧ + ∂φ/∂b · ḃ + …, from the same rules as the
reverse sweep. One sweep gives the derivative of every output along one direction
(Griewank & Walther, *Evaluating Derivatives*, 2nd ed., §3.1).

May import `sweep`, `graph`, `primitives`, `core`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import Any

from difflab.autodiff.sweep import Sweep, spread
from difflab.autodiff.template import template
from difflab.core.primitive import Elementwise, Primitive, Select
from difflab.graph.ir import FIRST_ROW
from difflab.graph.node import Node
from difflab.primitives import where

__all__ = ["push_forward"]


def push_forward(sweep: Sweep, seeds: Mapping[int, Node]) -> dict[int, Node]:
    """Return the tangents of all nodes that depend on the seeded ones.

    Parameters
    ----------
    sweep : Sweep
        The graph and the builder to append to.
    seeds : mapping of int to Node
        The tangents ẋ to start from.

    Returns
    -------
    dict of int to Node
        The tangents; nodes whose tangent is identically zero are absent.
    """
    tangents = dict(seeds)
    first = min(tangents, default=len(sweep.opcode))
    for number in range(first, len(sweep.opcode)):
        opcode = sweep.opcode[number]
        if opcode < FIRST_ROW or number in tangents:
            continue
        dots = [tangents.get(arg) for arg in sweep.args(number)]
        if all(dot is None for dot in dots):
            continue
        sweep.at(number)
        y_dot = _tangent(sweep, number, sweep.graph.primitives[opcode - FIRST_ROW], dots)
        if y_dot is not None:
            tangents[number] = y_dot
    return tangents


def _tangent(sweep: Sweep, number: int, row: Primitive, dots: list[Node | None]) -> Node | None:
    """Return ẏ of one node; None where no derivative flows."""
    args = sweep.args(number)
    rule = row.rule
    if isinstance(rule, Elementwise):
        parts = [
            template(rule_map, len(args)).stamp(sweep.builder, dot.id, number, args)
            for rule_map, dot in zip(rule.maps, dots, strict=True)
            if rule_map is not None and dot is not None
        ]
        return reduce(add, map(sweep.node, parts)) if parts else None
    nodes = [sweep.node(arg) for arg in args]
    if isinstance(rule, Select):
        return _selected(rule.conditions, dots, nodes)
    shapes = [node.shape for node in nodes]
    zero = sweep.constant(0)
    filled = [
        spread(zero if dot is None else dot, shape) for dot, shape in zip(dots, shapes, strict=True)
    ]
    moved: Node = row(*filled, **sweep.graph.params(number))
    return moved


def _selected(
    conditions: tuple[Callable[..., Any] | None, ...],
    dots: list[Node | None],
    nodes: list[Node],
) -> Node | None:
    """Return the tangent of the argument that is passed on."""
    passed = [
        (condition, dot) for condition, dot in zip(conditions, dots, strict=True) if condition
    ]
    if all(dot is None for _, dot in passed):
        return None
    y_dot: Any = 0
    exhaustive = len(passed) > 1
    for position, (condition, dot) in reversed(list(enumerate(passed))):
        x_dot: Any = 0 if dot is None else dot
        last = position == len(passed) - 1
        y_dot = x_dot if last and exhaustive else where(condition(*nodes), x_dot, y_dot)
    tangent: Node = y_dot
    return tangent

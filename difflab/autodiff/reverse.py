"""The reverse sweep: cotangents from the outputs back to the inputs.

For y = φ(a, b, …) every argument receives ā += ȳ · ∂φ/∂a. One sweep gives the derivative of
one output with respect to every input, in a number of operations that does not depend on how
many inputs there are (Griewank & Walther, *Evaluating Derivatives*, 2nd ed., §3.2-3.3).

Untaken branches contribute exactly zero. Where a primitive passes one of its arguments on
(`where`, `max`, …), the cotangent of the others is not multiplied by zero, which would make
0 · ∞ = nan of a singular derivative inside the branch. The cotangent goes on unchanged together
with its *mask*, the condition under which it counts, and is replaced by zero where the mask
does not hold once it has left the branch.

May import `sweep`, `graph`, `primitives`, `core`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from difflab.autodiff.sweep import Sweep, reached_from, spread
from difflab.core.primitive import Elementwise, Linear, Primitive, Select
from difflab.graph.ir import FIRST_ROW, INPUT
from difflab.graph.node import Node
from difflab.primitives import logical_and, logical_or, scatter, where

__all__ = ["Cotangent", "pull_back"]


@dataclass(frozen=True, slots=True)
class Cotangent:
    """A contribution ȳ, and the mask under which it counts (None: always)."""

    bar: Node
    mask: Node | None = None

    def resolved(self) -> Node:
        """Return the cotangent, zero where the mask does not hold."""
        if self.mask is None:
            return self.bar
        chosen: Node = where(self.mask, self.bar, 0)
        return chosen


def pull_back(
    sweep: Sweep, seeds: Mapping[int, Node], sources: Iterable[int]
) -> dict[int, Node]:
    """Return the cotangents of `sources` given those of other nodes.

    Parameters
    ----------
    sweep : Sweep
        The graph and the builder to append to.
    seeds : mapping of int to Node
        The cotangents ȳ to start from.
    sources : iterable of int
        The nodes whose cotangents are wanted, inputs as a rule.

    Returns
    -------
    dict of int to Node
        The cotangents; sources that no seed depends on are absent.
    """
    wanted = set(sources)
    active = reached_from(sweep, wanted)
    arriving: dict[int, list[Cotangent]] = {
        number: [Cotangent(seed)] for number, seed in seeds.items() if active[number]
    }
    found: dict[int, Node] = {}
    for number in range(max(arriving, default=-1), -1, -1):
        contributions = arriving.pop(number, None)
        if contributions is None:
            continue
        sweep.at(number)
        total = accumulate(contributions)
        if number in wanted:
            found[number] = total.resolved()
        if sweep.opcode[number] >= FIRST_ROW:
            _propagate(sweep, number, total, active, arriving)
    return found


def accumulate(contributions: list[Cotangent]) -> Cotangent:
    """Add up what arrives at a node; contributions under one mask stay under it."""
    if len(contributions) == 1:
        return contributions[0]
    mask = contributions[0].mask
    if all(_same(other.mask, mask) for other in contributions):
        return Cotangent(_sum([part.bar for part in contributions]), mask)
    union = None
    masks = [part.mask for part in contributions if part.mask is not None]
    if len(masks) == len(contributions):
        union = reduce(logical_or, masks)
    return Cotangent(_sum([part.resolved() for part in contributions]), union)


def _same(a: Node | None, b: Node | None) -> bool:
    return a is b or (a is not None and b is not None and a.id == b.id)


def _sum(bars: list[Node]) -> Node:
    """Add cotangents; those of parts of an array are gathered into one scatter."""
    scattered = [bar for bar in bars if bar.builder.primitive(bar.id) is scatter]
    if len(scattered) < 2:
        return reduce(add, bars)
    whole = [bar for bar in bars if bar.builder.primitive(bar.id) is not scatter]
    return reduce(add, [*whole, _gathered(scattered)])


def _gathered(bars: list[Node]) -> Node:
    """Merge scatters into arrays of one shape; parts with the same key are added first."""
    parts: dict[Any, Node] = {}
    for bar in bars:
        params = bar.builder.params(bar.id)
        for arg, key in zip(bar.builder.arguments(bar.id), params["keys"], strict=True):
            part = Node(bar.builder, arg)
            parts[key] = parts[key] + part if key in parts else part
    merged: Node = scatter(*parts.values(), keys=tuple(parts), shape=bars[0].shape)
    return merged


def _propagate(
    sweep: Sweep,
    number: int,
    total: Cotangent,
    active: bytearray,
    arriving: dict[int, list[Cotangent]],
) -> None:
    """Send a node's cotangent on to the arguments that a derivative flows to."""
    row = sweep.graph.primitives[sweep.opcode[number] - FIRST_ROW]
    args = sweep.args[number]
    rule = row.rule
    nodes = [Node(sweep.builder, arg) for arg in args]
    for position, arg in enumerate(args):
        if not active[arg]:
            continue
        if isinstance(rule, Elementwise):
            apply_map = rule.maps[position]
            if apply_map is None:
                continue
            bar = apply_map(total.bar, Node(sweep.builder, number), *nodes)
            part = Cotangent(bar, total.mask)
        elif isinstance(rule, Select):
            condition = rule.conditions[position]
            if condition is None:
                continue
            part = Cotangent(total.bar, _both(total.mask, condition(*nodes)))
        else:
            part = _transposed(sweep, number, position, row, rule, total)
        if sweep.opcode[arg] == INPUT:
            part = Cotangent(part.resolved())
        arriving.setdefault(arg, []).append(part)


def _both(mask: Node | None, condition: Node) -> Node:
    """Return the mask of a branch inside a branch."""
    if mask is None:
        return condition
    both: Node = logical_and(mask, condition)
    return both


def _transposed(
    sweep: Sweep, number: int, position: int, row: Primitive, rule: Linear, total: Cotangent
) -> Cotangent:
    """Send a cotangent, and its mask, through the transpose of a linear primitive."""
    arg = sweep.args[number][position]
    shapes = tuple(sweep.graph.shape(other) for other in sweep.args[number])
    params = sweep.graph.params(number)
    shape = sweep.graph.shape(number)
    bar, mask = total.bar, total.mask
    if mask is not None and sweep.opcode[arg] == INPUT:
        bar, mask = total.resolved(), None
    moved = rule.transpose(spread(bar, shape), position, shapes, **params)
    if mask is not None:
        mask = rule.transpose(spread(mask * 1, shape), position, shapes, **params) != 0
    return Cotangent(moved, mask)

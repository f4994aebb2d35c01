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

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from difflab.autodiff.sweep import Sweep, reached_from, spread
from difflab.autodiff.template import template
from difflab.core.primitive import Elementwise, Linear, Select
from difflab.graph.builder import Builder
from difflab.graph.ir import FIRST_ROW, INPUT
from difflab.graph.node import Node
from difflab.primitives import add, logical_and, logical_or, scatter, where

__all__ = ["Cotangent", "pull_back"]


class Cotangent(NamedTuple):
    """A contribution ȳ, and the mask under which it counts (None: always); both are nodes."""

    bar: int
    mask: int | None = None


def pull_back(sweep: Sweep, seeds: Mapping[int, Node], sources: Iterable[int]) -> dict[int, Node]:
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
    # A number that the sweep itself appended is a constant: nothing flows from it.
    arriving: dict[int, list[Cotangent]] = {
        number: [Cotangent(seed.id)]
        for number, seed in seeds.items()
        if number < len(active) and active[number]
    }
    found: dict[int, Node] = {}
    for number in range(max(arriving, default=-1), -1, -1):
        contributions = arriving.pop(number, None)
        if contributions is None:
            continue
        sweep.at(number)
        total = accumulate(sweep.builder, contributions)
        if number in wanted:
            found[number] = sweep.node(resolved(sweep.builder, total))
        if sweep.opcode[number] >= FIRST_ROW:
            for arg, part in propagate(sweep, number, total, active):
                arriving.setdefault(arg, []).append(part)
    return found


def resolved(builder: Builder, part: Cotangent) -> int:
    """Return a cotangent as a node that is zero where its mask does not hold."""
    if part.mask is None:
        return part.bar
    return builder.emit(where, (part.mask, part.bar, builder.constant(0)))


def accumulate(builder: Builder, parts: list[Cotangent]) -> Cotangent:
    """Add up what arrives at a node; contributions under one mask stay under it."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].mask
    if all(part.mask == first for part in parts):
        return Cotangent(_sum(builder, [part.bar for part in parts]), first)
    total = _sum(builder, [resolved(builder, part) for part in parts])
    masks = [part.mask for part in parts if part.mask is not None]
    if len(masks) < len(parts):
        return Cotangent(total)
    union = masks[0]
    for mask in masks[1:]:
        union = builder.emit(logical_or, (union, mask))
    return Cotangent(total, union)


def _sum(builder: Builder, bars: list[int]) -> int:
    """Add cotangents; those of parts of an array are gathered into one scatter."""
    whole = [bar for bar in bars if builder.primitive(bar) is not scatter]
    if len(bars) - len(whole) > 1:
        scattered = [bar for bar in bars if builder.primitive(bar) is scatter]
        bars = [*whole, _gathered(builder, scattered)]
    total = bars[0]
    for bar in bars[1:]:
        total = builder.emit(add, (total, bar))
    return total


def _gathered(builder: Builder, bars: list[int]) -> int:
    """Merge scatters into arrays of one shape; parts with the same key are added first."""
    parts: dict[Any, int] = {}
    for bar in bars:
        keys = builder.params(bar)["keys"]
        for part, key in zip(builder.arguments(bar), keys, strict=True):
            parts[key] = builder.emit(add, (parts[key], part)) if key in parts else part
    params = (("keys", tuple(parts)), ("shape", builder.shape(bars[0])))
    return builder.emit(scatter, tuple(parts.values()), params)


def propagate(
    sweep: Sweep, number: int, total: Cotangent, active: bytearray
) -> Iterator[tuple[int, Cotangent]]:
    """Yield what a node's cotangent contributes to each argument a derivative flows to."""
    row = sweep.graph.primitives[sweep.opcode[number] - FIRST_ROW]
    args = sweep.args(number)
    rule = row.rule
    for position, arg in enumerate(args):
        if not active[arg]:
            continue
        if isinstance(rule, Elementwise):
            rule_map = rule.maps[position]
            if rule_map is None:
                continue
            bar = template(rule_map, len(args)).stamp(sweep.builder, total.bar, number, args)
            part = Cotangent(bar, total.mask)
        elif isinstance(rule, Select):
            condition = rule.conditions[position]
            if condition is None:
                continue
            holds = condition(*map(sweep.node, args)).id
            part = Cotangent(total.bar, _both(sweep.builder, total.mask, holds))
        else:
            part = _transposed(sweep, number, position, rule, total)
        if part.mask is not None and sweep.opcode[arg] == INPUT:
            part = Cotangent(resolved(sweep.builder, part))
        yield arg, part


def _both(builder: Builder, mask: int | None, condition: int) -> int:
    """Return the mask of a branch inside a branch."""
    return condition if mask is None else builder.emit(logical_and, (mask, condition))


def _transposed(
    sweep: Sweep, number: int, position: int, rule: Linear, total: Cotangent
) -> Cotangent:
    """Send a cotangent, and its mask, through the transpose of a linear primitive."""
    args = sweep.args(number)
    shape = sweep.graph.shape(number)
    if total.mask is not None and sweep.opcode[args[position]] == INPUT:
        total = Cotangent(resolved(sweep.builder, total))

    def moved(bar: Node) -> Node:
        shapes = tuple(map(sweep.graph.shape, args))
        params = sweep.graph.params(number)
        transposed: Node = rule.transpose(spread(bar, shape), position, shapes, **params)
        return transposed

    bar = moved(sweep.node(total.bar)).id
    if total.mask is None:
        return Cotangent(bar)
    return Cotangent(bar, (moved(sweep.node(total.mask) * 1) != 0).id)

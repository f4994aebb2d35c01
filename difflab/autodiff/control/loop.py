"""A step that is repeated a known number of times: its row, and the derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from difflab.autodiff.control.backward import Backward
from difflab.autodiff.control.rows import RULES, Rules, row_of, zeros
from difflab.autodiff.engine.argnums import tangents_of
from difflab.autodiff.engine.batching import Arg, batched, with_axis_at
from difflab.graph.control import Loop
from difflab.graph.counts import operation_count
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives.structure import stacks

MOST_UNROLLED = 10_000
"""Nodes up to which a loop is unrolled for what has no loops: SymPy, C, single formulas."""


def append_loop(loop: Loop, values: Sequence[Any]) -> list[Node]:
    """Append the loop to the graph of its arguments; return its outputs.

    One without steps is what it begins with, and results without elements.
    """
    if loop.steps == 0:
        return _unchanged(loop, values)
    return unpacked(loop_value(loop, values), loop.output_shapes)


def loop_value(loop: Loop, values: Sequence[Any]) -> Node:
    """Append the loop to the graph of its arguments; return its outputs as one vector."""
    value: Node = packed(_unchanged(loop, values)) if loop.steps == 0 else row_of(loop)(*values)
    return value


def _unchanged(loop: Loop, values: Sequence[Any]) -> list[Node]:
    builder = next(value.builder for value in values if isinstance(value, Node))
    rest = zeros(builder, loop.output_shapes)
    carried = zip(values[: loop.carries], rest, strict=False)
    found = [value if isinstance(value, Node) else zero + value for value, zero in carried]
    return [*found, *rest[loop.carries :]]


def _jvp(loop: Loop, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    """Return the tangents of the outputs: a loop that carries the tangents as well."""
    body, c, end = loop.body, loop.carries, loop.carries + loop.arrays
    push = tangents_of(body)

    def step(nodes: list[Node]) -> list[Node]:
        values, tangents = _halves(nodes, [c, end - c, len(body.inputs) - end])
        after, after_dot = inlined(body, values), inlined(push, [*values, *tangents])
        return [*after[:c], *after_dot[:c], *after_dot[c:]]

    groups = [slice(0, c), slice(c, end), slice(end, None)]
    arguments = [part for group in groups for part in (*args[group], *dots[group])]
    shapes = [s for group in groups for s in body.input_shapes[group] * 2]
    both = Loop(composed(step, shapes), 2 * c, 2 * (end - c), loop.steps, loop.reverse)
    return append_loop(both, arguments)[c:]


def _vjp(
    loop: Loop, y_bar: Node, y: Node, *args: Node, wanted: Sequence[bool]
) -> list[Node | None]:
    """Return the cotangents of arguments: a reverse loop over the steps that ran."""
    back, c = Backward(loop, wanted), loop.carries
    bars = unpacked(y_bar, loop.output_shapes)
    kept = append_loop(back.history, args)[c:]
    looped = [*kept, *(args[k] for k in back.read if k >= c), *bars[c:]]
    sums = [loop.body.input_shapes[k] for k in back.summed]
    first = [*bars[:c], *zeros(y_bar.builder, sums)]
    found = append_loop(back.sweep, [*first, *looped, *args[c + loop.arrays :]])
    return back.cotangents(found, looped)


def _batched(loop: Loop, size: int, args: list[Arg]) -> list[Node]:
    """Return the outputs of a stack of examples: one loop that carries stacks."""
    c, end = loop.carries, loop.carries + loop.arrays
    mapped = [place < c or is_mapped for place, (_, is_mapped) in enumerate(args)]
    body = batched(loop.body, mapped, size)
    values = [
        *stacks(size, args[:c]),
        *[with_axis_at(node, 0, 1) if is_mapped else node for node, is_mapped in args[c:end]],
        *[node for node, _ in args[end:]],
    ]
    found = append_loop(Loop(body, c, loop.arrays, loop.steps, loop.reverse), values)
    return [*found[:c], *[with_axis_at(stack, 1, 0) for stack in found[c:]]]


def _halves(nodes: Sequence[Node], sizes: Sequence[int]) -> tuple[list[Node], list[Node]]:
    """Divide groups of values, each with its tangents behind it, into values and tangents."""
    values: list[Node] = []
    tangents: list[Node] = []
    start = 0
    for size in sizes:
        values += nodes[start : start + size]
        tangents += nodes[start + size : start + 2 * size]
        start += 2 * size
    return values, tangents


def _unrolls(loop: Loop) -> bool:
    turn = max(len(loop.body.graph), operation_count(loop.body))  # loops in the step unroll, too
    return loop.steps * turn <= MOST_UNROLLED


RULES[Loop] = Rules(_jvp, _vjp, _batched, unrolls=_unrolls, selective=True)

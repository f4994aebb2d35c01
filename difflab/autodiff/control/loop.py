"""`Loop`: a step that is repeated, as a row of the graph, and its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import (
    as_nodes,
    composed,
    cotangents_of,
    function_row,
    inlined,
    is_traced,
    prepared,
    tangents_of,
    zeros,
)
from difflab.autodiff.recording import Contents
from difflab.core.primitive import Primitive
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node

__all__ = ["Loop"]

MOST_UNROLLED = 10_000
"""Nodes up to which a loop is unrolled for what has no loops: formulas as text, SymPy, C."""


@dataclass(frozen=True)
class Loop:
    """A step that is repeated, as a function.

    Attributes
    ----------
    body : Function
        Its inputs are the carries, an element of each looped array, and constants; its outputs
        the next carries and the results.
    carries, arrays : int
        How many inputs are carries, and how many are elements of looped arrays.
    steps : int
        The number of steps.
    reverse : bool
        Whether the last element comes first.
    """

    body: Function
    carries: int
    arrays: int
    steps: int
    reverse: bool

    @property
    def functions(self) -> tuple[Function]:
        """The step."""
        return (self.body,)

    @property
    def input_shapes(self) -> list[Shape]:
        """The shapes of the first carries, the looped arrays and the constants."""
        shapes = self.body.input_shapes
        return [
            (self.steps, *shape) if self.carries <= place < self.carries + self.arrays else shape
            for place, shape in enumerate(shapes)
        ]

    @property
    def output_shapes(self) -> list[Shape]:
        """The shapes of the last carries and of the stacked results."""
        shapes = self.body.output_shapes
        stacked = [(self.steps, *shape) for shape in shapes[self.carries :]]
        return [*shapes[: self.carries], *stacked]

    def applied(self, values: Sequence[Any]) -> list[Node]:
        """Append the loop to the graph of its arguments; return its outputs."""
        row = _row(Contents(self.body), self.carries, self.arrays, self.steps, self.reverse)
        return unpacked(row(*values), self.output_shapes)

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs; values may have batch axes in front."""
        step = prepared(self.body, on)
        arrays_end = self.carries + self.arrays
        carry, constants = list(values[: self.carries]), values[arrays_end:]
        looped = values[self.carries : arrays_end]
        behind = [(slice(None),) * len(shape) for shape in self.body.input_shapes[self.carries :]]
        results: list[list[Any]] = []
        order = range(self.steps)
        for number in reversed(order) if self.reverse else order:
            x = [
                array[(..., number, *axes)] if batch else array[number]
                for array, axes in zip(looped, behind, strict=False)
            ]
            found = step([*carry, *x, *constants])
            carry = found[: self.carries]
            results.append(found[self.carries :])
        if self.reverse:
            results.reverse()
        shapes = self.body.output_shapes[self.carries :]
        stacks = [
            _stacked([parts[place] for parts in results], shape, batch)
            for place, shape in enumerate(shapes)
        ]
        return [*carry, *stacks]

    def jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        """Return the tangent of the packed outputs: a loop that carries the tangents as well."""
        body, c, end = self.body, self.carries, self.carries + self.arrays
        push = tangents_of(body)

        def step(nodes: list[Node]) -> list[Node]:
            values, tangents = _halves(nodes, [c, end - c, len(body.inputs) - end])
            after, after_dot = inlined(body, values), inlined(push, [*values, *tangents])
            return [*after[:c], *after_dot[:c], *after_dot[c:]]

        groups = [slice(0, c), slice(c, end), slice(end, None)]
        arguments = [part for group in groups for part in (*args[group], *dots[group])]
        shapes = [s for group in groups for s in body.input_shapes[group] * 2]
        loop = Loop(composed(step, shapes), 2 * c, 2 * (end - c), self.steps, self.reverse)
        y_dot: Node = packed(loop.applied(arguments)[c:])
        return y_dot

    def vjp(self, y_bar: Node, y: Node, *args: Node) -> list[Node]:
        """Return the cotangents of all arguments: a loop back over the steps that were taken.

        A first loop returns the carry before each step. The second one goes from the last step
        to the first; its carries are the cotangents of the carries and the sums of those of the
        constants (Griewank and Walther, 2008, section 3.2).
        """
        body, c, end = self.body, self.carries, self.carries + self.arrays
        pull = cotangents_of(body)
        shapes, constants = body.input_shapes, body.input_shapes[end:]
        sums_end = c + len(constants)

        def keep(nodes: list[Node]) -> list[Node]:
            return [*inlined(body, nodes)[:c], *nodes[:c]]

        def back(nodes: list[Node]) -> list[Node]:
            bars, sums = nodes[:c], nodes[c:sums_end]
            values, rest = nodes[sums_end : sums_end + end], nodes[sums_end + end :]
            y_bars, read = rest[: len(body.outputs) - c], rest[len(body.outputs) - c :]
            found = inlined(pull, [*values, *read, *bars, *y_bars])
            totals = [one + other for one, other in zip(sums, found[end:], strict=True)]
            return [*found[:c], *totals, *found[c:end]]

        history = Loop(composed(keep, shapes), c, self.arrays, self.steps, self.reverse)
        before = history.applied(args)[c:]
        bars = unpacked(y_bar, self.output_shapes)
        looped = [*before, *args[c:end], *bars[c:]]
        inner = [*shapes[:c], *constants, *shapes[:end], *body.output_shapes[c:], *constants]
        loop = Loop(composed(back, inner), sums_end, len(looped), self.steps, not self.reverse)
        first = [*bars[:c], *zeros(y_bar.builder, constants)]
        found = loop.applied([*first, *looped, *args[end:]])
        return [*found[:c], *found[sums_end:], *found[c:sums_end]]


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


def _stacked(parts: Sequence[Any], shape: Shape, batch: Shape) -> Any:
    """Return results of all steps along a new axis behind the batch axes."""
    if not parts:
        return np.zeros((*batch, 0, *shape))
    if batch:
        parts = [np.broadcast_to(part, (*batch, *shape)) for part in parts]
    if is_traced(parts):
        builder = next(part.builder for part in parts if isinstance(part, Node))
        parts = as_nodes(builder, parts)
    return np.stack(list(parts), axis=len(batch))


@lru_cache(maxsize=512)
def _row(contents: Contents, carries: int, arrays: int, steps: int, reverse: bool) -> Primitive:
    """Return the row of a loop; equal loops have one row, so that they become one node."""
    loop = Loop(contents.function, carries, arrays, steps, reverse)
    return function_row("scan", loop, unrolls=steps * len(loop.body.graph) <= MOST_UNROLLED)

"""`WhileLoop`: a step that is repeated while a condition holds, as a row, and its derivatives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import (
    chosen,
    composed,
    cotangents_of,
    function_row,
    inlined,
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

__all__ = ["WhileLoop", "WhileLoopVjp"]


@dataclass(frozen=True)
class WhileLoop:
    """A step that is repeated while a condition holds.

    Attributes
    ----------
    test, body : Function
        Of the same inputs: the value, then constants. The outputs of `body` are the next value.
    """

    test: Function
    body: Function

    @property
    def functions(self) -> tuple[Function, Function]:
        """The condition and the step."""
        return (self.test, self.body)

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the first value and of the constants."""
        return self.body.input_shapes

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the value."""
        return self.body.output_shapes

    @property
    def constants(self) -> tuple[Shape, ...]:
        """The shapes of the constants."""
        return self.body.input_shapes[len(self.output_shapes) :]

    def applied(self, values: Sequence[Any]) -> list[Node]:
        """Append the loop to the graph of its arguments; return its outputs."""
        row = _row(Contents(self.test), Contents(self.body))
        return unpacked(row(*values), self.output_shapes)

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the last value; values may have batch axes in front."""
        value: list[Any] = deque(self.visited(on, values, batch), maxlen=1)[0][0]
        return value

    def visited(
        self, on: Interpreter, values: Sequence[Any], batch: Shape
    ) -> Iterator[tuple[list[Any], Any]]:
        """Yield the value before each step and whether the step is taken, the last value last."""
        test, step = prepared(self.test, on), prepared(self.body, on)
        count = len(self.output_shapes)
        value, constants = list(values[:count]), values[count:]
        while True:
            (going,) = test([*value, *constants])
            yield value, going
            if not (going.any() if batch else going):
                return
            after = step([*value, *constants])
            value = chosen(on, going, after, value, self.output_shapes) if batch else after

    def jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        """Return the tangent of the packed value: a loop that carries the tangents as well."""
        wide, values = self.with_tangents(), self.merged(args, dots)
        y_dot: Node = packed(wide.applied(values)[len(self.output_shapes) :])
        return y_dot

    def vjp(self, y_bar: Node, y: Node, *args: Node) -> list[Node]:
        """Return the cotangents of all arguments, by a row that runs the loop and goes back."""
        return WhileLoopVjp(self).applied([*args, *unpacked(y_bar, self.output_shapes)])

    def with_tangents(self) -> WhileLoop:
        """Return the loop whose value is the value and its tangent, and likewise its constants."""
        count = len(self.output_shapes)
        shapes = [*self.output_shapes * 2, *self.constants * 2]
        push = tangents_of(self.body)

        def parts(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
            constants, half = nodes[2 * count :], len(self.constants)
            values = [*nodes[:count], *constants[:half]]
            return values, [*nodes[count : 2 * count], *constants[half:]]

        def step(nodes: list[Node]) -> list[Node]:
            values, tangents = parts(nodes)
            return [*inlined(self.body, values), *inlined(push, [*values, *tangents])]

        test = composed(lambda nodes: inlined(self.test, parts(nodes)[0]), shapes)
        return WhileLoop(test, composed(step, shapes))

    def merged(self, values: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
        """Return the arguments of the loop with tangents."""
        count = len(self.output_shapes)
        return [*values[:count], *tangents[:count], *values[count:], *tangents[count:]]

    def values_of(self, merged: Sequence[Node]) -> list[Node]:
        """Return the arguments of this loop, of those of the loop with tangents."""
        count = len(self.output_shapes)
        behind = 2 * count
        return [*merged[:count], *merged[behind : behind + len(self.constants)]]


@dataclass(frozen=True)
class WhileLoopVjp:
    """The reverse sweep of a loop: it runs the loop, keeps each value, and goes back.

    Its arguments are those of the loop, then the cotangents of the last value.
    """

    loop: WhileLoop

    @property
    def functions(self) -> tuple[Function, Function, Function]:
        """The condition, the step, and the step back."""
        return (*self.loop.functions, self.back)

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the arguments."""
        return (*self.loop.input_shapes, *self.loop.output_shapes)

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the cotangents of the first value and of the constants."""
        return self.loop.input_shapes

    @cached_property
    def back(self) -> Function:
        """One step back.

        From the cotangents of the next value, the sums of the cotangents of the constants, the
        value before the step, and the constants: those cotangents and sums one step earlier.
        """
        loop = self.loop
        count, constants = len(loop.output_shapes), len(loop.constants)
        pull = cotangents_of(loop.body)

        def step(nodes: list[Node]) -> list[Node]:
            bars, sums, values = (
                nodes[:count],
                nodes[count:][:constants],
                nodes[count + constants :],
            )
            found = inlined(pull, [*values, *bars])
            totals = [one + other for one, other in zip(sums, found[count:], strict=True)]
            return [*found[:count], *totals]

        return composed(step, [*loop.input_shapes, *loop.input_shapes])

    def applied(self, values: Sequence[Any]) -> list[Node]:
        """Append the reverse sweep to the graph of its arguments; return its outputs."""
        row = _vjp_row(Contents(self.loop.test), Contents(self.loop.body))
        return unpacked(row(*values), self.output_shapes)

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the cotangents; values may have batch axes in front."""
        shapes, count = self.output_shapes, len(self.loop.output_shapes)
        inputs, bars = values[: len(shapes)], values[len(shapes) :]
        back, constants = prepared(self.back, on), inputs[count:]
        found = [*bars, *[np.zeros(shape)[()] for shape in self.loop.constants]]
        for value, going in list(self.loop.visited(on, inputs, batch))[-2::-1]:
            earlier = back([*found, *value, *constants])
            found = chosen(on, going, earlier, found, shapes) if batch else earlier
        return found

    def jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        r"""Return the tangent of the reverse sweep x̄ = Jᵀȳ.

        The reverse sweep of the loop with tangents, (x, ẋ) ↦ (F, Jẋ), for the cotangents
        (ȳ̇, ȳ) gives as the cotangent of x: Jᵀȳ̇ + ∂(Jẋ)ᵀȳ/∂x, which is the tangent.
        """
        loop, split = self.loop, len(self.output_shapes)
        values = loop.merged(args[:split], dots[:split])
        wide = WhileLoopVjp(loop.with_tangents())
        x_bar_dot: Node = packed(
            loop.values_of(wide.applied([*values, *dots[split:], *args[split:]]))
        )
        return x_bar_dot

    def vjp(self, y_bar: Node, y: Node, *args: Node) -> list[Node]:
        """Return the cotangents of the reverse sweep's arguments: those of ⟨w, Jᵀȳ⟩ = ⟨ȳ, Jw⟩."""
        loop, split = self.loop, len(self.output_shapes)
        wide = loop.with_tangents()
        values = loop.merged(args[:split], unpacked(y_bar, self.output_shapes))
        pushed = wide.applied(values)[len(loop.output_shapes) :]
        nothing = zeros(y_bar.builder, loop.output_shapes)
        found = WhileLoopVjp(wide).applied([*values, *nothing, *args[split:]])
        return [*loop.values_of(found), *pushed]


@lru_cache(maxsize=512)
def _row(test: Contents, body: Contents) -> Primitive:
    """Return the row of a loop; equal loops have one row."""
    return function_row("while_loop", WhileLoop(test.function, body.function), unrolls=False)


@lru_cache(maxsize=512)
def _vjp_row(test: Contents, body: Contents) -> Primitive:
    """Return the row of a loop's reverse sweep."""
    loop = WhileLoop(test.function, body.function)
    return function_row("while_loop_vjp", WhileLoopVjp(loop), unrolls=False)

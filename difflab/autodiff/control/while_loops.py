"""`while_loop`: a step that is repeated while a condition holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
    is_traced,
    prepared,
    require_equal_shapes,
    shapes_of,
    tangents_of,
    zeros,
)
from difflab.autodiff.recording import Contents, record
from difflab.core.primitive import Primitive, custom
from difflab.errors import ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.pytree import flatten, unflatten

__all__ = ["while_loop"]


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Return what ``while cond_fun(value): value = body_fun(value)`` leaves in `value`.

    In a trace this is one node. It can be differentiated in both modes, to any order: reverse
    mode keeps the values of all steps, whose number is known when the loop has run.

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(value)`` returns a truth value.
    body_fun : callable
        ``body_fun(value)`` returns the next value, of the same structure and shapes.
    init_val : tree
        The first value.

    Raises
    ------
    ShapeError
        The condition is not a scalar, or the value changes its structure or a shape.

    Examples
    --------
    Newton's iteration for the square root, and its derivative 1/(2·√2):

    >>> import difflab as dl
    >>> def root(a):
    ...     go = lambda x: abs(x * x - a) > 1e-12
    ...     return dl.while_loop(go, lambda x: 0.5 * (x + a / x), a)
    >>> round(float(root(2.0)), 12), round(float(dl.grad(root)(2.0)), 12)
    (1.414213562373, 0.353553390593)
    """
    require_callable(cond_fun, "while_loop")
    require_callable(body_fun, "while_loop")
    leaves, structure = flatten(init_val)
    shapes = shapes_of(leaves)

    def body(value: Any) -> list[Any]:
        after, found = flatten(body_fun(value))
        if found != structure:
            raise ShapeError(
                f"the value of while_loop changes its structure from {structure} to {found}"
            )
        return after

    value = list(leaves)
    while not is_traced(value):
        going = cond_fun(unflatten(structure, value))
        if is_traced([going]):
            break
        if not going:
            return unflatten(structure, value)
        value = body(unflatten(structure, value))
        if not is_traced(value):
            require_equal_shapes(shapes, shapes_of(value), "value of while_loop")
    test = record(lambda nodes: cond_fun(unflatten(structure, nodes)), shapes, has_aux=False)
    if test.function.output_shapes != ((),):
        raise ShapeError("the condition of while_loop is not a scalar")
    step = record(lambda nodes: body(unflatten(structure, nodes)), shapes, has_aux=False)
    require_equal_shapes(shapes, step.function.output_shapes, "value of while_loop")
    count, middle = len(leaves), len(leaves) + len(test.captured)
    wide = [*shapes, *shapes_of(test.captured), *shapes_of(step.captured)]
    loop = WhileLoop(
        composed(lambda nodes: inlined(test.function, nodes[:middle]), wide),
        composed(lambda nodes: inlined(step.function, [*nodes[:count], *nodes[middle:]]), wide),
    )
    return unflatten(structure, loop.applied([*leaves, *test.captured, *step.captured]))


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
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the value."""
        return self.body.output_shapes

    @property
    def constants(self) -> tuple[Shape, ...]:
        """The shapes of the constants."""
        return self.body.input_shapes[len(self.shapes) :]

    def applied(self, values: Sequence[Any]) -> list[Node]:
        """Append the loop to the graph of its arguments; return its outputs."""
        row = _row(Contents(self.test), Contents(self.body))
        return unpacked(row(*values), self.shapes)

    def pulled(self, values: Sequence[Any], bars: Sequence[Node]) -> list[Node]:
        """Append the reverse sweep; return the cotangents of the first value and constants."""
        row = _reverse_row(Contents(self.test), Contents(self.body))
        return unpacked(row(*values, *bars), self.body.input_shapes)

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the last value; values may have batch axes in front."""
        value: list[Any] = deque(self._visited(on, values, batch), maxlen=1)[0][0]
        return value

    def run_back(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the cotangents of the first value and of the constants."""
        count = len(self.shapes)
        inputs, bars = values[: len(self.body.input_shapes)], list(values[-count:])
        pull = prepared(self._pull, on)
        constants = inputs[count:]
        sums: list[Any] = [np.zeros(shape)[()] for shape in self.constants]
        for value, going in list(self._visited(on, inputs, batch))[-2::-1]:
            found = pull([*value, *constants, *bars])
            earlier, parts = found[:count], found[count:]
            if batch:
                earlier = chosen(on, going, earlier, bars, self.shapes)
                parts = chosen(on, going, parts, [0.0] * len(parts), self.constants)
            bars = earlier
            sums = [total + part for total, part in zip(sums, parts, strict=True)]
        return [*bars, *sums]

    @cached_property
    def _pull(self) -> Function:
        """The cotangents of the step's inputs."""
        return cotangents_of(self.body)

    def _visited(
        self, on: Interpreter, values: Sequence[Any], batch: Shape
    ) -> Iterator[tuple[list[Any], Any]]:
        """Yield the value before each step and whether the step is taken, the last value last."""
        test, step = prepared(self.test, on), prepared(self.body, on)
        count = len(self.shapes)
        value, constants = list(values[:count]), values[count:]
        while True:
            (going,) = test([*value, *constants])
            yield value, going
            if not (going.any() if batch else going):
                return
            after = step([*value, *constants])
            value = chosen(on, going, after, value, self.shapes) if batch else after

    def jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        """Return the tangent of the packed value: a loop that carries the tangents as well."""
        wide, values = self._with_tangents(), self._merged(args, dots)
        y_dot: Node = packed(wide.applied(values)[len(self.shapes) :])
        return y_dot

    def vjp(self, y_bar: Node, y: Node, *args: Node) -> list[Node]:
        """Return the cotangents of all arguments, by a row that runs the loop and goes back."""
        return self.pulled(args, unpacked(y_bar, self.shapes))

    def reverse_jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        r"""Return the tangent of the reverse sweep x̄ = Jᵀȳ.

        The reverse sweep of the loop with tangents, (x, ẋ) ↦ (F, Jẋ), for the cotangents
        (ȳ̇, ȳ) gives as the cotangent of x: Jᵀȳ̇ + ∂(Jẋ)ᵀȳ/∂x, which is the tangent.
        """
        split = len(args) - len(self.shapes)
        wide, values = self._with_tangents(), self._merged(args[:split], dots[:split])
        found = wide.pulled(values, [*dots[split:], *args[split:]])
        x_bar_dot: Node = packed(self._values_of(found))
        return x_bar_dot

    def reverse_vjp(self, y_bar: Node, y: Node, *args: Node) -> list[Node]:
        """Return the cotangents of the reverse sweep's arguments: those of ⟨w, Jᵀȳ⟩ = ⟨ȳ, Jw⟩."""
        split = len(args) - len(self.shapes)
        directions = unpacked(y_bar, self.body.input_shapes)
        wide, values = self._with_tangents(), self._merged(args[:split], directions)
        pushed = wide.applied(values)[len(self.shapes) :]
        nothing = zeros(y_bar.builder, self.shapes)
        found = wide.pulled(values, [*nothing, *args[split:]])
        return [*self._values_of(found), *pushed]

    def _with_tangents(self) -> WhileLoop:
        """Return the loop whose value is the value and its tangent, and likewise its constants."""
        count = len(self.shapes)
        shapes = [*self.shapes * 2, *self.constants * 2]
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

    def _merged(self, values: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
        """Return the arguments of the loop with tangents."""
        count = len(self.shapes)
        return [*values[:count], *tangents[:count], *values[count:], *tangents[count:]]

    def _values_of(self, merged: Sequence[Node]) -> list[Node]:
        """Return the parts of the values, without those of the tangents."""
        count = len(self.shapes)
        behind = 2 * count
        return [*merged[:count], *merged[behind : behind + len(self.constants)]]


@lru_cache(maxsize=512)
def _row(test: Contents, body: Contents) -> Primitive:
    """Return the row of a loop; equal loops have one row."""
    loop = WhileLoop(test.function, body.function)
    return function_row(
        "while_loop",
        loop.run,
        loop.body.input_shapes,
        loop.shapes,
        custom(loop.jvp, loop.vjp),
        [loop.test, loop.body],
        unrolls=False,
    )


@lru_cache(maxsize=512)
def _reverse_row(test: Contents, body: Contents) -> Primitive:
    """Return the row of a loop's reverse sweep."""
    loop = WhileLoop(test.function, body.function)
    return function_row(
        "while_loop_vjp",
        loop.run_back,
        [*loop.body.input_shapes, *loop.shapes],
        loop.body.input_shapes,
        custom(loop.reverse_jvp, loop.reverse_vjp),
        [loop.test, loop.body],
        unrolls=False,
    )

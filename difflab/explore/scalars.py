"""A function on numbers only: arrays become their elements, and loops their turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Shape
from difflab.errors import DifflabError, InputError, UnsupportedError
from difflab.explore.element_forms import FORMS
from difflab.explore.element_orders import sorted_along
from difflab.explore.object_arrays import boxed
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import CONSTANT, FIRST_ROW
from difflab.graph.node import Node
from difflab.graph.passes.expansion import expanded
from difflab.graph.rewrite import label
from difflab.primitives import argsort, take_along

__all__ = ["LARGEST", "element_names", "scalar_function"]

LARGEST = 20_000
"""Most operations on numbers that a page follows."""


def scalar_function(function: Function) -> Function:
    """Return a function of numbers that computes every element on its own.

    Names and source locations are kept; the inputs are ``x[0]``, ``x[1]``, … of an array ``x``.

    Raises
    ------
    InputError
        An operation on arrays or a loop cannot be written as operations on numbers, or there are
        more than `LARGEST` of them.

    Examples
    --------
    >>> import difflab as dl
    >>> f = scalar_function(dl.parse("x: [2]; sum(x*x)"))
    >>> f.inputs, [row.name for row in f.graph.primitives]
    (('x[0]', 'x[1]'), ['multiply', 'add'])
    """
    opened = expanded(function)
    if opened.graph.element_count() > LARGEST:
        raise _too_large(opened.graph.element_count())
    return _Elements(opened).function()


def element_names(name: str, shape: Shape) -> list[str]:
    """Return the names of the elements of an array, in row-major order."""
    if not shape:
        return [name]
    return [f"{name}[{', '.join(map(str, key))}]" for key in product(*map(range, shape))]


class _Nodes(ElementInterpreter):
    """Values are NumPy object arrays of nodes of a graph, and of numbers."""

    def _make(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive in FORMS:
            return FORMS[primitive]
        if primitive.shape is not None:
            return self._whole(primitive)
        found: Callable[..., Any] = np.frompyfunc(primitive, primitive.arity or 1, 1)
        return found


class _Elements:
    """A copy of a graph, element by element."""

    def __init__(self, source: Function) -> None:
        self.source, self.graph = source, source.graph
        self.builder = Builder(source.graph.source)
        self.interpreter = _Nodes()
        self.values: list[Any] = [None] * len(source.graph)

    def function(self) -> Function:
        """Return the function of numbers."""
        graph, builder, values = self.graph, self.builder, self.values
        inputs = [
            each
            for node in self.source.input_nodes
            for each in self._input(node, graph.input_name(node), graph.shape(node))
        ]
        spans = builder.copied_spans(graph, graph.spans.tolist())
        for node, (opcode, arguments) in enumerate(graph.rows()):
            builder.span = spans[node]
            if opcode == CONSTANT:
                constant = builder.constant(*graph.constants[node])
                values[node] = boxed([Node(builder, constant)], ())
            elif opcode >= FIRST_ROW:
                values[node] = self._computed(node, [values[each] for each in arguments])
            if len(builder) > LARGEST:
                raise _too_large(len(builder))
            self._labelled(node)
        outputs, names = self._outputs()
        return Function.build(builder, inputs, outputs, names, text=self.source.text)

    def _input(self, node: int, name: str, shape: Shape) -> list[int]:
        nodes = [self.builder.input(each) for each in element_names(name, shape)]
        self.values[node] = boxed([Node(self.builder, each) for each in nodes], shape)
        return nodes

    def _computed(self, node: int, arguments: list[Any]) -> Any:
        """Return the elements of an operation."""
        row = self._row(node)
        assert row is not None
        reason = f"'{row.name}' cannot be written as such"
        if row.holds is None:
            try:
                found = self._operation(node, row)(*arguments)
                return found if isinstance(found, np.ndarray) else boxed([found], ())
            except UnsupportedError as error:
                reason = str(error)
            except (DifflabError, AttributeError, TypeError, ValueError):
                pass
        raise InputError(
            f"the page follows operations on numbers, and {reason}",
            text=self.graph.text,
            span=self.graph.span(node),
            hint="difflab trace shows operations on arrays and loops",
        )

    def _operation(self, node: int, row: Primitive) -> Callable[..., Any]:
        """Return an operation on elements; what takes the order of its own elements sorts them."""
        params = self.graph.params(node)
        if row is take_along:
            x, places = self.graph.arguments(node)
            order = self._row(places)
            if order is argsort and self.graph.arguments(places) == (x,):
                (axis,) = self.graph.params(places)["axes"]
                if axis == params["axis"]:
                    return lambda x, places: sorted_along(x, axis)
        return partial(self.interpreter.operation(row), **params)

    def _row(self, node: int) -> Primitive | None:
        opcode = int(self.graph.opcode[node])
        return self.graph.primitives[opcode - FIRST_ROW] if opcode >= FIRST_ROW else None

    def _labelled(self, node: int) -> None:
        """Give elements the name that the program gave the array."""
        name = self.graph.labels.get(node)
        if name is None:
            return
        elements = self.values[node]
        names = element_names(name, elements.shape)
        for each, element in zip(names, elements.ravel().tolist(), strict=True):
            if isinstance(element, Node):
                label(self.builder, element.id, each)

    def _outputs(self) -> tuple[list[int], list[str]]:
        nodes, names = [], []
        for node, name in zip(self.source.outputs, self.source.output_names, strict=True):
            for element in self.values[node].ravel().tolist():
                known = isinstance(element, Node)
                nodes.append(element.id if known else self.builder.constant(float(element)))
            names += element_names(name, self.graph.shape(node))
        return nodes, names


def _too_large(count: int) -> InputError:
    return InputError(
        f"the page follows up to {LARGEST:,} operations on numbers, and this function has {count:,}"
        " or more",
        hint="difflab graph and difflab trace summarise larger functions",
    )

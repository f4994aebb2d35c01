"""Functions made of code on nodes, and functions appended to a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.ir import Shape
from difflab.graph.node import Node


def composed(call: Callable[[list[Node]], list[Node]], shapes: Sequence[Shape]) -> Function:
    """Trace code on nodes of the given shapes and return it as a function.

    Examples
    --------
    >>> composed(lambda nodes: [nodes[0] * nodes[1]], [(), (2,)])(3.0, [1.0, 2.0])
    array([3., 6.])
    """
    builder = Builder()
    nodes = [Node(builder, builder.input(f"x{k + 1}", shape)) for k, shape in enumerate(shapes)]
    results = [result.id for result in call(nodes)]
    names = [f"y{k + 1}" for k in range(len(results))]
    return Function.build(builder, [node.id for node in nodes], results, names)


def inlined(function: Function, values: Sequence[Node]) -> list[Node]:
    """Append a function to the graph of its arguments; return its outputs."""
    builder = values[0].builder
    return [Node(builder, node) for node in inline(function, builder, [v.id for v in values])]


def joined(functions: Sequence[Function]) -> Function:
    """Return the function of the outputs of functions of the same inputs, one after the other.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*sin(y)")
    >>> joined([f, dl.gradient(f)]).output_names
    ('f', 'gradient')
    """
    builder = Builder(functions[0].graph.source)
    inputs = [
        builder.input(name, shape)
        for name, shape in zip(functions[0].inputs, functions[0].input_shapes, strict=True)
    ]
    outputs = [node for function in functions for node in inline(function, builder, inputs)]
    names = [name for function in functions for name in function.output_names]
    return Function.build(builder, inputs, outputs, names, arguments=functions[0].arguments)

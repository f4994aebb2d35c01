"""Functions made of the nodes of others: rewritten by a rule, composed, with other outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.pytree import Structure
from difflab.graph.rewrite import RewriteRule, rewrite


def rewritten(
    function: Function,
    rule: RewriteRule | None,
    builder: Builder | None = None,
    **more: Any,
) -> Function:
    """Return `function` with every operation as `rule` writes it.

    Parameters
    ----------
    function : Function
        The function to copy.
    rule : callable or None
        See `difflab.graph.rewrite.RewriteRule`; None copies every operation.
    builder : Builder, optional
        An empty builder to copy to, where that is not a plain one.
    **more
        Passed to `difflab.graph.rewrite.rewrite`.
    """
    builder = Builder(function.graph.source) if builder is None else builder
    copied = rewrite(function.graph, builder, rule, **more)
    inputs = [copied[node] for node in function.input_nodes]
    outputs = [copied[node] for node in function.outputs]
    names, structure = function.output_names, function.structure
    return Function.build(builder, inputs, outputs, names, structure, arguments=function.arguments)


def selected(
    function: Function,
    outputs: Sequence[int],
    names: Sequence[str],
    structure: Structure | None = None,
) -> Function:
    """Return the function of the same inputs with other nodes as outputs."""
    inputs = function.input_nodes
    graph, kept = function.graph.pruned([*inputs, *outputs])
    nodes, results = kept[: len(inputs)], kept[len(inputs) :]
    return Function(graph, nodes, results, tuple(names), structure, arguments=function.arguments)


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

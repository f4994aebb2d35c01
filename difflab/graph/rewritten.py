"""Functions made of the nodes of others: rewritten by a rule, or with other outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from difflab.graph.builder import Builder
from difflab.graph.function import Function
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
        What is copied.
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

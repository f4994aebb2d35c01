"""Appending one graph's nodes to another, with their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from difflab.graph.builder import Builder
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph

__all__ = ["copy_labels", "copy_nodes", "label"]


def copy_nodes(builder: Builder, graph: Graph, inputs: Mapping[int, int]) -> list[int]:
    """Append a graph's nodes to `builder`, with `inputs` mapping its inputs to nodes there.

    Returns
    -------
    list of int
        For each node of the graph its node in `builder`.
    """
    copied = [0] * len(graph)
    for node, given in inputs.items():
        copied[node] = given
    params = graph.param_ids.tolist()
    spans, before = builder.copied_spans(graph), builder.span
    for node, (opcode, args) in enumerate(graph.rows()):
        builder.span = spans[node]
        if opcode == CONSTANT:
            copied[node] = builder.constant(*graph.constants[node])
        elif opcode >= FIRST_ROW:
            row = graph.primitives[opcode - FIRST_ROW]
            operands = tuple([copied[arg] for arg in args])
            copied[node] = builder.emit(row, operands, graph.param_table[params[node]])
    copy_labels(builder, graph, copied)
    builder.span = before
    return copied


def copy_labels(builder: Builder, graph: Graph, copied: Sequence[int]) -> None:
    """Copy the labels of `graph` to the copies of its nodes in `builder`."""
    for node, name in graph.labels.items():
        label(builder, copied[node], name)


def label(builder: Builder, node: int, name: str) -> None:
    """Label a node with its variable's name; inputs and constants have names already."""
    if builder.opcode[node] >= FIRST_ROW:
        builder.labels.setdefault(node, name)

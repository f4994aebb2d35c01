"""The functions inside an operation: of a loop or a branch, and of a custom function."""

from __future__ import annotations

from difflab.core.primitive import Custom, Primitive
from difflab.graph.builder import Builder
from difflab.graph.described import roles
from difflab.graph.function import Function
from difflab.graph.ir import Graph
from difflab.graph.node import Node

__all__ = ["inside", "opens"]


def opens(row: Primitive | None) -> bool:
    """Whether an operation consists of functions that can be shown."""
    if row is None:
        return False
    return row.holds is not None or (isinstance(row.rule, Custom) and row.expansion is not None)


def inside(graph: Graph, node: int) -> list[tuple[str, Function]]:
    """Return the functions that an operation consists of, each with its role.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x: dl.fori_loop(0, 3, lambda i, y: y * x, 1.0), 2.0)
    >>> [role for role, step in inside(f.graph, len(f.graph) - 2)]
    ['step']
    """
    row = graph.primitive(node)
    if row is None or not opens(row):
        return []
    return [("forward", _recorded(graph, node, row))] if row.holds is None else roles(row.holds)


def _recorded(graph: Graph, node: int, row: Primitive) -> Function:
    """Return what a custom function computes in primitive operations."""
    assert row.expansion is not None
    builder = Builder()
    shapes = [graph.shape(arg) for arg in graph.arguments(node)]
    inputs = [builder.input(f"x{place}", shape) for place, shape in enumerate(shapes, 1)]
    result = row.expansion(*[Node(builder, number) for number in inputs])
    return Function.build(builder, inputs, [result.id], ["y"])

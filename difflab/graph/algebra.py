"""The algebra of single operations, as their rows state it: sums, products and repetitions.

The functions read graphs that are finished or under construction.
"""

from __future__ import annotations

from typing import Protocol

from difflab.core.primitive import Primitive
from difflab.primitives import broadcast


class Nodes(Protocol):
    """What a `Graph` and a `Builder` share."""

    def primitive(self, node: int) -> Primitive | None:
        """Return the row that a node applies; None for inputs and constants."""

    def arguments(self, node: int) -> tuple[int, ...]:
        """Return the arguments of a node."""


def signs(graph: Nodes, node: int) -> tuple[int, ...]:
    """Return the signs with which a node adds up its arguments; empty if it is no sum.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x - y")
    >>> signs(f.graph, f.outputs[0]), signs(f.graph, f.input_nodes[0])
    ((1, -1), ())
    """
    row = graph.primitive(node)
    return () if row is None else row.signs


def degrees(graph: Nodes, node: int) -> tuple[int, ...]:
    """Return the exponents with which a node multiplies its arguments; empty if it is no product.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x / y")
    >>> degrees(f.graph, f.outputs[0])
    (1, -1)
    """
    row = graph.primitive(node)
    return () if row is None else row.degrees


def unspread(graph: Nodes, node: int) -> int:
    """Return the operand of the broadcasts at `node`; `node` itself if there is none."""
    while graph.primitive(node) is broadcast:
        (node,) = graph.arguments(node)
    return node

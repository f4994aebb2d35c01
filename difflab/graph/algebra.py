"""The algebra of single operations, as their rows state it: sums, products, analyticity.

Most functions read graphs that are finished or under construction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.primitives import broadcast

if TYPE_CHECKING:
    from difflab.graph.function import Function


class Nodes(Protocol):
    """Protocol of nodes, which `Graph` and `Builder` implement."""

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


def require_analytic(function: Function) -> None:
    """Raise `UnsupportedError` for the first operation that is not analytic.

    Examples
    --------
    >>> import difflab as dl
    >>> require_analytic(dl.parse("x*abs(x)"))
    Traceback (most recent call last):
        ...
    difflab.errors.UnsupportedError: complex step needs an analytic function; ...
    """
    graph = function.graph
    broken = {row for row in graph.primitives if not row.analytic}
    if not broken:
        return
    for node in range(len(graph)):
        row = graph.primitive(node)
        if row is not None and row in broken and not _of_whole_order(function, node):
            part, where = graph.place(node).part, graph.place(node).where
            location = f" in `{part}`" if part else ""
            location += f" ({where})" if where else ""
            raise UnsupportedError(
                f"complex step needs an analytic function; {row.name}{location} is not"
            )


def _of_whole_order(function: Function, node: int) -> bool:
    """Whether a node is a function that is analytic for its first argument, a whole constant."""
    graph = function.graph
    row = graph.primitive(node)
    if row is None or not row.whole_orders_analytic:
        return False
    order = graph.constants.get(graph.arguments(node)[0])
    return order is not None and float(order[0]).is_integer()

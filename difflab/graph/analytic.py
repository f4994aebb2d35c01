"""Which functions are analytic, so that their values at complex points give derivatives."""

from __future__ import annotations

from difflab.errors import UnsupportedError
from difflab.graph.function import Function


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
            place = f" in `{part}`" if part else ""
            place += f" ({where})" if where else ""
            raise UnsupportedError(
                f"complex step needs an analytic function; {row.name}{place} is not"
            )


def _of_whole_order(function: Function, node: int) -> bool:
    """Whether a node is a function that is analytic for its first argument, a whole constant."""
    graph = function.graph
    row = graph.primitive(node)
    if row is None or not row.whole_orders_analytic:
        return False
    order = graph.constants.get(graph.arguments(node)[0])
    return order is not None and float(order[0]).is_integer()

"""The pass that writes companion rows, such as ``dlog``, as ordinary operations."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from difflab.core.primitive import Custom, Params, Primitive
from difflab.graph.builder import Builder
from difflab.graph.expansion import expand
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten


def expanded(
    function: Function,
    *,
    customs: bool = True,
    written: tuple[type, ...] = (),
    known: Container[str] = (),
    moves: bool = False,
) -> Function:
    """Return the function with companions such as ``dlog`` expanded into ordinary operations.

    Parameters
    ----------
    function : Function
        The function to rewrite.
    customs : bool
        Whether custom functions and loops are expanded as well, where that is possible.
    written : tuple of type
        The kinds of control that a notation has: rows that hold them are kept, of solutions those
        that the language has.
    known : container of str
        The names of rows that are kept.
    moves : bool
        Whether rows that only move data are expanded alone.

    Examples
    --------
    >>> import difflab as dl
    >>> expanded(dl.gradient(dl.parse("ln(x)"))).graph.primitives[0]
    <primitive divide>
    """

    def opens(row: Primitive) -> bool:
        kept = not customs or (
            isinstance(row.holds, written) and getattr(row.holds, "written", True)
        )
        if row.expansion is None or row.name in known or (moves and not row.structural):
            return False
        return not (kept and isinstance(row.rule, Custom))

    def rule(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
        return expand(builder, node, row, args, params) if opens(row) else None

    while any(map(opens, applied_rows(function.graph))):
        function = rewritten(function, rule)  # an expansion may have operations with expansions
    return function


def applied_rows(graph: Graph) -> list[Primitive]:
    """Return the rows that a graph applies; its table may have others, which it did before."""
    return [
        graph.primitives[code - FIRST_ROW]
        for code in np.unique(graph.opcode).tolist()
        if code >= FIRST_ROW
    ]

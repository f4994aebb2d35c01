"""How large a function is: as a tree, as a graph, in operations. May import `function`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.required import require_function

__all__ = ["Counts", "count"]


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of a function; nodes that only move data are not counted.

    Attributes
    ----------
    tree : int
        Nodes when every shared subexpression is written out, exact however large.
    dag : int
        Distinct nodes: operations, inputs and constants.
    operations : int
        Distinct operations.
    """

    tree: int
    dag: int
    operations: int


def count(function: Function) -> Counts:
    """Count the nodes of a function without building its tree.

    A tree's size follows from its parts: ``tree(y) = 1 + Σ tree(aᵢ)``, one addition of exact
    integers per edge of the graph.

    Parameters
    ----------
    function : Function
        What is measured.

    Returns
    -------
    Counts
        The exact sizes.

    Examples
    --------
    >>> import difflab as dl
    >>> count(dl.parse("y = x*x; z = y*y; z*z"))
    Counts(tree=15, dag=4, operations=3)
    """
    require_function(function, "count")
    graph = function.graph
    used = np.zeros(len(graph), dtype=bool)
    used[graph.args] = True
    used[list(function.outputs)] = True
    counted = used & ~graph.structural_rows()
    return Counts(
        tree=_tree(function, counted.tolist()),
        dag=int(counted.sum()),
        operations=int((counted & (graph.opcode >= FIRST_ROW)).sum()),
    )


def _tree(function: Function, counted: list[bool]) -> int:
    """Add up the sizes of all outputs' trees; sizes are dropped after their last use."""
    graph = function.graph
    dying = graph.last_uses()
    dying[np.array(function.outputs)] = -1
    last = dying.tolist()
    sizes = [0] * len(graph)
    for node, (_, args) in enumerate(graph.rows()):
        size = 1 if counted[node] else 0
        for arg in args:
            size += sizes[arg]
        for arg in args:
            if last[arg] == node:
                sizes[arg] = 0
        sizes[node] = size
    return sum(sizes[node] for node in function.outputs)

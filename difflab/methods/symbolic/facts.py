"""Sizes of a derivative that SymPy's process reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of an expression, as a tree and after `cse`.

    Attributes
    ----------
    tree, dag : int
        Nodes: operations and leaves.
    tree_operations, operations : int
        Operations alone, as `sympy.count_ops` counts them.
    """

    tree: int
    dag: int
    tree_operations: int
    operations: int

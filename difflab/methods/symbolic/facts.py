"""What SymPy's process tells of a derivative."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Sizes", "SymbolicFacts"]


@dataclass(frozen=True)
class Sizes:
    """How large an expression is, written out and after `cse`.

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


@dataclass(frozen=True)
class SymbolicFacts:
    """What is known of a derivative once it is prepared."""

    seconds: float
    size: Sizes

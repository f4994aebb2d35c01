"""Sums over the steps of a loop whose terms are matrix products: one product after the loop.

The sum of L₁ᵀR₁, L₂ᵀR₂, … is LᵀR, with the rows of all Lₜ in L and those of all Rₜ in R.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from difflab.autodiff.control.residuals import WORTH_KEEPING
from difflab.graph.algebra import degrees, signs, unspread
from difflab.graph.ir import Graph, Shape
from difflab.graph.node import Node
from difflab.primitives import matmul, transpose


class Factor(NamedTuple):
    """A factor Lₜ or Rₜ: a node, and whether it has to be transposed; a vector is a single row."""

    node: int
    turned: bool

    def rows(self, stack: Node) -> Any:
        """Return the rows of all steps, given the node's values along a new first axis."""
        turned: Any = np.swapaxes(stack, 1, 2) if self.turned else stack
        return np.reshape(turned, (-1, turned.shape[-1]))


Pair = tuple[Factor, Factor]


def product_of(pair: Pair, left: Node, right: Node) -> Any:
    """Return the sum of LₜᵀRₜ over the steps, given the values of both nodes in all steps."""
    return pair[0].rows(left).T @ pair[1].rows(right)


def products_in(graph: Graph, node: int) -> list[Pair]:
    """Return products LᵀR that a node is the sum of; none if it is not, or little is saved.

    Keeping the factors of each step has to save `WORTH_KEEPING` operations for each number.
    """
    shape = graph.shape(node)
    if len(shape) != 2 or 2 * shape[0] * shape[1] < WORTH_KEEPING * sum(shape):
        return []
    args = graph.arguments(node)
    if signs(graph, node) == (1, 1):
        terms = [products_in(graph, arg) for arg in args]
        return [pair for term in terms for pair in term] if all(terms) else []
    if (factor := _factor(graph, node)).turned:
        return [(right, left) for left, right in products_in(graph, factor.node)]
    if graph.primitive(node) is matmul and all(len(graph.shape(arg)) == 2 for arg in args):
        left, right = (_factor(graph, arg) for arg in args)
        return [(left._replace(turned=not left.turned), right)]
    if degrees(graph, node) == (1, 1):
        for first, second in (args, args[::-1]):
            column = _vector(graph, first, (shape[0], 1))
            line = _vector(graph, second, (1, shape[1]))
            if column is not None and line is not None:
                return [(Factor(column, turned=False), Factor(line, turned=False))]
    return []


def _vector(graph: Graph, node: int, shape: Shape) -> int | None:
    """Return the vector that a matrix of one row or column consists of, before it is spread."""
    node = unspread(graph, node)
    own, row = graph.shape(node), graph.primitive(node)
    if own == shape and row is not None and row.in_order:
        (node,) = graph.arguments(node)
        return node if len(graph.shape(node)) == 1 else None
    return node if (1, *own) == shape else None


def _factor(graph: Graph, node: int) -> Factor:
    """Return a matrix, or the one that it is the transpose of."""
    if graph.primitive(node) is transpose and _turns(graph, node):
        return Factor(graph.arguments(node)[0], turned=True)
    return Factor(node, turned=False)


def _turns(graph: Graph, node: int) -> bool:
    """Whether the transpose of a matrix is not the matrix as it is."""
    return bool(graph.params(node)["axes"][0] == -1)

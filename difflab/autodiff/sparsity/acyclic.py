"""Acyclic colorings of symmetric matrices, whose entries follow by substitution.

The columns of two colors induce a forest. In each of its trees a leaf's row has one entry in the
columns of the other color, which can be read; subtracting it from its neighbor's row leaves a
smaller tree. So acyclic colorings need fewer sweeps than star colorings, whose trees are stars,
but the rounding errors of an entry reach those that are substituted after it.

Sources: T. F. Coleman and J.-Y. Cai, *The cyclic coloring problem and estimation of sparse Hessian
matrices* (1986); A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, *New acyclic and star
coloring algorithms with application to computing Hessians*, SIAM J. Sci. Comput. 29 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from difflab.autodiff.sparsity.coloring import Colors, color_count, lowest_free
from difflab.autodiff.sparsity.reach import Pattern

Indices = NDArray[np.int64]


def color_acyclic(pattern: Pattern) -> Colors:
    """Color a symmetric matrix so that no cycle of its graph has two colors only.

    Of two orders, the vertices' own and that of their degree, the one with fewer colors is kept.

    Parameters
    ----------
    pattern : csr_array of bool, (n, n)
        Symmetric.

    Returns
    -------
    (n,) array of int
        A color from 0 for each column.

    Examples
    --------
    >>> from scipy import sparse
    >>> band = sparse.diags_array([1, 1, 1], offsets=[-1, 0, 1], shape=(7, 7), dtype=bool)
    >>> color_acyclic(band.tocsr()).tolist()
    [0, 1, 0, 1, 0, 1, 0]
    """
    neighbors, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    largest_first = np.argsort(-np.diff(pattern.indptr), kind="stable").tolist()
    orders: list[Sequence[int]] = [range(pattern.shape[0]), largest_first]
    colorings = [_in_order(neighbors, starts, order) for order in orders]
    return np.array(min(colorings, key=color_count), np.int64)


def _in_order(neighbors: list[int], starts: list[int], order: Sequence[int]) -> list[int]:
    """Give each vertex the lowest color that closes no cycle of two colors.

    The vertices of two colors that are connected form a tree, with an element (w, c) in a forest of
    disjoint sets for each vertex w and other color c in it. A vertex with two neighbors in the
    tree of a color c must not have that color.
    """
    count = len(starts) - 1
    colors = [-1] * count
    beside: list[list[int]] = [[] for _ in range(count)]  # the colors among its neighbors
    parent: dict[tuple[int, int], tuple[int, int]] = {}

    def root(element: tuple[int, int]) -> tuple[int, int]:
        above = parent.setdefault(element, element)
        while above != element:
            parent[element] = above = parent[above]
            element, above = above, parent[above]
        return element

    for v in order:
        around = [w for w in neighbors[starts[v] : starts[v + 1]] if w != v and colors[w] >= 0]
        used = 0
        visited: set[tuple[int, tuple[int, int]]] = set()
        for w in around:
            used |= 1 << colors[w]
            for color in beside[w]:
                if not used >> color & 1:
                    tree = (colors[w], root((w, color)))
                    if tree in visited:
                        used |= 1 << color
                    visited.add(tree)
        color = colors[v] = lowest_free(used)
        for w in around:
            if color not in beside[w]:
                beside[w].append(color)
            if colors[w] not in beside[v]:
                beside[v].append(colors[w])
            parent[root((w, color))] = root((v, colors[w]))
    return colors


@dataclass(frozen=True, eq=False)
class Substitution:
    """How entries follow from products with the sums of unit vectors of each color.

    Attributes
    ----------
    reads : (unknowns,) array of int
        The index in the flattened products of each unknown's equation.
    parents : (unknowns,) array of int
        The unknown in whose equation this one occurs too; −1 if there is none.
    levels : list of arrays of int
        The unknowns that are subtracted from their parents' equations, in this order.
    unknowns : (nonzeros,) array of int
        The unknown that each entry of the pattern is: two for each off-diagonal one.
    """

    reads: Indices
    parents: Indices
    levels: tuple[Indices, ...]
    unknowns: Indices

    def entries(self, products: NDArray[np.inexact]) -> NDArray[np.inexact]:
        """Return the entries of the matrix, in the order of the pattern."""
        values = products[self.reads]
        for level in self.levels:
            np.subtract.at(values, self.parents[level], values[level])
        entries: NDArray[np.inexact] = values[self.unknowns]
        return entries


def substitution(pattern: Pattern, colors: Colors) -> Substitution:
    """Return how the entries of a symmetric matrix follow from an acyclic coloring.

    A row i and a color c with entries there are one equation, which is a vertex of a forest; an
    entry (i, j) is an edge, between the equations of row i and of row j. Each equation determines
    the entry that leads to the root of its tree.

    Examples
    --------
    >>> from scipy import sparse
    >>> band = sparse.diags_array([1, 1, 1], offsets=[-1, 0, 1], shape=(4, 4), dtype=bool)
    >>> rule = substitution(band.tocsr(), np.array([0, 1, 0, 1]))
    >>> products = np.array([[1.0, 2 + 4, 5, 6], [2, 3, 4 + 6, 7]])  # of a symmetric matrix
    >>> rule.entries(products.ravel()).tolist()
    [1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0, 6.0, 7.0]
    """
    n = pattern.shape[0]
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    columns = pattern.indices.astype(np.int64)
    equations, own = np.unique(colors[columns] * n + rows, return_inverse=True)
    other = np.searchsorted(equations, colors[rows] * n + columns)
    depth, above = _rooted(len(equations), own, other)
    # A root's equation is left over, unless it is that of a diagonal entry, alone in it.
    deeper = np.where(depth[own] > depth[other], own, other)
    order = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth)) if len(depth) else np.empty(0, np.int64)
    levels = np.split(order, ends[:-1]) if len(depth) else []
    return Substitution(equations, above, tuple(levels[:1:-1]), deeper)


def _rooted(count: int, own: Indices, other: Indices) -> tuple[Indices, Indices]:
    """Return the depth and the parent of each vertex of a forest; −1 is a root's parent.

    A tree's root is the vertex with most edges.
    """
    edges = (np.ones(len(own), np.int8), (own, other))
    forest = sparse.csr_array(edges, shape=(count, count))
    _, tree = csgraph.connected_components(forest, directed=False)
    degree = np.bincount(own, minlength=count)
    by_degree = np.lexsort((-degree, tree))
    roots = by_degree[np.diff(tree[by_degree], prepend=-1) > 0]
    # One more vertex above all roots makes the forest a tree.
    tails, heads = np.concatenate([own, np.full(len(roots), count)]), np.concatenate([other, roots])
    whole = sparse.csr_array((np.ones(len(tails), np.int8), (tails, heads)), shape=(count + 1,) * 2)
    distance, above = csgraph.dijkstra(
        whole, indices=[count], unweighted=True, return_predecessors=True
    )
    parents = np.where(above[0, :count] == count, -1, above[0, :count]).astype(np.int64)
    return distance[0, :count].astype(np.int64) - 1, parents

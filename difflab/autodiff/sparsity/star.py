"""Greedy star colorings of graphs: no path of four vertices has two colors only.

The colors forbidden for a vertex are the bits of a Python integer. A vertex is looked at from its
neighbors that come later only, so that every edge is visited twice in all.

Source: A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, *New acyclic and star coloring
algorithms with application to computing Hessians*, SIAM J. Sci. Comput. 29 (2007).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.sparsity.reach import Pattern

Colors = NDArray[np.int64]

NEUTRAL = 1
"""The bit of vertices without a color: several neighbors have it, and no vertex can get it."""


def lowest_free(used: int) -> int:
    """Return the lowest bit that is not set."""
    return (~used & (used + 1)).bit_length() - 1


def color_star(pattern: Pattern, order: Colors, *, bipartite: bool = False) -> Colors:
    """Give each vertex the lowest color that leaves no path of four vertices with two colors.

    An edge v–w can be read where v is w's only neighbor of its color, or w is v's. So a new
    color must not become w's second neighbor of that color where w is not v's only neighbor
    of *its* color; nor where w is one of several of its color at that first neighbor.

    Parameters
    ----------
    pattern : csr_array of bool, (n, n)
        Symmetric: the edges; the diagonal is ignored.
    order : array of int
        The vertices in the order in which they are colored. Those that are not in it get no
        color: all their neighbors must get different ones.
    bipartite : bool
        Whether each side of the graph, which is bipartite, has colors of its own.

    Returns
    -------
    (n,) array of int
        A color from 0 for each vertex in `order`, −1 for the others.

    Examples
    --------
    >>> from scipy import sparse
    >>> path = sparse.diags_array([1, 1], offsets=[-1, 1], shape=(6, 6), dtype=bool)
    >>> color_star(path.tocsr(), np.arange(6)).tolist()
    [0, 1, 0, 2, 0, 1]
    """
    n = pattern.shape[0]
    neighbors, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    ranks = np.full(n, -1)
    ranks[order] = np.arange(len(order))
    earlier, begins = _earlier(pattern, ranks)
    own = np.where(ranks < 0, NEUTRAL, 0).tolist()  # the bit of a vertex's color
    once = [0] * n  # colors of its neighbors
    twice = [0] * n  # colors of two or more of them
    # Of its later neighbors: its color, and those of neighbors where it is one of several.
    forbidden = [0] * n
    for v in order.tolist():
        around = earlier[begins[v] : begins[v + 1]]
        used, seen, several = NEUTRAL, 0, NEUTRAL
        for w in around:
            used |= forbidden[w]
            several |= seen & own[w]
            seen |= own[w]
        shared = seen & several
        if shared:
            for w in around:
                if own[w] & shared:
                    used |= once[w]
        bit = own[v] = ~used & (used + 1)
        once[v], twice[v], forbidden[v] = seen, several, 0 if bipartite else bit
        for w in around:
            if own[w] & shared:
                forbidden[w] |= bit
            if not once[w] & bit:
                once[w] |= bit
                continue
            forbidden[v] |= own[w]
            if not twice[w] & bit:
                twice[w] |= bit
                for sibling in neighbors[starts[w] : starts[w + 1]]:
                    if own[sibling] == bit:
                        forbidden[sibling] |= own[w]
    return np.fromiter((bit.bit_length() - 2 for bit in own), np.int64, n)


def _earlier(pattern: Pattern, ranks: Colors) -> tuple[list[int], list[int]]:
    """Return the neighbors of each vertex that have lower ranks, and where each vertex's begin."""
    rows = np.repeat(np.arange(len(ranks)), np.diff(pattern.indptr))
    before = ranks[pattern.indices] < ranks[rows]
    counts = np.bincount(rows[before], minlength=len(ranks))
    return pattern.indices[before].tolist(), [0, *np.cumsum(counts).tolist()]

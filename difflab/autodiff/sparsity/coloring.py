"""Colors for the columns of a sparse matrix: columns of one color share a direction.

Columns without a common row can be separated in the product with the sum of their unit vectors.
A symmetric matrix needs fewer colors, since an entry may be read from either of its two positions:
a star coloring, in which no path of four vertices has two colors only.

A periodic coloring, column j modulo k, is tried first: banded matrices need no search. The
others are greedy. The colors forbidden for a vertex are the bits of a Python integer, so that the
work is one operation for each entry of the matrix. A vertex is looked at from its neighbors that
come later only, so that every edge is visited twice in all.

Sources: A. R. Curtis, M. J. D. Powell and J. K. Reid, *On the estimation of sparse Jacobian
matrices* (1974); T. F. Coleman and J. J. Moré, *Estimation of sparse Hessian matrices and graph
coloring problems* (1984); A. H. Gebremedhin, F. Manne and A. Pothen, *What color is your
Jacobian?*, SIAM Review 47 (2005); A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, *New
acyclic and star coloring algorithms with application to computing Hessians*, SIAM J. Sci. Comput.
29 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.sparsity.reach import Marks, Pattern

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


SEARCHED = 100_000
"""Vertices beyond which no second star coloring is searched for fewer colors."""


def color_columns(pattern: Pattern) -> Colors:
    """Color columns so that no two of one color have an entry in the same row.

    That is a distance-2 coloring of the bipartite graph of rows and columns. Columns are colored
    in their own order, which is the best for banded matrices; where that needs more colors than
    the fullest row has entries, also in order of their degree, and the fewer colors are kept.

    Parameters
    ----------
    pattern : csr_array of bool, (m, n)

    Returns
    -------
    (n,) array of int
        A color from 0 for each column.

    Examples
    --------
    >>> from scipy import sparse
    >>> band = sparse.diags_array([1, 1, 1], offsets=[-1, 0, 1], shape=(7, 7), dtype=bool)
    >>> color_columns(band.tocsr()).tolist()
    [0, 1, 2, 0, 1, 2, 0]
    """
    least = fullest(pattern)
    alternating = np.arange(pattern.shape[1]) % max(least, 1)
    if least * pattern.shape[0] <= 4 * pattern.nnz and readable(pattern, alternating).all():
        return alternating
    columns = pattern.tocsc()
    degrees = np.diff(columns.indptr)
    rows, starts = columns.indices.tolist(), columns.indptr.tolist()
    colors = _columns_in_order(rows, starts, pattern.shape[0], range(pattern.shape[1]))
    if color_count(colors) > least:
        largest_first = np.argsort(-degrees, kind="stable").tolist()
        again = _columns_in_order(rows, starts, pattern.shape[0], largest_first)
        colors = min(colors, again, key=color_count)
    return np.array(colors, np.int64)


def color_symmetric(pattern: Pattern) -> Colors:
    """Color a symmetric matrix so that each entry can be read from one of its two positions.

    That is a star coloring of its graph: neighbors differ, and no path of four vertices has
    two colors only. Of two orders, the vertices' own and that of their degree, the one with
    fewer colors is kept.

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
    >>> arrow = sparse.eye_array(5, dtype=bool, format="lil")
    >>> arrow[0, :] = arrow[:, 0] = True
    >>> color_symmetric(arrow.tocsr()).tolist()
    [0, 1, 1, 1, 1]
    """
    least = _fewest_star(pattern)
    periodic = _periodic_star(pattern, least)
    count = pattern.shape[0] if periodic is None else color_count(periodic)
    if periodic is not None and (count == least or pattern.shape[0] > SEARCHED):
        return periodic
    colors = color_star(pattern, np.arange(pattern.shape[0]))
    if color_count(colors) > least and pattern.shape[0] <= SEARCHED:
        largest_first = np.argsort(-np.diff(pattern.indptr), kind="stable")
        colors = min(colors, color_star(pattern, largest_first), key=color_count)
    if periodic is not None and count < color_count(colors):
        return periodic
    return colors


def readable(pattern: Pattern, colors: Colors) -> Marks:
    """Return for each entry whether its column has a color that no other column of its row has."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    count = int(colors.max(initial=-1)) + 2
    groups = rows * count + colors[pattern.indices] + 1
    if pattern.shape[0] * count <= 4 * pattern.nnz:
        alone = np.bincount(groups)[groups] == 1
    else:
        _, group, times = np.unique(groups, return_inverse=True, return_counts=True)
        alone = times[group] == 1
    marks: Marks = alone & (colors[pattern.indices] >= 0)
    return marks


def fullest(pattern: Pattern) -> int:
    """Return the number of entries of the fullest row."""
    return int(np.diff(pattern.indptr).max(initial=0))


def color_count(colors: Sequence[int] | Colors) -> int:
    """Return the number of colors, which are consecutive from 0."""
    return int(np.max(colors, initial=-1)) + 1


def _fewest_star(pattern: Pattern) -> int:
    """Return a lower bound of the colors of a star coloring.

    Two colors induce a forest, so that k colors leave at most (k − 1)(n − k/2) edges; and two
    colors suffice only if each edge has an end without other neighbors.
    """
    n = pattern.shape[0]
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    beside = rows != pattern.indices
    degrees = np.bincount(rows[beside], minlength=n)
    edges = int(beside.sum()) // 2
    if edges == 0:
        return min(n, 1)
    inner = np.minimum(degrees[rows[beside]], degrees[pattern.indices[beside]]).max() > 1
    least = 3 if inner else 2
    while edges > (least - 1) * n - least * (least - 1) // 2:
        least += 1
    return least


def _periodic_star(pattern: Pattern, least: int) -> Colors | None:
    """Return the star coloring j modulo k of fewest colors k, if there is one.

    A band of width k can be colored so, with as many colors as its fullest row has entries.
    """
    n = pattern.shape[0]
    most = min(fullest(pattern), 4 * pattern.nnz // max(n, 1))
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    columns = pattern.indices
    beside = rows != columns
    for count in range(least, most + 1):
        colors = np.arange(n) % count
        if (colors[rows[beside]] == colors[columns[beside]]).any():
            continue
        times = np.bincount(rows * count + colors[columns], minlength=n * count)
        alone = times[rows * count + colors[columns]] == 1
        if (alone | (times[columns * count + colors[rows]] == 1)).all():
            return colors
    return None


def _columns_in_order(
    rows: list[int], starts: list[int], m: int, order: Sequence[int]
) -> list[int]:
    """Give each column the lowest color that no column in its rows has."""
    colors = [0] * (len(starts) - 1)
    row_colors = [0] * m
    for column in order:
        own = rows[starts[column] : starts[column + 1]]
        used = 0
        for row in own:
            used |= row_colors[row]
        colors[column] = lowest_free(used)
        bit = 1 << colors[column]
        for row in own:
            row_colors[row] |= bit
    return colors

"""Colors for rows and columns at once: dense rows are pulled, dense columns pushed.

An arrowhead needs n directions by columns alone and by rows alone, but three by both: one reverse
sweep for its dense row, one forward sweep for its dense column, and one for the diagonal.

Rows and columns are the two sides of a bipartite graph whose edges are the entries. Every entry
is read from the sweep of the color at one of its ends; at its other end, no second entry may have
that color. That is a star bicoloring. The rows with a color, and the columns with one, are chosen
first, by their count of entries; then both are colored greedily.

Sources: T. F. Coleman and A. Verma, *The efficient computation of sparse Jacobian matrices using
automatic differentiation*, SIAM J. Sci. Comput. 19 (1998); A. H. Gebremedhin, F. Manne and
A. Pothen, *What color is your Jacobian?*, SIAM Review 47 (2005), §6.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from difflab.autodiff.sparsity.coloring import Colors, color_star, fullest
from difflab.autodiff.sparsity.reach import Pattern, csr_pattern

TRIALS = 12
"""Numbers of entries from which a row or column is tried as dense."""


def color_both(pattern: Pattern) -> tuple[Colors, Colors]:
    """Color rows and columns so that each entry is alone in the sweep of one of its colors.

    Parameters
    ----------
    pattern : csr_array of bool, (m, n)

    Returns
    -------
    columns : (n,) array of int
        A color from 0 for each column that is pushed forward, −1 for the others.
    rows : (m,) array of int
        A color from 0 for each row that is pulled back, −1 for the others.

    Examples
    --------
    >>> from scipy import sparse
    >>> arrow = sparse.eye_array(5, dtype=bool, format="lil")
    >>> arrow[0, :] = arrow[:, 0] = True
    >>> columns, rows = color_both(arrow.tocsr())
    >>> columns.tolist(), rows.tolist()
    ([0, 1, 1, 1, 1], [0, -1, -1, -1, -1])
    """
    turned = sparse.csr_array(pattern.T)
    by_rows, by_columns = _densest(pattern), _densest(turned)
    if by_rows[0] <= by_columns[0]:
        return _colored(pattern, by_rows[1])
    rows, columns = _colored(turned, by_columns[1])
    return columns, rows


def fewest_both(pattern: Pattern, turned: Pattern) -> int:
    """Return an estimate of the fewest directions; `turned` is the transposed pattern."""
    return min(_densest(pattern)[0], _densest(turned)[0])


def _densest(pattern: Pattern) -> tuple[int, int]:
    """Return the fewest directions that any choice of dense rows needs, and from how many entries.

    The other rows need a color for each entry of the fullest one, and the dense rows one for each
    entry of the fullest column among them.
    """
    counts = np.diff(pattern.indptr)
    in_row = np.repeat(counts, counts)
    best = (fullest(pattern), fullest(pattern))
    distinct = np.unique(counts)
    picked = np.unique(np.linspace(0, len(distinct) - 1, TRIALS).astype(np.int64))
    for most in distinct[picked].tolist() if len(distinct) else []:
        inside = np.bincount(pattern.indices[in_row > most]).max(initial=0)
        best = min(best, (most + int(inside), most))
    return best


def _colored(pattern: Pattern, most: int) -> tuple[Colors, Colors]:
    """Return the colors of columns and of rows, where rows with more entries than `most` are dense.

    Columns that have entries in dense rows only get no color.
    """
    n = pattern.shape[1]
    counts = np.diff(pattern.indptr)
    dense = np.flatnonzero(counts > most)
    needed = np.unique(pattern.indices[np.repeat(counts <= most, counts)])
    rows = n + np.repeat(np.arange(len(counts)), counts)
    graph = csr_pattern(
        np.concatenate([pattern.indices, rows]),
        np.concatenate([rows, pattern.indices]),
        (n + len(counts), n + len(counts)),
    )
    colors = color_star(graph, np.concatenate([needed, n + dense]), bipartite=True)
    return colors[:n], colors[n:]

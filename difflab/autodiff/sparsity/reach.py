"""Which sources each target of a directed acyclic graph depends on, as a sparse matrix.

First the graph is contracted: a vertex with one predecessor has the same dependences
as that one, and a vertex with one successor affects only that one. Of a formula's graph
that leaves little more than edges from inputs to outputs, however long its sums are. The rest is
processed level by level, so that a set of sources is stored for those vertices only.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from difflab.errors import UnsupportedError

Ids = NDArray[np.int64]
Marks = NDArray[np.bool_]
# A string: the class can be subscripted from SciPy 1.16 on.
Pattern: TypeAlias = "sparse.csr_array[np.bool_]"

ENTRIES_LIMIT = 200_000_000
"""Maximum number of entries of a pattern; beyond it, storage would take many gigabytes."""
WORTHWHILE = 0.9
"""Contraction is repeated while the last one left less than this share of the edges."""


def csr_pattern(rows: Ids, columns: Ids, shape: tuple[int, int]) -> Pattern:
    """Return the matrix with entries at these indices, each once and in order."""
    indices = (rows, columns)
    matrix = sparse.csr_array((np.ones(len(rows), np.bool_), indices), shape=shape)
    matrix.sum_duplicates()
    return matrix


def reached(count: int, tails: Ids, heads: Ids, sources: Ids, targets: Ids) -> Pattern:
    """Return for each target which of the sources it can be reached from.

    Parameters
    ----------
    count : int
        The number of vertices.
    tails, heads : arrays
        The edges.
    sources, targets : arrays
        Vertices; a target may occur twice, a source has no predecessor.

    Returns
    -------
    csr_array of bool, (targets, sources)

    Raises
    ------
    UnsupportedError
        The matrix, or one on the way to it, has too many entries.

    Examples
    --------
    >>> reached(4, np.array([0, 1, 2]), np.array([2, 2, 3]), [0, 1], [3]).toarray()
    array([[ True,  True]])
    """
    sources, targets = np.asarray(sources), np.asarray(targets)
    direct = _direct(count, tails, heads, sources, targets)
    if direct is not None:
        return direct
    if len(targets) < len(sources):
        # The transposed problem, in which the sets are smaller.
        return _forward(count, heads, tails, targets, sources).T.tocsr()
    return _forward(count, tails, heads, sources, targets)


def _direct(count: int, tails: Ids, heads: Ids, sources: Ids, targets: Ids) -> Pattern | None:
    """Return the pattern if edges lead from sources to other, different targets, else None."""
    column, row = np.full((2, count), -1)
    column[sources] = np.arange(len(sources))
    row[targets] = np.arange(len(targets))
    columns, rows = column[tails], row[heads]
    passed_on = (column[targets] >= 0) | (row[targets] != np.arange(len(targets)))
    if (columns < 0).any() or (rows < 0).any() or passed_on.any():
        return None
    return csr_pattern(rows, columns, (len(targets), len(sources)))


def _forward(count: int, tails: Ids, heads: Ids, sources: Ids, targets: Ids) -> Pattern:
    """Propagate sets of sources along the edges; sources and targets get vertices of their own."""
    n, m = len(sources), len(targets)
    first, last = count + np.arange(n), count + n + np.arange(m)
    tails = np.concatenate([first, tails, targets])
    heads = np.concatenate([sources, heads, last])
    count += n + m
    is_source, is_target = np.zeros((2, count), np.bool_)
    is_source[first], is_target[last] = True, True
    tails, heads = _contracted(tails, heads, is_source, is_target)
    number = np.zeros(count, np.int64)
    between = np.zeros(count, np.bool_)
    between[tails], between[heads] = True, True
    inner = np.flatnonzero(between & ~is_source & ~is_target)
    number[first] = np.arange(n)
    number[inner] = n + np.arange(len(inner))
    number[last] = n + len(inner) + np.arange(m)
    size = n + len(inner) + m
    into = csr_pattern(number[heads], number[tails], (size, size))
    return _levelled(into, n, m)


def _contracted(tails: Ids, heads: Ids, is_source: Marks, is_target: Marks) -> tuple[Ids, Ids]:
    """Remove the vertices without a path to a target, or with one predecessor or successor."""
    before = math.inf
    while len(tails) < WORTHWHILE * before:
        before = len(tails)
        fed, used = is_source.copy(), is_target.copy()
        fed[heads], used[tails] = True, True
        kept = fed[tails] & used[heads]
        tails, heads = _distinct(len(fed), tails[kept], heads[kept])
        heads, tails = _merged(heads, tails, is_target)
        tails, heads = _merged(tails, heads, is_source)
    return tails, heads


def _merged(near: Ids, far: Ids, fixed: Marks) -> tuple[Ids, Ids]:
    """Replace each vertex that is the near end of one edge by the vertex at its far end."""
    count = len(fixed)
    lone = (np.bincount(near, minlength=count) == 1) & ~fixed
    gone = lone[near]
    root = np.arange(count)
    root[near[gone]] = far[gone]
    while True:
        further = root[root]
        if np.array_equal(further, root):
            break
        root = further
    return _distinct(count, near[~gone], root[far[~gone]])


def _distinct(count: int, tails: Ids, heads: Ids) -> tuple[Ids, Ids]:
    """Return the edges, each once."""
    matrix = csr_pattern(tails, heads, (count, count))
    return np.repeat(np.arange(count), np.diff(matrix.indptr)), matrix.indices.astype(np.int64)


def _levelled(into: Pattern, n: int, m: int) -> Pattern:
    """Return the sets of the last `m` vertices, where the first `n` are the sources."""
    size = into.shape[0]
    out_of = into.T.tocsr()
    waiting = np.diff(into.indptr)
    starts, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
    starts[:n], lengths[:n] = np.arange(n), 1
    buffer, filled = np.arange(n), n
    ready = np.flatnonzero(waiting == 0)
    while len(ready):
        followers, _ = _segments(out_of.indptr[ready], np.diff(out_of.indptr)[ready])
        vertices, times = np.unique(out_of.indices[followers], return_counts=True)
        waiting[vertices] -= times
        ready = vertices[waiting[vertices] == 0]
        pieces, owners = _segments(into.indptr[ready], np.diff(into.indptr)[ready])
        before = into.indices[pieces]
        _check(filled + int(lengths[before].sum()))
        indices, piece = _segments(starts[before], lengths[before])
        keys = np.sort(owners[piece] * n + buffer[indices])
        keys = keys[np.diff(keys, prepend=-1) > 0]
        lengths[ready] = np.bincount(keys // max(n, 1), minlength=len(ready))
        starts[ready] = filled + np.cumsum(lengths[ready]) - lengths[ready]
        buffer = _extended(buffer, filled, keys % max(n, 1))
        filled += len(keys)
    indices, _ = _segments(starts[size - m :], lengths[size - m :])
    indptr = np.concatenate([[0], np.cumsum(lengths[size - m :])])
    data = np.ones(len(indices), np.bool_)
    return sparse.csr_array((data, buffer[indices], indptr), shape=(m, n))


def _check(entries: int) -> None:
    if entries > ENTRIES_LIMIT:
        raise UnsupportedError(
            f"the derivative is not sparse: its pattern has up to {entries:,} entries, more than "
            f"{ENTRIES_LIMIT:,}; products by jvp, vjp or hvp need no matrix"
        )


def _segments(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> tuple[Ids, Ids]:
    """Return the indices of several segments of an array, and for each index its segment."""
    lengths = lengths.astype(np.int64)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    shifts = starts - (np.cumsum(lengths) - lengths)
    return np.arange(len(owners)) + shifts[owners], owners


def _extended(buffer: Ids, filled: int, more: Ids) -> Ids:
    """Return `buffer` with `more` from index `filled` on; its capacity doubles as it grows."""
    if filled + len(more) > len(buffer):
        larger = np.empty(2 * (filled + len(more)), np.int64)
        larger[:filled] = buffer[:filled]
        buffer = larger
    buffer[filled : filled + len(more)] = more
    return buffer

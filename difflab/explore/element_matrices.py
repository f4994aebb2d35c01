"""Small matrices, element by element: inverses by minors, and factorisations.

The values are NumPy object arrays of nodes of a graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.explore.object_arrays import boxed

__all__ = ["LARGEST_MATRIX", "MATRICES"]

LARGEST_MATRIX = 4
"""Most rows of a matrix that is written out; by minors, more of them lose digits."""

Array = Any
Axes = tuple[int, ...]


# --- by minors --------------------------------------------------------------------------------


class _Minors:
    """The minors of one matrix, each computed once by expansion along its first row."""

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.size = matrix, len(matrix)
        self.all = tuple(range(self.size))
        self.found: dict[tuple[Axes, Axes], Any] = {}

    def determinant(self) -> Any:
        """Return det A."""
        return self.minor(self.all, self.all)

    def cofactors(self) -> Array:
        """Return det(A) A⁻ᵀ."""
        found = np.empty((self.size, self.size), dtype=object)
        choices = list(combinations(self.all, self.size - 1))[::-1]  # the k-th is without k
        for i, lines in enumerate(choices):
            for j, columns in enumerate(choices):
                minor = self.minor(lines, columns)
                found[i, j] = minor if (i + j) % 2 == 0 else -minor
        return found

    def minor(self, lines: Axes, columns: Axes) -> Any:
        """Return the determinant of some rows and columns, from those with one row less."""
        if not lines:
            return 1.0
        if len(lines) == 1:
            return self.matrix[lines[0], columns[0]]
        if (lines, columns) not in self.found:
            total = None
            for place, column in enumerate(columns):
                rest = self.minor(lines[1:], columns[:place] + columns[place + 1 :])
                term = self.matrix[lines[0], column] * rest
                if total is None:
                    total = term
                else:
                    total = total - term if place % 2 else total + term
            self.found[lines, columns] = total
        return self.found[lines, columns]


def _inverse(a: Array) -> Array:
    minors = _Minors(a)
    return _divided(minors.cofactors().T, minors.determinant())


def _solution(a: Array, b: Array) -> Array:
    """Return A⁻¹b by Cramer's rule."""
    minors = _Minors(a)
    return _divided(minors.cofactors().T @ b, minors.determinant())


def _divided(array: Array, number: Any) -> Array:
    """Divide elements by a node, which NumPy would not take for an element."""
    return np.frompyfunc(lambda element: element / number, 1, 1)(array)


def _slogdet(a: Array) -> Array:
    value = _Minors(a).determinant()
    return boxed([rows.sign(value), rows.log(rows.absolute(value))], (2,))


# --- factorisations ---------------------------------------------------------------------------


def _cholesky(a: Array) -> Array:
    """Return the lower triangle L of A = L Lᵀ, row by row."""
    even, size = (a + a.T) * 0.5, len(a)
    found = np.full((size, size), 0.0, dtype=object)
    for i, j in zip(*np.tril_indices(size), strict=True):
        rest = even[i, j]
        for k in range(j):
            rest = rest - found[i, k] * found[j, k]
        found[i, j] = rows.sqrt(rest) if i == j else rest / found[j, j]
    return found


def _qr(a: Array) -> Array:
    """Return Q and R of A = Q R below each other, by the Gram–Schmidt process.

    Each column of Q and row of R has the sign that LAPACK gives it, a constant.
    """
    m, n = a.shape
    q, r = a.copy(), np.full((n, n), 0.0, dtype=object)
    signs = _reflected(np.frompyfunc(rows.stop_gradient, 1, 1)(a))
    for k in range(n):
        for j in range(k):
            r[j, k] = _total(q[i, j] * q[i, k] for i in range(m))
            for i in range(m):
                q[i, k] = q[i, k] - r[j, k] * q[i, j]
        r[k, k] = signs[k] * _norm(q[:, k])
        for i in range(m):
            q[i, k] = q[i, k] / r[k, k]
    return np.concatenate([q, r])


def _reflected(a: Array) -> list[Any]:
    """Return the signs of the diagonal of R, by Householder reflections.

    A reflection of a column x with x₁ > 0 gives a negative element, unless x is zero below x₁.
    """
    signs: list[Any] = []
    for k in range(a.shape[1]):
        head, *rest = a[k:, k].tolist()
        if not rest:
            signs.append(rows.where(rows.less(head, 0.0), -1.0, 1.0))
            continue
        done = rows.equal(_norm(rest), 0.0)
        signs.append(rows.where(rows.equal(rows.less(head, 0.0), done), -1.0, 1.0))
        size = signs[k] * _norm([head, *rest])
        part = rows.where(done, 0.0, 1.0 / (head - size))
        v = [1.0, *(x * part for x in rest)]
        weight = rows.where(done, 0.0, (size - head) / size)
        for j in range(k + 1, a.shape[1]):
            moved = weight * _total(x * a[k + i, j] for i, x in enumerate(v))
            for i, x in enumerate(v):
                a[k + i, j] = a[k + i, j] - x * moved
    return signs


def _total(terms: Iterable[Any]) -> Any:
    return reduce(operator.add, terms)


def _norm(elements: Iterable[Any]) -> Any:
    return reduce(rows.hypot, elements, 0.0)


# --- the forms --------------------------------------------------------------------------------


def _by_matrix(row: Primitive, compute: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function of stacks of matrices, from one of a single matrix."""

    def computed(a: Array, *others: Array, **params: Any) -> Array:
        if max(a.shape[-2:]) > LARGEST_MATRIX:
            raise UnsupportedError(
                f"'{row.name}' is written out for up to {LARGEST_MATRIX} rows,"
                f" not {max(a.shape[-2:])}"
            )
        lead = a.shape[:-2]
        parts = [compute(a[at], *(b[at] for b in others)) for at in np.ndindex(lead)]
        shape = np.shape(parts[0])
        found = np.empty((len(parts), *shape), dtype=object)
        for place, part in enumerate(parts):
            found[place] = part
        return found.reshape(lead + shape)

    return computed


MATRICES: dict[Primitive, Callable[..., Array]] = {
    row: _by_matrix(row, compute)
    for row, compute in (
        (rows.det, lambda a: _Minors(a).determinant()),
        (rows.logdet, lambda a: rows.log(_Minors(a).determinant())),
        (rows.slogdet, _slogdet),
        (rows.cofactor, lambda a: _Minors(a).cofactors()),
        (rows.inv, _inverse),
        (rows.solve, _solution),
        (rows.cholesky, _cholesky),
        (rows.qr, _qr),
    )
}
"""The forms, as functions of arrays with the parameters of the rows."""

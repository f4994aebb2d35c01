"""Reductions, Fourier transforms and small matrices, element by element.

The values are NumPy object arrays of nodes of a graph. Operations whose order depends on the
values, such as sorting and factorisations with pivots, have no such form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import combinations
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.node import Node
from difflab.primitives.fourier_sums import complex_form, inverse_form, real_form

__all__ = ["FORMS", "LARGEST_MATRIX"]

LARGEST_MATRIX = 4
"""Most rows of a matrix that is expanded by minors; more of them lose digits by cancellation."""

Array = Any
Axes = tuple[int, ...]


# --- reductions -------------------------------------------------------------------------------


def _by_lines(compute: Callable[[list[Any]], Any]) -> Callable[..., Array]:
    """Return a reduction along axes, from a function of the elements of one line."""

    def reduced(x: Array, *, axes: Axes, rank: int) -> Array:
        moved = np.moveaxis(x, axes, range(-len(axes), 0))
        kept = moved.shape[: x.ndim - len(axes)]
        found = np.empty(kept, dtype=object)
        for place in np.ndindex(kept):
            found[place] = compute(moved[place].ravel().tolist())
        return found

    return reduced


def _folded(row: Primitive) -> Callable[..., Array]:
    """Return the reduction by an operation of two numbers, from the first element to the last."""
    return _by_lines(partial(reduce, row))


def _norm(elements: list[Any]) -> Any:
    """‖x‖ by hypot, whose squares do not overflow and whose derivative at the origin is 0."""
    first, *others = elements
    return reduce(rows.hypot, others, first) if others else rows.absolute(first)


def _exponentials(x: Array, axes: Axes, rank: int) -> tuple[Array, Array, Array]:
    """Return x − m with the maximum m along the axes, its exponentials, and their sums.

    The results do not depend on m, so that no derivative is propagated through it.
    """
    top = np.expand_dims(FORMS[rows.max_](x, axes=axes, rank=rank), axes)
    shifted = x - np.frompyfunc(rows.stop_gradient, 1, 1)(top)
    parts = np.frompyfunc(rows.exp, 1, 1)(shifted)
    return shifted, parts, np.sum(parts, axis=axes, keepdims=True)


def _softmax(x: Array, *, axes: Axes, rank: int) -> Array:
    _, parts, total = _exponentials(x, axes, rank)
    return parts / total


def _log_softmax(x: Array, *, axes: Axes, rank: int) -> Array:
    shifted, _, total = _exponentials(x, axes, rank)
    return shifted - np.frompyfunc(rows.log, 1, 1)(total)


# --- small matrices ---------------------------------------------------------------------------


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


def _by_matrix(row: Primitive, compute: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function of stacks of matrices, from one of the minors of a single matrix."""

    def computed(a: Array, *others: Array, **params: Any) -> Array:
        if a.shape[-1] > LARGEST_MATRIX:
            raise UnsupportedError(
                f"'{row.name}' is expanded by minors for up to {LARGEST_MATRIX} rows,"
                f" not {a.shape[-1]}"
            )
        lead = a.shape[:-2]
        parts = [compute(_Minors(a[at]), *(b[at] for b in others)) for at in np.ndindex(lead)]
        shape = np.shape(parts[0])
        found = np.empty((len(parts), *shape), dtype=object)
        for place, part in enumerate(parts):
            found[place] = part
        return found.reshape(lead + shape)

    return computed


def _inverse(minors: _Minors) -> Array:
    return _divided(minors.cofactors().T, minors.determinant())


def _solution(minors: _Minors, b: Array) -> Array:
    """Return A⁻¹b by Cramer's rule."""
    return _divided(minors.cofactors().T @ b, minors.determinant())


def _divided(array: Array, number: Any) -> Array:
    """Divide elements by a node, which NumPy would not take for an element."""
    return np.frompyfunc(lambda element: element / number, 1, 1)(array)


# --- Fourier transforms -----------------------------------------------------------------------


def _transform(form: Callable[..., Array]) -> Callable[..., Array]:
    """Return a transform without the products by 0 and 1 of its angles."""

    def transformed(x: Array, **params: Any) -> Array:
        builders = [element.builder for element in x.flat if isinstance(element, Node)]
        for builder in builders[:1]:
            builder.simplify = True
        try:
            return form(_angle, x, **params)
        finally:
            for builder in builders[:1]:
                builder.simplify = False

    return transformed


def _angle(k: int, n: int) -> tuple[float, float]:
    """Return cos 2πk/n and sin 2πk/n, exact at quarters of a turn."""
    import mpmath

    with mpmath.workdps(30):
        turn = mpmath.mpf(2 * k) / n
        return float(mpmath.cospi(turn)), float(mpmath.sinpi(turn))


# --- the forms --------------------------------------------------------------------------------


FORMS: dict[Primitive, Callable[..., Array]] = {
    rows.max_: _folded(rows.maximum),
    rows.min_: _folded(rows.minimum),
    rows.norm: _by_lines(_norm),
    rows.logsumexp: _folded(rows.logaddexp),
    rows.softmax: _softmax,
    rows.log_softmax: _log_softmax,
    rows.fft: _transform(complex_form),
    rows.rfft: _transform(real_form),
    rows.irfft: _transform(inverse_form),
    rows.det: _by_matrix(rows.det, _Minors.determinant),
    rows.logdet: _by_matrix(rows.logdet, lambda minors: rows.log(minors.determinant())),
    rows.cofactor: _by_matrix(rows.cofactor, _Minors.cofactors),
    rows.inv: _by_matrix(rows.inv, _inverse),
    rows.solve: _by_matrix(rows.solve, _solution),
}
"""The forms, as functions of arrays with the parameters of the rows."""

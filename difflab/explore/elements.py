"""Operations on arrays, element by element, on NumPy object arrays of nodes.

Reductions, Fourier transforms, sorting and computed indices; matrices, which are small, by minors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import combinations
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.core.primitive import Primitive, Shape
from difflab.errors import UnsupportedError
from difflab.graph.node import Node
from difflab.primitives.fourier import complex_form, inverse_form, real_form


def boxed(elements: Sequence[Any], shape: Shape) -> Any:
    """Return an object array; NumPy must not look into its elements."""
    return np.fromiter(elements, dtype=object).reshape(shape)


def along(axis: int, compute: Callable[..., Sequence[Any]], *arrays: Any) -> Any:
    """Apply a function of lists of elements along an axis of arrays; it returns one list."""
    moved = [np.moveaxis(array, axis, -1) for array in arrays]
    lead = moved[0].shape[:-1]
    lines = [compute(*(array[at].tolist() for array in moved)) for at in np.ndindex(lead)]
    size = len(lines[0]) if lines else 0
    results = boxed([element for line in lines for element in line], (*lead, size))
    return np.moveaxis(results, -1, axis)


Array = Any
Axes = tuple[int, ...]


def sorted_along(x: Array, axis: int) -> Array:
    """Return the elements along an axis in order, nan last: ``take_along`` of ``argsort``."""
    return along(axis, lambda line: _exchanged(line)[0], x)


def _exchanged(elements: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the elements in order and their indices.

    Neighbours are exchanged until all are in order, so that equal elements keep theirs.
    """
    values, indices = list(elements), [float(index) for index in range(len(elements))]
    for last in range(len(values) - 1, 0, -1):
        for k in range(last):
            one, two = values[k], values[k + 1]
            kept = rows.logical_or(rows.less_equal(one, two), rows.not_equal(two, two))
            for parts in (values, indices):
                parts[k], parts[k + 1] = (
                    rows.where(kept, parts[k], parts[k + 1]),
                    rows.where(kept, parts[k + 1], parts[k]),
                )
    return values, indices


def _argsort(x: Array, *, axes: Axes, rank: int) -> Array:
    return along(axes[0], lambda line: _exchanged(line)[1], x)


def _first_maximum(elements: Sequence[Any]) -> Any:
    """Return the index of the first maximum, and of the first nan where there is one."""
    top, index = elements[0], 0.0
    for k, element in enumerate(elements[1:], start=1):
        above = rows.logical_not(rows.less_equal(element, top))
        moved = rows.logical_and(above, rows.equal(top, top))
        top, index = rows.where(moved, element, top), rows.where(moved, float(k), index)
    return index


def _argmax(x: Array, *, axes: Axes, rank: int) -> Array:
    return np.take(along(axes[0], lambda line: [_first_maximum(line)], x), 0, axes[0])


def _is_maximum(x: Array, *, axes: Axes, rank: int) -> Array:
    """Mark the last maximum along the axes."""
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(x, axes, last)
    lines = moved.reshape((*moved.shape[: x.ndim - len(axes)], -1))
    return np.moveaxis(along(-1, _marks, lines).reshape(moved.shape), last, axes)


def _marks(line: Sequence[Any]) -> list[Any]:
    back = _first_maximum(line[::-1])
    return [rows.equal(back, float(k)) for k in reversed(range(len(line)))]


def _taken(line: Sequence[Any], indices: Sequence[Any]) -> list[Any]:
    """Return the elements at indices."""
    size, elements = len(line), []
    for index in indices:
        element, wanted = line[-1], _from_the_start(index, size)
        for k in reversed(range(size - 1)):
            element = rows.where(rows.equal(wanted, float(k)), line[k], element)
        elements.append(element)
    return elements


def _from_the_start(index: Any, size: int) -> Any:
    """Return an index that counts from the start; a negative one counts from the end."""
    return rows.where(rows.less(index, 0.0), index + float(size), index)


def _put(line: Sequence[Any], indices: Sequence[Any], size: int) -> list[Any]:
    """Return a list of zeros with elements added at computed indices."""
    wanted = [_from_the_start(index, size) for index in indices]
    sums: list[Any] = [0.0] * size
    for index, element in zip(wanted, line, strict=True):
        for k in range(size):
            sums[k] = sums[k] + rows.where(rows.equal(index, float(k)), element, 0.0)
    return sums


def _take_along(x: Array, indices: Array, *, axis: int, rank: int) -> Array:
    return along(axis, _taken, x, indices)


def _put_along(x: Array, indices: Array, *, axis: int, rank: int, size: int) -> Array:
    return along(axis, partial(_put, size=size), x, indices)


LARGEST_MATRIX = 4
"""Most rows of a matrix that is written out; by minors, more of them lose digits."""


# --- by minors --------------------------------------------------------------------------------


class _Minors:
    """The minors of one matrix, each computed once by expansion along its first row."""

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.size = matrix, len(matrix)
        self.all = tuple(range(self.size))
        self.minors: dict[tuple[Axes, Axes], Any] = {}

    def determinant(self) -> Any:
        """Return det A."""
        return self.minor(self.all, self.all)

    def cofactors(self) -> Array:
        """Return det(A) A⁻ᵀ."""
        cofactors = np.empty((self.size, self.size), dtype=object)
        choices = list(combinations(self.all, self.size - 1))[::-1]  # the k-th is without k
        for i, lines in enumerate(choices):
            for j, columns in enumerate(choices):
                minor = self.minor(lines, columns)
                cofactors[i, j] = minor if (i + j) % 2 == 0 else -minor
        return cofactors

    def minor(self, lines: Axes, columns: Axes) -> Any:
        """Return the determinant of some rows and columns, from those with one row less."""
        if not lines:
            return 1.0
        if len(lines) == 1:
            return self.matrix[lines[0], columns[0]]
        if (lines, columns) not in self.minors:
            total = None
            for position, column in enumerate(columns):
                rest = self.minor(lines[1:], columns[:position] + columns[position + 1 :])
                term = self.matrix[lines[0], column] * rest
                if total is None:
                    total = term
                else:
                    total = total - term if position % 2 else total + term
            self.minors[lines, columns] = total
        return self.minors[lines, columns]


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
    lower = np.full((size, size), 0.0, dtype=object)
    for i, j in zip(*np.tril_indices(size), strict=True):
        rest = even[i, j]
        for k in range(j):
            rest = rest - lower[i, k] * lower[j, k]
        lower[i, j] = rows.sqrt(rest) if i == j else rest / lower[j, j]
    return lower


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


# --- matrices ---------------------------------------------------------------------------------


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
        stacked = np.empty((len(parts), *shape), dtype=object)
        for index, part in enumerate(parts):
            stacked[index] = part
        return stacked.reshape(lead + shape)

    return computed


# --- reductions -------------------------------------------------------------------------------


def _by_lines(compute: Callable[[list[Any]], Any]) -> Callable[..., Array]:
    """Return a reduction along axes, from a function of the elements of one line."""

    def reduced(x: Array, *, axes: Axes, rank: int) -> Array:
        moved = np.moveaxis(x, axes, range(-len(axes), 0))
        kept = moved.shape[: x.ndim - len(axes)]
        results = [compute(moved[index].ravel().tolist()) for index in np.ndindex(kept)]
        return boxed(results, kept)

    return reduced


def _folded(row: Primitive) -> Callable[..., Array]:
    """Return the reduction by a binary operation, from the first element to the last."""
    return _by_lines(partial(reduce, row))


def _stable_norm(elements: list[Any]) -> Any:
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
    """Return cos 2πk/n and sin 2πk/n, exact at multiples of π/2."""
    import mpmath

    with mpmath.workdps(30):
        half_turns = mpmath.mpf(2 * k) / n
        return float(mpmath.cospi(half_turns)), float(mpmath.sinpi(half_turns))


# --- the forms --------------------------------------------------------------------------------


FORMS: dict[Primitive, Callable[..., Array]] = {
    rows.max_: _folded(rows.maximum),
    rows.min_: _folded(rows.minimum),
    rows.norm: _by_lines(_stable_norm),
    rows.logsumexp: _folded(rows.logaddexp),
    rows.softmax: _softmax,
    rows.log_softmax: _log_softmax,
    rows.fft: _transform(complex_form),
    rows.rfft: _transform(real_form),
    rows.irfft: _transform(inverse_form),
    rows.argsort: _argsort,
    rows.argmax: _argmax,
    rows.is_maximum: _is_maximum,
    rows.take_along: _take_along,
    rows.put_along: _put_along,
    rows.det: _by_matrix(rows.det, lambda a: _Minors(a).determinant()),
    rows.logdet: _by_matrix(rows.logdet, lambda a: rows.log(_Minors(a).determinant())),
    rows.slogdet: _by_matrix(rows.slogdet, _slogdet),
    rows.cofactor: _by_matrix(rows.cofactor, lambda a: _Minors(a).cofactors()),
    rows.inv: _by_matrix(rows.inv, _inverse),
    rows.solve: _by_matrix(rows.solve, _solution),
    rows.cholesky: _by_matrix(rows.cholesky, _cholesky),
    rows.qr: _by_matrix(rows.qr, _qr),
}
"""The forms, as functions of arrays with the parameters of the rows."""

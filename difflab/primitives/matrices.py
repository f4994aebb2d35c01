"""Rows of linear algebra: products of matrices, linear systems, determinants, factors.

The last two axes are the matrices; axes before them, and batch axes before those, are stacks.

Source of the derivatives: M. Giles, *An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation* (2008); of cholesky: I. Murray,
*Differentiation of the Cholesky decomposition*, arXiv:1602.07527.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, prod
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Shape, Transpose, bilinear, tangent
from difflab.primitives.movement import transpose
from difflab.primitives.piecewise import absolute, greater, where
from difflab.primitives.recurrences import Term, Terms, minus
from difflab.primitives.reductions import norm
from difflab.primitives.reductions import prod as prod_of
from difflab.primitives.structure import Arg, Array, opened, reshape, stacks, sum_

__all__ = ["cholesky", "cofactor", "det", "inv", "logdet", "matmul", "solve"]

Ranks = tuple[int, int]

SINGULAR = 0.1
"""Matrices whose determinant is less than that share of the product of the norms of their rows have
derivatives of the cofactors by a polynomial, which divides by no determinant."""
MOST = 12
"""Rows of the largest such matrices; the polynomial loses digits with each row."""


def swap_last_axes(x: Any) -> Any:
    """Swap the last two axes."""
    rank = len(x.shape)
    return transpose(x, axes=(*range(-rank, -2), -1, -2))


def times(a: Any, b: Any) -> Any:
    return matmul(a, b, ranks=(len(a.shape), len(b.shape)))


def _outer(a: Any, b: Any) -> Any:
    column = reshape(a, shape=(*a.shape, 1), rank=1)
    row = reshape(b, shape=(1, *b.shape), rank=1)
    return column * row


# --- products ---------------------------------------------------------------------------------


def _matmul(xp: ModuleType, a: Array, b: Array, *, ranks: Ranks) -> Array:
    if (a.ndim, b.ndim) == ranks:
        return xp.matmul(a, b)
    if ranks == (2, 1) and a.ndim == 2:
        return xp.matmul(b, a.T)
    if ranks == (1, 2) and b.ndim == 2:
        return xp.matmul(a, b)
    if ranks == (2, 2) and b.ndim == 2 and a.ndim > 2 and a.shape[-1]:
        # One product of all rows: NumPy would call BLAS once for each matrix of the stack.
        return xp.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    if ranks[0] == 1:
        a = a[..., None, :]
    if ranks[1] == 1:
        b = b[..., :, None]
    product = xp.matmul(a, b)
    if ranks[1] == 1:
        product = product[..., 0]
    return product[..., 0] if ranks == (1, 1) else _dropped(product, ranks)


def _dropped(product: Array, ranks: Ranks) -> Array:
    """Drop the axis that a row vector was given."""
    return product[..., 0, :] if ranks[0] == 1 else product


def _matmul_shape(shapes: tuple[Shape, ...], *, ranks: Ranks) -> Shape:
    a, b = shapes
    left = a[:-1]
    right = b[-1:] if ranks[1] > 1 else ()
    return left + right


def _matmul_arithmetic(shapes: tuple[Shape, ...], *, ranks: Ranks) -> int:
    return prod(_matmul_shape(shapes, ranks=ranks)) * (2 * shapes[0][-1] - 1)


def _left(t: Any, a: Any, b: Any, *, ranks: Ranks) -> Any:
    if ranks == (1, 1):
        return t * b
    if ranks[1] == 1:
        return _outer(t, b)
    return times(b, t) if ranks[0] == 1 else times(t, swap_last_axes(b))


def _right(t: Any, a: Any, b: Any, *, ranks: Ranks) -> Any:
    if ranks == (1, 1):
        return t * a
    if ranks[0] == 1:
        return _outer(a, t)
    return times(t, a) if ranks[1] == 1 else times(swap_last_axes(a), t)


# --- kernels ----------------------------------------------------------------------------------


def each(compute: Callable[..., Array], shape: Callable[..., Shape]) -> Any:
    """Apply `compute` to stacks of matrices; a singular one among them gives nan."""

    def guarded(xp: ModuleType, *args: Array) -> Array:
        try:
            return compute(xp, *args)
        except np.linalg.LinAlgError:
            stack = np.broadcast_shapes(*(a.shape[:-2] for a in args))
            if not stack:
                return xp.full(shape(*args), xp.nan, dtype=args[-1].dtype)
            whole = [xp.broadcast_to(a, (*stack, *a.shape[-2:])) for a in args]
            return xp.stack([guarded(xp, *parts) for parts in zip(*whole, strict=True)])

    return guarded


_inv = each(lambda xp, a: xp.linalg.inv(a), lambda a: a.shape)
_cholesky = each(lambda xp, a: xp.linalg.cholesky(a), lambda a: a.shape)
_solution = each(lambda xp, a, b: xp.linalg.solve(a, b), lambda a, b: b.shape)


def _cofactors(xp: ModuleType, a: Array) -> Array:
    """Return det(A) A⁻ᵀ; of a singular matrix the limit, by its singular values."""
    try:
        return xp.linalg.det(a)[..., None, None] * xp.swapaxes(xp.linalg.inv(a), -1, -2)
    except np.linalg.LinAlgError:
        if a.ndim > 2 or xp.iscomplexobj(a):
            raise
    left, sizes, right = xp.linalg.svd(a)
    others = xp.where(xp.eye(len(sizes), dtype=bool), 1.0, sizes).prod(axis=-1)
    return xp.linalg.det(left) * xp.linalg.det(right) * xp.matmul(left * others, right)


_cofactor = each(_cofactors, lambda a: a.shape)


def _logdet(xp: ModuleType, a: Array) -> Array:
    sign, size = xp.linalg.slogdet(a)
    if xp.iscomplexobj(a):
        return xp.log(sign) + size
    return xp.where(sign > 0, size, xp.where(size == -xp.inf, size, xp.nan))


def _solve_series(k: int, y: Terms, a: Terms, b: Terms, *, ranks: tuple[int, int]) -> Term:
    """Return the derivative of y, from a·y = b."""
    rest = b[k]
    for j in range(1, k + 1):
        if a[j] is not None and y[k - j] is not None:
            rest = minus(rest, comb(k, j) * times(a[j], y[k - j]))
    return None if rest is None else solve(a[0], rest, ranks=ranks)


def _solve(xp: ModuleType, a: Array, b: Array, *, ranks: Ranks) -> Array:
    column = ranks[1] == 1
    x = _solution(xp, a, b[..., :, None] if column else b)
    return x[..., 0] if column else x


# --- other libraries --------------------------------------------------------------------------


def by_matrix(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a row's form on a library's matrices, one after the other of a stack."""

    def form(library: Any, *args: Array, ranks: Ranks = (2, 2)) -> Array:
        column = len(args) == 2 and ranks[1] == 1
        stacks = [*args[:-1], args[-1][..., None]] if column else list(args)
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in stacks))
        whole = [np.broadcast_to(x, batch + x.shape[-2:]) for x in stacks]
        matrix = library.Matrix if hasattr(library, "Symbol") else library.matrix
        parts = []
        for at in np.ndindex(batch):
            operands = [matrix(x[at].tolist()) for x in whole]
            try:
                parts.append(_array(compute(library, *operands)))
            except (ZeroDivisionError, ValueError):
                # No such matrix: nan everywhere, of the shape that the operands have.
                parts.append(whole[-1][(0,) * len(batch)] * library.nan)
        stack = np.empty((len(parts), *parts[0].shape), dtype=object)
        for position, part in enumerate(parts):
            stack[position] = part if part.ndim else part[()]
        result = stack.reshape(batch + parts[0].shape)
        result = result[..., 0] if column else result
        return result if result.ndim else result[()]

    return form


def _array(value: Any) -> Array:
    """Return a number or a library's matrix as an object array."""
    if hasattr(value, "rows"):
        entries = np.empty((value.rows, value.cols), dtype=object)
        for at in np.ndindex(entries.shape):
            entries[at] = value[at]
        return entries
    number = np.empty((), dtype=object)
    number[()] = value
    return number


# --- the rows ---------------------------------------------------------------------------------


def trace_of(a: Any, t: Any) -> Any:
    """Sum the products of the entries of two matrices."""
    return sum_(a * t, axes=(-2, -1), rank=len(a.shape))


def _cholesky_slope(t: Any, y: Any, a: Any) -> Any:
    """L Φ(L⁻¹ Ȧ L⁻ᵀ), where Φ takes the lower triangle and half the diagonal."""
    size = a.shape[-1]
    half = np.tri(size) - 0.5 * np.eye(size)
    even = (t + swap_last_axes(t)) * 0.5
    ranks = (len(a.shape), len(a.shape))
    inner = solve(y, swap_last_axes(solve(y, even, ranks=ranks)), ranks=ranks)
    return times(y, swap_last_axes(inner) * half)


def _spread(number: Any) -> Any:
    """Give a number the two axes of a matrix."""
    return reshape(number, shape=(*number.shape, 1, 1), rank=len(number.shape))


def _cofactor_slope(t: Any, y: Any, a: Any) -> Any:
    """(C tr(Cᵀ Ȧ) − C Ȧᵀ C) / det A, from C = det(A) A⁻ᵀ; a polynomial near singular matrices."""
    product = y * _spread(trace_of(y, t)) - times(times(y, swap_last_axes(t)), y)
    size, rank = a.shape[-1], len(a.shape)
    if size > MOST:
        return product / _spread(det(a))
    number = det(a)
    largest = prod_of(norm(a, axes=(-1,), rank=rank), axes=(-1,), rank=rank - 1)
    regular = greater(absolute(number), SINGULAR * largest)
    quotient = product / _spread(where(regular, number, 1))
    return where(_spread(regular), quotient, _polynomial_slope(a, t))


def _polynomial_slope(a: Any, t: Any) -> Any:
    """Return the derivative of the cofactors by Faddeev and LeVerrier's recurrence.

    Its matrices M, of which the last is the transpose of the cofactors, are Mₖ = A Mₖ₋₁ + cₖ with
    cₖ = −tr(A Mₖ₋₁)/k: a polynomial of A, which has derivatives of every order.
    """
    size = a.shape[-1]
    one = np.eye(size)
    matrix, moved = 0 * a + one, 0 * t
    for k in range(1, size):
        moved = times(t, matrix) + times(a, moved)
        matrix = times(a, matrix)
        moved = moved - _spread(trace_of(moved, one) / k) * one
        matrix = matrix - _spread(trace_of(matrix, one) / k) * one
    return (-1) ** (size - 1) * swap_last_axes(moved)


def _minors(mp: Any, a: Any) -> Any:
    """Return the cofactors: signed determinants without a row and a column."""
    size = a.rows
    cofactors = mp.matrix(size, size)
    for row, column in np.ndindex(size, size):
        rest = [[a[i, j] for j in range(size) if j != column] for i in range(size) if i != row]
        cofactors[row, column] = (-1) ** (row + column) * (mp.det(mp.matrix(rest)) if rest else 1)
    return cofactors


def _matmul_stack(size: int, args: list[Arg], *, ranks: Ranks) -> Any:
    """Multiply matrices; a vector is a matrix of one row or column."""
    joined = _joined(args, ranks)
    if joined is not None:
        return joined
    a, b = stacks(size, args)
    row, column = (rank == 1 for rank in ranks)
    a = a.reshape(size, 1, *a.shape[1:]) if row else a
    b = b.reshape(*b.shape, 1) if column else b
    depth = max(a.ndim, b.ndim)
    product = matmul(opened(a, depth), opened(b, depth), ranks=(depth, depth))
    shape = product.shape
    kept = shape[:-2] + (() if row else shape[-2:-1]) + (() if column else shape[-1:])
    return product.reshape(kept)


def _joined(args: list[Arg], ranks: Ranks) -> Any:
    """Return a stack times one matrix or vector as a single product; None of other operands."""
    (a, a_stack), (b, b_stack) = args
    if max(ranks) > 2 or a_stack is b_stack:
        return None
    if b_stack:
        if ranks[1] == 2:
            return None
        a, b = b, a if ranks[0] == 1 else transpose(a, axes=(-1, -2))
    rows = a.reshape(-1, a.shape[-1]) if a.ndim == 3 else a
    product = matmul(rows, b, ranks=(2, b.ndim))
    return product.reshape(*a.shape[:-1], *b.shape[1:])


def _solve_stack(size: int, args: list[Arg], *, ranks: Ranks) -> Any:
    a, b = stacks(size, args)
    if ranks[1] > 1:
        return solve(a, b, ranks=(a.ndim, b.ndim))
    columns = solve(a, b.reshape(*b.shape, 1), ranks=(a.ndim, b.ndim + 1))
    return columns.reshape(b.shape)


matmul: Primitive = Primitive(
    name="matmul",
    kernel=_matmul,
    rule=bilinear(_left, _right),
    infix="@",
    latex="{0} {1}",
    sympy=lambda sympy, a, b, *, ranks: _matmul(np, a, b, ranks=ranks),
    mpmath=None,
    notation="matmul",
    arithmetic=_matmul_arithmetic,
    shape=_matmul_shape,
    unbatched=lambda xp, *, ranks: xp.matmul,
    stacked=_matmul_stack,
)
solve: Primitive = Primitive(
    name="solve",
    kernel=_solve,
    rule=tangent(
        lambda t, y, a, b, *, ranks: -solve(a, times(t, y), ranks=ranks),
        Transpose(lambda t, a, b, *, ranks: solve(swap_last_axes(a), t, ranks=ranks)),
    ),
    mpmath=by_matrix(lambda mp, a, b: mp.lu_solve(a, b) if b.cols == 1 else mp.inverse(a) * b),
    sympy=by_matrix(lambda sympy, a, b: a.LUsolve(b)),
    taylor=_solve_series,
    defined="a matrix that is not singular",
    shape=lambda shapes, *, ranks: shapes[1],
    stacked=_solve_stack,
)
inv: Primitive = Primitive(
    name="inv",
    kernel=_inv,
    rule=tangent(lambda t, y, a: -times(times(y, t), y)),
    mpmath=by_matrix(lambda mp, a: mp.inverse(a)),
    sympy=by_matrix(lambda sympy, a: a.inv()),
    defined="a matrix that is not singular",
    shape=lambda shapes: shapes[0],
)
det: Primitive = Primitive(
    name="det",
    kernel=lambda xp, a: xp.linalg.det(a),
    rule=tangent(lambda t, y, a: trace_of(cofactor(a), t)),
    mpmath=by_matrix(lambda mp, a: mp.det(a)),
    sympy=by_matrix(lambda sympy, a: a.det()),
    convention="no finite second derivative at a singular matrix of more than 12 rows",
    shape=lambda shapes: shapes[0][:-2],
)
# The derivative of `det`, which a singular matrix has too.
cofactor: Primitive = Primitive(
    name="cofactor",
    kernel=_cofactor,
    rule=tangent(_cofactor_slope),
    mpmath=by_matrix(_minors),
    sympy=by_matrix(lambda sympy, a: a.cofactor_matrix()),
    shape=lambda shapes: shapes[0],
)
logdet: Primitive = Primitive(
    name="logdet",
    kernel=_logdet,
    rule=tangent(lambda t, y, a: trace_of(swap_last_axes(inv(a)), t)),
    mpmath=by_matrix(lambda mp, a: mp.log(mp.det(a))),
    sympy=by_matrix(lambda sympy, a: sympy.log(a.det())),
    defined="a matrix with a positive determinant",
    shape=lambda shapes: shapes[0][:-2],
)
cholesky: Primitive = Primitive(
    name="cholesky",
    kernel=lambda xp, a: _cholesky(xp, (a + xp.swapaxes(a, -1, -2)) / 2),
    rule=tangent(_cholesky_slope),
    mpmath=by_matrix(lambda mp, a: mp.cholesky((a + a.T) / 2)),
    sympy=by_matrix(lambda sympy, a: ((a + a.T) / 2).cholesky(hermitian=False)),
    defined="a positive definite matrix; its symmetric part counts",
    analytic=False,
    shape=lambda shapes: shapes[0],
)

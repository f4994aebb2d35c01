"""Factorisations of matrices and their applications: least squares, ranks, norms.

Leading axes are stacks. Derivatives of eigenvectors and singular vectors divide by the gaps
between eigenvalues or singular values: where these coincide they are inf or nan, as in PyTorch and
JAX. Derivatives of the values alone are finite there, and right for symmetric functions of them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import (
    Array,
    Axis,
    as_array,
    as_integers,
    mismatch,
    normalized_axis,
    shape_of,
)
from difflab.arrays.linalg import square
from difflab.arrays.products import matmul
from difflab.arrays.reductions import max, min, norm, sum
from difflab.arrays.shapes import concatenate, reshape, transpose
from difflab.core.apply import apply
from difflab.core.place import at_users_line
from difflab.core.primitive import Shape
from difflab.errors import TraceError

__all__ = [
    "eigh",
    "eigvalsh",
    "lstsq",
    "matrix_rank",
    "norm_of_order",
    "pinv",
    "qr",
    "slogdet",
    "svd",
    "svdvals",
]


class Eigh(NamedTuple):
    """The parts of `eigh`, under NumPy's names."""

    eigenvalues: Array
    eigenvectors: Array


class SVD(NamedTuple):
    """The parts of `svd`, under NumPy's names."""

    U: Array
    S: Array
    Vh: Array


class QR(NamedTuple):
    """The parts of `qr`, under NumPy's names."""

    Q: Array
    R: Array


class Slogdet(NamedTuple):
    """The parts of `slogdet`, under NumPy's names."""

    sign: Array
    logabsdet: Array


class LeastSquares(NamedTuple):
    """Result of `lstsq`, in NumPy's order."""

    x: Array
    residuals: Array
    rank: Array
    s: Array


def _matrices(name: str, a: Array) -> Shape:
    shape = shape_of(a)
    if len(shape) < 2 or 0 in shape:
        raise mismatch(f"{name} takes matrices that are not empty, not the shape {shape}")
    return shape


def swapped(a: Array) -> Array:
    """Swap the last two axes."""
    rank = len(shape_of(a))
    return transpose(a, (*range(rank - 2), rank - 1, rank - 2))


def eigh(a: Array) -> Eigh:
    """Return the eigenvalues, in ascending order, and the eigenvectors of symmetric matrices.

    The symmetric part of `a` counts. With M = Vᵀ Ȧ V the derivatives are ẇᵢ = Mᵢᵢ and
    V̇ = V (F ∘ M), where Fᵢⱼ = 1 / (wⱼ − wᵢ) and Fᵢᵢ = 0. The sign of an eigenvector is the one
    that LAPACK chose.

    Parameters
    ----------
    a : array or traced value, (…, n, n)

    Returns
    -------
    Eigh
        ``eigenvalues``, (…, n), and ``eigenvectors``, (…, n, n), one in each column.

    Raises
    ------
    ShapeError
        The matrices are not square.

    Examples
    --------
    >>> eigh(np.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round(12).tolist()
    [1.0, 3.0]
    """
    a = as_array(a)
    square("eigh", a)
    factors = apply(rows.eigh, a)
    return Eigh(apply(rows.eigenvalues, a, factors), factors[..., 1:, :])


def eigvalsh(a: Array) -> Array:
    """Return the eigenvalues of symmetric matrices, in ascending order.

    Where eigenvalues coincide their derivatives are those along the eigenvectors that LAPACK chose:
    sums and other symmetric functions of them have the right derivative.

    Examples
    --------
    >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]])).round(12).tolist()
    [1.0, 3.0]
    """
    return eigh(a).eigenvalues


def svd(a: Array) -> SVD:
    """Return the reduced singular value decomposition, ``a = U @ diag(S) @ Vh``.

    With P = Uᵀ Ȧ V the derivatives are ṡᵢ = Pᵢᵢ, U̇ = U (F ∘ (PS + SPᵀ)) + (I − UUᵀ) Ȧ V S⁻¹ and
    V̇ = V (F ∘ (SP + PᵀS)) + (I − VVᵀ) Ȧᵀ U S⁻¹, where Fᵢⱼ = 1 / (sⱼ² − sᵢ²) and Fᵢᵢ = 0.

    Parameters
    ----------
    a : array or traced value, (…, m, n)

    Returns
    -------
    SVD
        ``U``, (…, m, k), ``S``, (…, k), descending, and ``Vh``, (…, k, n), with k = min(m, n).

    Raises
    ------
    ShapeError
        `a` is no stack of matrices.

    Examples
    --------
    >>> svd(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])).S.tolist()
    [4.0, 3.0]
    """
    a = as_array(a)
    m = _matrices("svd", a)[-2]
    factors = apply(rows.svd, a)
    sizes = apply(rows.singular_values, a, factors)
    return SVD(factors[..., :m, :], sizes, swapped(factors[..., m + 1 :, :]))


def svdvals(a: Array) -> Array:
    """Return the singular values, in descending order.

    At singular values that coincide, the derivatives are as those of `eigvalsh`.

    Examples
    --------
    >>> svdvals(np.array([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [4.0, 3.0]
    """
    return svd(a).S


def qr(a: Array) -> QR:
    """Return the reduced QR factorisation, ``a = Q @ R``, of matrices of full rank.

    Of a matrix of m rows and n columns Q has min(m, n) columns. With X = Ȧ R⁻¹, C = Qᵀ X and L the
    part of C below the diagonal, Ṙ = (C − L + Lᵀ) R and Q̇ = X − Q (C − L + Lᵀ). If m < n, the first
    m columns must be independent: R has the other columns as Qᵀ times those of `a`.

    Raises
    ------
    ShapeError
        `a` is no stack of matrices.

    Examples
    --------
    >>> abs(qr(np.array([[3.0, 1.0], [4.0, 2.0]])).R).round(12).tolist()
    [[5.0, 2.2], [0.0, 0.4]]
    """
    a = as_array(a)
    m, n = _matrices("qr", a)[-2:]
    factors = apply(rows.qr, a if m >= n else a[..., :m])
    q, r = factors[..., :m, :], factors[..., m:, :]
    if m < n:
        r = concatenate([r, matmul(swapped(q), a[..., m:])], -1)
    return QR(q, r)


def slogdet(a: Array) -> Slogdet:
    """Return the sign of determinants, with derivative 0, and the logarithm of their magnitudes.

    Examples
    --------
    >>> [float(part) for part in slogdet(np.array([[0.0, 1.0], [1.0, 0.0]]))]
    [-1.0, 0.0]
    """
    a = as_array(a)
    square("slogdet", a)
    both = apply(rows.slogdet, a)
    return Slogdet(both[..., 0], both[..., 1])


def pinv(a: Array) -> Array:
    """Return the Moore-Penrose pseudo-inverse P.

    Ṗ = −P Ȧ P + P Pᵀ Ȧᵀ (I − A P) + (I − P A) Ȧᵀ Pᵀ P (Golub and Pereyra 1973), which holds where
    the rank does not change. Singular values may coincide.

    Examples
    --------
    >>> pinv(np.array([[2.0, 0.0], [0.0, 4.0]])).round(12).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = as_array(a)
    _matrices("pinv", a)
    return apply(rows.pinv, a)


def lstsq(a: Array, b: Array) -> LeastSquares:
    """Return the least-squares solution of ``a @ x = b`` of least norm, by `pinv`.

    Parameters
    ----------
    a : array or traced value, (m, n)
    b : array or traced value, (m,) or (m, k)

    Returns
    -------
    LeastSquares
        ``x``, the squared ``residuals`` of each column if m > n (those of full column rank, else
        none), the ``rank`` of `a`, whose derivative is 0, and its singular values ``s``.

    Raises
    ------
    ShapeError
        `a` is no matrix, or `b` has another number of rows.

    Examples
    --------
    >>> lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0])).x.round(12).tolist()
    [2.0]
    """
    a, b = as_array(a), as_array(b)
    left, right = _matrices("lstsq", a), shape_of(b)
    if len(left) != 2 or len(right) not in (1, 2) or right[0] != left[0]:
        raise mismatch(f"lstsq cannot combine the shapes {left} and {right}")
    x, sizes = matmul(pinv(a), b), svdvals(a)
    rest = b - matmul(a, x)
    columns = right[1] if len(right) == 2 else 1
    squares = reshape(sum(rest * rest, 0), (columns,)) if left[0] > left[1] else np.zeros(0)
    return LeastSquares(x, squares, matrix_rank(a), sizes)


def matrix_rank(a: Array) -> Array:
    """Return the number of singular values above NumPy's default tolerance; derivative 0.

    Examples
    --------
    >>> float(matrix_rank(np.array([[1.0, 2.0], [2.0, 4.0]])))
    1.0
    """
    a = as_array(a)
    larger = float(np.max(_matrices("matrix_rank", a)[-2:]))
    sizes = rows.stop_gradient(svdvals(a))
    least = max(sizes, -1, keepdims=True) * (larger * 2.0**-52)
    return sum(rows.as_number(sizes > least), -1)


# --- norms ---------------------------------------------------------------------------------------

ORDERS = (
    "inf, -inf, 0, or a number for vectors; 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2 for matrices"
)
"""What `ord` may be."""


def norm_of_order(x: Array, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return a norm, as `numpy.linalg.norm`.

    Derivatives at a kink: ∂|x|/∂x = 0 at 0; a norm of order p has the derivative 0 at the origin;
    at a tie of `inf` and `-inf` it goes to the last element, as that of `max`. The order 0, the
    number of elements that are not 0, has the derivative 0.

    Parameters
    ----------
    x : array or traced value
    ord : None, number, "fro" or "nuc"
        The order; None is the Euclidean norm, of all elements if `axis` is None.
    axis : int or pair of int, optional
        One axis of vectors, or two of matrices; of a vector or a matrix it may be left out.
    keepdims : bool
        Whether the axes stay, with size 1.

    Raises
    ------
    TraceError
        There is no norm of this order.
    ShapeError
        There are neither one nor two axes.

    Examples
    --------
    >>> x = np.array([[3.0, -4.0], [0.0, 0.0]])
    >>> float(norm_of_order(x, 1)), float(norm_of_order(x, "nuc")), float(norm_of_order(x[0], 3))
    (4.0, 5.0, 4.497941445275415)
    """
    x = as_array(x)
    rank = len(shape_of(x))
    if ord is None:
        return norm(x, axis, keepdims)
    axes = _axes(x, axis)
    if len(axes) == 1:
        return _of_vectors(x, _checked(ord), axes[0], keepdims)
    norms = _of_matrices(transpose(x, [k for k in range(rank) if k not in axes] + axes), ord)
    if not keepdims:
        return norms
    return reshape(norms, [1 if k in axes else size for k, size in enumerate(shape_of(x))])


def _axes(x: Array, axis: Axis) -> list[int]:
    """Return one axis of vectors or two of matrices, as they were given, from 0."""
    rank = len(shape_of(x))
    if axis is None:
        axes = list(range(rank))
    else:
        entries = as_integers("norm", "axis", axis)
        axes = [normalized_axis("norm", entry, shape_of(x)) + rank for entry in entries]
    if not 1 <= len(axes) <= 2 or len(set(axes)) < len(axes):
        raise mismatch(f"norm takes one axis or two, not {len(axes)} of the shape {shape_of(x)}")
    return axes


def _checked(ord: Any) -> float:
    if isinstance(ord, bool) or not isinstance(ord, int | float | np.number) or ord != ord:
        raise _unknown(ord)
    return float(ord)


def _unknown(ord: Any) -> TraceError:
    return at_users_line(TraceError, f"difflab has no norm of order {ord!r}", f"ord is {ORDERS}")


def _of_vectors(x: Array, order: float, axis: int, keepdims: bool) -> Array:
    if order == 2:
        return norm(x, axis, keepdims)
    if order == 0:
        return sum(rows.as_number(rows.not_equal(x, 0.0)), axis, keepdims)
    size = rows.absolute(x)
    if abs(order) == math.inf:
        return max(size, axis, keepdims) if order > 0 else min(size, axis, keepdims)
    if order == 1:
        return sum(size, axis, keepdims)
    total = sum(size**order, axis, keepdims)
    positive = total > 0
    return rows.where(positive, rows.where(positive, total, 1.0) ** (1 / order), total)


def _of_matrices(x: Array, ord: Any) -> Array:
    """Return a norm of the matrices of the last two axes."""
    if isinstance(ord, str) and ord in ("fro", "nuc"):
        return norm(x, (-2, -1)) if ord == "fro" else sum(svdvals(x), -1)
    order = _checked(ord)
    if abs(order) not in (1, 2, math.inf):
        raise _unknown(ord)
    if abs(order) == 2:
        sizes = svdvals(x)
    else:
        sizes = sum(rows.absolute(x), -2 if abs(order) == 1 else -1)
    return max(sizes, -1) if order > 0 else min(sizes, -1)

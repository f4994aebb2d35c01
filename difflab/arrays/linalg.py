"""Linear systems, inverses, determinants, Cholesky factors and exponentials of square matrices.

Where an inverse is needed a singular matrix gives nan.
"""

from __future__ import annotations

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, mismatch, shape_of
from difflab.arrays.shapes import broadcast_to
from difflab.core.apply import apply
from difflab.core.primitive import Primitive, Shape

__all__ = ["cholesky", "cofactor", "det", "expm", "expm_frechet", "inv", "logdet", "solve"]


def square(name: str, a: Array) -> Shape:
    """Return the shape of a stack of square matrices.

    Raises
    ------
    ShapeError
        The matrices are not square.
    """
    shape = shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise mismatch(f"{name} takes square matrices, not the shape {shape}")
    return shape


def _of_square(name: str, row: Primitive, a: Array) -> Array:
    a = as_array(a)
    square(name, a)
    return apply(row, a)


def stacked(message: str, a: Array, b: Array) -> tuple[Array, Array]:
    """Return two stacks of matrices, broadcast to one stack shape.

    Raises
    ------
    ShapeError
        The stacks do not broadcast; the error is `message`.
    """
    left, right = shape_of(a), shape_of(b)
    try:
        stack = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise mismatch(message) from None
    return broadcast_to(a, stack + left[-2:]), broadcast_to(b, stack + right[-2:])


def solve(a: Array, b: Array) -> Array:
    """Return x with ``a @ x = b``, for a vector `b` or the columns of a matrix.

    Raises
    ------
    ShapeError
        `a` is not square, or `b` has another number of rows.

    Examples
    --------
    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = as_array(a), as_array(b)
    left, right = square("solve", a), shape_of(b)
    rows_of = right[0] if len(right) == 1 else right[-2] if right else 0
    vector = len(right) == 1
    message = f"solve cannot combine the shapes {left} and {right}"
    if rows_of != left[-1] or (vector and len(left) > 2):
        raise mismatch(message)
    if not vector and max(len(left), len(right)) > 2:
        a, b = stacked(message, a, b)
    return apply(rows.solve, a, b, ranks=(len(shape_of(a)), len(shape_of(b))))


def inv(a: Array) -> Array:
    """Return the inverse of a square matrix.

    Examples
    --------
    >>> inv(np.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _of_square("inv", rows.inv, a)


def det(a: Array) -> Array:
    """Return the determinant of a square matrix.

    It is a polynomial: a matrix of up to 12 rows has derivatives of every order, also where it is
    singular. Of a larger singular matrix the first derivative, the cofactors, is finite, and second
    ones are nan or inf.

    Examples
    --------
    >>> round(float(det(np.diag([2.0, 4.0]))), 12)
    8.0
    """
    return _of_square("det", rows.det, a)


def cofactor(a: Array) -> Array:
    """Return the cofactors of a square matrix, the derivative of its determinant.

    ``det(a) * inv(a).T`` where `a` is not singular, and finite where it is.

    Examples
    --------
    >>> (cofactor(np.array([[1.0, 2.0], [2.0, 4.0]])) + 0.0).round(12).tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    return _of_square("cofactor", rows.cofactor, a)


def logdet(a: Array) -> Array:
    """Return the logarithm of a determinant, which must be positive, without overflow.

    Examples
    --------
    >>> float(logdet(np.eye(3)))
    0.0
    """
    return _of_square("logdet", rows.logdet, a)


def cholesky(a: Array) -> Array:
    """Return the lower triangular L with ``L @ L.T`` = the symmetric part of `a`.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return _of_square("cholesky", rows.cholesky, a)


def expm(a: Array) -> Array:
    r"""Return the exponential of a square matrix, or of each one of a stack.

    .. math:: e^A = \sum_k A^k / k!

    By a Padé approximation with scaling and squaring, as `scipy.linalg.expm`.

    Raises
    ------
    ShapeError
        `a` is not square.

    Examples
    --------
    A rotation by a right angle:

    >>> expm(np.array([[0.0, -1.0], [1.0, 0.0]]) * np.pi / 2).round(12).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    return _of_square("expm", rows.expm, a)


def expm_frechet(a: Array, e: Array) -> Array:
    """Return the derivative of the exponential at `a` along `e`, linear in `e`.

    Raises
    ------
    ShapeError
        `a` is not square, or `e` has another shape.

    Examples
    --------
    >>> expm_frechet(np.zeros((2, 2)), np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    a, e = as_array(a), as_array(e)
    if square("expm_frechet", a) != shape_of(e):
        raise mismatch(f"expm_frechet cannot combine the shapes {shape_of(a)} and {shape_of(e)}")
    return apply(rows.expm_frechet, a, e)

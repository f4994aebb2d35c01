"""Norms of every order that NumPy has, of vectors and of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.factors import svdvals
from difflab.arrays.given import (
    Array,
    Axis,
    as_array,
    as_integers,
    mismatch,
    normalized_axis,
    shape_of,
)
from difflab.arrays.reductions import max, min, norm, sum
from difflab.arrays.shapes import reshape, transpose
from difflab.core.place import at_users_line
from difflab.errors import TraceError

__all__ = ["norm_of_order"]

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
    found = _of_matrices(transpose(x, [k for k in range(rank) if k not in axes] + axes), ord)
    if not keepdims:
        return found
    return reshape(found, [1 if k in axes else size for k, size in enumerate(shape_of(x))])


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

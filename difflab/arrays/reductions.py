"""Sums, products, extremes, norms and exponentials along axes, sorting, computed indices.

Everywhere `axis` is an axis, several, or None for all; `keepdims` leaves them with size 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import (
    Array,
    Axis,
    as_array,
    as_integer,
    kept_axes,
    mismatch,
    normalized_axes,
    normalized_axis,
    shape_of,
)
from difflab.arrays.shapes import broadcast_to, flat_unless, reshape
from difflab.core.apply import apply
from difflab.core.ownership import unchanged
from difflab.core.primitive import Primitive, Shape

__all__ = [
    "argmax",
    "argsort",
    "cumprod",
    "cumsum",
    "linear_recurrence",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "softmax",
    "sort",
    "sum",
    "take_along_axis",
]


def _reduced(row: Primitive, x: Array, axis: Axis, keepdims: bool) -> Array:
    x = as_array(x)
    shape = shape_of(x)
    return _over(row, x, normalized_axes(row.name, axis, shape), shape, keepdims)


def _over(row: Primitive, x: Array, axes: tuple[int, ...], shape: Shape, keepdims: bool) -> Array:
    if not axes:
        return apply(rows.absolute, x) if row is rows.norm else _same(x)
    if row is not rows.sum_ and math.prod(shape[entry] for entry in axes) == 0:
        if row.empty is None:
            raise mismatch(f"{row.name} of an empty array, of the shape {shape}")
        nothing = _over(rows.sum_, x, axes, shape, keepdims)  # it depends on x, as a graph records
        return nothing + row.empty if row.empty else nothing
    reduced = apply(row, x, axes=axes, rank=len(shape))
    if keepdims is False:
        return reduced
    if not as_integer(row.name, "keepdims", keepdims):
        return reduced
    return reshape(reduced, kept_axes(shape, axes))


def _same(x: Array) -> Array:
    """Return the result of a reduction over no axis, which is not a view."""
    return x.copy() if isinstance(x, np.ndarray) else unchanged(x)


def sum(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return Σx along axes.

    Examples
    --------
    >>> import numpy as np
    >>> sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [4.0, 6.0]
    """
    return _reduced(rows.sum_, x, axis, keepdims)


def prod(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return Πx along axes; its derivatives are also correct where elements are zero.

    Examples
    --------
    >>> import numpy as np
    >>> float(prod(np.array([2.0, 3.0, 4.0])))
    24.0
    """
    return _reduced(rows.prod, x, axis, keepdims)


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the average along axes.

    Examples
    --------
    >>> import numpy as np
    >>> float(mean(np.array([1.0, 2.0, 6.0])))
    3.0
    """
    x = as_array(x)
    shape = shape_of(x)
    axes = normalized_axes("mean", axis, shape)
    size = math.prod(shape if axis is None else [shape[entry] for entry in axes])
    if size == 0:
        raise mismatch(f"mean of an empty array, of the shape {shape}")
    total = _over(rows.sum_, x, axes, shape, keepdims)
    return total if size == 1 else total / size


def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the maximum along axes; at a tie the derivative goes to the last.

    Examples
    --------
    >>> import numpy as np
    >>> float(max(np.array([1.0, 3.0, 2.0])))
    3.0
    """
    return _reduced(rows.max_, x, axis, keepdims)


def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the minimum along axes; at a tie the derivative goes to the last.

    Examples
    --------
    >>> import numpy as np
    >>> float(min(np.array([1.0, 3.0, 2.0])))
    1.0
    """
    return _reduced(rows.min_, x, axis, keepdims)


def argmax(x: Array, axis: int | None = None) -> Array:
    """Return the index of the first maximum, as a float64; derivative 0.

    Examples
    --------
    >>> import numpy as np
    >>> float(argmax(np.array([1.0, 3.0, 2.0])))
    1.0
    """
    return _reduced(rows.argmax, *flat_unless("argmax", x, axis), False)


def norm(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return √Σx² along axes, without overflow of the squares; derivative 0 at the origin.

    Of a matrix, without `axis`, it is the Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> float(norm(np.array([3.0, 4.0])))
    5.0
    """
    return _reduced(rows.norm, x, axis, keepdims)


def logsumexp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return log Σeˣ along axes, without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> float(logsumexp(np.array([1000.0, 1000.0])))
    1000.6931471805599
    """
    return _reduced(rows.logsumexp, x, axis, keepdims)


def _along(row: Primitive, x: Array, axis: Axis) -> Array:
    x = as_array(x)
    shape = shape_of(x)
    if not shape:
        raise mismatch(f"{row.name} takes an array, not a scalar")
    return apply(row, x, axes=normalized_axes(row.name, axis, shape), rank=len(shape))


def reduced_for_broadcast(reduce: Callable[..., Array], x: Array, axis: Axis) -> Array:
    """Reduce so that the result broadcasts against `x`; reduced leading axes need not be kept."""
    rank = len(shape_of(x))
    axes = normalized_axes("a reduction", axis, shape_of(x))
    leading = axes == tuple(range(-rank, -rank + len(axes)))
    return reduce(x, axis, keepdims=not leading)


def softmax(x: Array, axis: Axis = -1) -> Array:
    """Return eˣ/Σeˣ along axes, without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([-1000.0, 1000.0])).tolist()
    [0.0, 1.0]
    """
    return _along(rows.softmax, x, axis)


def log_softmax(x: Array, axis: Axis = -1) -> Array:
    """Return log softmax(x), finite and accurate for any finite x.

    Examples
    --------
    >>> import numpy as np
    >>> log_softmax(np.array([-1000.0, 1000.0])).tolist()
    [-2000.0, 0.0]
    """
    return _along(rows.log_softmax, x, axis)


def cumsum(x: Array, axis: int | None = None) -> Array:
    """Return the running sums along an axis; of the flattened array if it is None.

    Examples
    --------
    >>> import numpy as np
    >>> cumsum(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    """
    return _along(rows.cumsum, *flat_unless("cumsum", x, axis))


def cumprod(x: Array, axis: int | None = None) -> Array:
    """Return the running products along an axis; of the flattened array if it is None.

    The derivatives are also correct where elements are zero.

    Examples
    --------
    >>> import numpy as np
    >>> cumprod(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 6.0]
    """
    return _along(rows.cumprod, *flat_unless("cumprod", x, axis))


def linear_recurrence(a: Array, b: Array, axis: int = -1) -> Array:
    r"""Return the solution of a linear recurrence of the first order along an axis.

    .. math:: y_0 = b_0, \qquad y_i = a_{i-1} y_{i-1} + b_i

    Its derivatives are linear recurrences too, and divide by no coefficient.

    Parameters
    ----------
    a : array
        The coefficients, one fewer along the axis than there are terms.
    b : array
        The terms.
    axis : int
        The axis.

    Returns
    -------
    array
        The solution, of the shape of `b`.

    Raises
    ------
    ShapeError
        The shapes differ otherwise, or there is no such axis.

    Examples
    --------
    The balance of an account whose interest changes from year to year:

    >>> import numpy as np
    >>> linear_recurrence(np.array([1.5, 2.0]), np.array([100.0, 0.0, 50.0])).tolist()
    [100.0, 150.0, 350.0]
    """
    a, b = as_array(a), as_array(b)
    coefficients, terms = shape_of(a), shape_of(b)
    along = normalized_axis("linear_recurrence", axis, terms)
    wanted = [size - (place - len(terms) == along) for place, size in enumerate(terms)]
    if list(coefficients) != wanted:
        raise mismatch(
            f"linear_recurrence of terms of the shape {terms} takes coefficients of the shape"
            f" {tuple(wanted)}, not {coefficients}"
        )
    return apply(rows.linear_recurrence, a, b, axes=(along,), rank=len(terms))


# --- sorting, and entries at computed indices ----------------------------------------------------
# Equal elements keep their order, and nan comes last, so each element of a sorted array has the
# derivative of the element that it was.


def argsort(x: Array, axis: int | None = -1) -> Array:
    """Return the indices that sort an array along an axis, as float64; derivative 0.

    The order is stable: equal elements keep theirs. Of the flattened array if `axis` is None.

    Examples
    --------
    >>> argsort(np.array([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 0.0]
    """
    x, along = flat_unless("argsort", x, axis)
    return apply(rows.argsort, x, axes=(along,), rank=len(shape_of(x)))


def sort(x: Array, axis: int | None = -1) -> Array:
    """Return an array sorted along an axis, of the flattened array if it is None.

    Examples
    --------
    >>> sort(np.array([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    x, along = flat_unless("sort", x, axis)
    return take_along_axis(x, argsort(x, along), along)


def take_along_axis(x: Array, indices: Array, axis: int | None = -1) -> Array:
    """Return the entries at indices along an axis, which may be computed values.

    Parameters
    ----------
    x : array or traced value
    indices : array or traced value
        Integers, of as many axes as `x`; the other axes broadcast. Negative ones count from
        the end.
    axis : int or None
        None for the flattened array, with indices of one axis.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    IndexingError
        An index is out of bounds.

    Examples
    --------
    >>> take_along_axis(np.array([[5.0, 6.0], [7.0, 8.0]]), np.array([[1], [0]])).tolist()
    [[6.0], [7.0]]
    """
    x, along = flat_unless("take_along_axis", x, axis)
    indices = as_array(indices)
    shape, wanted = shape_of(x), shape_of(indices)
    if len(wanted) != len(shape):
        raise mismatch(f"take_along_axis of the shape {shape} with indices of the shape {wanted}")
    rest, own = (_without(part, along) for part in (shape, wanted))
    try:
        common = np.broadcast_shapes(rest, own)
    except ValueError:
        raise mismatch(
            f"take_along_axis of the shape {shape} with indices of the shape {wanted}"
        ) from None
    x = broadcast_to(x, _with(common, along, shape[along]))
    indices = broadcast_to(indices, _with(common, along, wanted[along]))
    return apply(rows.take_along, x, indices, axis=along, rank=len(shape))


def _without(shape: tuple[int, ...], along: int) -> tuple[int, ...]:
    place = along + len(shape)
    return shape[:place] + shape[place + 1 :]


def _with(shape: tuple[int, ...], along: int, size: int) -> tuple[int, ...]:
    place = along + len(shape) + 1
    return (*shape[:place], size, *shape[place:])


def taken_at(x: Array, indices: Any, axis: int = 0) -> Array:
    """Return the entries at computed indices of any shape along an axis, as `numpy.take` does."""
    x = as_array(x)
    shape, wanted = shape_of(x), shape_of(indices)
    place = normalized_axis("take", axis, shape) + len(shape)
    flat = reshape(indices, (-1, *(1,) * (len(shape) - place - 1)))
    opened = reshape(flat, ((1,) * place + shape_of(flat)))
    entries = take_along_axis(x, opened, place)
    return reshape(entries, (*shape[:place], *wanted, *shape[place + 1 :]))

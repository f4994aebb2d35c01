"""Sorting, and entries at computed indices.

Equal elements keep their order, and nan comes last, so each element of a sorted array has the
derivative of the element that it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, mismatch, normalized_axis, shape_of
from difflab.arrays.shapes import broadcast_to, flat_unless, reshape
from difflab.core.apply import apply

__all__ = ["argsort", "sort", "take_along_axis"]


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
        Whole numbers, of as many axes as `x`; the other axes broadcast. Negative ones count from
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
    found = take_along_axis(x, opened, place)
    return reshape(found, (*shape[:place], *wanted, *shape[place + 1 :]))

"""Functions that move data between shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab import primitives as rows
from difflab.arrays.given import (
    Array,
    Axis,
    as_array,
    as_indices,
    as_integer,
    as_integers,
    mismatch,
    normalized_axes,
    normalized_axis,
    shape_of,
)
from difflab.core.apply import apply
from difflab.core.ownership import shared, unchanged
from difflab.core.primitive import Shape
from difflab.primitives.movement import as_places

__all__ = [
    "broadcast_to",
    "concatenate",
    "diag",
    "diagonal",
    "pad",
    "ravel",
    "reshape",
    "squeeze",
    "stack",
    "take",
    "transpose",
]


def reshape(x: Array, shape: int | Sequence[int]) -> Array:
    """Return the same elements, in row-major order, in another shape.

    Parameters
    ----------
    x : array or traced value
    shape : int or sequence of int
        One size may be -1: it is inferred.

    Raises
    ------
    ShapeError
        The new shape has a different number of elements.

    Examples
    --------
    >>> reshape(np.arange(6.0), (2, -1)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    x = as_array(x)
    old, new = shape_of(x), as_integers("reshape", "shape", shape)
    size, known = math.prod(old), math.prod(entry for entry in new if entry != -1)
    if new.count(-1) == 1 and known > 0 and size % known == 0:
        new = tuple(size // known if entry == -1 else entry for entry in new)
    if math.prod(new) != size or min(new, default=1) < 0:
        raise mismatch(f"reshape cannot turn the shape {old} into {new}")
    if new == old:
        return shared(x)
    return apply(rows.reshape, x, shape=new, rank=len(old))


def without_leading_ones(x: Array, rank: int) -> Array:
    """Return values for a part of `rank` axes, without the leading axes of size 1 that it lacks.

    NumPy drops these where values are assigned to a part.

    Examples
    --------
    >>> without_leading_ones(np.ones((1, 1, 3)), 1).shape, without_leading_ones(2.0, 1)
    ((3,), 2.0)
    """
    shape = shape_of(as_array(x))
    surplus = len(shape) - rank
    if surplus > 0 and set(shape[:surplus]) == {1}:
        return reshape(x, shape[surplus:])
    return x


def ravel(x: Array) -> Array:
    """Return the elements in one axis: a view where they follow each other in memory, else a copy.

    Examples
    --------
    >>> ravel(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    flat = reshape(x, -1)
    in_rows = getattr(x, "__difflab_in_rows__", None)
    return flat if in_rows is None or in_rows() else unchanged(flat)


def flat_unless(name: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """Return an array and one of its axes, counted from the end; flattened if it is None."""
    if axis is None:
        return reshape(x, -1), -1
    x = as_array(x)
    return x, normalized_axis(name, axis, shape_of(x))


def broadcast_to(x: Array, shape: int | Sequence[int]) -> Array:
    """Repeat `x` along new leading axes and axes of size 1.

    Raises
    ------
    ShapeError
        The shapes do not fit.

    Examples
    --------
    >>> broadcast_to(np.array([1.0, 2.0]), (2, 2)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    x = as_array(x)
    old, new = shape_of(x), as_integers("broadcast_to", "shape", shape)
    if not fits(old, new) or min(new, default=0) < 0:
        raise mismatch(f"broadcast_to cannot turn the shape {old} into {new}")
    if old == new:
        return shared(x)
    return apply(rows.broadcast, x, shape=new, rank=len(old))


def fits(old: Shape, new: Shape) -> bool:
    """Whether an array of shape `old` broadcasts to `new`."""
    lead = len(new) - len(old)
    return lead >= 0 and all(a in (1, b) for a, b in zip(old, new[lead:], strict=True))


def squeeze(x: Array, axis: Axis = None) -> Array:
    """Remove axes of size 1, all of them where `axis` is None.

    Raises
    ------
    ShapeError
        An axis has another size.

    Examples
    --------
    >>> squeeze(np.ones((1, 3, 1))).shape
    (3,)
    """
    x = as_array(x)
    shape = shape_of(x)
    rank = len(shape)
    if axis is None:
        return reshape(x, [size for size in shape if size != 1])
    axes = normalized_axes("squeeze", axis, shape)
    if any(shape[entry] != 1 for entry in axes):
        raise mismatch(f"squeeze removes axes of size 1, and the shape is {shape}")
    return reshape(x, [size for position, size in enumerate(shape) if position - rank not in axes])


def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes, or reverse their order.

    Examples
    --------
    >>> transpose(np.ones((2, 3))).shape
    (3, 2)
    """
    x = as_array(x)
    shape = shape_of(x)
    rank = len(shape)
    order = tuple(range(rank))[::-1] if axes is None else as_integers("transpose", "axes", axes)
    positions = sorted(entry % rank if -rank <= entry < rank else entry for entry in order)
    if positions != list(range(rank)):
        raise mismatch(f"transpose cannot order the axes of the shape {shape} as {order}")
    counted = tuple(entry % rank - rank for entry in order)
    return shared(x) if rank < 2 else apply(rows.transpose, x, axes=counted)


def several(name: str, arrays: Sequence[Array]) -> list[Array]:
    """Return a sequence of arrays as a list."""
    try:
        parts = list(arrays)
    except TypeError:
        raise mismatch(f"{name} takes a list of arrays, not {type(arrays).__name__}") from None
    return [as_array(part) for part in parts]


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Join arrays along an existing axis.

    Raises
    ------
    ShapeError
        The other axes differ.

    Examples
    --------
    >>> concatenate([np.zeros(2), np.ones(1)]).tolist()
    [0.0, 0.0, 1.0]
    """
    arrays = several("concatenate", arrays)
    shapes = [shape_of(x) for x in arrays]
    if not shapes or not shapes[0]:
        raise mismatch("concatenate needs arrays with at least one axis")
    along = normalized_axis("concatenate", axis, shapes[0])
    rank = len(shapes[0])
    for shape in dict.fromkeys(shapes):
        others = [s[: along + rank] + s[along + rank + 1 :] for s in (shapes[0], shape)]
        if len(shape) != rank or others[0] != others[1]:
            raise mismatch(f"concatenate cannot join the shapes {shapes[0]} and {shape}")
    if len(arrays) == 1:
        return unchanged(arrays[0])
    return apply(rows.concatenate, *arrays, axis=along, rank=rank)


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis.

    Raises
    ------
    ShapeError
        The shapes differ.

    Examples
    --------
    >>> stack([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    arrays = several("stack", arrays)
    shapes = [shape_of(x) for x in arrays]
    if not shapes:
        raise mismatch("stack needs at least one array")
    for shape in shapes[1:]:
        if shape != shapes[0]:
            raise mismatch(f"stack cannot join the shapes {shapes[0]} and {shape}")
    along = normalized_axis("stack", axis, (*shapes[0], 1))
    opened = list(shapes[0])
    opened.insert(along + len(opened) + 1, 1)
    return concatenate([reshape(x, opened) for x in arrays], along)


def pad(x: Array, width: int | Sequence[Sequence[int]]) -> Array:
    """Surround an array with zeros.

    Parameters
    ----------
    x : array or traced value
    width : int or sequence of (before, after)
        The number of zeros at the ends of every axis.

    Examples
    --------
    >>> pad(np.ones(2), 1).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    x = as_array(x)
    shape = shape_of(x)
    if isinstance(width, list | tuple):
        ends = [_pair(entry) for entry in width]
    else:
        ends = [(as_integer("pad", "width", width, 0),) * 2] * len(shape)  # type: ignore[arg-type]
    if len(ends) != len(shape):
        raise mismatch(f"pad cannot surround the shape {shape} by {ends}")
    key = tuple((before, before + size, 1) for (before, _), size in zip(ends, shape, strict=True))
    padded = tuple(before + size + after for (before, after), size in zip(ends, shape, strict=True))
    return apply(rows.scatter, x, keys=(key,), shape=padded)


def _pair(entry: Any) -> tuple[int, int]:
    if not isinstance(entry, list | tuple) or len(entry) != 2:
        raise mismatch("width of pad is an integer, or a pair (before, after) for every axis")
    return as_integer("pad", "width", entry[0], 0), as_integer("pad", "width", entry[1], 0)


def take(x: Array, places: Sequence[int] | NDArray[Any] | int, axis: int = 0) -> Array:
    """Return the entries at static indices, which may repeat.

    Raises
    ------
    ShapeError
        An index is out of bounds, or not an integer.

    Examples
    --------
    >>> take(np.array([5.0, 6.0, 7.0]), [2, 0, 0]).tolist()
    [7.0, 5.0, 5.0]
    """
    x = as_array(x)
    shape = shape_of(x)
    along = normalized_axis("take", axis, shape)
    given = as_indices("take", places)
    wanted = np.atleast_1d(given.astype(int))
    outside = wanted[(wanted < -shape[along]) | (wanted >= shape[along])]
    if outside.size:
        raise mismatch(f"index {outside.flat[0]} of take is outside an axis of size {shape[along]}")
    entries = apply(
        rows.take, x, places=as_places(wanted % shape[along]), axis=along, rank=len(shape)
    )
    if np.ndim(places) == 1:
        return entries
    start = along + len(shape)
    return reshape(entries, (*shape[:start], *np.shape(places), *shape[start + 1 :]))


def diag(x: Array) -> Array:
    """Return the diagonal matrix of a vector, or the diagonal of a matrix.

    Examples
    --------
    >>> diag(np.array([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    x = as_array(x)
    rank = len(shape_of(x))
    if rank == 1:
        return apply(rows.diag, x)
    if rank == 2:
        return diagonal(x)
    raise mismatch(f"diag takes a vector or a matrix, not the shape {shape_of(x)}")


def diagonal(x: Array) -> Array:
    """Return the diagonal of a square matrix, or of each of a stack.

    Examples
    --------
    >>> diagonal(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    x = as_array(x)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise mismatch(f"diagonal takes square matrices, not the shape {shape}")
    return apply(rows.diagonal, x)

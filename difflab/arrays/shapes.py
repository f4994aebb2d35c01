"""Functions that move data between shapes, and what every array function says of shapes.

May import `primitives`, `core`, `errors`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from difflab import primitives as rows
from difflab.core.apply import apply
from difflab.core.ownership import unchanged
from difflab.core.place import at_users_line
from difflab.core.primitive import Shape
from difflab.errors import ShapeError

__all__ = [
    "Array",
    "Axis",
    "Shape",
    "broadcast_to",
    "concatenate",
    "counted",
    "diag",
    "diagonal",
    "mismatch",
    "one_axis",
    "pad",
    "reshape",
    "shape_of",
    "squeeze",
    "stack",
    "take",
    "transpose",
    "valued",
]

Array = Any
Axis = int | Sequence[int] | None


def shape_of(x: Array) -> Shape:
    """Return the shape of a number, an array or a traced value."""
    found = getattr(x, "shape", None)
    return tuple(np.shape(x)) if found is None else tuple(found)


def valued(x: Any) -> Array:
    """Return lists of numbers as an array, and what has a shape as it is."""
    return np.asarray(x, dtype=float) if isinstance(x, list | tuple) else x


def mismatch(message: str, hint: str | None = None) -> ShapeError:
    """Return the error about shapes that do not fit, at the user's line of Python."""
    return at_users_line(ShapeError, message, hint)


def counted(name: str, axis: Axis, shape: Shape) -> tuple[int, ...]:
    """Return axes as sorted negative numbers; all of them where `axis` is None.

    Raises
    ------
    ShapeError
        There is no such axis, or it is given twice.
    """
    rank = len(shape)
    if axis is None:
        return tuple(range(-rank, 0))
    wanted = wholes(name, axis, "axes")
    outside = [entry for entry in wanted if not -rank <= entry < rank]
    if outside:
        raise mismatch(f"{name} along axis {outside[0]} of the shape {shape}")
    found = sorted(entry % rank - rank for entry in wanted)
    if len(set(found)) < len(found):
        raise mismatch(f"{name} takes an axis twice: {tuple(wanted)}")
    return tuple(found)


def wholes(name: str, given: Any, what: str) -> list[int]:
    """Return one whole number, or several, as a list.

    Raises
    ------
    ShapeError
        They are something else.
    """
    try:
        alone = isinstance(given, SupportsIndex) and not getattr(given, "ndim", 0)
        return [operator.index(entry) for entry in ([given] if alone else given)]
    except TypeError:
        raise mismatch(f"{name} takes whole numbers as {what}, not {given!r}") from None


def one_axis(name: str, axis: int, shape: Shape) -> int:
    """Return one axis as a negative number."""
    if axis is None:
        raise mismatch(f"{name} needs an axis")
    return counted(name, axis, shape)[0]


def reshape(x: Array, shape: int | Sequence[int]) -> Array:
    """Return the same numbers, row by row, in another shape.

    Parameters
    ----------
    x : array or traced value
    shape : int or sequence of int
        One size may be -1: it is what remains.

    Raises
    ------
    ShapeError
        The new shape holds another number of elements.

    Examples
    --------
    >>> reshape(np.arange(6.0), (2, -1)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    old = shape_of(x)
    new = tuple(wholes("reshape", shape, "a shape"))
    size, known = math.prod(old), math.prod(entry for entry in new if entry != -1)
    if new.count(-1) == 1 and known > 0 and size % known == 0:
        new = tuple(size // known if entry == -1 else entry for entry in new)
    if math.prod(new) != size or min(new, default=1) < 0:
        raise mismatch(f"reshape cannot turn the shape {old} into {new}")
    if new == old:
        return unchanged(x)
    return apply(rows.reshape, x, shape=new, rank=len(old))


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
    old, new = shape_of(x), tuple(wholes("broadcast_to", shape, "a shape"))
    if not fits(old, new) or min(new, default=0) < 0:
        raise mismatch(f"broadcast_to cannot turn the shape {old} into {new}")
    if old == new:
        return unchanged(x)
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
    shape = shape_of(x)
    rank = len(shape)
    if axis is None:
        return reshape(x, [size for size in shape if size != 1])
    axes = counted("squeeze", axis, shape)
    if any(shape[entry] != 1 for entry in axes):
        raise mismatch(f"squeeze removes axes of size 1, and the shape is {shape}")
    return reshape(x, [size for place, size in enumerate(shape) if place - rank not in axes])


def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes, or reverse their order.

    Examples
    --------
    >>> transpose(np.ones((2, 3))).shape
    (3, 2)
    """
    x = valued(x)
    shape = shape_of(x)
    rank = len(shape)
    order = tuple(range(rank))[::-1] if axes is None else tuple(wholes("transpose", axes, "axes"))
    if sorted(place % rank if -rank <= place < rank else place for place in order) != list(
        range(rank)
    ):
        raise mismatch(f"transpose cannot order the axes of the shape {shape} as {order}")
    places = tuple(place % rank - rank for place in order)
    return unchanged(x) if rank < 2 else apply(rows.transpose, x, axes=places)


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Join arrays along an axis that they have.

    Raises
    ------
    ShapeError
        The other axes differ.

    Examples
    --------
    >>> concatenate([np.zeros(2), np.ones(1)]).tolist()
    [0.0, 0.0, 1.0]
    """
    arrays = [valued(x) for x in arrays]
    shapes = [shape_of(x) for x in arrays]
    if not shapes or not shapes[0]:
        raise mismatch("concatenate needs arrays with at least one axis")
    place = one_axis("concatenate", axis, shapes[0])
    rank = len(shapes[0])
    for shape in shapes[1:]:
        others = [s[: place + rank] + s[place + rank + 1 :] for s in (shapes[0], shape)]
        if len(shape) != rank or others[0] != others[1]:
            raise mismatch(f"concatenate cannot join the shapes {shapes[0]} and {shape}")
    if len(arrays) == 1:
        return unchanged(arrays[0])
    return apply(rows.concatenate, *arrays, axis=place, rank=rank)


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
    shapes = [shape_of(x) for x in arrays]
    if not shapes:
        raise mismatch("stack needs at least one array")
    for shape in shapes[1:]:
        if shape != shapes[0]:
            raise mismatch(f"stack cannot join the shapes {shapes[0]} and {shape}")
    place = one_axis("stack", axis, (*shapes[0], 1))
    opened = list(shapes[0])
    opened.insert(place + len(opened) + 1, 1)
    return concatenate([reshape(x, opened) for x in arrays], place)


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
    shape = shape_of(x)
    ends = [(width, width)] * len(shape) if isinstance(width, int) else [tuple(w) for w in width]
    if len(ends) != len(shape) or min((min(pair) for pair in ends), default=0) < 0:
        raise mismatch(f"pad cannot surround the shape {shape} by {ends}")
    key = tuple((before, before + size, 1) for (before, _), size in zip(ends, shape, strict=True))
    whole = tuple(before + size + after for (before, after), size in zip(ends, shape, strict=True))
    return apply(rows.scatter, x, keys=(key,), shape=whole)


def take(x: Array, places: Sequence[int] | NDArray[Any] | int, axis: int = 0) -> Array:
    """Return the entries at places that are known beforehand, which may repeat.

    Raises
    ------
    ShapeError
        A place is outside of the axis, or no whole number.

    Examples
    --------
    >>> take(np.array([5.0, 6.0, 7.0]), [2, 0, 0]).tolist()
    [7.0, 5.0, 5.0]
    """
    shape = shape_of(x)
    along = one_axis("take", axis, shape)
    given = np.asarray(places)
    if given.size and given.dtype.kind not in "iu":
        raise mismatch(f"take needs whole numbers as places, not {given.dtype}")
    wanted = np.atleast_1d(given.astype(int))
    outside = wanted[(wanted < -shape[along]) | (wanted >= shape[along])]
    if outside.size:
        raise mismatch(f"take at {outside.flat[0]} is outside an axis of size {shape[along]}")
    flat = tuple((wanted.ravel() % shape[along]).tolist())
    found = apply(rows.take, x, places=flat, axis=along, rank=len(shape))
    if np.ndim(places) == 1:
        return found
    start = along + len(shape)
    return reshape(found, (*shape[:start], *np.shape(places), *shape[start + 1 :]))


def diag(x: Array) -> Array:
    """Return the diagonal matrix of a vector, or the diagonal of a matrix.

    Examples
    --------
    >>> diag(np.array([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    rank = len(shape_of(x))
    if rank == 1:
        return apply(rows.diag, valued(x))
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
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise mismatch(f"diagonal takes square matrices, not the shape {shape}")
    return apply(rows.diagonal, x)

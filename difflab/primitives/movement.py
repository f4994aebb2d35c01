"""Rows that rearrange arrays: transpose, concatenate, take and put, diagonals, and constants.

`stop_gradient` leaves every element where it is and passes no derivative on.

Batch axes lead: every kernel counts axes from the end.
"""

from __future__ import annotations

import math
from operator import methodcaller
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.ownership import Step
from difflab.core.primitive import Primitive, Shape, Shapes, elementwise, linear
from difflab.primitives.structure import Array, additions, counted, index, placed

__all__ = [
    "concatenate",
    "constant_array",
    "diag",
    "diagonal",
    "put",
    "stop_gradient",
    "take",
    "transpose",
]

Places = tuple[int, ...] | bytes
"""Indices along an axis; many of them as the bytes of an int64 array."""
LISTED = 64
"""The most indices that are a tuple: a million Python integers take seconds to make and compare."""


def as_places(chosen: NDArray[np.int64]) -> Places:
    """Return indices along an axis as a parameter, equal for equal indices.

    Examples
    --------
    >>> as_places(np.array([2, 0])), len(as_places(np.arange(1000)))
    ((2, 0), 8000)
    """
    flat = np.ascontiguousarray(chosen, dtype=np.int64).ravel()
    return tuple(flat.tolist()) if len(flat) <= LISTED else flat.tobytes()


def indices(places: Places) -> NDArray[np.int64]:
    """Return indices along an axis as an array.

    Examples
    --------
    >>> indices((2, 0)).tolist(), indices(np.array([2, 0]).tobytes()).tolist()
    ([2, 0], [2, 0])
    """
    if isinstance(places, bytes):
        return np.frombuffer(places, dtype=np.int64)
    return np.array(places, dtype=np.int64)


def resized(shape: Shape, axis: int, size: int) -> Shape:
    """Return a shape with another size along an axis, which is counted from the end."""
    along = axis + len(shape)
    return (*shape[:along], size, *shape[along + 1 :])


def _transpose(xp: ModuleType, x: Array, *, axes: tuple[int, ...]) -> Array:
    batch = x.ndim - len(axes)
    if batch == 0 and xp is np:
        return x.transpose(axes)
    return xp.transpose(x, (*range(batch), *(axis + x.ndim for axis in axes)))


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation, of axes counted from the end, that undoes `axes`."""
    rank = len(axes)
    return tuple(axes.index(axis - rank) - rank for axis in range(rank))


def _concatenate(xp: ModuleType, *parts: Array, axis: int, rank: int) -> Array:
    batches = [part.shape[: part.ndim - rank] for part in parts]
    batch = np.broadcast_shapes(*batches)
    whole = [
        xp.broadcast_to(part, batch + part.shape[part.ndim - rank :]) if own != batch else part
        for part, own in zip(parts, batches, strict=True)
    ]
    return xp.concatenate(whole, axis=axis)


def _concatenated_shape(shapes: tuple[Shape, ...], *, axis: int, rank: int) -> Shape:
    return resized(shapes[0], axis, sum(shape[axis] for shape in shapes))


def _cut(t: Any, position: int, shapes: tuple[Shape, ...], *, axis: int, rank: int) -> Any:
    """Cut the part of one argument out of the whole.

    Its start follows from the elements before it, which are counted once for all parts.
    """
    along, own = axis + rank, shapes[position]
    before = (shapes if isinstance(shapes, Shapes) else Shapes(shapes)).starts[position]
    beside = math.prod(own[:along] + own[along + 1 :])
    start = before // beside if beside else 0
    key: list[Any] = [(0, size, 1) for size in own]
    key[along] = (start, start + own[along], 1)
    return index(t, key=tuple(key), rank=rank)


def _taken_shape(shapes: tuple[Shape, ...], *, places: Places, axis: int, rank: int) -> Shape:
    return resized(shapes[0], axis, len(indices(places)))


def _take(xp: ModuleType, x: Array, *, places: Places, axis: int, rank: int) -> Array:
    return xp.take(x, xp.asarray(indices(places)), axis=axis)


def _put(xp: ModuleType, x: Array, *, places: Places, axis: int, rank: int, size: int) -> Array:
    moved = xp.moveaxis(x, axis, 0)
    out = xp.zeros((size, *moved.shape[1:]), dtype=x.dtype)
    where = xp.asarray(indices(places))
    if hasattr(out, "at"):  # JAX's arrays do not change
        out = out.at[where].add(moved)
    else:
        xp.add.at(out, where, moved)
    return xp.moveaxis(out, 0, axis)


def _put_shape(
    shapes: tuple[Shape, ...], *, places: Places, axis: int, rank: int, size: int
) -> Shape:
    return resized(shapes[0], axis, size)


def _listed(shape: Shape, *, places: Places, axis: int, rank: int) -> str:
    """Return indices, and the axis that they are along, as the language writes them."""
    along = "" if axis == -rank else f" along {axis + rank}"
    return f"{indices(places).tolist()}{along}"


def _diag(xp: ModuleType, x: Array) -> Array:
    size = x.shape[-1]
    out = xp.zeros((*x.shape, size), dtype=x.dtype)
    places = xp.arange(size)
    return placed(xp, out, (places, places), x)


def _constant_array(xp: ModuleType, *, shape: Shape, values: bytes) -> Array:
    return xp.asarray(np.frombuffer(values, dtype=np.float64).reshape(shape))


transpose: Primitive = Primitive(
    name="transpose",
    kernel=_transpose,
    rule=linear(lambda t, position, shapes, *, axes: transpose(t, axes=inverse(axes))),
    brackets=lambda shape, *, axes: (
        "" if axes == tuple(range(-1, -len(axes) - 1, -1)) else counted(axes, len(axes))
    ),
    structural=True,
    view=True,
    shape=lambda shapes, *, axes: tuple(shapes[0][axis] for axis in axes),
    unbatched=lambda xp, *, axes: methodcaller("transpose", axes),
    stacked=lambda size, args, *, axes: transpose(args[0][0], axes=(-1 - len(axes), *axes)),
)
concatenate: Primitive = Primitive(
    name="concatenate",
    arity=None,
    kernel=_concatenate,
    rule=linear(_cut),
    brackets=lambda shape, *, axis, rank: "" if axis == -rank else counted((axis,), rank),
    structural=True,
    shape=_concatenated_shape,
    unbatched=lambda xp, *, axis, rank: lambda *parts: xp.concatenate(parts, axis=axis),
)
take: Primitive = Primitive(
    name="take",
    kernel=_take,
    rule=linear(
        lambda t, position, shapes, *, places, axis, rank: put(
            t, places=places, axis=axis, rank=rank, size=shapes[0][axis + rank]
        )
    ),
    brackets=_listed,
    structural=True,
    shape=_taken_shape,
)
# The transpose of `take`: adds each part at its index.
put: Primitive = Primitive(
    name="put",
    kernel=_put,
    rule=linear(
        lambda t, position, shapes, *, places, axis, rank, size: take(
            t, places=places, axis=axis, rank=rank
        )
    ),
    brackets=lambda shape, *, size, **params: f"{_listed(shape, **params)}, {list(shape)}",
    structural=True,
    arithmetic=lambda shapes, **params: additions(put, shapes, **params),
    shape=_put_shape,
)
diag: Primitive = Primitive(
    name="diag",
    kernel=_diag,
    rule=linear(lambda t, position, shapes: diagonal(t)),
    structural=True,
    shape=lambda shapes: (*shapes[0], shapes[0][-1]),
)
diagonal: Primitive = Primitive(
    name="diagonal",
    kernel=lambda xp, x: xp.diagonal(x, axis1=-2, axis2=-1),
    rule=linear(lambda t, position, shapes: diag(t)),
    structural=True,
    view=True,
    read_only="a diagonal",
    shape=lambda shapes: shapes[0][:-1],
)
constant_array: Primitive = Primitive(
    name="constant_array",
    kernel=_constant_array,
    rule=elementwise(),
    structural=True,
    shape=lambda shapes, *, shape, values: shape,
)
stop_gradient: Primitive = Primitive(
    name="stop_gradient",
    kernel=lambda xp, x: x,
    rule=elementwise(None),
    names=("stop_gradient",),
    structural=True,
    shape=lambda shapes: shapes[0],
    zero_slope="stop_gradient has no derivative",
)


def read_only(steps: Step | None) -> str:
    """Return why a view is read-only, as NumPy's; empty if it can be written to.

    Examples
    --------
    >>> read_only((None, diagonal, {})), read_only((None, transpose, {}))
    ('a diagonal', '')
    """
    why = ""
    while steps is not None and not why:
        steps, row, _ = steps
        why = row.read_only
    return why

"""Rows of orders: the sorting permutation, and parts at computed indices.

Indices are computed values, float64 as all values of a graph are, and have no derivative. Each row
counts axes from the end, because batch axes lead.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from difflab.core.primitive import Primitive, Shape, Transpose, elementwise, tangent
from difflab.errors import IndexingError, UnsupportedError
from difflab.primitives.movement import resized
from difflab.primitives.reductions import Axes
from difflab.primitives.structure import Array, unless_last

__all__ = ["argsort", "put_along", "take_along"]


SHORT = 256
"""Up to this size NumPy's stable sort is as fast as its unstable one."""


def _argsort(xp: ModuleType, x: Array, *, axes: Axes, rank: int) -> Array:
    """Return the stable order of the elements along an axis, nan last.

    NumPy's unstable sort is some times faster, and gives the same order where no two elements are
    equal.
    """
    axis = axes[0]
    if xp is not np:
        return xp.argsort(x, axis=axis) * 1.0
    if x.dtype == np.float64 and x.shape[axis] > SHORT:
        order = np.argsort(x, axis=axis)
        ordered = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
        if np.all(ordered[..., 1:] > ordered[..., :-1]):
            return order * 1.0
    return np.argsort(x, axis=axis, kind="stable") * 1.0


def _whole(xp: ModuleType, places: Array, size: int) -> Array:
    """Return computed indices as integers from 0 to ``size - 1``; negative ones count back."""
    if not hasattr(places, "astype"):  # PyTorch
        indices = places.long()
        return indices + size * (indices < 0)
    try:
        indices = places.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        raise UnsupportedError("indices are numbers") from None
    if xp is np and indices.size and not -size <= indices.min() <= indices.max() < size:
        raise IndexingError(
            f"a computed index is outside an axis of size {size}: the indices go from"
            f" {indices.min()} to {indices.max()}",
        )
    return indices + size * (indices < 0)


def _alike(xp: ModuleType, x: Array, places: Array, rank: int) -> tuple[Array, Array]:
    """Broadcast the batch axes of both operands."""
    batch = np.broadcast_shapes(x.shape[: x.ndim - rank], places.shape[: places.ndim - rank])
    wide = [
        part
        if part.ndim == rank + len(batch) and part.shape[: len(batch)] == batch
        else xp.broadcast_to(part, batch + tuple(part.shape[part.ndim - rank :]))
        for part in (x, places)
    ]
    return wide[0], wide[1]


def _take_along(xp: ModuleType, x: Array, places: Array, *, axis: int, rank: int) -> Array:
    x, places = _alike(xp, x, places, rank)
    whole = _whole(xp, places, x.shape[axis])
    return x[whole] if x.ndim == 1 else xp.take_along_axis(x, whole, axis=axis)


def _put_along(
    xp: ModuleType, x: Array, places: Array, *, axis: int, rank: int, size: int
) -> Array:
    """Add every element at its index along an axis: in one axis, where each row has its part."""
    x, places = _alike(xp, x, places, rank)
    moved = xp.moveaxis(x, axis, -1)
    whole = xp.moveaxis(_whole(xp, places, size), axis, -1)
    lead = tuple(moved.shape[:-1])
    rows = math.prod(lead)
    if rows > 1:
        whole = whole + xp.asarray(size * np.arange(rows).reshape((*lead, 1)))
    flat, whole = moved.reshape(-1), whole.reshape(-1)
    if xp is np and flat.dtype == np.float64:
        out = np.bincount(whole, weights=flat, minlength=rows * size)
    else:
        out = xp.zeros((rows * size,), dtype=flat.dtype)
        if hasattr(out, "at"):  # JAX's arrays do not change
            out = out.at[whole].add(flat)
        else:
            xp.add.at(out, whole, flat)
    return xp.moveaxis(out.reshape((*lead, size)), -1, axis)


argsort: Primitive = Primitive(
    name="argsort",
    kernel=_argsort,
    ulps=0.0,
    rule=elementwise(None),
    convention="derivative 0",
    brackets=unless_last,
    analytic=False,
    shape=lambda shapes, *, axes, rank: shapes[0],
    dtype="float64",
)
take_along: Primitive = Primitive(
    name="take_along",
    kernel=_take_along,
    ulps=0.0,
    rule=tangent(
        Transpose(
            lambda t, x, places, *, axis, rank: put_along(
                t, places, axis=axis, rank=rank, size=x.shape[axis]
            )
        ),
        None,
    ),
    brackets=lambda shape, *, axis, rank: unless_last(shape, axes=(axis,), rank=rank),
    shape=lambda shapes, *, axis, rank: shapes[1],
)
# The transpose of `take_along`: adds each element at its index.
put_along: Primitive = Primitive(
    name="put_along",
    kernel=_put_along,
    ulps=0.0,
    rule=tangent(
        Transpose(
            lambda t, x, places, *, axis, rank, size: take_along(t, places, axis=axis, rank=rank)
        ),
        None,
    ),
    brackets=lambda shape, *, axis, rank, size: str([axis + rank, size]),
    shape=lambda shapes, *, axis, rank, size: _put_shape(shapes, axis, size),
)


def _put_shape(shapes: tuple[Shape, ...], axis: int, size: int) -> Shape:
    return resized(shapes[0], axis, size)

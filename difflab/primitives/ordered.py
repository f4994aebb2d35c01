"""The sum of many terms in a fixed order, as a chain of additions computes it.

Batch axes lead.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Shape, linear
from difflab.primitives.structure import broadcast, reshape

__all__ = ["sum_in_order"]

Array = Any
Places = tuple[tuple[int, int, int], ...]
"""For each part the start, stop and step of its terms' indices in the sum."""


def _sum_in_order(xp: ModuleType, *parts: Array, places: Places, length: int) -> Array:
    """Add up along the last axis, from the first term to the last.

    `xp.sum` adds in pairs, which rounds differently, and a running sum writes every partial sum
    out. Differences cannot be rearranged, so ``((t₁ - (-t₂)) - (-t₃)) - …`` is a plain loop.
    Libraries other than NumPy add in their own order.
    """
    if xp is not np:
        return sum(xp.sum(part, axis=-1) for part in parts)
    lead = np.broadcast_shapes(*(np.shape(part)[:-1] for part in parts))
    negated = np.empty((*lead, length), dtype=np.result_type(*parts))
    for part, indices in zip(parts, places, strict=True):
        _negate(part, negated[..., slice(*indices)])
    first = negated[..., :1]
    _negate(first, first)
    return np.subtract.reduce(negated, axis=-1)


def _negate(x: Array, out: Array) -> None:
    """Write -x. NumPy 2.4's `negative` misreads elements 64 bytes apart where `out` has gaps."""
    np.multiply(x, -1.0, out=out)


def _shape(shapes: tuple[Shape, ...], *, places: Places, length: int) -> Shape:
    return np.broadcast_shapes(*(shape[:-1] for shape in shapes))


def _transposed(
    t: Any, position: int, shapes: tuple[Shape, ...], *, places: Places, length: int
) -> Any:
    """Copy a cotangent to every term."""
    shape = shapes[position]
    rank = len(shape)
    return broadcast(reshape(t, shape=(*shape[:-1], 1), rank=rank - 1), shape=shape, rank=rank)


def _located(
    position: int, *, places: Places, length: int
) -> tuple[tuple[Any, ...], tuple[int]] | None:
    place = places[position]
    whole = range(*slice(*place).indices(length)) == range(length)
    return None if whole else ((place,), (length,))


sum_in_order: Primitive = Primitive(
    name="sum_in_order",
    located=_located,
    arity=None,
    kernel=_sum_in_order,
    rule=linear(_transposed),
    shape=_shape,
)

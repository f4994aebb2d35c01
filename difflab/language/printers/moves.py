"""What moves data between shapes, as loops over flat arrays. Imports `primitives`.

Every such row is a nest of loops that copies or adds elements whose places in the flat,
row-major arrays are affine in the counters: an offset and a stride per loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from difflab.core.primitive import Primitive
from difflab.primitives import broadcast, index, pack, reshape, scatter, sum_

__all__ = ["MOVED", "Move", "moves", "place"]

Shape = tuple[int, ...]
Key = Sequence[int | tuple[int, int | None, int]]


MOVED = frozenset({broadcast, index, pack, reshape, scatter, sum_})
"""The rows that are loops."""


@dataclass(frozen=True, slots=True)
class Move:
    """``out[target] (+)= argument[source]`` for all counters.

    Attributes
    ----------
    argument : int
        Which argument is read.
    sizes : tuple of int
        How far each loop counts.
    target, source : (int, tuple of int)
        Offset and strides of the place written and of the place read.
    adds : bool
        Whether elements are added to what is there.
    """

    argument: int
    sizes: Shape
    target: tuple[int, Shape]
    source: tuple[int, Shape]
    adds: bool = False


def moves(
    row: Primitive, params: dict[str, Any], shapes: Sequence[Shape], shape: Shape
) -> list[Move]:
    """Return the loops that compute a structural row or a sum.

    Parameters
    ----------
    row : Primitive
        One of index, broadcast, scatter, pack, reshape and sum.
    params : dict
        The node's static parameters.
    shapes, shape : tuple of int
        The shapes of the arguments and of the result.
    """
    if row is index:
        sizes, place_read = _chosen(params["key"], shapes[0])
        return [Move(0, sizes, (0, _strides(sizes)), place_read)]
    if row is scatter:
        result = []
        for argument, key in enumerate(params["keys"]):
            sizes, place_written = _chosen(key, shape)
            result.append(Move(argument, sizes, place_written, (0, _strides(sizes)), adds=True))
        return result
    if row is broadcast:
        lead = (0,) * (len(shape) - len(shapes[0]))
        own = zip(_strides(shapes[0]), shapes[0], strict=True)
        stretched = lead + tuple(0 if size == 1 else stride for stride, size in own)
        return [Move(0, shape, (0, _strides(shape)), (0, stretched))]
    if row.name == "sum":
        return [_summed(params["axes"], shapes[0], shape)]
    result, start = [], 0
    for argument, part in enumerate(shapes):
        size = math.prod(part)
        result.append(Move(argument, (size,), (start, (1,)), (0, (1,))))
        start += size
    return result


def _summed(axes: Sequence[int], shape: Shape, result: Shape) -> Move:
    kept = iter(_strides(result))
    rank = len(shape)
    target = tuple(0 if axis - rank in axes else next(kept) for axis in range(rank))
    return Move(0, shape, (0, target), (0, _strides(shape)), adds=True)


def _strides(shape: Shape) -> Shape:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _chosen(key: Key, shape: Shape) -> tuple[Shape, tuple[int, Shape]]:
    """Return the sizes of what a key selects, and the offset and strides of its places."""
    offset, sizes, strides = 0, [], []
    for entry, size, stride in zip(key, shape, _strides(shape), strict=True):
        if isinstance(entry, int):
            offset += entry * stride
        else:
            chosen = range(*slice(*entry).indices(size))
            offset += chosen.start * stride
            sizes.append(len(chosen))
            strides.append(chosen.step * stride)
    return tuple(sizes), (offset, tuple(strides))


def place(affine: tuple[int, Shape], counters: Sequence[str]) -> str:
    """Return the place as an expression of the counters.

    Examples
    --------
    >>> place((2, (3, -1)), ["i0", "i1"]), place((0, (1,)), ["i0"]), place((0, ()), [])
    ('3*i0 - i1 + 2', 'i0', '0')
    """
    offset, strides = affine
    terms = []
    for stride, counter in zip(strides, counters, strict=True):
        if stride:
            factor = "" if abs(stride) == 1 else f"{abs(stride)}*"
            terms.append(("- " if stride < 0 else "+ ") + factor + counter)
    if offset or not terms:
        terms.append(f"{'-' if offset < 0 else '+'} {abs(offset)}")
    return " ".join(terms).removeprefix("+ ")

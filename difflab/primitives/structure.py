"""Rows that move data between shapes: they need no arithmetic, except `sum`.

Batch axes lead: a value of core shape ``(3, 4)`` may arrive as ``(…, 3, 4)``, so every kernel
in this module counts axes from the end and gets the core rank as a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import PYTORCH
from difflab.core.primitive import LinearMap, Primitive, Shape, Shapes, linear

__all__ = ["broadcast", "index", "pack", "reshape", "scatter", "sum_"]

Array = Any
Key = tuple[Any, ...]
Arg = tuple[Any, bool]
"""An operand for several examples, and whether it is a stack of one for each."""


def _batch(value: Array, rank: int) -> Shape:
    """Return the batch shape of a value whose core has `rank` axes."""
    shape: Shape = value.shape
    return shape[: len(shape) - rank]


def common_batch(xp: ModuleType, parts: Sequence[Array], ranks: Sequence[int]) -> Shape:
    """Return the batch shape that the values of several parts broadcast to."""
    batches = {_batch(part, rank) for part, rank in zip(parts, ranks, strict=True)}
    common: Shape = batches.pop() if len(batches) == 1 else np.broadcast_shapes(*batches)
    return common


def as_array(xp: ModuleType, value: Array) -> Array:
    if xp is not np and isinstance(value, np.generic):  # a number, whose shapes are the host's
        return xp.asarray(value)
    return value if hasattr(value, "shape") else xp.asarray(value)


def _broadcast(xp: ModuleType, x: Array, *, shape: Shape, rank: int) -> Array:
    x = as_array(xp, x)
    if x.ndim == rank:
        return x if x.shape == shape else xp.broadcast_to(x, shape)
    batch = _batch(x, rank)
    core = x.shape[len(batch) :]
    return xp.broadcast_to(x.reshape(batch + (1,) * (len(shape) - rank) + core), batch + shape)


def _unbroadcast(
    t: Any, position: int, shapes: tuple[Shape, ...], *, shape: Shape, rank: int
) -> Any:
    """Sum over the axes that were added or stretched."""
    (source,) = shapes
    lead = len(shape) - rank
    axes = tuple(
        axis - len(shape)
        for axis in range(len(shape))
        if shape[axis] != 1 and (axis < lead or source[axis - lead] == 1)
    )
    summed = sum_(t, axes=axes, rank=len(shape)) if axes else t
    if tuple(size for axis, size in enumerate(shape) if axis - len(shape) not in axes) == source:
        return summed
    return reshape(summed, shape=source, rank=len(shape) - len(axes))


def _reshape(xp: ModuleType, x: Array, *, shape: Shape, rank: int) -> Array:
    x = as_array(xp, x)
    return x.reshape(_batch(x, rank) + shape)


def _index(xp: ModuleType, x: Array, *, key: Key, rank: int) -> Array:
    return picked(xp, as_array(xp, x), decoded(key))


def picked(xp: ModuleType, x: Array, key: Key) -> Array:
    """Index the last axes by a key of integers and slices."""
    if not _climbs(xp, key):
        return x[(..., *key)]
    places, turned = _upward(key, x.shape[x.ndim - len(key) :])
    return xp.flip(x[(..., *places)], turned)


def _climbs(xp: ModuleType, key: Key) -> bool:
    """Whether a key has negative steps, which PyTorch does not support."""
    return xp.__name__ == PYTORCH and any(
        isinstance(entry, slice) and (entry.step or 1) < 0 for entry in key
    )


def _upward(key: Key, shape: Shape) -> tuple[Key, list[int]]:
    """Return a key with positive steps, and the axes of its result to reverse."""
    entries, turned, kept = list(key), [], 0
    for axis in reversed(range(len(key))):
        entry = key[axis]
        if not isinstance(entry, slice):
            continue
        kept += 1
        places = range(*entry.indices(shape[axis]))
        if places.step < 0:
            turned.append(-kept)
            ends = (places[-1], places[0] + 1) if places else (0, 0)
            entries[axis] = slice(*ends, -places.step)
    return tuple(entries), turned


def placed(xp: ModuleType, out: Array, key: Key, part: Array, *, add: bool = False) -> Array:
    """Return `out` with `part` at a key without repeated indices; `out` may be reused.

    With `add` the part is added to the existing elements.
    """
    if hasattr(out, "at"):  # JAX's arrays do not change
        places = [np.array(entry) if isinstance(entry, list) else entry for entry in key]
        there = out.at[(..., *places)]
        return there.add(part) if add else there.set(part)
    if _climbs(xp, key):
        key, turned = _upward(key, out.shape[out.ndim - len(key) :])
        part = xp.flip(part, turned)
    where_to = (..., *key)
    if add:
        out[where_to] += part
    else:
        out[where_to] = part
    return out


def decoded(key: Key) -> Key:
    """Return a stored key, whose slices are tuples, as an indexing key."""
    return tuple(slice(*part) if isinstance(part, tuple) else part for part in key)


def _indexed_shape(shapes: tuple[Shape, ...], *, key: Key, rank: int) -> Shape:
    (shape,) = shapes
    return tuple(
        len(range(*slice(*part).indices(size)))
        for part, size in zip(key, shape, strict=True)
        if isinstance(part, tuple)
    )


def _scatter(xp: ModuleType, *parts: Array, keys: tuple[Key, ...], shape: Shape) -> Array:
    parts = tuple(as_array(xp, part) for part in parts)
    ranks = [sum(isinstance(entry, tuple) for entry in key) for key in keys]
    batch = common_batch(xp, parts, ranks)
    dtypes = {part.dtype for part in parts} or {xp.float64}
    out = xp.zeros(batch + shape, dtype=xp.result_type(*dtypes))
    if all(rank == 0 for rank in ranks) and len(shape) == 1:
        return placed(xp, out, ([key[0] for key in keys],), _stack(xp, parts, batch))
    if len(parts) == 1:  # 0 + x would lose the sign of a zero
        return placed(xp, out, decoded(keys[0]), parts[0])
    for part, key in zip(parts, keys, strict=True):
        out = placed(xp, out, decoded(key), part, add=True)
    return out


def _picker(xp: ModuleType, *, key: Key, rank: int) -> Callable[[Array], Array]:
    """Return `_index` for values without batch axes; the key is decoded once."""
    places = decoded(key)
    return lambda x: picked(xp, as_array(xp, x), places)


def _scatterer(xp: ModuleType, *, keys: tuple[Key, ...], shape: Shape) -> Callable[..., Array]:
    """Return `_scatter` for values without batch axes; the key of one part is decoded once."""
    if len(shape) == 1 and keys and not any(isinstance(key[0], tuple) for key in keys):
        elements = ([key[0] for key in keys],)

        def collected(*parts: Array) -> Array:
            stack = _stack(xp, tuple([as_array(xp, part) for part in parts]), ())
            return placed(xp, xp.zeros(shape, dtype=stack.dtype), elements, stack)

        return collected
    if len(keys) != 1:
        return partial(_scatter, xp, keys=keys, shape=shape)
    places = decoded(keys[0])

    def scattered(part: Array) -> Array:
        part = as_array(xp, part)
        return placed(xp, xp.zeros(shape, dtype=part.dtype), places, part)

    return scattered


def _pack(xp: ModuleType, *parts: Array, ranks: tuple[int, ...]) -> Array:
    parts = tuple(as_array(xp, part) for part in parts)
    batch = common_batch(xp, parts, ranks)
    if not any(ranks):
        return _stack(xp, parts, batch)
    flat = []
    for part, rank in zip(parts, ranks, strict=True):
        core = part.shape[part.ndim - rank :]
        flat.append(xp.broadcast_to(part, batch + core).reshape((*batch, math.prod(core))))
    return xp.concatenate(flat, axis=-1)


def _packer(xp: ModuleType, *, ranks: tuple[int, ...]) -> Callable[..., Array]:
    """Return `_pack` for values without batch axes."""
    if not any(ranks):
        return lambda *parts: _stack(xp, tuple([as_array(xp, part) for part in parts]), ())
    return lambda *parts: xp.concatenate([as_array(xp, part).reshape(-1) for part in parts])


def _stack(xp: ModuleType, parts: tuple[Array, ...], batch: Shape) -> Array:
    """Stack scalars (per batch point) along a new last axis."""
    if not parts:
        return xp.zeros((*batch, 0))
    if batch == () and xp is np:
        whole = np.array(parts)
        # Arrays of objects would become the elements.
        return whole if whole.dtype != object else np.stack(parts)
    if batch == ():
        return xp.stack(parts)
    return xp.stack([xp.broadcast_to(part, batch) for part in parts], axis=-1)


def _packed_shape(shapes: tuple[Shape, ...], *, ranks: tuple[int, ...]) -> Shape:
    return (sum(math.prod(shape) for shape in shapes),)


def _unpack(t: Any, position: int, shapes: tuple[Shape, ...], *, ranks: tuple[int, ...]) -> Any:
    """Cut the part of one argument out of a packed cotangent."""
    start = (shapes if isinstance(shapes, Shapes) else Shapes(shapes)).starts[position]
    shape = shapes[position]
    if shape == ():
        return index(t, key=(start,), rank=1)
    part = index(t, key=((start, start + math.prod(shape), 1),), rank=1)
    return reshape(part, shape=shape, rank=1)


def reduced_shape(shapes: tuple[Shape, ...], *, axes: tuple[int, ...], rank: int) -> Shape:
    """Return a shape without the axes that are reduced."""
    (shape,) = shapes
    return tuple(size for axis, size in enumerate(shape) if axis - len(shape) not in axes)


def spread_over(y: Any, shape: Shape, axes: tuple[int, ...]) -> Any:
    """Copy a reduced value along the axes of `shape` that were reduced."""
    rank = len(shape)
    kept = tuple(1 if axis - rank in axes else size for axis, size in enumerate(shape))
    return broadcast(reshape(y, shape=kept, rank=rank - len(axes)), shape=shape, rank=rank)


def stacks(size: int, args: Sequence[Arg]) -> list[Any]:
    """Return every operand as a stack."""
    return [x if is_stack else copies(x, size) for x, is_stack in args]


def copies(x: Any, size: int) -> Any:
    """Return `size` copies of one value along a new first axis."""
    return broadcast(x, shape=(size, *x.shape), rank=len(x.shape))


def opened(x: Any, depth: int) -> Any:
    """Return a stack with as many axes as others, by axes of size 1 behind the first."""
    return x.reshape(x.shape[0], *(1,) * (depth - x.ndim), *x.shape[1:])


def _broadcast_stack(size: int, args: list[Arg], *, shape: Shape, rank: int) -> Any:
    ((x, _),) = args
    aligned = (size, *(1,) * (len(shape) - rank), *x.shape[1:])
    x = reshape(x, shape=aligned, rank=x.ndim)
    return broadcast(x, shape=(size, *shape), rank=len(aligned))


def packed_stacks(values: Sequence[Any], ranks: Sequence[int]) -> Any:
    """Return stacks of values of these ranks as one stack of packed vectors."""
    parts: list[Any] = []
    keys: list[tuple[Any, ...]] = []
    size, start = values[0].shape[0], 0
    for stack, rank in zip(values, ranks, strict=True):
        count = math.prod(stack.shape[1:])
        if rank == 0:
            keys.append(((0, size, 1), start))
        else:
            keys.append(((0, size, 1), (start, start + count, 1)))
            stack = reshape(stack, shape=(size, count), rank=stack.ndim)
        parts.append(stack)
        start += count
    return scatter(*parts, keys=tuple(keys), shape=(size, start))


def additions(row: Primitive, shapes: Sequence[Shape], **params: Any) -> int:
    """Return the additions of a row that adds up elements with equal indices."""
    elements = row.computer(np)(*map(np.ones, shapes), **params)
    return sum(map(math.prod, shapes)) - int(np.count_nonzero(elements))


def counted(axes: Sequence[int], rank: int) -> str:
    """Return axes, which are counted from the end, as the language counts them: from the first.

    Examples
    --------
    >>> counted((-1,), 3)
    '[2]'
    """
    return str([axis + rank for axis in axes])


def unless_last(shape: Shape, *, axes: tuple[int, ...], rank: int) -> str:
    """Return the axis of a row that the language applies along the last one by default."""
    return "" if axes == (-1,) else counted(axes, rank)


def _sizes(whole: Shape, /, **params: Any) -> str:
    return str(list(whole))


broadcast: Primitive = Primitive(
    name="broadcast",
    kernel=_broadcast,
    rule=linear(_unbroadcast),
    brackets=_sizes,
    structural=True,
    view=True,
    read_only="an array that repeats elements",
    shape=lambda shapes, *, shape, rank: shape,
    unbatched=lambda xp, *, shape, rank: lambda x: xp.broadcast_to(as_array(xp, x), shape),
    stacked=_broadcast_stack,
)
reshape: Primitive = Primitive(
    name="reshape",
    kernel=_reshape,
    rule=linear(
        lambda t, position, shapes, *, shape, rank: reshape(t, shape=shapes[0], rank=len(shape))
    ),
    brackets=_sizes,
    structural=True,
    in_order=True,
    view=True,
    shape=lambda shapes, *, shape, rank: shape,
    unbatched=lambda xp, *, shape, rank: lambda x: as_array(xp, x).reshape(shape),
    stacked=lambda size, args, *, shape, rank: reshape(
        args[0][0], shape=(size, *shape), rank=rank + 1
    ),
)
index: Primitive = Primitive(
    name="index",
    kernel=_index,
    rule=LinearMap(
        lambda t, position, shapes, *, key, rank: scatter(t, keys=(key,), shape=shapes[0]),
        element=lambda shapes, *, key, rank: (key, shapes[0]),
    ),
    structural=True,
    view=True,
    shape=_indexed_shape,
    unbatched=_picker,
    stacked=lambda size, args, *, key, rank: index(
        args[0][0], key=((0, size, 1), *key), rank=rank + 1
    ),
)
scatter: Primitive = Primitive(
    name="scatter",
    arity=None,
    kernel=_scatter,
    rule=linear(
        lambda t, position, shapes, *, keys, shape: index(t, key=keys[position], rank=len(shape))
    ),
    brackets=_sizes,
    located=lambda position, *, keys, shape: (keys[position], shape),
    structural=True,
    arithmetic=lambda shapes, **params: (
        additions(scatter, shapes, **params) if len(shapes) > 1 else 0
    ),
    shape=lambda shapes, *, keys, shape: shape,
    unbatched=_scatterer,
    stacked=lambda size, args, *, keys, shape: scatter(
        *stacks(size, args), keys=tuple(((0, size, 1), *key) for key in keys), shape=(size, *shape)
    ),
)
pack: Primitive = Primitive(
    name="pack",
    arity=None,
    kernel=_pack,
    rule=linear(_unpack),
    structural=True,
    in_order=True,
    glyph="[ , ]",
    shape=_packed_shape,
    unbatched=_packer,
    stacked=lambda size, args, *, ranks: packed_stacks(stacks(size, args), ranks),
)
sum_: Primitive = Primitive(
    name="sum",
    kernel=lambda xp, x, *, axes, rank: xp.sum(x, axis=axes),
    rule=linear(lambda t, position, shapes, *, axes, rank: spread_over(t, shapes[0], axes)),
    flint="total",
    names=("sum",),
    glyph="Σ",
    shape=reduced_shape,
    # Without the method of NumPy's arrays, which is written in Python.
    unbatched=lambda xp, *, axes, rank: (
        partial(np.add.reduce, axis=axes) if xp is np else methodcaller("sum", axes)
    ),
)

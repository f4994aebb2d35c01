"""JAX's gather and scatter, which take and put entries of arrays at indices.

Where the indices are known, JAX itself says which entries it moves: it does the same with their
positions. So every form of these primitives is read, without its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab import primitives as rows
from difflab.arrays.orders import taken_at
from difflab.core.optional import require
from difflab.errors import UnsupportedError
from difflab.graph.node import Node

__all__ = ["MOVEMENTS"]


def _gather(primitive: Any, x: Any, indices: Any, **params: Any) -> Any:
    """Take entries; those outside of the array are nan where JAX fills them."""
    if isinstance(indices, Node):
        return _at_computed(x, indices, **params)
    given = params | {"fill_value": -1}
    places = np.asarray(primitive.bind(_positions(x.shape), indices, **given))
    found = _entries(np.reshape(x, -1), np.maximum(places, 0))
    if places.min(initial=0) < 0:
        fill = params["fill_value"]
        found = np.where(places < 0, np.nan if fill is None else float(fill), found)
    return found


def _scatter(primitive: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    """Replace entries."""
    _require_known(indices)
    old, new = _positions(x.shape), _positions(updates.shape, x.size)
    places = np.asarray(primitive.bind(old, indices, new, **params))
    return _entries(np.concatenate([np.reshape(x, -1), np.reshape(updates, -1)]), places)


def _scatter_add(primitive: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    """Add to entries, also several times to one."""
    _require_known(indices)
    jax = require("jax")
    size = int(np.prod(x.shape))
    # The cotangent of an update is that of the entry to which it is added, and 0 if to none.
    zeros = np.zeros(x.shape), np.zeros(updates.shape)
    _, pull = jax.vjp(lambda part: primitive.bind(zeros[0], indices, part, **params), zeros[1])
    (numbers,) = pull(1.0 + np.arange(float(size)).reshape(x.shape))
    places = np.asarray(numbers, np.int64).reshape(-1)
    extended = rows.put(
        np.reshape(updates, -1), places=places.tobytes(), axis=-1, rank=1, size=size + 1
    )
    return x + np.reshape(extended[1:], x.shape)


def _positions(shape: tuple[int, ...], start: int = 0) -> NDArray[np.int64]:
    count = int(np.prod(shape))
    return np.arange(start, start + count, dtype=np.int64).reshape(shape)


def _entries(flat: Any, places: Any) -> Any:
    return np.reshape(np.take(flat, places.reshape(-1)), places.shape)


def _require_known(indices: Any) -> None:
    if isinstance(indices, Node):
        raise UnsupportedError("the indices at which entries change are computed")


def _at_computed(x: Any, indices: Node, **params: Any) -> Any:
    """Take entries along one axis at computed indices."""
    numbers, sizes, mode = params["dimension_numbers"], params["slice_sizes"], str(params["mode"])
    axes = numbers.start_index_map
    whole = [size for axis, size in enumerate(x.shape) if axis not in axes]
    rest = [size for axis, size in enumerate(sizes) if axis not in axes]
    if len(axes) != 1 or sizes[axes[0]] != 1 or whole != rest or "FILL" in mode:
        raise UnsupportedError("computed indices are read where they take entries along one axis")
    (axis,) = axes
    places: Any = np.clip(indices[..., 0], 0, x.shape[axis] - 1)
    found = taken_at(np.moveaxis(x, axis, 0), places, 0)
    lead = len(places.shape)
    if axis not in numbers.collapsed_slice_dims:
        found = np.expand_dims(found, lead + axis)
    taken, kept = iter(range(lead)), iter(range(lead, len(found.shape)))
    order = [
        next(kept if place in numbers.offset_dims else taken) for place in range(len(found.shape))
    ]
    return np.transpose(found, order)


MOVEMENTS: Mapping[str, Callable[..., Any]] = {
    "gather": _gather,
    "scatter": _scatter,
    "scatter-add": _scatter_add,
}
"""Rules that are called with the primitive, its operands and its parameters."""

"""NumPy's functions that move, add, reverse and select axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.given import (
    as_array,
    as_indices,
    as_integer,
    as_integers,
    mismatch,
    normalized_axes,
    normalized_axis,
    shape_of,
)
from difflab.arrays.shapes import ravel
from difflab.core.ownership import unchanged
from difflab.core.place import at_users_line
from difflab.errors import TraceError
from difflab.primitives import where

BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
"""Modes of `numpy.pad` that repeat elements of the array."""


def cut(x: Any, axis: int, start: int | None, stop: int | None = None) -> Any:
    """Return the slice ``start:stop`` along an axis."""
    key = [slice(None)] * len(x.shape)
    key[axis] = slice(start, stop)
    return x[tuple(key)]


# --- axes -------------------------------------------------------------------------------------


def swap_axes(a: Any, axis1: int, axis2: int) -> Any:
    """Exchange two axes."""
    a = as_array(a)
    order = list(range(len(a.shape)))
    first, second = (
        normalized_axis("swapaxes", axis1, a.shape),
        normalized_axis("swapaxes", axis2, a.shape),
    )
    order[first], order[second] = order[second], order[first]
    return arrays.transpose(a, order)


def move_axis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Move axes to new positions; the others keep their order."""
    a = as_array(a)
    rank = len(a.shape)
    moved, goals = (
        [
            normalized_axis("moveaxis", axis, a.shape) + rank
            for axis in as_integers("moveaxis", what, given)
        ]
        for what, given in (("source", source), ("destination", destination))
    )
    if len(moved) != len(goals) or len(set(moved)) < len(moved) or len(set(goals)) < len(goals):
        raise mismatch("moveaxis takes as many different sources as destinations")
    order = [axis for axis in range(rank) if axis not in moved]
    for goal, axis in sorted(zip(goals, moved, strict=True)):
        order.insert(goal, axis)
    return arrays.transpose(a, order)


def _roll_axis(a: Any, axis: int, start: int = 0) -> Any:
    a = as_array(a)
    rank = len(a.shape)
    moved = normalized_axis("rollaxis", axis, a.shape) + rank
    goal = as_integer("rollaxis", "start", start)
    goal += rank * (goal < 0)
    if not 0 <= goal <= rank:
        raise mismatch(f"rollaxis to {start} of the shape {a.shape}")
    return move_axis(a, moved, goal - (moved < goal)) if rank else a


def _expand_dims(a: Any, axis: int | Sequence[int]) -> Any:
    shape = shape_of(as_array(a))
    added = as_integers("expand_dims", "axis", axis)
    places = normalized_axes("expand_dims", added, (*shape, *(1,) * len(added)))
    rank = len(shape) + len(places)
    remaining = iter(shape)
    opened = [1 if k - rank in places else next(remaining) for k in range(rank)]
    return arrays.reshape(a, opened)


def at_least(rank: int) -> Callable[..., Any]:
    """Return a function that adds axes until arrays have `rank` axes, as NumPy does."""

    def one(a: Any) -> Any:
        shape = shape_of(as_array(a))
        missing = rank - len(shape)
        if missing <= 0:
            return as_array(a)
        if rank == 3:
            return arrays.reshape(a, {0: (1, 1, 1), 1: (1, *shape, 1)}.get(len(shape), (*shape, 1)))
        return arrays.reshape(a, (1,) * missing + shape)

    def several(*arys: Any) -> Any:
        return one(arys[0]) if len(arys) == 1 else tuple(one(a) for a in arys)

    return several


# --- orders -----------------------------------------------------------------------------------


def _flip(m: Any, axis: arrays.Axis = None) -> Any:
    m = as_array(m)
    axes = normalized_axes("flip", axis, m.shape)
    key = [slice(None, None, -1 if k - len(m.shape) in axes else 1) for k in range(len(m.shape))]
    return m[tuple(key)]


def _flipped_along(name: str, axis: int) -> Callable[[Any], Any]:
    def flipped(m: Any) -> Any:
        if len(shape_of(as_array(m))) <= axis:
            raise mismatch(f"{name} takes an array with at least {axis + 1} axes")
        return _flip(m, axis)

    return flipped


def _roll(a: Any, shift: int | Sequence[int], axis: arrays.Axis = None) -> Any:
    a = unchanged(as_array(a))
    if axis is None:
        total = sum(as_integers("roll", "shift", shift))
        return arrays.reshape(_roll(arrays.reshape(a, -1), total, 0), a.shape)
    shifts, axes = as_integers("roll", "shift", shift), as_integers("roll", "axis", axis)
    try:
        pairs = np.broadcast(shifts, axes)
    except ValueError:
        raise mismatch("roll takes one shift, or as many shifts as axes") from None
    for by, given in pairs:
        along = normalized_axis("roll", int(given), a.shape)
        size = a.shape[along]
        start = -int(by) % size if size else 0
        if start:
            a = arrays.concatenate([cut(a, along, start), cut(a, along, 0, start)], along)
    return a


def _rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    m = as_array(m)
    plane = as_integers("rot90", "axes", axes)
    if len(plane) != 2:
        raise mismatch("rot90 turns in the plane of two axes")
    first, second = (normalized_axis("rot90", axis, m.shape) for axis in plane)
    if first == second:
        raise mismatch("rot90 turns in the plane of two different axes")
    turns = as_integer("rot90", "k", k) % 4
    if turns == 0:
        return m[...]
    if turns == 2:
        return _flip(m, (first, second))
    if turns == 1:
        return swap_axes(_flip(m, second), first, second)
    return _flip(swap_axes(m, first, second), second)


# --- diagonals and triangles ------------------------------------------------------------------


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the diagonals of the matrices of two axes, as the last axis."""
    a = as_array(a)
    rank = len(a.shape)
    if rank < 2:
        raise mismatch(f"diagonal takes an array with at least two axes, not the shape {a.shape}")
    first, second = (normalized_axis("diagonal", axis, a.shape) for axis in (axis1, axis2))
    if first == second:
        raise mismatch("diagonal takes two different axes")
    a = move_axis(a, (first, second), (rank - 2, rank - 1))
    k = as_integer("diagonal", "offset", offset)
    rows, columns = a.shape[-2:]
    down, across = max(-k, 0), max(k, 0)
    size = max(min(rows - down, columns - across), 0)
    if size == 0:
        return arrays.reshape(a[..., :0, :0], (*a.shape[:-2], 0))
    return arrays.diagonal(a[..., down : down + size, across : across + size])


def matrix_transpose(x: Any) -> Any:
    """Exchange the last two axes."""
    return swap_axes(x, -1, -2)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the sums of diagonals."""
    return arrays.sum(diagonal(a, offset, axis1, axis2), -1)


def _diag(v: Any, k: int = 0) -> Any:
    rank = len(shape_of(as_array(v)))
    if k == 0 or rank not in (1, 2):
        return arrays.diag(v) if rank != 2 else diagonal(v)
    if rank == 2:
        return diagonal(v, k)
    down, across = max(-k, 0), max(k, 0)
    return arrays.pad(arrays.diag(v), [(down, across), (across, down)])


def _triangle(name: str, lower: bool) -> Callable[..., Any]:
    def triangle(m: Any, k: int = 0) -> Any:
        m = as_array(m)
        if not m.shape:
            raise mismatch(f"{name} takes a vector or matrices, not a scalar")
        rows = m.shape[-2] if len(m.shape) > 1 else m.shape[-1]
        kept = np.tri(rows, m.shape[-1], as_integer(name, "k", k) - (not lower), dtype=bool)
        return where(kept if lower else ~kept, m, 0.0)

    return triangle


# --- padding ----------------------------------------------------------------------------------


def _pad(array: Any, pad_width: Any, mode: str = "constant", **settings: Any) -> Any:
    """Pad by one width, one pair of widths, or a pair for every axis."""
    array = as_array(array)
    shape = array.shape
    try:
        pairs = np.broadcast_to(as_indices("pad", pad_width), (len(shape), 2)).tolist()
    except ValueError:
        raise mismatch(
            f"pad of the shape {shape} needs a pair (before, after) for every axis"
        ) from None
    if mode == "constant" and set(settings) <= {"constant_values"}:
        return _padded(array, pairs, settings.get("constant_values", 0))
    if mode not in BY_INDEX or settings:
        given = "".join(f", {name}" for name in settings)
        raise at_users_line(
            TraceError,
            f"difflab has no numpy.pad with mode {mode!r}{given}",
            f"choose among 'constant', {', '.join(map(repr, BY_INDEX))}; or np.concatenate",
        )
    array = unchanged(array)
    for axis, width in enumerate(pairs):
        if any(width):
            try:  # a function typed by the modes does not take a str
                order = np.pad(np.arange(shape[axis]), width, mode=mode)  # type: ignore[call-overload]
            except ValueError as error:
                raise mismatch(f"pad of the shape {shape}: {error}") from None
            array = arrays.take(array, order, axis)
    return array


def _padded(array: Any, pairs: Sequence[Sequence[int]], constants: Any) -> Any:
    padded = arrays.pad(array, [tuple(pair) for pair in pairs])
    if isinstance(constants, int | float) and constants == 0:
        return padded
    inside = np.pad(np.ones(array.shape, dtype=bool), pairs)
    try:
        filled = np.pad(np.zeros(array.shape), pairs, constant_values=constants)
    except (TypeError, ValueError) as error:
        raise mismatch(f"constant_values of pad: {error}") from None
    return where(inside, padded, filled)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "atleast_1d": at_least(1),
    "atleast_2d": at_least(2),
    "atleast_3d": at_least(3),
    "diag": _diag,
    "diagflat": lambda v, k=0: _diag(arrays.reshape(v, -1), k),
    "diagonal": diagonal,
    "expand_dims": _expand_dims,
    "flip": _flip,
    "fliplr": _flipped_along("fliplr", 1),
    "flipud": _flipped_along("flipud", 0),
    "matrix_transpose": matrix_transpose,
    "moveaxis": move_axis,
    "pad": _pad,
    "ravel": ravel,
    "roll": _roll,
    "rollaxis": _roll_axis,
    "rot90": _rot90,
    "swapaxes": swap_axes,
    "trace": trace,
    "tril": _triangle("tril", lower=True),
    "triu": _triangle("triu", lower=False),
}

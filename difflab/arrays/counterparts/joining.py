"""NumPy's functions that join, split, repeat, insert and delete parts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.counterparts.layout import at_least, cut, move_axis
from difflab.arrays.given import (
    as_array,
    as_integer,
    as_integers,
    mismatch,
    normalized_axis,
    shape_of,
)
from difflab.arrays.shapes import flat_unless, several
from difflab.core.ownership import unchanged
from difflab.core.primitive import Shape


def concatenated(arrays_: Sequence[Any], axis: int | None = 0) -> Any:
    """Join arrays along an axis, or all their elements in one."""
    if axis is None:
        return arrays.concatenate([arrays.reshape(x, -1) for x in several("concatenate", arrays_)])
    return arrays.concatenate(arrays_, axis)


def _hstack(tup: Sequence[Any]) -> Any:
    parts = [at_least(1)(x) for x in several("hstack", tup)]
    return arrays.concatenate(parts, 0 if parts and len(parts[0].shape) == 1 else 1)


def _stacked(name: str, rank: int, axis: int) -> Callable[[Sequence[Any]], Any]:
    """Return a function that joins arrays of at least `rank` axes."""
    return lambda tup: arrays.concatenate([at_least(rank)(x) for x in several(name, tup)], axis)


def _column_stack(tup: Sequence[Any]) -> Any:
    parts = several("column_stack", tup)
    columns = [arrays.reshape(x, (-1, 1)) if len(shape_of(x)) < 2 else x for x in parts]
    return arrays.concatenate(columns, 1)


def _block(arrays: Any) -> Any:
    depth, entry = 0, arrays
    while isinstance(entry, list):
        if not entry:
            raise mismatch("block takes nested lists that are not empty")
        depth, entry = depth + 1, entry[0]
    ranks: list[int] = []

    def leaves(entry: Any, level: int) -> None:
        if isinstance(entry, list) != (level < depth):
            raise mismatch("block takes lists that are nested to one depth everywhere")
        if level == depth:
            ranks.append(len(shape_of(as_array(entry))))
            return
        for part in entry:
            leaves(part, level + 1)

    leaves(arrays, 0)
    rank = max(depth, *ranks)

    def joined(entry: Any, level: int) -> Any:
        if level == depth:
            x = as_array(entry)
            return _with_rank(x, rank)
        return concatenated([joined(part, level + 1) for part in entry], level - depth)

    return unchanged(joined(arrays, 0))


def _with_rank(x: Any, rank: int) -> Any:
    shape = shape_of(x)
    return arrays.reshape(x, (1,) * (rank - len(shape)) + shape)


# --- parts ------------------------------------------------------------------------------------


def _split(name: str, *, even: bool) -> Callable[..., list[Any]]:
    return lambda ary, indices_or_sections, axis=0: _split_by(
        name, ary, indices_or_sections, axis, even=even
    )


def _split_by(name: str, ary: Any, given: Any, axis: int, *, even: bool) -> list[Any]:
    ary = as_array(ary)
    along = normalized_axis(name, axis, ary.shape)
    size = ary.shape[along]
    if np.ndim(given):
        ends = list(as_integers(name, "indices_or_sections", given))
    else:
        sections = as_integer(name, "indices_or_sections", given, 1)
        if even and size % sections:
            raise mismatch(f"{name} cannot divide an axis of size {size} into {sections}")
        sizes = [size // sections + (place < size % sections) for place in range(sections)]
        ends = np.cumsum(sizes)[:-1].tolist()
    starts = [0, *ends]
    return [cut(ary, along, a, b) for a, b in zip(starts, [*ends, None], strict=True)]


def _split_along(name: str, axis: int) -> Callable[..., list[Any]]:
    def split(ary: Any, indices_or_sections: Any) -> list[Any]:
        rank = len(shape_of(as_array(ary)))
        if rank < axis + (name != "hsplit"):
            raise mismatch(f"{name} takes an array with more axes than {rank}")
        along = 0 if rank == 1 else axis
        return _split_by(name, ary, indices_or_sections, along, even=True)

    return split


def _unstack(x: Any, *, axis: int = 0) -> tuple[Any, ...]:
    moved = move_axis(x, axis, 0)
    return tuple(moved[place] for place in range(moved.shape[0]))


# --- repetition -------------------------------------------------------------------------------


def repeated(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each entry along an axis, or of the flattened array."""
    a, along = flat_unless("repeat", a, axis)
    counts = as_integers("repeat", "repeats", repeats)
    if min(counts, default=0) < 0 or len(counts) not in (1, a.shape[along]):
        raise mismatch(
            f"repeat takes one number of repeats, or one for each of the {a.shape[along]} entries"
        )
    return arrays.take(a, np.repeat(np.arange(a.shape[along]), counts), along)


def _tile(A: Any, reps: int | Sequence[int]) -> Any:
    A = as_array(A)
    counts = as_integers("tile", "reps", reps)
    if min(counts, default=0) < 0:
        raise mismatch("tile takes numbers of repeats that are not negative")
    rank = max(len(counts), len(A.shape))
    shape = (1,) * (rank - len(A.shape)) + tuple(A.shape)
    counts = (1,) * (rank - len(counts)) + counts
    opened = [size for pair in zip((1,) * rank, shape, strict=True) for size in pair]
    wide = [size for pair in zip(counts, shape, strict=True) for size in pair]
    spread = arrays.broadcast_to(arrays.reshape(A, opened), wide)
    whole = [n * size for n, size in zip(counts, shape, strict=True)]
    return unchanged(arrays.reshape(spread, whole))


def _resize(a: Any, new_shape: int | Sequence[int]) -> Any:
    flat = arrays.reshape(a, -1)
    shape = as_integers("resize", "new_shape", new_shape)
    return arrays.take(flat, np.resize(np.arange(flat.shape[0]), shape))


def _meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise mismatch("indexing of meshgrid is 'xy' or 'ij'")
    flat = [arrays.reshape(x, -1) for x in xi]
    rank = len(flat)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    opened = [
        arrays.reshape(x, [-1 if k == place else 1 for k in range(rank)])
        for x, place in zip(flat, order, strict=True)
    ]
    coordinates = tuple(opened) if sparse else _broadcast_arrays(*opened)
    return tuple(map(unchanged, coordinates)) if copy else coordinates


def broadcast_shape(*args: Any) -> Shape:
    """Return the shape that the shapes of all arguments broadcast to."""
    shapes = [shape_of(as_array(x)) for x in args]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise mismatch(f"the shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def _broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    shape = broadcast_shape(*args)
    return tuple(arrays.broadcast_to(x, shape) for x in args)


# --- insertion --------------------------------------------------------------------------------


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return concatenated([arr, values], axis)


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    arr, along = flat_unless("delete", arr, axis)
    try:
        kept = np.delete(np.arange(arr.shape[along]), obj)
    except (IndexError, ValueError, TypeError) as error:
        raise mismatch(f"delete: {error}") from None
    return arrays.take(arr, kept, along)


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    arr, along = flat_unless("insert", arr, axis)
    size, rank = arr.shape[along], len(arr.shape)
    values = as_array(values)
    places = np.arange(size)[obj] if isinstance(obj, slice) else np.asarray(obj)
    new = _with_rank(values, rank) if len(shape_of(values)) < rank else values
    if places.ndim == 0:
        new = move_axis(new, 0, along)
    marked = np.count_nonzero(places) if places.dtype == np.bool_ else places.size
    count = shape_of(new)[along % rank] if places.size == 1 else marked
    if len(shape_of(new)) > rank:  # leading axes of size 1 are dropped, as in an assignment
        new = arrays.squeeze(new, tuple(range(len(shape_of(new)) - rank)))
    shape = list(arr.shape)
    shape[along] = count
    try:
        order = np.insert(np.arange(size), obj, size + np.arange(count))
    except (IndexError, ValueError, TypeError) as error:
        raise mismatch(f"insert: {error}") from None
    whole = arrays.concatenate([arr, arrays.broadcast_to(new, shape)], along)
    return arrays.take(whole, order, along)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "append": _append,
    "array_split": _split("array_split", even=False),
    "block": _block,
    "broadcast_arrays": _broadcast_arrays,
    "column_stack": _column_stack,
    "concatenate": concatenated,
    "delete": _delete,
    "dsplit": _split_along("dsplit", 2),
    "dstack": _stacked("dstack", 3, 2),
    "hsplit": _split_along("hsplit", 1),
    "hstack": _hstack,
    "insert": _insert,
    "meshgrid": _meshgrid,
    "repeat": repeated,
    "resize": _resize,
    "split": _split("split", even=True),
    "tile": _tile,
    "unstack": _unstack,
    "vsplit": _split_along("vsplit", 0),
    "vstack": _stacked("vstack", 2, 0),
}

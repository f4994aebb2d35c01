"""Keys of integers and slices, as they are stored in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab.core.place import at_users_line
from difflab.core.primitive import Shape
from difflab.errors import IndexingError


def static_key(key: Any, shape: Shape) -> tuple[Any, ...]:
    """Return an indexing key with one entry per axis, slices as ``(start, stop, step)``.

    Parameters
    ----------
    key : int, slice, Ellipsis or tuple of them
        As between NumPy's brackets.
    shape : tuple of int
        The shape that is indexed.

    Raises
    ------
    IndexingError
        An index is out of bounds, or there are too many.

    Examples
    --------
    >>> static_key((slice(1, None), -1), (4, 3))
    ((1, 4, 1), 2)
    """
    entries = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [entry for entry in entries if entry is Ellipsis]:
        place = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
        missing = len(shape) - (len(entries) - 1)
        entries[place : place + 1] = [slice(None)] * missing
    entries += [slice(None)] * (len(shape) - len(entries))
    if len(entries) > len(shape):
        raise at_users_line(IndexingError, f"{len(entries)} indices for the shape {shape}")
    return tuple(_static_entry(entry, axis, shape) for axis, entry in enumerate(entries))


def _static_entry(entry: Any, axis: int, shape: Shape) -> Any:
    """Return one axis's entry, bounds checked."""
    size = shape[axis]
    if isinstance(entry, slice):
        try:
            chosen = range(*entry.indices(size))
        except (TypeError, ValueError) as error:
            raise at_users_line(
                IndexingError,
                f"no slice of axis {axis} of the shape {shape}: {error}",
                "starts, stops and steps are integers or None, and a step is not 0",
            ) from None
        stop: int | None = chosen.stop if chosen.stop >= 0 else None
        return (chosen.start, stop, chosen.step)
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        position = int(entry)
        if not -size <= position < size:
            raise at_users_line(
                IndexingError,
                f"index {position} is outside axis {axis} of the shape {shape}",
                f"indices go from {-size} to {size - 1}" if size else "the axis is empty",
            )
        return position % size
    raise at_users_line(
        IndexingError,
        f"{type(entry).__name__} is not a valid index: use static integers and slices",
        "numpy.take takes lists of integers, numpy.where selects by truth values",
    )

"""Indexing keys: as they are written, and for a value of a known shape."""

from __future__ import annotations

__all__ = ["AxisIndex", "IndexKey", "RawKey", "axis_index", "resolved"]

AxisIndex = int | tuple[int, int | None, int]
"""An index along one axis, or a slice ``(start, stop, step)``."""
IndexKey = tuple[AxisIndex, ...]
RawParts = tuple[int | None, ...]
"""An index or a slice as it is written: one to three integers, None where one is left out."""
RawKey = tuple[RawParts, ...]


def resolved(key: RawKey, shape: tuple[int, ...]) -> IndexKey:
    """Return a written key for a value of `shape`, with an entry for every axis.

    Raises
    ------
    ValueError
        If an index is out of bounds, a slice is empty, or there are too many indices.

    Examples
    --------
    >>> resolved(((1, None),), (4, 2))
    ((1, 4, 1), (0, 2, 1))
    """
    if len(key) > len(shape):
        raise ValueError(f"too many indices for the shape {list(shape)}")
    entries = [axis_index(parts, size) for parts, size in zip(key, shape, strict=False)]
    return (*entries, *((0, size, 1) for size in shape[len(key) :]))


def axis_index(parts: RawParts, size: int) -> AxisIndex:
    """Return an index or a slice of an axis of the given size.

    Raises
    ------
    ValueError
        If it is out of bounds, or empty.

    Examples
    --------
    >>> axis_index((-1,), 5), axis_index((None, None, -1), 5)
    (4, (4, None, -1))
    """
    if len(parts) == 1:
        position = parts[0]
        assert position is not None
        if not -size <= position < size:
            raise ValueError(f"index {position} is out of bounds for an axis of size {size}")
        return position % size
    if parts[2:] == (0,):
        raise ValueError("the step of a slice cannot be 0")
    chosen = range(*slice(*parts).indices(size))
    if not chosen:
        raise ValueError(f"this slice of an axis of size {size} is empty")
    return (chosen.start, chosen.stop if chosen.stop >= 0 else None, chosen.step)

"""The strides of arrays and of their views."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError
from difflab.execute.lower.ops import ViewSpec
from difflab.graph.ir import Shape


def contiguous(shape: Shape) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def in_order(strides: Sequence[int], shape: Shape) -> bool:
    """Whether elements lie side by side, in the order of a contiguous array.

    Examples
    --------
    >>> in_order((3, 1), (2, 3)), in_order((6, 1), (2, 3)), in_order((6, 1), (1, 3))
    (True, False, True)
    """
    steps = zip(strides, contiguous(shape), shape, strict=True)
    return all(own == step for own, step, size in steps if size != 1)


def seen(
    shape: Shape, strides: Sequence[int], view: ViewSpec
) -> tuple[int, tuple[int, ...], Shape]:
    """Return the offset, strides and shape of a view.

    Computed from the key alone: NumPy returns a copy for some keys, whose address would be
    meaningless.

    Raises
    ------
    ConsistencyError
        The key is out of bounds.

    Examples
    --------
    >>> seen((4, 3), (3, 1), ("index", ((1, 4, 1), (0, 3, 2))))
    (3, (3, 2), (3, 2))
    >>> seen((4, 3), (3, 1), ("index", (2, 1))), seen((4, 3), (3, 1), ("transpose", (1, 0)))
    ((7, (), ()), (0, (1, 3), (3, 4)))
    """
    name, detail = view
    if name == "transpose":
        turned = tuple([shape[axis] for axis in detail])
        return 0, tuple([strides[axis] for axis in detail]), turned
    if name != "index":
        raise ConsistencyError(f"a view '{name}' has no strides")
    return _indexed(shape, strides, detail)


def _indexed(
    shape: Shape, strides: Sequence[int], key: Sequence[Any]
) -> tuple[int, tuple[int, ...], Shape]:
    """Return the offset, strides and shape of the elements that a key selects."""
    axes = iter(zip(shape, strides, strict=True))
    named = sum(entry is not None and entry is not Ellipsis for entry in key)
    if named > len(shape):
        raise ConsistencyError(f"{named} indices for the shape {shape}")
    whole = len(shape) - named  # the axes that an ellipsis stands for, at the end without one
    offset, picked = 0, list[tuple[int, int]]()
    for entry in (*key, *([] if Ellipsis in key else [Ellipsis])):
        if entry is None:
            picked.append((1, 0))
        elif entry is Ellipsis:
            picked += [next(axes) for _ in range(whole)]
        elif isinstance(entry, tuple):
            size, step = next(axes)
            places = range(size)[slice(*entry)]
            offset += places.start * step if places else 0
            picked.append((len(places), places.step * step))
        else:
            size, step = next(axes)
            if not -size <= entry < size:
                raise ConsistencyError(f"index {entry} is outside an axis of {size}")
            offset += entry % size * step
    return offset, tuple([step for _, step in picked]), tuple([size for size, _ in picked])


def reshaped(shape: Shape, strides: Sequence[int], wanted: Shape) -> tuple[int, ...] | None:
    """Return the strides of a reshaped view; None if elements have to be copied.

    Examples
    --------
    >>> reshaped((4, 3), (3, 1), (2, 2, 3)), reshaped((4, 3), (1, 4), (12,))
    ((6, 3, 1), None)
    """
    if 0 in wanted:
        return contiguous(wanted)
    left = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    found: list[int] = []
    size, step = 1, 1  # numbers of a stretch of evenly spaced ones that are not given out yet
    for n in reversed(wanted):
        if n == 1:
            found.append(0)
            continue
        if size == 1 and left:
            size, step = left.pop()
        while size % n and left and left[-1][1] == size * step:
            size *= left.pop()[0]
        if size % n:
            return None
        found.append(step)
        size, step = size // n, step * n
    return tuple(reversed(found))


def runs(places: NDArray[np.intp]) -> Iterator[tuple[int, int, int, int]]:
    """Yield indices as evenly spaced runs: ``(start, first index, step, count)``."""
    steps = np.diff(places)
    changes = np.flatnonzero(np.diff(steps)) + 1
    start, size = 0, len(places)
    while start < size:
        change = np.searchsorted(changes, start, "right")
        stop = int(changes[change]) + 1 if change < len(changes) else size
        step = int(steps[start]) if start + 1 < size else 0
        yield start, int(places[start]), step, stop - start
        start = stop


def sizes(shapes: Sequence[Shape]) -> list[int]:
    """Return how many numbers values of these shapes have."""
    return [math.prod(shape) for shape in shapes]

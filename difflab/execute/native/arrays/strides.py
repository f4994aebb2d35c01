"""The steps between numbers of arrays in memory, and of their views.

May import `execute.arrays`, `graph.ir` and NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.execute.arrays.ops import View, viewed
from difflab.graph.ir import Shape

__all__ = ["contiguous", "reshaped", "runs", "seen"]

_NOTHING = np.empty(1)


def contiguous(shape: Shape) -> tuple[int, ...]:
    """Return the steps of numbers side by side."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def seen(shape: Shape, strides: Sequence[int], view: View) -> tuple[int, tuple[int, ...], Shape]:
    """Return where a view of numbers begins among them, its steps and its shape.

    Examples
    --------
    >>> seen((4, 3), (3, 1), ("index", ((1, 4, 1), (0, 3, 2))))
    (3, (3, 2), (3, 2))
    """
    whole = np.lib.stride_tricks.as_strided(
        _NOTHING, shape, [8 * stride for stride in strides], writeable=False
    )
    part = viewed(whole, view)
    offset = (_address(part) - _address(whole)) // 8
    return offset, tuple([stride // 8 for stride in part.strides]), part.shape


def _address(array: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


def reshaped(shape: Shape, strides: Sequence[int], wanted: Shape) -> tuple[int, ...] | None:
    """Return the steps of a reshaped view, None where numbers have to be moved.

    Examples
    --------
    >>> reshaped((4, 3), (3, 1), (2, 2, 3)), reshaped((4, 3), (1, 4), (12,))
    ((6, 3, 1), None)
    """
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
        if size % n or math.prod(wanted) == 0:
            return None
        found.append(step)
        size, step = size // n, step * n
    return tuple(reversed(found))


def runs(places: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Return places as evenly spaced runs: ``(start, first place, step, count)``."""
    found: list[tuple[int, int, int, int]] = []
    start = 0
    while start < len(places):
        stop = start + 1
        step = places[stop] - places[start] if stop < len(places) else 0
        while stop < len(places) and places[stop] - places[stop - 1] == step:
            stop += 1
        found.append((start, places[start], step, stop - start))
        start = stop
    return found

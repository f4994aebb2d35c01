"""Sorting, positions of maxima and computed indices, element by element: as selections.

A selection passes the derivative of the element that it takes. The values are NumPy object arrays
of nodes of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.core.primitive import Primitive
from difflab.explore.object_arrays import along

__all__ = ["ORDERS", "sorted_along"]

Array = Any
Axes = tuple[int, ...]


def sorted_along(x: Array, axis: int) -> Array:
    """Return the elements along an axis in order, nan last: ``take_along`` of ``argsort``."""
    return along(axis, lambda line: _exchanged(line)[0], x)


def _exchanged(elements: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the elements in order and their indices.

    Neighbours are exchanged until all are in order, so that equal elements keep theirs.
    """
    values, places = list(elements), [float(place) for place in range(len(elements))]
    for last in range(len(values) - 1, 0, -1):
        for k in range(last):
            one, two = values[k], values[k + 1]
            kept = rows.logical_or(rows.less_equal(one, two), rows.not_equal(two, two))
            for parts in (values, places):
                parts[k], parts[k + 1] = (
                    rows.where(kept, parts[k], parts[k + 1]),
                    rows.where(kept, parts[k + 1], parts[k]),
                )
    return values, places


def _argsort(x: Array, *, axes: Axes, rank: int) -> Array:
    return along(axes[0], lambda line: _exchanged(line)[1], x)


def _first_maximum(elements: Sequence[Any]) -> Any:
    """Return the index of the first maximum, and of the first nan where there is one."""
    top, place = elements[0], 0.0
    for k, element in enumerate(elements[1:], start=1):
        above = rows.logical_not(rows.less_equal(element, top))
        moved = rows.logical_and(above, rows.equal(top, top))
        top, place = rows.where(moved, element, top), rows.where(moved, float(k), place)
    return place


def _argmax(x: Array, *, axes: Axes, rank: int) -> Array:
    return np.take(along(axes[0], lambda line: [_first_maximum(line)], x), 0, axes[0])


def _is_maximum(x: Array, *, axes: Axes, rank: int) -> Array:
    """Mark the last maximum along the axes."""
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(x, axes, last)
    lines = moved.reshape((*moved.shape[: x.ndim - len(axes)], -1))
    return np.moveaxis(along(-1, _marks, lines).reshape(moved.shape), last, axes)


def _marks(line: Sequence[Any]) -> list[Any]:
    back = _first_maximum(line[::-1])
    return [rows.equal(back, float(k)) for k in reversed(range(len(line)))]


def _taken(line: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """Return the elements at indices."""
    size, found = len(line), []
    for place in places:
        element, wanted = line[-1], _from_the_start(place, size)
        for k in reversed(range(size - 1)):
            element = rows.where(rows.equal(wanted, float(k)), line[k], element)
        found.append(element)
    return found


def _from_the_start(place: Any, size: int) -> Any:
    """Return an index that counts from the start; a negative one counts from the end."""
    return rows.where(rows.less(place, 0.0), place + float(size), place)


def _put(line: Sequence[Any], places: Sequence[Any], size: int) -> list[Any]:
    """Return what elements at indices add up to."""
    wanted = [_from_the_start(place, size) for place in places]
    found: list[Any] = [0.0] * size
    for place, element in zip(wanted, line, strict=True):
        for k in range(size):
            found[k] = found[k] + rows.where(rows.equal(place, float(k)), element, 0.0)
    return found


def _take_along(x: Array, places: Array, *, axis: int, rank: int) -> Array:
    return along(axis, _taken, x, places)


def _put_along(x: Array, places: Array, *, axis: int, rank: int, size: int) -> Array:
    return along(axis, partial(_put, size=size), x, places)


ORDERS: dict[Primitive, Callable[..., Array]] = {
    rows.argsort: _argsort,
    rows.argmax: _argmax,
    rows.is_maximum: _is_maximum,
    rows.take_along: _take_along,
    rows.put_along: _put_along,
}
"""The forms, as functions of arrays with the parameters of the rows."""

"""Reductions and orders along axes, on arrays of expansions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.elementary import exp, log, root_of_squares
from difflab.balls.jets import Jet, Truth, added, jet
from difflab.balls.library import arb
from difflab.balls.piecewise import (
    greater,
    greater_equal,
    logical_and,
    maximum,
    minimum,
    where,
)

Array = NDArray[Any]
Axes = tuple[int, ...]


def _reduction(fold: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Return a row that maps the elements along the axes, in order, to one."""

    def row(x: Array, *, axes: Axes, rank: int) -> Any:
        lines, shape = _lines(x, axes)
        found = np.fromiter(map(fold, lines), dtype=object)
        return found.reshape(shape[: len(shape) - len(axes)])[()]

    return row


def mapping(change: Callable[[list[Any]], list[Any]]) -> Callable[..., Array]:
    """Return a row that maps the elements along the axes, in order, to as many."""

    def row(x: Array, *, axes: Axes, rank: int) -> Array:
        lines, shape = _lines(x, axes)
        found = np.fromiter(chain.from_iterable(map(change, lines)), dtype=object)
        return np.moveaxis(found.reshape(shape), tuple(range(-len(axes), 0)), axes)

    return row


def _lines(x: Array, axes: Axes) -> tuple[list[list[Any]], tuple[int, ...]]:
    """Return the elements along the axes for each of the other indices, and the moved shape."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes, tuple(range(-len(axes), 0)))
    kept = moved.shape[: moved.ndim - len(axes)]
    size = int(np.prod(moved.shape[len(kept) :]))
    return moved.reshape((int(np.prod(kept)), size)).tolist(), moved.shape


def _added(parts: Sequence[Any]) -> Jet:
    return added([jet(part) for part in parts])


def _shifted(line: list[Any]) -> tuple[Jet, list[Jet]]:
    """Return a constant near the largest element, and the others less it."""
    numbers = [jet(entry) for entry in line]
    middles = [arb(number.value).mid() for number in numbers]
    top = reduce(lambda p, q: q if q > p else p, middles)
    constant = Jet(top if top.is_finite() else arb(0))
    return constant, [number - constant for number in numbers]


def _log_sum(line: list[Any]) -> tuple[Jet, Jet, list[Jet]]:
    """Return log Σeˣ⁻ᵐ, m, and every x - m."""
    top, rest = _shifted(line)
    return log(_added([exp(entry) for entry in rest])), top, rest


def _log_sum_exp(line: list[Any]) -> Jet:
    found, top, _ = _log_sum(line)
    return found + top


def _log_softmax(line: list[Any]) -> list[Jet]:
    found, _, rest = _log_sum(line)
    return [entry - found for entry in rest]


def _softmax(line: list[Any]) -> list[Jet]:
    parts = [exp(entry) for entry in _shifted(line)[1]]
    whole = _added(parts)
    return [part / whole for part in parts]


def _marks(line: list[Any]) -> list[Truth]:
    """Mark the last maximum."""
    found = []
    for place, entry in enumerate(line):
        mark = Truth(True)
        for other, value in enumerate(line):
            if other != place:
                beats = greater_equal if other < place else greater
                mark = logical_and(mark, beats(entry, value))
        found.append(mark)
    return found


def _first_maximum(line: list[Any]) -> Jet:
    """Return the index of the first maximum."""
    marks = _marks(line[::-1])[::-1]
    index = jet(0)
    for place in range(len(line) - 1, -1, -1):
        index = jet(where(marks[place], place, index))
    return index


total = _reduction(_added)
largest = _reduction(lambda line: reduce(maximum, line))
smallest = _reduction(lambda line: reduce(minimum, line))
norm = _reduction(lambda line: root_of_squares(_added([jet(entry) ** 2 for entry in line])))
logsumexp = _reduction(_log_sum_exp)
argmax = _reduction(_first_maximum)
softmax = mapping(_softmax)
log_softmax = mapping(_log_softmax)
is_maximum = mapping(_marks)

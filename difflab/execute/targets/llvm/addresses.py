"""The addresses of the inputs and outputs of machine code, for each element and block of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FEW_ELEMENTS = 16  # fewer are copied one by one: NumPy's inner loop would be over them

Array = NDArray[Any]


class InputAddresses(NamedTuple):
    """The addresses of each element of the inputs.

    Elements that are not contiguous over points are copied to contiguous memory, per block.
    """

    starts: NDArray[np.int64]
    steps: NDArray[np.int64]
    copied: list[tuple[int, int, Array]]
    staged: int

    @classmethod
    def of(cls, rows: Sequence[Array]) -> InputAddresses:
        """Return the addresses for inputs of shape ``(points, elements)``."""
        width = sum(row.shape[1] for row in rows)
        found = cls(np.zeros(width, np.int64), np.zeros(width, np.int64), [], 0)
        place = staged = 0
        for row in rows:
            stop = place + row.shape[1]
            if row.strides[0] == row.itemsize and row.flags.aligned:
                found.starts[place:stop] = start_of(row) + row.strides[1] * np.arange(stop - place)
                found.steps[place:stop] = row.itemsize
            else:
                found.copied.append((place, staged, row))
                staged += stop - place
            place = stop
        return found._replace(staged=staged)

    def table(self, stage: Array, start: int, stop: int) -> NDArray[np.int64]:
        """Return the address of each element for the points from `start` to `stop`."""
        table = self.starts + start * self.steps
        for place, first, row in self.copied:
            size = row.shape[1]
            stage[first : first + size, : stop - start] = row[start:stop].T
            begin = start_of(stage) + first * stage.strides[0]
            table[place : place + size] = begin + stage.strides[0] * np.arange(size)
        return table


class OutputAddresses(NamedTuple):
    """The addresses of each element of the outputs."""

    starts: NDArray[np.int64]
    steps: NDArray[np.int64]

    @classmethod
    def of(cls, stores: Sequence[Array]) -> OutputAddresses:
        """Return the addresses for results of shape ``(elements, points)``."""
        parts = [start_of(store) + store.strides[0] * np.arange(len(store)) for store in stores]
        steps = [np.full(len(store), store.itemsize) for store in stores]
        return cls(np.concatenate(parts), np.concatenate(steps))

    def table(self, start: int) -> NDArray[np.int64]:
        """Return the address of each element from the point `start` on."""
        return self.starts + start * self.steps


def start_of(array: Array) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def copy_elements(source: Array, target: Array) -> None:
    """Copy ``(elements, points)`` to a target of that shape, in any order in memory."""
    if len(source) >= FEW_ELEMENTS:
        target[...] = source
        return
    for row, values in zip(target, source, strict=True):
        row[...] = values

"""The memory of machine code: addresses of inputs and outputs, for each element of each block.

Workspaces, of inputs, outputs and intermediate values, are used again by later calls.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError

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
        inputs = cls(np.zeros(width, np.int64), np.zeros(width, np.int64), [], 0)
        start = staged = 0
        for row in rows:
            stop = start + row.shape[1]
            if row.strides[0] == row.itemsize and row.flags.aligned:
                inputs.starts[start:stop] = start_of(row) + row.strides[1] * np.arange(stop - start)
                inputs.steps[start:stop] = row.itemsize
            else:
                inputs.copied.append((start, staged, row))
                staged += stop - start
            start = stop
        return inputs._replace(staged=staged)

    def table(self, stage: Array, start: int, stop: int) -> NDArray[np.int64]:
        """Return the address of each element for the points from `start` to `stop`."""
        table = self.starts + start * self.steps
        for column, first, row in self.copied:
            size = row.shape[1]
            stage[first : first + size, : stop - start] = row[start:stop].T
            begin = start_of(stage) + first * stage.strides[0]
            table[column : column + size] = begin + stage.strides[0] * np.arange(size)
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


class PointWorkspace(NamedTuple):
    """Inputs, outputs and memory of one point, with their addresses, which are slow to look up."""

    x: Array
    y: Array
    memory: Array
    starts: tuple[int, int, int]

    @classmethod
    def of(cls, inputs: int, outputs: int, size: int, real: np.dtype[Any]) -> PointWorkspace:
        """Allocate arrays of these sizes."""
        arrays = np.empty(inputs, real), np.empty(outputs, real), np.empty(size, real)
        return cls(*arrays, (start_of(arrays[0]), start_of(arrays[1]), start_of(arrays[2])))


class BatchWorkspace(NamedTuple):
    """Inputs, outputs and memory of a copied batch, with the addresses of their pointer tables."""

    x: Array  # all elements of the inputs
    inputs: list[Array]
    outputs: list[Array]
    starts: tuple[int, int, int]
    owned: tuple[Array, ...]

    @classmethod
    def of(
        cls,
        inputs: Sequence[int],
        outputs: Sequence[tuple[int, np.dtype[Any]]],
        memory: Array,
        points: int,
    ) -> BatchWorkspace:
        """Allocate arrays for batches of up to n points.

        Parameters
        ----------
        inputs : sequence of int
            The number of elements of each input.
        outputs : sequence of (int, dtype)
            The number and the dtype of the elements of each output.
        memory : array
            Memory for intermediate values, of the dtype of the inputs.
        points : int
            The most points of a batch.
        """
        # Rows a power of two apart would map to the same few cache sets.
        width = points + 8 * (1 + points % 2)
        flat = np.ones((sum(inputs), width), memory.dtype)
        parts = np.split(flat, np.cumsum(inputs)[:-1]) if inputs else []
        results = [np.empty((count, width), dtype) for count, dtype in outputs]
        x, y = OutputAddresses.of(parts).starts, OutputAddresses.of(results).starts
        starts = start_of(x), start_of(y), start_of(memory)
        return cls(flat, parts, results, starts, (x, y, memory))


# --- the checked mode: every access is compared with the bounds of its array ---------------------
# Sizes and indices are always checked when code is generated. With ``DIFFLAB_CHECK=bounds`` in the
# environment the code also checks every index at run time, which is several times slower, and
# memory that nothing has written holds nan. This mode is for tests and debugging.


def checked() -> bool:
    """Return whether compiled code checks its accesses at run time."""
    return os.environ.get("DIFFLAB_CHECK") == "bounds"


def check_rows(starts: NDArray[np.int64], points: int, arrays: Sequence[NDArray[Any]]) -> None:
    """Raise `ConsistencyError` if a row of points is not inside one of the arrays.

    Parameters
    ----------
    starts : array of int
        The address of each row.
    points : int
        The number of contiguous elements read or written in each row.
    arrays : sequence of array
        The arrays that may be accessed.

    Examples
    --------
    >>> held = np.zeros(8)
    >>> check_rows(np.array([held.ctypes.data]), 8, [held])
    >>> check_rows(np.array([held.ctypes.data]), 9, [held])
    Traceback (most recent call last):
        ...
    difflab.errors.ConsistencyError: row 0 of a batch: 9 points are outside of the arrays
    """
    spans = [(*np.lib.array_utils.byte_bounds(array), array.itemsize) for array in arrays]
    for row, start in enumerate(starts.tolist()):
        if not any(low <= start and start + points * size <= high for low, high, size in spans):
            raise ConsistencyError(
                f"row {row} of a batch: {points} points are outside of the arrays"
            )

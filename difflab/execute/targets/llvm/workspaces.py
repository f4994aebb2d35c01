"""Memory that calls of machine code use again: inputs, outputs and intermediate values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.execute.targets.llvm.addresses import OutputAddresses, start_of

Array = NDArray[Any]


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

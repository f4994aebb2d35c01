"""Machine code for a batch of points of a function of arrays: a loop that calls a routine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.execute.lower.schedule import batch_first, point_by_point
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm.addresses import checked
from difflab.execute.targets.llvm.arrays.control import FAULT, STOPPED, raise_fault
from difflab.execute.targets.llvm.arrays.expansion import routine_layout
from difflab.execute.targets.llvm.arrays.groups import NestLayout
from difflab.execute.targets.llvm.arrays.routine import Module
from difflab.execute.targets.llvm.libraries import host
from difflab.execute.workers import share_turns
from difflab.graph.function import Function
from difflab.graph.ir import Shape

Array = NDArray[Any]

SHARED = 4
"""Blocks of points per thread: points may take different numbers of steps."""


class NativeBatch:
    """A function of arrays as machine code that is called for every point of a batch.

    Parameters
    ----------
    function : Function
        The function to compile; its operations have machine code.
    truths : sequence of bool
        Which outputs are truth values.
    threads : int
        The number of threads that share the points.
    """

    def __init__(self, function: Function, truths: Sequence[bool], threads: int) -> None:
        self.function = function
        self.truths = truths
        self.threads = threads

    @cached_property
    def _layout(self) -> NestLayout:
        return routine_layout(self.function)

    @cached_property
    def _code(self) -> tuple[Module, engine.CompiledModule, Array]:
        """The module, its compiled code, and its constants.

        Writing a module changes it: threads that come here together write one each.
        """
        module = Module(self._layout, host(), checked=checked())
        text = module.batch_text()
        entry = engine.load(text, module.functions.symbols, host(), module.operations)
        return module, entry, np.array([*module.constants, 0.0])

    def __call__(self, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Return the outputs for one float64 value per input."""
        function, points = self.function, math.prod(batch)
        rows = [
            np.ascontiguousarray(point_by_point(value, shape, batch))
            if np.ndim(value) > len(shape)
            else np.ascontiguousarray(value).reshape(1, -1)
            for value, shape in zip(values, function.input_shapes, strict=True)
        ]
        stores = [np.empty((points, math.prod(shape))) for shape in function.output_shapes]
        if points:
            self._fill([*rows, *stores], points)
        return [
            batch_first(np.ascontiguousarray(store.T, bool if truth else float), shape, batch)
            for store, shape, truth in zip(stores, function.output_shapes, self.truths, strict=True)
        ]

    def _fill(self, arrays: Sequence[Array], points: int) -> None:
        """Compute all points, in blocks that the threads share."""
        module, entry, constants = self._code
        steps = np.array([array.shape[1] if len(array) > 1 else 0 for array in arrays], np.intp)
        steps *= points > 1
        starts = np.array([array.ctypes.data for array in arrays], np.intp)
        workers = min(self.threads, points)
        blocks = 1 if workers == 1 else min(SHARED * workers, points)
        tables: list[Array] = []

        def work(indices: Iterator[int]) -> None:
            table = np.concatenate([starts, steps, np.zeros(FAULT, np.intp)])
            tables.append(table)
            values = module.memory()
            for block in indices:
                first, last = points * block // blocks, points * (block + 1) // blocks
                table[: len(starts)] = starts + 8 * first * steps
                x, y, v = (part.ctypes.data for part in (table, constants, values))
                entry.run(x, y, v, last - first)
                raise_fault(table, module.accesses)

        def stop() -> None:
            for table in tables:  # loops of machine code look there
                table[-FAULT] = STOPPED

        share_turns(work, range(blocks), workers, stop)

    def memory_plan(self, points: int) -> MemoryPlan:
        """Return the memory of a batch, if its inputs need not be copied."""
        layout = self._layout
        results = 8 * points * self.function.m
        workers = min(self.threads, max(points, 1))
        return MemoryPlan(len(layout.program.code), (8 * layout.room,), workers, results, results)

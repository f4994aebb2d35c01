"""The target ``numpy``: a planned sequence of universal functions that write into buffers.

A batch is computed in blocks of points that fit into the processor's cache. Threads share the
blocks, since universal functions release the GIL. The buffers of a block are planned by liveness
and kept between calls. A call allocates only its results, and the arrays of operations that are
not universal functions.

At one point of arrays the buffers, their views and all constants are prepared in advance. A call
only checks its arguments, runs the operations and allocates its results. A workspace, which is one
set of buffers, serves one call at a time; concurrent calls use one workspace each.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.execute.lower.arrays.layout import BufferLayout
from difflab.execute.lower.arrays.lowering import lowered
from difflab.execute.lower.arrays.source import PointTarget, SourceWriter, Workspace
from difflab.execute.lower.ops import FLOAT
from difflab.execute.lower.plan import (
    BufferPlan,
    BufferSlot,
    called,
    is_view,
    planned,
    writes,
)
from difflab.execute.lower.schedule import (
    ScalarProgram,
    Schedule,
    batch_first,
    point_by_point,
    spread,
)
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.workers import share_turns
from difflab.graph.function import Function
from difflab.graph.ir import Shape

CACHE_BYTES = 2 << 20  # of the values of one block: about one core's share of the last-level cache
SMALLEST, LARGEST = 1024, 32_768  # points in a block; short blocks wait for the GIL
WORTH_THREADS = 200_000  # scalar operations; fewer finish before a thread wakes up

Array = NDArray[Any]


class NumpyTarget:
    """A function as a plan over NumPy.

    Parameters
    ----------
    function : Function
        The function to compile.
    steps : ScalarProgram or Schedule
        Its operations on scalars, if possible: then each is computed on vectors of points.
    threads : int
        The number of threads that share the blocks of a batch.
    real : dtype
        The dtype of the values, also of inputs and results.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*x + sin(x)")
    >>> target = NumpyTarget(f, ScalarProgram.of(f), threads=1)
    >>> target([np.array([0.0, 1.0])], (2,))
    [array([0.        , 1.84147098])]
    """

    def __init__(
        self,
        function: Function,
        steps: Schedule | ScalarProgram,
        threads: int,
        real: np.dtype[Any] = FLOAT,
    ) -> None:
        self.threads = threads
        self.plan = planned(steps, real)
        self.numbers = isinstance(steps, ScalarProgram)
        self.input_shapes = function.input_shapes
        self.shapes = function.output_shapes
        self.dtypes = [self.plan.result_dtype(index) for index in range(len(self.shapes))]
        self.copied = [
            (output, key, int(value))
            for output, values in enumerate(self.plan.outputs)
            for key, value in np.ndenumerate(values)
            if self.plan.direct.get(int(value)) != (output, key)
        ]
        held = function.n + function.m
        buffers = set(self.plan.slots.values())
        held += sum(math.prod(shape) for (shape, _), _ in buffers)
        self.block = min(max(CACHE_BYTES // (real.itemsize * max(held, 1)), SMALLEST), LARGEST)
        self._workspaces: list[_NumpyWorkspace] = []

    @property
    def source(self) -> str:
        """The plan, one operation per line."""
        return self.plan.source()

    def __call__(self, values: Sequence[Any], batch: Shape, whole: int = 0) -> list[Any]:
        """Return the outputs for one float64 value per input, in blocks of the batch.

        The blocks are those of a batch of `whole` points, if that is more.
        """
        points = math.prod(batch)
        inputs = self._columns(values, batch, points)
        stores = [self._store(index, points) for index in range(len(self.shapes))]
        self._fill(inputs, stores, points, self.block_size(max(points, whole)))
        return [self._shaped(store, shape, batch) for store, shape in self._paired(stores)]

    def _columns(self, values: Sequence[Any], batch: Shape, points: int) -> list[Array]:
        """Return the inputs' values with one leading batch axis."""
        columns: list[Array] = []
        for value, shape in zip(values, self.input_shapes, strict=True):
            if self.numbers and shape != ():
                columns += list(point_by_point(value, shape, batch).T)
            else:
                columns.append(spread(value, batch + shape).reshape((points, *shape)))
        return columns

    def _store(self, output: int, points: int) -> Array:
        """Return memory for a result: elements first in a program, else points first."""
        shape = self.shapes[output]
        full = (*shape, points) if self.numbers else (points, *shape)
        return np.empty(full, self.dtypes[output])

    def _paired(self, stores: Sequence[Array]) -> list[tuple[Array, Shape]]:
        return list(zip(stores, self.shapes, strict=True))

    def _shaped(self, store: Array, shape: Shape, batch: Shape) -> Any:
        """Return a result in the shape batch + shape, a 0-d result as a scalar."""
        if not self.numbers:
            return store.reshape(batch + shape)
        if batch == ():
            return store.reshape(shape)[()]
        return batch_first(store.reshape(math.prod(shape), math.prod(batch)), shape, batch)

    def block_size(self, points: int) -> int:
        """Return the number of points of a block of a batch of n points."""
        return -(-points // max(-(-points // self.block), 1))

    def _fill(
        self, inputs: Sequence[Array], stores: Sequence[Array], points: int, size: int
    ) -> None:
        """Compute all blocks, of `size` points each."""
        blocks = -(-points // max(size, 1))

        def work(indices: Iterator[int]) -> None:
            workspace = self._workspaces.pop() if self._workspaces else _NumpyWorkspace(self.plan)
            with np.errstate(all="ignore"):
                for block in indices:
                    start = block * size
                    self._block(workspace, inputs, stores, start, min(points, start + size))
            workspace.forget()
            self._workspaces.append(workspace)

        share_turns(work, range(blocks), self._workers(points))

    def _workers(self, points: int) -> int:
        """Return how many threads share the blocks of n points."""
        worth = points * len(self.plan.program.ops) >= WORTH_THREADS
        return min(self.threads, -(-points // self.block)) if worth else 1

    def memory_plan(self, points: int) -> MemoryPlan:
        """Return the memory of a call with n points."""
        size = self.block_size(points)
        own = [op for op in self.plan.program.ops if not writes(op) and not is_view(op)]
        others = sum(op.nbytes for op in own) + max([op.workspace for op in own], default=0)
        return MemoryPlan(
            len(self.plan.program.ops),
            tuple([size * held for held in self.plan.buffers]),
            self._workers(points),
            sum(
                points * math.prod(shape) * dtype.itemsize
                for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
            ),
            size * others * self._workers(points),
        )

    def _block(
        self,
        workspace: _NumpyWorkspace,
        inputs: Sequence[Array],
        stores: Sequence[Array],
        start: int,
        stop: int,
    ) -> None:
        """Compute the points from `start` to `stop`."""
        part = slice(start, stop)
        direct = {v: self._view(stores[k], key, part) for v, (k, key) in self.plan.direct.items()}
        workspace.run(stop - start, [value[part] for value in inputs], direct)
        for output, key, value in self.copied:
            self._view(stores[output], key, part)[...] = workspace.values[value]

    def _view(self, store: Array, key: tuple[int, ...], part: slice) -> Array:
        index: tuple[int | slice, ...] = (*key, part) if self.numbers else (part,)
        view: Array = store[index]
        return view


class _NumpyWorkspace:
    """The values of one block, and the buffers that hold some of them.

    Parameters
    ----------
    plan : Plan
        The plan to run.
    """

    def __init__(self, plan: BufferPlan) -> None:
        self.plan = plan
        self.values: list[Any] = [None] * plan.size
        self.points = -1
        self.buffers: dict[BufferSlot, Array] = {}
        for value, number in plan.program.known.items():
            self.values[value] = number.item()
        self.calls = [(called(op), op.reads, op.number, writes(op)) for op in plan.program.ops]

    def run(self, points: int, inputs: Sequence[Any], direct: dict[int, Array]) -> None:
        """Compute a block of n points."""
        if points != self.points:
            self._bind(points)
        values = self.values
        values[: len(inputs)] = inputs
        for value, view in direct.items():
            values[value] = view
        for function, reads, value, written in self.calls:
            if written:
                function(*[values[read] for read in reads], out=values[value])
            else:
                values[value] = function(*[values[read] for read in reads])

    def _bind(self, points: int) -> None:
        """Bind the values to views of n points; enlarge buffers that are too small."""
        self.points = points
        for value, slot in self.plan.slots.items():
            shape, dtype = slot[0]
            size = points * math.prod(shape)
            buffer = self.buffers.get(slot)
            if buffer is None or buffer.size < size:
                buffer = self.buffers[slot] = np.empty(size, dtype)
            self.values[value] = buffer[:size].reshape((points, *shape))

    def forget(self) -> None:
        """Drop the references to the caller's arrays and to the results."""
        values = self.values
        for value in range(self.plan.program.inputs):
            values[value] = None
        for value in self.plan.direct:
            values[value] = None
        for _, _, value, written in self.calls:
            if not written:
                values[value] = None


class ArrayTarget(PointTarget):
    """A function of arrays as Python source over NumPy.

    Parameters
    ----------
    schedule : Schedule
        The schedule to compile.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda W, x: np.sum(np.maximum(x @ W, 0.0)), np.ones((3, 2)), np.ones(3))
    >>> target = ArrayTarget(Schedule.of(f))
    >>> print(target.source)
    def point(a0, a1):
        a1.dot(a0, c2)
        maximum(c2, c3_2, out=c2)
        v5 = add.reduce(c2, None)
        return (float(v5),)
    >>> target([np.ones((3, 2)), np.ones(3)])
    [6.0]
    """

    def __init__(self, schedule: Schedule) -> None:
        program = lowered(schedule)
        super().__init__(program.input_shapes, len(program.outputs))
        self.layout = BufferLayout(program)
        self.writer = SourceWriter(self.layout)

    def memory_plan(self) -> MemoryPlan:
        """Return the memory of a call."""
        return self.layout.memory_plan()

    @property
    def source(self) -> str:
        """The code of one point."""
        return self.writer.source

    @cached_property
    def _make(self) -> Callable[..., Callable[..., tuple[Any, ...]]]:
        return self.writer.factory()

    def workspace(self) -> Workspace:
        """Return new buffers, and the code bound to them."""
        make = self._make  # before the buffers: compiling the code needs memory that it then frees
        cells = self.layout.cells()
        run = make([cells[number] for number in self.writer.prepared])
        # NumPy's error state is a context variable: entering a context that ignores errors
        # takes a twentieth of the time of np.errstate.
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        return context.run, run

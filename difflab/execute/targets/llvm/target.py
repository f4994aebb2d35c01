"""Calls of machine code: at one point, or on a batch in blocks that threads share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError, UnsupportedError
from difflab.execute.lower.ops import FLOAT, SINGLE, NumpyProgram
from difflab.execute.lower.record import Forms, always_spelled, as_ufuncs, kernel_form
from difflab.execute.lower.schedule import ScalarProgram, batch_first, point_by_point
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm.addresses import (
    BatchWorkspace,
    InputAddresses,
    OutputAddresses,
    PointWorkspace,
    check_rows,
    checked,
    copy_elements,
    start_of,
)
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.execute.targets.llvm.libraries import SCIPY, Host, host
from difflab.execute.targets.llvm.machine_call import BatchCode, PointCode, PointInput
from difflab.execute.targets.llvm.writer import LlvmWriter, PackedWriter, packs
from difflab.execute.workers import share_turns
from difflab.graph.ir import Shape

BLOCK = 65_536  # points of a block; KeyboardInterrupt is checked between blocks
ROWS_BYTES = 512 << 10  # of inputs and outputs of a block of packed rows: half of a small L2 cache
STAGED_BYTES = 2 << 20  # of the inputs of a block that are copied to contiguous memory
SHORT_BATCH_BYTES = 128 << 10  # of inputs and outputs of a batch short enough to be copied
WORTH_THREADS = 2_000_000  # scalar operations; fewer finish before a thread wakes up
SMALL = 1_000  # operations that compile within milliseconds
FEWEST = 200  # operations up to which the code of batches is compiled with that of one point
FEW = 256  # points below which more than SMALL operations run point by point

Array = NDArray[Any]


class NativeTarget:
    """A program as machine code.

    Every operation rounds as IEEE 754 requires and none is contracted, so nan, inf and branches
    agree with NumPy. Mathematical functions are glibc's vector functions where they exist, with
    errors of at most 4 ULP, and libm's otherwise.

    Parameters
    ----------
    program : ScalarProgram
        The program to compile.
    input_shapes : sequence of tuple
        The shape of each input at one point.
    threads : int
        The number of threads that share the blocks of a batch.
    machine : Host, optional
        The processor to compile for; that of this machine when None.
    real : dtype
        The dtype of the values: float64, or float32 in registers of twice as many lanes.
    forms : callable
        Returns the universal functions of a row, as in `as_ufuncs`.

    Raises
    ------
    UnsupportedError
        An operation has no machine code.
    """

    def __init__(
        self,
        program: ScalarProgram,
        input_shapes: Sequence[Shape],
        threads: int,
        machine: Host | None = None,
        real: np.dtype[Any] = FLOAT,
        forms: Forms = kernel_form,
    ) -> None:
        self.program = program
        self.forms = forms
        self.real = real
        if real == SINGLE or not always_spelled(program, SPELLINGS, forms):
            self.code  # noqa: B018 - raises what it raises now, not at the first call
        self._machine = machine
        self._checked = checked()
        self.threads = threads
        self.input_shapes = input_shapes
        self.shapes: list[Shape] = [cells.shape for cells in program.outputs]
        self.parts = program.parts
        self._memories: list[Array] = []
        self._point_workspaces: list[PointWorkspace] = []
        self._batch_workspaces: list[BatchWorkspace] = []
        self._row_workspaces: list[BatchWorkspace] = []

    @cached_property
    def code(self) -> NumpyProgram:
        """The operations; most functions are never called on batches, and need none of them."""
        code = as_ufuncs(self.program, SPELLINGS, forms=self.forms).computed_in(self.real)
        if self.real == SINGLE:
            _check_single(code)
        return code

    @cached_property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The dtype of each output."""
        values, truths = (self.code.outputs[part] for part in self.parts), self.code.truths
        return [np.dtype(bool) if v and truths.issuperset(v) else self.real for v in values]

    @cached_property
    def kinds(self) -> list[type]:
        """The Python type of each output, if it is a scalar."""
        return [bool if dtype.kind == "b" else float for dtype in self.dtypes]

    @cached_property
    def _vector(self) -> bool:
        return len(self.kinds) == 1 and len(self.shapes[0]) == 1 and self.kinds[0] is float

    @cached_property
    def machine(self) -> Host:
        """The processor that code is compiled for."""
        return self._machine or host()

    @cached_property
    def width(self) -> int:
        """The number of points computed at once."""
        return self.machine.width * FLOAT.itemsize // self.real.itemsize

    @cached_property
    def operations(self) -> int:
        """The number of operations at a point."""
        return len(self.code.ops)

    def prepare(self) -> None:
        """Compile now instead of at the first call; larger code for batches at the first batch."""
        self._point  # noqa: B018 - compiles
        if self.operations <= FEWEST:
            self._batch  # noqa: B018

    @property
    def source(self) -> str:
        """The LLVM IR for a batch."""
        return self.writer(self.width).text()

    def writer(self, width: int) -> LlvmWriter:
        """Return the writer of the module for one point, or for vectors of a width."""
        truths = [
            width > 1 and dtype.kind == "b"
            for dtype, part in zip(self.dtypes, self.parts, strict=True)
            for _ in range(part.start, part.stop)
        ]
        return LlvmWriter(self.code, self.machine, width, truths)

    @cached_property
    def _point(self) -> tuple[engine.CompiledModule, int]:
        return self._compiled(self.writer(1))

    @cached_property
    def _batch(self) -> tuple[engine.CompiledModule, int]:
        return self._compiled(self.writer(self.width))

    @cached_property
    def _packed(self) -> engine.CompiledModule | None:
        """The code for packed points; None if it cannot read and write rows."""
        if not packs(self.code):
            return None
        return self._compiled(PackedWriter(self.code, self.machine))[0]

    def _compiled(self, writer: LlvmWriter) -> tuple[engine.CompiledModule, int]:
        """Return the code, and the size of its memory for intermediate values."""
        code = engine.load_parts(
            writer.modules(), lambda: writer.functions.symbols, self.machine, self.operations
        )
        return code, writer.memory

    def point(self, numbers: Sequence[float] | NDArray[np.float64]) -> list[Any]:
        """Return the outputs at one point, of which `numbers` holds the flattened inputs."""
        entry, size = self._point
        spaces = self._point_workspaces
        space = (
            spaces.pop()
            if spaces
            else PointWorkspace.of(len(numbers), len(self.code.outputs), size, self.real)
        )
        space.x[:] = numbers
        entry.run(*space.starts, 1)
        flat = space.y.copy()
        spaces.append(space)
        if self._vector:
            return [flat]
        return [
            kind(flat[part.start])
            if shape == ()
            else flat[part].reshape(shape).astype(dtype, copy=False)
            for part, shape, kind, dtype in zip(
                self.parts, self.shapes, self.kinds, self.dtypes, strict=True
            )
        ]

    def point_code(self) -> PointCode | None:
        """Return the code of one point for calls by machine code; None where it cannot be called.

        Its results are float64, and its functions neither truth values nor checked.
        """
        if self._checked or self.real != FLOAT or bool in self.kinds:
            return None
        entry, size = self._point
        inputs = sum(map(math.prod, self.input_shapes))
        space = PointWorkspace.of(inputs, len(self.code.outputs), size, self.real)
        x, y, _ = space.starts
        sizes = [FLOAT.itemsize * math.prod(shape) for shape in self.input_shapes]
        starts = [x + sum(sizes[:k]) for k in range(len(sizes))]
        return PointCode(
            entry.address,
            space.starts,
            list(map(PointInput, self.input_shapes, starts)),
            [
                (shape, y + FLOAT.itemsize * part.start)
                for shape, part in zip(self.shapes, self.parts, strict=True)
            ],
            self.operations,
            (entry, space),
        )

    def batch_code(self, least: float, *, packed: bool) -> BatchCode | None:
        """Return the code of batches for calls by machine code; None where it cannot be called.

        It computes batches of scalars, or of packed inputs, of at least `least` points that are
        one block.
        """
        if self._checked or self.real != FLOAT or bool in self.kinds or "_batch" not in vars(self):
            return None
        inputs = sum(map(math.prod, self.input_shapes))
        arrays = any(self.input_shapes) and not packed
        if not inputs or arrays or max(map(len, self.shapes)) > 1:
            return None
        entry, size = self._batch  # compiled before, by a batch that was long enough
        fewest = FEW if self.operations > SMALL else self.width
        return BatchCode(
            entry.address,
            np.empty(size),
            inputs,
            self.shapes,
            max(fewest, math.ceil(least)),
            self._longest(inputs if packed else 0),
            self.operations,
            entry,
        )

    def __call__(self, values: Sequence[Any], batch: Shape, whole: int = 0) -> list[Any]:
        """Return the outputs for one float64 value per input.

        They are computed as in a batch of `whole` points, if that is more.
        """
        if batch == ():
            flat = [np.ravel(value) for value in values]
            return self.point(np.concatenate(flat) if flat else np.empty(0))
        points = math.prod(batch)
        if self.few(max(points, whole)):
            return self._one_by_one(self._rows(values, batch), batch)
        stores = [
            np.empty((math.prod(shape), points), dtype)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]
        self._compute(values, batch, stores, points)
        return [
            batch_first(store, shape, batch)
            for store, shape in zip(stores, self.shapes, strict=True)
        ]

    def filled(self, values: Sequence[Any], batch: Shape, arrays: Sequence[Any]) -> bool:
        """Compute a batch in given arrays, as they are returned; whether they can be written to.

        An array that shares memory with another or with an input is not written to.
        """
        (points,) = batch
        stores: list[Array] = []
        for array, shape, dtype in zip(arrays, self.shapes, self.dtypes, strict=True):
            if type(array) is not np.ndarray or array.dtype != dtype or len(shape) > 1:
                return False
            store = array.T if shape else array[None]
            whole = store.flags.carray and array.shape == batch + shape
            if not whole or any(map(partial(np.may_share_memory, store), [*values, *stores])):
                return False
            stores.append(store)
        if self.few(points):
            return False
        self._compute(values, batch, stores, points)
        return True

    def _rows(self, values: Sequence[Any], batch: Shape) -> list[Array]:
        """Return the inputs in shape ``(points, elements)``."""
        return [
            point_by_point(value, shape, batch)
            for value, shape in zip(values, self.input_shapes, strict=True)
        ]

    def _compute(
        self, values: Sequence[Any], batch: Shape, stores: Sequence[Array], points: int
    ) -> None:
        """Write the outputs of a batch to memory of shape ``(elements, points)``."""
        if points > self.short_batch_points:
            self._fill(self._rows(values, batch), stores, points)
        elif points:
            self._copied_batch(values, batch, stores, points)

    def few(self, points: int) -> bool:
        """Return whether a batch is so short that its points are computed one by one."""
        return self.operations > SMALL and points < FEW

    @cached_property
    def short_batch_points(self) -> int:
        """The most points of a batch that is copied to a workspace; at least a vector's width."""
        return self._points_of(SHORT_BATCH_BYTES)

    def _points_of(self, nbytes: int) -> int:
        """Return the points whose inputs and outputs fit n bytes; at least a vector's width."""
        size = sum(math.prod(shape) for shape in (*self.input_shapes, *self.shapes))
        return max(nbytes // (8 * max(size, 1)), self.width)

    def _copied_batch(
        self, values: Sequence[Any], batch: Shape, stores: Sequence[Array], points: int
    ) -> None:
        """Compute a batch so short that copying it is faster than making pointer tables."""
        workspaces = self._batch_workspaces
        workspace = workspaces.pop() if workspaces else self._workspace(self.short_batch_points)
        for buffer, value, shape in zip(workspace.inputs, values, self.input_shapes, strict=True):
            aligned = shape == () and len(batch) == 1
            buffer[:, :points] = value if aligned else point_by_point(value, shape, batch).T
        self._run(workspace, points)
        for store, buffer in zip(stores, workspace.outputs, strict=True):
            store[...] = buffer[:, :points]
        workspaces.append(workspace)

    def _run(self, workspace: BatchWorkspace, points: int) -> None:
        """Compute the first n points of a workspace."""
        entry, _ = self._batch
        # A whole vector is computed; lanes beyond the batch hold the values of an earlier call.
        count = max(points, self.width)
        tables = workspace.owned
        self._check(tables[0], workspace.inputs, tables[1], workspace.outputs, count)
        entry.run(*workspace.starts, count)

    def _workspace(self, points: int) -> BatchWorkspace:
        """Allocate arrays for batches of up to n points."""
        _, size = self._batch
        inputs = [math.prod(shape) for shape in self.input_shapes]
        outputs = [
            (part.stop - part.start, dtype)
            for part, dtype in zip(self.parts, self.dtypes, strict=True)
        ]
        return BatchWorkspace.of(inputs, outputs, np.empty(size, self.real), points)

    def rows(self, points: Array, out: Array) -> None:
        """Write the outputs at packed points ``(k, n)`` to the rows of `out`, ``(k, m)``.

        They have the bits of a batch of any length. Short contiguous rows are read and
        written by the code itself.
        """
        whole = points.flags.c_contiguous and out.flags.c_contiguous
        if whole and len(points) >= self.width and self._packed is not None:
            self._rows_in_place(self._packed, points, out)
        else:
            self._copied_rows(points, out)

    def _rows_in_place(self, code: engine.CompiledModule, points: Array, out: Array) -> None:
        """Compute contiguous rows without copies."""
        count = len(points)
        blocks = -(-count // BLOCK)
        x, y = start_of(points), start_of(out)  # slow to look up, so once

        def work(indices: Iterator[int]) -> None:
            for block in indices:
                # Equal parts: none is shorter than a vector.
                start, stop = count * block // blocks, count * (block + 1) // blocks
                starts = x + start * points.strides[0], y + start * out.strides[0]
                if self._checked:
                    check_rows(np.array(starts[:1]), (stop - start) * points.shape[1], [points])
                    check_rows(np.array(starts[1:]), (stop - start) * out.shape[1], [out])
                code.run(*starts, 0, stop - start)

        share_turns(work, range(blocks), self._workers(count, blocks))

    def _copied_rows(self, points: Array, out: Array) -> None:
        """Compute rows in memory that stays in the cache and is allocated once.

        Fresh memory for a batch costs more than to copy it.
        """
        step = self._points_of(ROWS_BYTES)
        blocks = -(-len(points) // step)

        def work(indices: Iterator[int]) -> None:
            spaces = self._row_workspaces
            space = spaces.pop() if spaces else self._workspace(step)
            for block in indices:
                x, y = points[block * step :][:step].T, out[block * step :][:step].T
                count = x.shape[1]
                copy_elements(x, space.x[:, :count])
                self._run(space, count)
                for part, buffer in zip(self.parts, space.outputs, strict=True):
                    copy_elements(buffer[:, :count], y[part])
            spaces.append(space)

        share_turns(work, range(blocks), self._workers(len(points), blocks))

    def _one_by_one(self, rows: Sequence[Array], batch: Shape) -> list[Any]:
        """Compute a batch so short that compiling vector code would take longer."""
        by_point = [self.point(point) for point in np.concatenate(rows, axis=1)]
        return [
            np.array([results[index] for results in by_point], dtype).reshape(batch + shape)
            for index, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True))
        ]

    def _memory(self, size: int) -> Array:
        """Return memory of at least `size` elements, which no other thread uses."""
        memory = self._memories.pop() if self._memories else np.empty(0, self.real)
        return memory if len(memory) >= size else np.empty(size, self.real)

    def _fill(self, rows: Sequence[Array], stores: Sequence[Array], points: int) -> None:
        """Compute all blocks."""
        entry, size = self._batch
        inputs, outputs = InputAddresses.of(rows), OutputAddresses.of(stores)
        blocks = self._blocks(points, inputs.staged)

        def work(indices: Iterator[int]) -> None:
            memory = self._memory(size)
            stage = np.empty((inputs.staged, -(-points // blocks)), self.real)
            for block in indices:
                start, stop = points * block // blocks, points * (block + 1) // blocks
                x, y = inputs.table(stage, start, stop), outputs.table(start)
                self._check(x, [*rows, stage], y, stores, stop - start)
                entry.run(start_of(x), start_of(y), start_of(memory), stop - start)
            self._memories.append(memory)

        share_turns(work, range(blocks), self._workers(points, blocks))

    def _check(
        self, x: Array, inputs: Sequence[Array], y: Array, outputs: Sequence[Array], points: int
    ) -> None:
        """Check the pointer tables against their arrays, in checked mode."""
        if not self._checked:
            return
        if points < self.width:
            raise ConsistencyError(f"{points} points are fewer than the lanes of a vector")
        check_rows(x, points, inputs)
        check_rows(y, points, outputs)

    def _blocks(self, points: int, staged: int) -> int:
        """Return the number of blocks of a batch of n points."""
        longest = self._longest(staged)
        return -(-points // (2 * longest)) * 2 if points > longest else 1

    def _longest(self, staged: int) -> int:
        """Return the most points of a block that n elements of each point are copied for."""
        least = 4 * self.width  # so that halves are no shorter than a vector
        return min(BLOCK, max(STAGED_BYTES // (8 * max(staged, 1)), least))

    def _workers(self, points: int, blocks: int) -> int:
        worth = points * self.operations >= WORTH_THREADS
        return min(self.threads, blocks) if worth else 1

    def memory_plan(self, points: int) -> MemoryPlan:
        """Return the memory of n points, if array inputs alone have to be copied."""
        _, size = self._batch
        results = sum(
            points * math.prod(shape) * dtype.itemsize
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        )
        if points <= self.short_batch_points:
            workspace = self._workspace(self.short_batch_points)
            sizes = tuple(
                part.nbytes for part in (*workspace.inputs, *workspace.outputs, *workspace.owned)
            )
            return MemoryPlan(self.operations, tuple(filter(None, sizes)), 1, results)
        staged = sum(math.prod(shape) for shape in self.input_shapes if shape)
        blocks = self._blocks(points, staged)
        bytes_ = self.real.itemsize
        stage = bytes_ * staged * -(-points // blocks)
        buffers = tuple(number for number in (stage, bytes_ * size) if number)
        return MemoryPlan(self.operations, buffers, self._workers(points, blocks), results)


def _check_single(code: NumpyProgram) -> None:
    """Raise `UnsupportedError` if an operation has no function of float32."""
    for op in code.ops:
        if SPELLINGS[op.name].function in SCIPY:
            raise UnsupportedError(f"no machine code computes '{op.name}' in float32")

"""Execution of the stages on device arrays: launches on the current stream, and CuPy calls.

Nothing is copied between host and device: scalars are kernel parameters, arrays are read in place,
and results stay on the device. CuPy compiles the kernels and caches them on disk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from difflab.core.apply import device_name
from difflab.errors import DeviceError, PointError
from difflab.execute.lower.schedule import ScalarProgram, Schedule, ScheduledStep, batch_first
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.cuda.stages import Fused, staged
from difflab.execute.targets.cuda.writer import KernelOperand, Reading, kernel_source
from difflab.graph.function import Function
from difflab.graph.ir import Shape

THREADS = 256
"""Threads in a block."""
MOST_BLOCKS = 65_536
"""Blocks in a launch: hundreds per multiprocessor; threads loop over the remaining elements."""
OPTIONS = ("--fmad=false",)
"""Compiler options: no contraction to fused multiply-add."""


class CupyTarget:
    """A function as CUDA kernels, one for each group of fused operations.

    Parameters
    ----------
    function : Function
        The function to compile.
    steps : ScalarProgram or Schedule
        Its operations on scalars, if possible: it is then usually one kernel.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*x + sin(x)")
    >>> CupyTarget(f, ScalarProgram.of(f)).kernels
    1
    """

    def __init__(self, function: Function, steps: Schedule | ScalarProgram) -> None:
        self.stages = staged(steps)
        self.input_shapes = function.input_shapes
        self.shapes = function.output_shapes
        self.node_shape = steps.shape
        self._compiled: dict[tuple[int, tuple[Reading, ...]], Any] = {}

    @property
    def kernels(self) -> int:
        """The number of kernels."""
        return sum(isinstance(stage, Fused) for stage in self.stages.steps)

    @property
    def source(self) -> str:
        """The kernels for arrays of one stride, and the CuPy calls between them."""
        parts = []
        for number, stage in enumerate(self.stages.steps):
            if isinstance(stage, ScheduledStep):
                args = ", ".join(self._named(arg) for arg in stage.args)
                parts.append(f"// {self._named(stage.node)} = {stage.row.name}({args}), by CuPy")
            else:
                parts.append(self._source(number, stage, [Reading.LINE] * len(stage.reads)))
        return "\n\n".join(parts)

    def _named(self, value: int) -> str:
        known = self.stages.known
        return repr(known[value]) if value in known else f"#{value}"

    def _source(self, number: int, stage: Fused, readings: Sequence[Reading]) -> str:
        """Return a kernel's source, below a comment that names the values of its parameters."""
        reads = [f"x{index} is {self._named(value)}" for index, value in enumerate(stage.reads)]
        writes = [
            f"y{index} is {_cell(write.cell) if write.cell else self._named(write.value)}"
            for index, write in enumerate(stage.writes)
        ]
        truths = stage.code.truths
        operands = [KernelOperand(how, index in truths) for index, how in enumerate(readings)]
        stored = [write.truth for write in stage.writes]
        text = kernel_source(_name(number), stage.code, operands, stored)
        return f"// {', '.join([*reads, *writes])}\n{text}"

    def __call__(self, values: Sequence[Any], names: Sequence[str], batch: Shape) -> list[Any]:
        """Return the outputs for one scalar or device array per input.

        Raises
        ------
        DeviceError
            An array is not a CuPy array, or arrays are on different devices.
        PointError
            An array's dtype is not real.
        """
        cupy = import_module("cupy")
        inputs = [_as_input(cupy, value, name) for value, name in zip(values, names, strict=True)]
        devices = {str(value.device): value.device for value in inputs if _is_array(value)}
        if len(devices) > 1:
            listed = ", ".join(
                f"{name} is on {device_name(value)}"
                for name, value in zip(names, inputs, strict=True)
                if _is_array(value)
            )
            raise DeviceError(
                f"the target 'cupy' computes on one device, but {listed}",
                hint="copy an array to another device: with cupy.cuda.Device(0): cupy.array(x)",
            )
        with next(iter(devices.values()), nullcontext()):
            return _CupyCall(self, cupy, batch).results(inputs)

    def kernel(self, cupy: Any, number: int, stage: Fused, readings: tuple[Reading, ...]) -> Any:
        """Return the kernel for these readings of its operands, compiled at its first launch."""
        kernel = self._compiled.get((number, readings))
        if kernel is None:
            source = self._source(number, stage, readings)
            kernel = cupy.RawKernel(source, _name(number), options=OPTIONS)
            self._compiled[number, readings] = kernel
        return kernel

    def memory_plan(self, points: int) -> MemoryPlan:
        """Return the memory of a call with n points, if every input has the batch axes."""
        stages = self.stages
        sizes: dict[int, int] = {}
        held = most = values = 0
        for stage, dying in zip(stages.steps, stages.dying, strict=True):
            if isinstance(stage, ScheduledStep):
                made = [] if stage.row.structural else [(stage.node, stage.row.boolean)]
            else:
                made = [(w.value, w.truth) for w in stage.writes if w.cell is None]
                values += len(stage.writes)
            values += isinstance(stage, ScheduledStep)
            for value, truth in made:
                if stages.numbers or value not in self._outputs():
                    shape = () if stages.numbers else self.node_shape(value)
                    sizes[value] = points * math.prod(shape) * (1 if truth else 8)
                    held += sizes[value]
            most = max(most, held)
            held -= sum(sizes.pop(value, 0) for value in dying)
        results = sum(
            points * math.prod(shape) * (1 if truth else 8)
            for shape, truth in zip(self.shapes, stages.truths, strict=True)
        )
        return MemoryPlan(values, (), 1, results, most)

    def _outputs(self) -> set[int]:
        return {int(value) for values in self.stages.outputs for value in values.ravel()}


def _name(number: int) -> str:
    return f"difflab_{number}"


def _cell(cell: tuple[int, int]) -> str:
    return f"output {cell[0]}[{cell[1]}]"


def _is_array(value: Any) -> bool:
    return not isinstance(value, float)


def _as_input(cupy: Any, value: Any, name: str) -> Any:
    """Return an input as a float or a float64 device array."""
    if isinstance(value, cupy.ndarray):
        if value.dtype.kind not in "fiub":
            raise PointError(
                f"compiled functions accept real numbers, but '{name}' is {value.dtype}"
            )
        return value if value.dtype == np.float64 else value.astype(np.float64)
    if np.ndim(value) == 0:
        return float(value)
    raise DeviceError(
        f"the target 'cupy' computes on a GPU, but {name} is on {device_name(value)}",
        hint=f"cupy.asarray({name}) copies it to the GPU; target 'auto' computes on the host",
    )


class _KernelArgument(NamedTuple):
    """How an operand is read, and its kernel arguments."""

    reading: Reading
    arguments: tuple[Any, ...]


class _CupyCall:
    """One call, which holds each value until its last use."""

    def __init__(self, target: CupyTarget, cupy: Any, batch: Shape) -> None:
        self.target = target
        self.stages = target.stages
        self.cupy = cupy
        self.batch = batch
        self.points = math.prod(batch)
        self.values: dict[int, Any] = dict(self.stages.known)
        self.blocks: list[Any] = []

    def results(self, inputs: Sequence[Any]) -> list[Any]:
        """Run the stages and return the outputs."""
        stages = self.stages
        self._set_inputs(inputs)
        if stages.numbers:
            for values, truth in zip(stages.outputs, stages.truths, strict=True):
                self.blocks.append(self._empty((values.size, self.points), truth))
        for number, (stage, dying) in enumerate(zip(stages.steps, stages.dying, strict=True)):
            if isinstance(stage, ScheduledStep):
                args = [self._array(arg) for arg in stage.args]
                self.values[stage.node] = stage.row.computer(self.cupy)(*args, **stage.params)
            else:
                self._fused(number, stage)
            for value in dying:
                del self.values[value]
        owned = {id(value) for value in inputs}
        return [self._result(index, owned) for index in range(len(stages.outputs))]

    def _set_inputs(self, inputs: Sequence[Any]) -> None:
        """Set the inputs' values: in a program, one vector of points for each element."""
        if not self.stages.numbers:
            self.values.update(zip(self.stages.inputs, inputs, strict=True))
            return
        columns: list[Any] = []
        for value, shape in zip(inputs, self.target.input_shapes, strict=True):
            if not _is_array(value):
                columns.append(value)
                continue
            if value.shape != shape:
                value = self.cupy.broadcast_to(value, self.batch + shape)
                value = value.reshape((self.points, math.prod(shape)))
                columns += [value[:, index] for index in range(value.shape[1])]
            else:
                flat = value.reshape(-1)
                columns += [flat[index] for index in range(len(flat))]
        self.values.update(enumerate(columns))

    def _array(self, value: int) -> Any:
        """Return a value as an array."""
        array = self.values[value]
        return array if isinstance(array, self.cupy.ndarray) else self.cupy.full((), array)

    def _empty(self, shape: Shape, truth: bool) -> Any:
        return self.cupy.empty(shape, bool if truth else np.float64)

    def _fused(self, number: int, stage: Fused) -> None:
        """Launch a kernel."""
        shape: Shape = (self.points,)
        reads = [self.values[value] for value in stage.reads]
        if not self.stages.numbers:
            shape = np.broadcast_shapes(*(getattr(value, "shape", ()) for value in reads))
        truths = stage.code.truths
        laid = [
            self._kernel_argument(value, shape, index in truths)
            for index, value in enumerate(reads)
        ]
        stores = list(self._destinations(stage, shape))
        size = math.prod(shape)
        if size == 0:
            return
        kernel = self.target.kernel(
            self.cupy, number, stage, tuple([operand.reading for operand in laid])
        )
        arguments = [argument for operand in laid for argument in operand.arguments]
        blocks = min(-(-size // THREADS), MOST_BLOCKS)
        kernel((blocks,), (THREADS,), (*arguments, *stores, np.int64(size)))

    def _destinations(self, stage: Fused, shape: Shape) -> Iterator[Any]:
        """Yield the arrays that a kernel writes, and register them as values."""
        for value, cell, truth in stage.writes:
            store = self.blocks[cell[0]][cell[1]] if cell else self._empty(shape, truth)
            if value not in self.values:
                self.values[value] = store
            yield store

    def _kernel_argument(self, value: Any, shape: Shape, truth: bool) -> _KernelArgument:
        """Return how a kernel over `shape` reads a value."""
        if not isinstance(value, self.cupy.ndarray):
            return _KernelArgument(Reading.NUMBER, (np.float64(value),))
        dtype = np.dtype(bool if truth else np.float64)
        array = value if value.dtype == dtype else value.astype(dtype)
        spread = self.cupy.broadcast_to(array, shape)
        axes = _axes(shape, [stride // dtype.itemsize for stride in spread.strides])
        if len(axes) > 2:
            spread = self.cupy.ascontiguousarray(spread)
            axes = [(math.prod(shape), 1)]
        if len(axes) == 2:
            (_, down), (row, across) = axes
            strides = np.int64(row), np.int64(across), np.int64(down)
            return _KernelArgument(Reading.GRID, (spread, *strides))
        return _KernelArgument(Reading.LINE, (spread, np.int64(axes[0][1] if axes else 0)))

    def _result(self, index: int, owned: set[int]) -> Any:
        """Return an output in the shape batch + shape, as an array that shares no memory."""
        shape, batch = self.target.shapes[index], self.batch
        if self.stages.numbers:
            return batch_first(self.blocks[index], shape, batch)
        value = self._array(int(self.stages.outputs[index]))
        if value.shape != batch + shape:
            value = self.cupy.broadcast_to(value, batch + shape)
        if value.base is not None or id(value) in owned:
            value = value.copy()
        owned.add(id(value))
        return value


def _axes(shape: Shape, strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return the lengths and strides of an array's axes, merged where they are contiguous.

    Examples
    --------
    >>> _axes((4, 3), [3, 1]), _axes((4, 3), [0, 1]), _axes((2, 4, 3), [12, 3, 1])
    ([(12, 1)], [(4, 0), (3, 1)], [(24, 1)])
    """
    joined: list[tuple[int, int]] = []
    for length, stride in zip(shape, strides, strict=True):
        if length == 1:
            continue
        if joined and joined[-1][1] == stride * length:
            joined[-1] = joined[-1][0] * length, stride
        else:
            joined.append((length, stride))
    return joined

"""The schedule as NumPy's operations on numbered values, and the buffers they write into."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.execute.lower.record import (
    BOOL,
    FLOAT,
    KernelTape,
    RecordedValue,
    Unrecordable,
    select_into,
)
from difflab.execute.lower.schedule import ScalarProgram, Schedule, ScheduledStep
from difflab.execute.lower.slots import assign_slots, memory_roots
from difflab.graph.ir import Shape
from difflab.primitives import constant_array
from difflab.primitives.movement import VIEWS

__all__ = ["BufferPlan", "BufferSlot", "PlannedCall", "planned"]

BufferKind = tuple[Shape, "np.dtype[Any]"]
BufferSlot = tuple[BufferKind, int]
_END = -1
_LOOKED_AT = frozenset({row.name for row in (*VIEWS, constant_array)})
"""Rows that make no numbers anew when they are called."""


class PlannedCall(NamedTuple):
    """``function(*reads, out=value)`` where it `writes`, else ``value = function(*reads)``.

    What does not write `views` what it reads, or makes an array of its own.
    """

    function: Callable[..., Any]
    reads: tuple[int, ...]
    value: int
    writes: bool
    shape: Shape
    dtype: np.dtype[Any]
    label: str
    views: bool = False


@dataclass
class BufferPlan:
    """Operations in order.

    Attributes
    ----------
    inputs : int
        The values 0, 1, … that are the inputs: one per number of a program, else one each.
    outputs : list of array of int
        The values that each output is made of: in its shape for a program, else one.
    operations : list of PlannedCall
        What is done to one block of points.
    fixed : dict of int to number
        The values that are constants.
    dtypes : dict of int to dtype
        The type of every value that is not a float.
    direct : dict of int to (int, tuple)
        The values that are written into a result at once: its number, and the place there.
    slots : dict of int to ((shape, dtype), int)
        The buffer of every other value that is written.
    """

    inputs: int
    outputs: list[NDArray[np.int64]] = field(default_factory=list)
    operations: list[PlannedCall] = field(default_factory=list)
    fixed: dict[int, Any] = field(default_factory=dict)
    dtypes: dict[int, np.dtype[Any]] = field(default_factory=dict)
    direct: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    slots: dict[int, BufferSlot] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of values."""
        return self.inputs + len(self.operations) + len(self.fixed)

    @property
    def buffers(self) -> tuple[int, ...]:
        """The bytes of each buffer, for one point."""
        return tuple(map(_bytes, sorted(set(self.slots.values()), key=str)))

    @property
    def apart(self) -> int:
        """The bytes of what is in buffers for one point, if each value had one of its own."""
        return sum(map(_bytes, self.slots.values()))

    def result_dtype(self, output: int) -> np.dtype[Any]:
        """Return the type of an output's numbers."""
        values = set(self.outputs[output].ravel().tolist())
        return np.result_type(*{self.dtypes.get(value, FLOAT) for value in values} or {FLOAT})

    def source(self) -> str:
        """Return the plan in words, an operation a line."""
        return "\n".join(self._line(operation) for operation in self.operations)

    def _line(self, operation: PlannedCall) -> str:
        reads = ", ".join(
            repr(self.fixed[read]) if read in self.fixed else f"v{read}" for read in operation.reads
        )
        place = "memory of its own"
        if operation.value in self.direct:
            place = f"result {self.direct[operation.value][0]}"
        elif operation.value in self.slots:
            place = f"buffer {self.slots[operation.value][1]}"
        return f"v{operation.value} = {operation.label}({reads})  # {place}"

    def settle(self) -> None:
        """Decide where every value is kept."""
        made = {operation.value: operation for operation in self.operations}
        for output, values in enumerate(self.outputs):
            dtype = self.result_dtype(output)
            for key, value in np.ndenumerate(values):
                found = made.get(int(value))
                if found is not None and found.writes and found.dtype == dtype:
                    self.direct.setdefault(int(value), (output, key))
        self._assign()

    def _assign(self) -> None:
        """Give values buffers; a value lives as long as what looks into its memory."""
        roots: dict[int, tuple[int, ...]] = {}
        reads: list[tuple[int, ...]] = []
        for operation in self.operations:
            below = memory_roots(operation.reads, roots)
            reads.append(below)
            if not operation.writes:
                roots[operation.value] = below
        ends = [int(value) for values in self.outputs for value in values.ravel()]
        reads.append(memory_roots(ends, roots))
        operations = self.operations
        self.slots = assign_slots(
            [*(operation.value for operation in operations), _END],
            reads,
            [*((operation.shape, operation.dtype) for operation in operations), ((), FLOAT)],
            [*(operation.function is not select_into for operation in operations), True],
            frozenset({_END, *roots, *self.direct}),
        )


def _bytes(slot: BufferSlot) -> int:
    (shape, dtype), _ = slot
    return math.prod(shape) * dtype.itemsize


def planned(schedule: Schedule, program: ScalarProgram | None) -> BufferPlan:
    """BufferPlan a program's steps on vectors of points, or else a schedule's on arrays of them.

    Examples
    --------
    >>> import difflab as dl
    >>> schedule = Schedule.of(dl.parse("sin(x)*cos(x)*x"))
    >>> print(planned(schedule, ScalarProgram.of(schedule)).source())
    v1 = sin(v0)  # buffer 0
    v2 = cos(v0)  # buffer 1
    v3 = multiply(v1, v2)  # buffer 1
    v4 = multiply(v3, v0)  # result 0
    """
    if program is not None:
        planner = _Planner(list(range(program.inputs)), program.known, lambda cell: ())
        planner.add(program.steps)
        planner.outputs(program.outputs)
    else:
        function = schedule.function
        planner = _Planner(function.input_nodes, schedule.known, schedule.shape)
        planner.add(schedule.steps)
        planner.outputs([np.array(node) for node in schedule.outputs])
    planner.plan.settle()
    return planner.plan


class _Planner:
    """Turns steps into operations by recording their kernels."""

    def __init__(
        self, inputs: Sequence[int], known: dict[int, Any], shape: Callable[[int], Shape]
    ) -> None:
        self.plan = BufferPlan(len(inputs))
        self.tape = KernelTape()
        self.shape = shape
        self.known = known
        self.next = len(inputs)
        self.found: dict[Any, int] = {}
        self.constants: dict[tuple[type, str], int] = {}
        self.values: dict[int, Any] = {
            source: RecordedValue(self.tape, FLOAT, number) for number, source in enumerate(inputs)
        }

    def add(self, steps: Sequence[ScheduledStep]) -> None:
        """BufferPlan `steps`."""
        for step in steps:
            args = tuple([self._value(arg) for arg in step.args])
            self.tape.entries.clear()
            if step.row.shape is None:
                try:
                    self.values[step.node] = self.tape.run(step.row, args)
                except Unrecordable:
                    self._whole(step, args)
                self._keep(self.shape(step.node))
            else:
                self._whole(step, args)
                self._keep(self.shape(step.node), writes=False)

    def _value(self, source: int) -> Any:
        return self.values[source] if source in self.values else self.known[source]

    def _whole(self, step: ScheduledStep, args: tuple[Any, ...]) -> None:
        """Record the row as one operation."""
        kernel = _Kernel(step.row, step.params, writes=step.row.shape is None)
        dtype = BOOL if step.row.boolean else FLOAT
        self.values[step.node] = self.tape.append(kernel, args, dtype)

    def _keep(self, shape: Shape, *, writes: bool = True) -> None:
        """Turn what the tape holds into operations."""
        for function, args, result in self.tape.entries:
            reads = tuple([self._number(arg) for arg in args])
            key = (function, reads, shape)
            result.number = self.found.setdefault(key, self.next) if writes else self.next
            if result.number != self.next:
                continue
            if result.dtype != FLOAT:
                self.plan.dtypes[self.next] = result.dtype
            label = function.__name__
            views = label in _LOOKED_AT and not writes
            self.plan.operations.append(
                PlannedCall(function, reads, self.next, writes, shape, result.dtype, label, views)
            )
            self.next += 1

    def _number(self, value: Any) -> int:
        """Return the number of a value, which may be a constant."""
        if isinstance(value, RecordedValue):
            return value.number
        key = (type(value), repr(value))
        number = self.constants.get(key)
        if number is None:
            number = self.constants[key] = self.next
            self.next += 1
            self.plan.fixed[number] = value
            if isinstance(value, bool | np.bool_):
                self.plan.dtypes[number] = BOOL
        return number

    def outputs(self, sources: Sequence[NDArray[np.int64]]) -> None:
        """Say what the outputs are."""
        for cells in sources:
            flat = [self._number(self._value(cell)) for cell in cells.ravel().tolist()]
            self.plan.outputs.append(np.array(flat, dtype=np.int64).reshape(cells.shape))


class _Kernel:
    """A row's kernel as an operation."""

    def __init__(self, row: Primitive, params: dict[str, Any], *, writes: bool) -> None:
        self.kernel = row.computer(np)
        self.params = params
        self.writes = writes
        self.__name__ = row.name

    def __call__(self, *args: Any, out: Any = None) -> Any:
        value = self.kernel(*args, **self.params)
        if not self.writes:
            return value
        out[...] = value
        return out

"""The schedule as NumPy calls on numbered values, and the buffers that they write into."""

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
_VIEW_NAMES = frozenset({row.name for row in (*VIEWS, constant_array)})
"""Names of the rows whose result is a view or a stored constant."""


class PlannedCall(NamedTuple):
    """``function(*reads, out=value)`` if it `writes`, else ``value = function(*reads)``.

    A call that does not write returns a view of what it reads (`views`), or a new array.
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
    """The calls in order, and the buffer of each value.

    Attributes
    ----------
    inputs : int
        The number of inputs, which are the values 0, 1, …: the scalars of a program, or arrays.
    outputs : list of array of int
        The values of each output: in its shape for a program, else a single one.
    operations : list of PlannedCall
        The calls for one block of points.
    fixed : dict of int to number
        The constants among the values.
    dtypes : dict of int to dtype
        The dtype of every value that is not float64.
    direct : dict of int to (int, tuple)
        The values written directly into a result: the index of the result, and the index in it.
    slots : dict of int to ((shape, dtype), int)
        The buffer of every other written value.
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
        """The bytes of each buffer per point."""
        return tuple(map(_bytes, sorted(set(self.slots.values()), key=str)))

    @property
    def apart(self) -> int:
        """The bytes per point if each buffered value had a buffer of its own."""
        return sum(map(_bytes, self.slots.values()))

    def result_dtype(self, output: int) -> np.dtype[Any]:
        """Return the dtype of an output."""
        values = set(self.outputs[output].ravel().tolist())
        return np.result_type(*{self.dtypes.get(value, FLOAT) for value in values} or {FLOAT})

    def source(self) -> str:
        """Return the plan as text, one call per line."""
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
        """Assign every value to a result or to a buffer."""
        made = {operation.value: operation for operation in self.operations}
        for output, values in enumerate(self.outputs):
            dtype = self.result_dtype(output)
            for key, value in np.ndenumerate(values):
                found = made.get(int(value))
                if found is not None and found.writes and found.dtype == dtype:
                    self.direct.setdefault(int(value), (output, key))
        self._assign()

    def _assign(self) -> None:
        """Assign buffers; a value is live as long as any view of its memory."""
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
    """Return the plan of a program on vectors of points, or of a schedule on arrays of points.

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
    """Turns steps into calls by recording their kernels."""

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
        """Plan `steps`."""
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
        """Record the row as one call."""
        kernel = _Kernel(step.row, step.params, writes=step.row.shape is None)
        dtype = BOOL if step.row.boolean else FLOAT
        self.values[step.node] = self.tape.append(kernel, args, dtype)

    def _keep(self, shape: Shape, *, writes: bool = True) -> None:
        """Turn the entries of the tape into calls."""
        for function, args, result in self.tape.entries:
            reads = tuple([self._number(arg) for arg in args])
            key = (function, reads, shape)
            result.number = self.found.setdefault(key, self.next) if writes else self.next
            if result.number != self.next:
                continue
            if result.dtype != FLOAT:
                self.plan.dtypes[self.next] = result.dtype
            label = function.__name__
            views = label in _VIEW_NAMES and not writes
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
        """Set the outputs of the plan."""
        for cells in sources:
            flat = [self._number(self._value(cell)) for cell in cells.ravel().tolist()]
            self.plan.outputs.append(np.array(flat, dtype=np.int64).reshape(cells.shape))


class _Kernel:
    """A row's kernel as a function with ``out``."""

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

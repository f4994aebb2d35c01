"""The schedule as NumPy calls on numbered values, and the buffers that they write into.

A buffer is used again once the value in it is no longer needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from difflab.execute.lower.ops import BOOL, FLOAT, NumpyProgram, Op, OpForm
from difflab.execute.lower.record import StepRecorder, kernel_form
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.graph.ir import Shape
from difflab.primitives import constant_array

# --- slots, by liveness --------------------------------------------------------------------------

SlotKind = TypeVar("SlotKind", bound=Hashable)


def assign_slots(
    writes: Sequence[int],
    reads: Sequence[Sequence[int]],
    kinds: Sequence[SlotKind],
    in_place: Sequence[bool],
    kept: frozenset[int],
) -> dict[int, tuple[SlotKind, int]]:
    """Assign values to slots, which are reused once the value in them is no longer needed.

    Parameters
    ----------
    writes : sequence of int
        The value that each operation computes.
    reads : sequence of sequences of int
        The values that it reads.
    kinds : sequence
        The kind of each value; only values of one kind share a slot.
    in_place : sequence of bool
        Whether the operation may overwrite a value that it is the last to read.
    kept : frozenset of int
        The values that get no slot.

    Returns
    -------
    dict of int to (kind, int)
        The slot of each value that is not in `kept`.

    Examples
    --------
    >>> assign_slots([3, 4, 5], [[0, 1], [3, 2], [4, 3]], "fff", [True] * 3, frozenset())
    {3: ('f', 0), 4: ('f', 1), 5: ('f', 0)}
    """
    last: dict[int, int] = {}
    for index, values in enumerate(reads):
        for value in values:
            last[value] = index
    free: dict[SlotKind, list[int]] = {}
    made: dict[SlotKind, int] = {}
    slots: dict[int, tuple[SlotKind, int]] = {}
    for index, (value, read, kind) in enumerate(zip(writes, reads, kinds, strict=True)):
        dying = [slots[v] for v in dict.fromkeys(read) if last[v] == index and v in slots]
        if in_place[index]:
            _release(free, dying)
        if value not in kept:
            spare = free.setdefault(kind, [])
            if not spare:
                spare.append(made.get(kind, 0))
                made[kind] = spare[0] + 1
            slots[value] = (kind, spare.pop())
            if value not in last:
                dying.append(slots[value])
        if not in_place[index]:
            _release(free, dying)
        elif value not in last and value in slots:
            _release(free, [slots[value]])
    return slots


def _release(free: dict[SlotKind, list[int]], slots: Sequence[tuple[SlotKind, int]]) -> None:
    for kind, slot in slots:
        free.setdefault(kind, []).append(slot)


def memory_roots(values: Sequence[int], roots: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the values that own the memory of `values`: those in `roots`, or the values.

    Examples
    --------
    >>> memory_roots([5, 6, 7], {6: (3, 5), 7: ()})
    (5, 3)
    """
    return tuple(dict.fromkeys([root for value in values for root in roots.get(value, (value,))]))


# --- plans ---------------------------------------------------------------------------------------

BufferKind = tuple[Shape, "np.dtype[Any]"]
BufferSlot = tuple[BufferKind, int]
_END = -1


def writes(op: Op) -> bool:
    """Return whether an operation writes into a buffer; others return a view or a new array."""
    return op.form != OpForm.KERNEL or op.detail[0].shape is None


def is_view(op: Op) -> bool:
    """Return whether the result of an operation needs no memory of its own."""
    row = op.detail[0] if op.form == OpForm.KERNEL else None
    return row is not None and (row.view or row is constant_array)


def called(op: Op) -> Callable[..., Any]:
    """Return the function of an operation, which takes ``out`` if the operation `writes`."""
    if op.form == OpForm.SELECT:
        return _select_into
    if op.form == OpForm.UFUNC:
        function: Callable[..., Any] = op.detail
        return function
    if op.detail[0] is constant_array and op.dtype != FLOAT:
        return partial(_rounded, op.kernel, op.dtype)
    return partial(_call_into, op.kernel) if writes(op) else op.kernel


def _select_into(condition: Any, value: Any, other: Any, out: Any) -> None:
    """Write ``where(condition, value, other)`` into `out`, a different array."""
    np.copyto(out, other)
    np.copyto(out, value, where=np.asarray(condition, dtype=bool))


def _rounded(kernel: Callable[..., Any], dtype: np.dtype[Any]) -> Any:
    return kernel().astype(dtype)


def _call_into(kernel: Callable[..., Any], *args: Any, out: Any) -> None:
    out[...] = kernel(*args)


@dataclass
class BufferPlan:
    """The buffer of each value of a program.

    Attributes
    ----------
    program : NumpyProgram
        The operations for one block of points.
    outputs : list of array of int
        The values of each output: in its shape for a program of scalars, else a single one.
    direct : dict of int to (int, tuple)
        The values written directly into a result: the index of the result, and the index in it.
    slots : dict of int to ((shape, dtype), int)
        The buffer of every other written value.
    """

    program: NumpyProgram
    outputs: list[NDArray[np.int64]]
    direct: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    slots: dict[int, BufferSlot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for output, values in enumerate(self.outputs):
            dtype = self.result_dtype(output)
            for key, value in np.ndenumerate(values):
                op = self.program.made.get(int(value))
                if op is not None and writes(op) and op.dtype == dtype:
                    self.direct.setdefault(int(value), (output, key))
        self._assign()

    @property
    def size(self) -> int:
        """The number of values."""
        program = self.program
        return program.inputs + len(program.ops) + len(program.known)

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
        return np.result_type(*map(self._dtype, values)) if values else self.program.real

    def _dtype(self, value: int) -> np.dtype[Any]:
        if value in self.program.made:
            return self.program.made[value].dtype
        return BOOL if value in self.program.truths else self.program.real

    def source(self) -> str:
        """Return the plan as text, one call per line."""
        return "\n".join(map(self._line, self.program.ops))

    def _line(self, op: Op) -> str:
        known = self.program.known
        reads = ", ".join(repr(known[n].item()) if n in known else f"v{n}" for n in op.reads)
        storage = "memory of its own"
        if op.number in self.direct:
            storage = f"result {self.direct[op.number][0]}"
        elif op.number in self.slots:
            storage = f"buffer {self.slots[op.number][1]}"
        label = op.detail[0].name if op.form == OpForm.KERNEL else op.name
        return f"v{op.number} = {label}({reads})  # {storage}"

    def _assign(self) -> None:
        """Assign buffers; a value is live as long as any view of its memory."""
        roots: dict[int, tuple[int, ...]] = {}
        reads: list[tuple[int, ...]] = []
        ops = self.program.ops
        for op in ops:
            below = memory_roots(op.reads, roots)
            reads.append(below)
            if not writes(op):
                roots[op.number] = below
        ends = [int(value) for values in self.outputs for value in values.ravel()]
        reads.append(memory_roots(ends, roots))
        self.slots = assign_slots(
            [*(op.number for op in ops), _END],
            reads,
            [*((op.shape, op.dtype) for op in ops), ((), FLOAT)],
            [*(op.form != OpForm.SELECT for op in ops), True],
            frozenset({_END, *roots, *self.direct}),
        )


def _bytes(slot: BufferSlot) -> int:
    (shape, dtype), _ = slot
    return math.prod(shape) * dtype.itemsize


def planned(steps: Schedule | ScalarProgram, real: np.dtype[Any] = FLOAT) -> BufferPlan:
    """Return the plan of a program on vectors of points, or of a schedule on arrays of points.

    Constants are folded into the kernels; rows that are no universal functions are called whole.
    Numbers are of the dtype `real`.

    Examples
    --------
    >>> import difflab as dl
    >>> print(planned(ScalarProgram.of(dl.parse("sin(x)*cos(x)*x"))).source())
    v1 = sin(v0)  # buffer 0
    v2 = cos(v0)  # buffer 1
    v3 = multiply(v1, v2)  # buffer 1
    v4 = multiply(v3, v0)  # result 0
    """
    recorder = StepRecorder(steps)
    for node, row, args, params in steps.steps:
        shape = steps.shape(node)
        form = None
        if row.shape is None:
            form = kernel_form(row, tuple(map(recorder.kind, args)))
        if form is not None:
            held = [recorder.numbers.get(arg, -1) for arg in args]  # constants are in the form
            recorder.numbers[node] = recorder.inline(form, held, shape)
        else:
            detail = (row, tuple(params.items()))
            dtype = BOOL if row.boolean else FLOAT
            reads = tuple(map(recorder.read, args))
            recorder.numbers[node] = recorder.emit(OpForm.KERNEL, detail, reads, shape, dtype)
    outputs = [recorder.read_all(cells) for cells in steps.places]
    return BufferPlan(recorder.program.computed_in(real), outputs)

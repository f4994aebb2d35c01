"""Machine code for one point of a function of arrays: loop nests over elements in memory.

`expansion` lowers each operation to a nest, `loop_detection` finds the iterations of a recurrence
and drops copies, `groups` fuses neighbours and assigns memory to values; `routine` writes the
function of the module and one for each function that its `control` instructions call, all made of
`nests`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import UnsupportedError
from difflab.execute.lower.arrays.source import PointTarget, Workspace
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.execute.memory_plan import MemoryPlan
from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm.addresses import checked
from difflab.execute.targets.llvm.arrays.control import FAULT, raise_fault
from difflab.execute.targets.llvm.arrays.expansion import instructions, scalar_instructions
from difflab.execute.targets.llvm.arrays.groups import arranged
from difflab.execute.targets.llvm.arrays.loop_detection import equal_stretches
from difflab.execute.targets.llvm.arrays.routine import Module
from difflab.execute.targets.llvm.libraries import FOURIER_SYMBOL, Host, host
from difflab.execute.targets.llvm.machine_call import PointCode, PointInput
from difflab.execute.targets.llvm.python_objects import address_reader
from difflab.graph.function import Function
from difflab.lower.nests import Instructions, Ref

__all__ = ["NativeArrays"]

Array = NDArray[np.float64]

TURNS = 10
"""How often scalar operations repeat, at least, that are compiled as loops."""

LARGEST = 4_000
"""Operations, loops counted once, that are compiled; more take LLVM too long."""


class NativeArrays(PointTarget):
    """A function of arrays as machine code, at one point.

    Parameters
    ----------
    schedule : Schedule
        The operations of the function.
    soon : bool
        Whether code that is ready sooner computes until `point_code` is called.
    machine : Host, optional
        The processor to compile for; that of this machine when None.

    Raises
    ------
    UnsupportedError
        An operation has no machine code, or there are too many.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda W, x: np.tanh(x @ W), np.ones((3, 2)), np.ones(3))
    >>> target = NativeArrays(Schedule.of(f))
    >>> target([np.ones((3, 2)), np.array([0.0, 0.0, 0.5])])[0].round(12).tolist()
    [0.46211715726, 0.46211715726]
    """

    def __init__(
        self, schedule: Schedule, *, soon: bool = False, machine: Host | None = None
    ) -> None:
        self._fill(schedule.function, instructions(schedule), soon, machine)

    def _fill(
        self, function: Function, program: Instructions, soon: bool, machine: Host | None
    ) -> None:
        super().__init__(function.input_shapes, len(function.outputs))
        self.layout = arranged(program)
        self.program = self.layout.program
        if self.layout.operations > LARGEST:
            raise UnsupportedError(f"it takes more than {LARGEST:,} different operations")
        self._machine = machine or host()
        self.module = Module(self.layout, self._machine, checked=checked())
        self.output_shapes = function.output_shapes
        self.text = self.module.text()
        self.constants = np.array([*self.module.constants, 0.0])
        self._unoptimised = soon and self.callable_by_code
        self.entry_point = self._compiled()

    def _compiled(self) -> engine.CompiledModule:
        """Return the code, compiled or from the cache."""
        module = self.module
        symbols, soon = module.functions.symbols, self._unoptimised
        return engine.load(self.text, symbols, self._machine, module.operations, soon=soon)

    @classmethod
    def rolled(cls, function: Function, program: ScalarProgram) -> NativeArrays | None:
        """Return scalar operations as loops; None unless nearly all repeat in every iteration.

        The size of the code is that of one iteration. Lowering an operation of a loop takes longer
        than compiling one of straight-line code, so loops for a part of the operations do not pay.
        """
        steps = program.steps
        kinds = np.array(steps.kinds, np.int64)
        repeated = np.zeros(len(kinds), np.bool_)
        for start, stop, _ in equal_stretches(kinds):
            repeated[start:stop] = True
        if len(steps) - np.count_nonzero(repeated) > len(steps) // TURNS:
            return None
        arrays = cls.__new__(cls)
        try:
            arrays._fill(function, scalar_instructions(function, program), False, None)
        except UnsupportedError:
            return None
        return arrays if arrays.layout.operations * TURNS <= len(steps) else None

    @property
    def truths(self) -> list[bool]:
        """Which outputs are truth values."""
        return [ref.root in self.program.truths for ref in self.program.outputs]

    @property
    def source(self) -> str:
        """The LLVM IR."""
        return self.text

    def memory_plan(self) -> MemoryPlan:
        """Return the memory of a call."""
        results = 8 * sum(math.prod(shape) for shape in self.output_shapes)
        return MemoryPlan(len(self.program.code), (8 * self.layout.room,), 1, results)

    @property
    def callable_by_code(self) -> bool:
        """Whether machine code can call the code, as far as the program shows.

        Checked code has more faults than one to report, and code that calls Python may run
        anything there.
        """
        symbols = self.module.functions.symbols
        calls = any(symbol.startswith("Py") or symbol == FOURIER_SYMBOL for symbol in symbols)
        return not (self.module.checked or self.layout.may_fail or any(self.truths) or calls)

    def point_code(self) -> PointCode | None:
        """Return the code for calls by machine code; None where it cannot be called.

        A result that lies in memory in another order is a view.
        """
        program, layout = self.program, self.layout
        if not self.callable_by_code:
            return None
        if self._unoptimised:
            self._unoptimised = False
            self._first = self.entry_point  # which another thread may run
            self.entry_point = self._compiled()
        space = _NativeWorkspace(self)
        if not all(result.flags.c_contiguous for result in space.results):
            return None
        (table, constants, memory, _), boxes = space.addresses, space.boxes
        words = [table + space.table.itemsize * index for index in range(program.inputs)]
        return PointCode(
            self.entry_point.address,
            (table, constants, memory),
            [
                PointInput(shape, 0 if box is None else box.ctypes.data, word)
                for shape, box, word in zip(self.input_shapes, boxes, words, strict=True)
            ],
            [
                (shape, result.ctypes.data)
                for shape, result in zip(self.output_shapes, space.results, strict=True)
            ],
            layout.work,
            (self.entry_point, space),
            fault=table + space.table.itemsize * program.inputs,
        )

    def workspace(self) -> Workspace:
        """Return new memory, and the code bound to it."""
        return _called, _NativeWorkspace(self).run


def _called(run: Callable[..., Any], *args: Any) -> Any:
    return run(*args)


class _NativeWorkspace:
    """The memory of one call at a time."""

    def __init__(self, target: NativeArrays) -> None:
        program = target.program
        self.target = target
        self.address = address_reader()
        self.table = np.zeros(program.inputs + FAULT, dtype=np.intp)
        self.memory = target.module.memory()
        self.boxes = [np.zeros(1) if shape == () else None for shape in target.input_shapes]
        for index, box in enumerate(self.boxes):
            self.table[index] = 0 if box is None else box.ctypes.data
        parts = (self.table, target.constants, self.memory)
        x, y, v = (int(part.ctypes.data) for part in parts)
        self.addresses = (x, y, v, 0)
        self.results = [
            self._view(ref, shape)
            for ref, shape in zip(program.outputs, target.output_shapes, strict=True)
        ]
        self.owned = list(map(self._reader, program.outputs, self.results))

    def run(self, *args: Any) -> tuple[Any, ...]:
        """Return the results for one float or array per input."""
        alive = []
        for index, (value, box) in enumerate(zip(args, self.boxes, strict=True)):
            if box is None:
                alive.append(np.ascontiguousarray(value))
                self.table[index] = self.address(alive[-1])
            else:
                box[0] = value
        self.target.entry_point.run(*self.addresses)
        if self.table[-FAULT]:
            raise_fault(self.table, self.target.module.accesses)
        return tuple([read() for read in self.owned])

    def _reader(self, ref: Ref, view: Array) -> Callable[[], Any]:
        """Return a function that returns a result without shared memory."""
        if ref.root in self.target.program.truths:
            return partial(bool, view) if view.ndim == 0 else partial(view.astype, np.bool_)
        return view.item if view.ndim == 0 else view.copy

    def _view(self, ref: Ref, shape: tuple[int, ...]) -> Array:
        """Return a view of a result in memory."""
        if 0 in shape:
            return np.zeros(shape)
        address = self.target.layout.address(ref)
        base = {"values": self.memory, "constants": self.target.constants}[address.memory]
        steps = [8 * stride for stride in ref.strides]
        return np.ndarray(shape, base.dtype, base, 8 * address.start, steps)

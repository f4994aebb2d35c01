"""Control instructions: loops that call a routine at each step, and choices of a routine.

A loop's step reads the carried values from one of two buffers and writes them to the other one;
the next step uses them the other way round. A run ends early at a failure, such as an exception of
a signal handler, which is raised behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from difflab.errors import ConsistencyError, ResourceError
from difflab.execute.targets.llvm.arrays.groups import NestLayout
from difflab.execute.targets.llvm.arrays.subprograms import Subprograms, sizes
from difflab.graph.control import Branches, Checkpoint, Loop, WhileLoop, WhileLoopVjp
from difflab.lower.nests import Instruction

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


# --- faults: reasons why a run ends early, and the exceptions they are raised as -----------------

FAULT = 4
"""The places at the end of a table of addresses: the fault, 0 for none, and an exception."""
NO_MEMORY = -1
"""The fault of a run for which there was not enough memory."""
INTERRUPTED = -2
"""The fault of a run in which a signal handler raised an exception, which lies behind the fault."""
STOPPED = -3
"""The fault of a run that ends because another thread's run has failed."""


def raise_fault(table: NDArray[Any], accesses: Sequence[str]) -> None:
    """Raise the error or exception that ended a run, if one did.

    Parameters
    ----------
    table : array of int
        The table of addresses that the run was called with.
    accesses : sequence of str
        The accesses that checked code names as faults, counted from 1.
    """
    fault, *raised = table[-FAULT:].tolist()
    if fault in (0, STOPPED):
        return
    if fault == INTERRUPTED:
        restore = ctypes.pythonapi.PyErr_Restore
        restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
        restore(*raised)  # raises the exception
    if fault == NO_MEMORY:
        raise ResourceError(
            "there is not enough memory for the values of all steps of a while_loop",
            hint="reverse mode keeps them; forward mode keeps one",
        )
    raise ConsistencyError(f"machine code would leave its arrays: {accesses[fault - 1]}")


# --- code of control instructions ----------------------------------------------------------------


FIRST = 64
"""Steps of a loop whose values are kept, before more memory is asked for."""
UNASKED = 1 << 21
"""Operations between two looks for signals: some milliseconds."""
ASKING = "\n".join(
    [
        "define internal i1 @interrupted(ptr %fault) noinline {",
        "%before = load i64, ptr %fault, align 8",
        "%stopped = icmp ne i64 %before, 0",
        "br i1 %stopped, label %leave, label %look",
        "leave:",
        "ret i1 true",
        "look:",
        "%state = call i32 @PyGILState_Ensure()",
        "%found = call i32 @PyErr_CheckSignals()",
        "%raised = icmp ne i32 %found, 0",
        "br i1 %raised, label %keep, label %out",
        "keep:",
        f"store i64 {INTERRUPTED}, ptr %fault, align 8",
        *[f"%p{index} = getelementptr ptr, ptr %fault, i64 {index}" for index in (1, 2, 3)],
        "call void @PyErr_Fetch(ptr %p1, ptr %p2, ptr %p3)",
        "br label %out",
        "out:",
        "call void @PyGILState_Release(i32 %state)",
        "ret i1 %raised",
        "}",
    ]
)
"""Whether another thread stopped this run, or a signal handler raised an exception."""


class ControlWriter:
    """Writes a control instruction.

    Parameters
    ----------
    routine : Routine
        The routine to which code is appended.
    step : Instruction
        The instruction.
    later : range
        The same instruction in all iterations of a repetition.
    """

    def __init__(self, routine: Routine, step: Instruction, later: range) -> None:
        assert isinstance(step.called, Subprograms)
        self.routine = routine
        self.called = step.called
        self.memory, *self.args = routine.operands(step, later)

    def write(self) -> None:
        """Write it."""
        control = self.called.control
        if isinstance(control, Branches):
            self._choice()
        elif isinstance(control, Loop):
            self._loop(control)
        elif isinstance(control, WhileLoop):
            self._while(control)
        elif isinstance(control, WhileLoopVjp):
            self._reverse_sweep(control)
        elif isinstance(control, Checkpoint):
            outputs = self._spread(self.memory, sizes(control.output_shapes))
            self._call(self.called.layouts[0], [*self.args, *outputs])
        else:
            raise ConsistencyError(f"a {type(control).__name__} has no machine code")

    # --- the kinds ----------------------------------------------------------------------------

    def _choice(self) -> None:
        """Call one of two routines."""
        routine = self.routine
        predicate, *operands = self.args
        holds = self._holds(predicate)
        outputs = self._spread(self.memory, sizes(self.called.control.output_shapes))
        label = routine.label()
        routine.add(f"br i1 {holds}, label %true{label}, label %false{label}")
        for name, layout in zip(("true", "false"), self.called.layouts, strict=True):
            routine.add(f"{name}{label}:")
            self._call(layout, [*operands, *outputs])
            routine.add(f"br label %out{label}")
        routine.add(f"out{label}:")

    def _loop(self, loop: Loop) -> None:
        """Call a routine for each element of the looped arrays."""
        routine, carried = self.routine, self.called.carried
        end = loop.carries + loop.arrays
        elements = sizes(loop.body.input_shapes[loop.carries : end])
        stacked = sizes(loop.body.output_shapes[loop.carries :])
        whole = [*carried, *[loop.steps * size for size in stacked]]
        last, stacks = self._divided(self._spread(self.memory, whole), len(carried))
        first, looped = self._divided(self.args[:end], loop.carries)
        self._begin(first)
        if loop.steps:
            for counter in routine.loop(0, loop.steps, 1):
                self._listen(counter)
                number = counter
                if loop.reverse:
                    number = routine.assigned(f"sub i64 {loop.steps - 1}, {counter}")
                old, new = self._places(counter)
                x = [routine.moved(p, number, n) for p, n in zip(looped, elements, strict=True)]
                y = [routine.moved(p, number, n) for p, n in zip(stacks, stacked, strict=True)]
                self._call(self.called.layouts[0], [*old, *x, *self.args[end:], *new, *y])
        self._end(str(loop.steps % 2), last)

    def _while(self, loop: WhileLoop) -> None:
        """Call a routine while the result of another one is true."""
        count = len(loop.output_shapes)
        test, body = self.called.layouts
        constants = self.args[count:]
        self._begin(self.args[:count])
        with self._counted() as (counter, label):
            old, new = self._places(counter)
            self._leave_unless(self._tested(test, [*old, *constants]), label)
            self._call(body, [*old, *constants, *new])
        self._end(counter, self._spread(self.memory, self.called.carried))

    def _reverse_sweep(self, sweep: WhileLoopVjp) -> None:
        """Keep the value before each step in memory that grows, and go back over it."""
        routine, values = self.routine, sizes(sweep.loop.output_shapes)
        count, kept = len(values), max(sum(values), 1)
        test, body, back = self.called.layouts
        constants = self.args[count : len(sweep.loop.input_shapes)]
        bars = self.args[len(sweep.loop.input_shapes) :]
        memory, capacity = routine.slot("ptr"), routine.slot("i64")
        self._reserve(memory, "null", str(8 * kept * FIRST))
        routine.add(f"store i64 {FIRST}, ptr {capacity}")
        start = routine.within(self._kept(memory, "0", kept), kept, "a loop's first value")
        for source, target, size in zip(
            self.args, self._spread(start, values), values, strict=False
        ):
            routine.copied(source, target, size)
        with self._counted() as (steps, label):
            old = self._spread(self._kept(memory, steps, kept), values)
            self._leave_unless(self._tested(test, [*old, *constants]), label)
            following = self._grown(memory, capacity, steps, kept)
            old = self._spread(self._kept(memory, steps, kept), values)
            new = self._spread(self._kept(memory, following, kept), values)
            self._call(body, [*old, *constants, *new])
        self._begin(bars)
        with self._counted() as (counter, label):
            self._leave_unless(routine.assigned(f"icmp ult i64 {counter}, {steps}"), label)
            number = routine.assigned(f"sub i64 {steps}, {counter}")
            number = routine.assigned(f"sub i64 {number}, 1")
            old, new = self._places(counter)
            value = self._spread(self._kept(memory, number, kept), values)
            self._call(back, [*old, *value, *constants, *new])
        self._end(counter, self._spread(self.memory, self.called.carried))
        routine.functions.declare("void", "free", "ptr")
        routine.add(f"call void @free(ptr {routine.assigned(f'load ptr, ptr {memory}')})")

    # --- values carried from step to step ----------------------------------------------------

    def _places(self, counter: str) -> tuple[list[str], list[str]]:
        """Return pointers to the buffers that the step of this index reads and writes."""
        routine = self.routine
        odd = routine.assigned(f"and i64 {counter}, 1")
        old, new = [], []
        for pointer, size in zip(self._pairs(), self.called.carried, strict=True):
            offset = routine.assigned(f"mul i64 {odd}, {size}")
            rest = routine.assigned(f"sub i64 {size}, {offset}")
            old.append(routine.moved(pointer, offset))
            new.append(routine.moved(pointer, rest))
        return old, new

    def _pairs(self) -> list[str]:
        """Return pointers to the double buffers of the carried values."""
        pairs = self.routine.moved(self.memory, self.called.results)
        return self._spread(pairs, [2 * size for size in self.called.carried])

    def _begin(self, first: Sequence[str]) -> None:
        """Initialize the carried values: the first ones to these values, the others to zeros."""
        buffers = list(zip(self._pairs(), self.called.carried, strict=True))
        for source, (pointer, size) in zip(first, buffers, strict=False):
            self.routine.copied(source, pointer, size)
        for pointer, size in buffers[len(first) :]:
            for counter in self.routine.loop(0, size, 1) if size else ():
                self.routine.store("0.0", self.routine.moved(pointer, counter))

    def _end(self, steps: str, last: Sequence[str]) -> None:
        """Copy the carried values after the given number of steps."""
        for source, pointer, size in zip(
            self._places(steps)[0], last, self.called.carried, strict=True
        ):
            self.routine.copied(source, pointer, size)

    def _spread(self, start: str, each: Sequence[int]) -> list[str]:
        """Return pointers to consecutive values of these sizes."""
        offsets = list(accumulate(each, initial=0))[:-1]
        return [self.routine.moved(start, offset) for offset in offsets]

    # --- memory that grows --------------------------------------------------------------------

    def _kept(self, memory: str, number: str, size: int) -> str:
        """Return a pointer to the kept value of this index."""
        start = self.routine.assigned(f"load ptr, ptr {memory}")
        return self.routine.moved(start, number, size)

    def _grown(self, memory: str, capacity: str, steps: str, size: int) -> str:
        """Double the memory if the next value does not fit; return the index of that value."""
        routine = self.routine
        following = routine.assigned(f"add i64 {steps}, 1")
        full = routine.assigned(f"load i64, ptr {capacity}")
        fits = routine.assigned(f"icmp ult i64 {following}, {full}")
        label = routine.label()
        routine.add(f"br i1 {fits}, label %kept{label}, label %grow{label}")
        routine.add(f"grow{label}:")
        double = routine.assigned(f"mul i64 {full}, 2")
        routine.add(f"store i64 {double}, ptr {capacity}")
        size_in_bytes = routine.assigned(f"mul i64 {double}, {8 * size}")
        self._reserve(memory, routine.assigned(f"load ptr, ptr {memory}"), size_in_bytes)
        routine.add(f"br label %kept{label}")
        routine.add(f"kept{label}:")
        return following

    def _reserve(self, memory: str, old: str, size: str) -> None:
        """Reallocate memory to a size in bytes and store its address."""
        routine = self.routine
        routine.functions.declare("ptr", "realloc", "ptr", "i64")
        pointer = routine.assigned(f"call ptr @realloc(ptr {old}, i64 {size})")
        routine.leave_if(routine.assigned(f"icmp eq ptr {pointer}, null"), NO_MEMORY)
        routine.add(f"store ptr {pointer}, ptr {memory}")

    # --- calls and jumps ----------------------------------------------------------------------

    def _call(self, layout: NestLayout, pointers: Sequence[str]) -> None:
        """Call a routine, and exit if it failed."""
        self.routine.call(layout, pointers, self.routine.moved(self.memory, self.called.room))

    def _tested(self, test: NestLayout, operands: Sequence[str]) -> str:
        """Return the truth value that a routine computes of its operands."""
        truth = self.routine.moved(self.memory, self.called.truth)
        self._call(test, [*operands, truth])
        return self._holds(truth)

    def _holds(self, pointer: str) -> str:
        """Return whether a float in memory is true: nan is, as in Python."""
        return self.routine.assigned(f"fcmp une double {self.routine.load(pointer)}, 0.0")

    @contextmanager
    def _counted(self) -> Iterator[tuple[str, int]]:
        """Write an endless loop, which `_leave_unless` exits; return its counter and label."""
        routine = self.routine
        label = routine.label()
        counter = f"%k{label}"
        routine.add(f"br label %enter{label}")
        routine.add(f"enter{label}:")
        routine.add(f"br label %head{label}")
        routine.add(f"head{label}:")
        routine.add(f"{counter} = phi i64 [0, %enter{label}], [%following{label}, %again{label}]")
        self._listen(counter)
        yield counter, label
        routine.add(f"br label %again{label}")
        routine.add(f"again{label}:")
        routine.add(f"%following{label} = add i64 {counter}, 1")
        routine.add(f"br label %head{label}")
        routine.add(f"left{label}:")

    def _leave_unless(self, holds: str, label: int) -> None:
        """Exit the loop of a label unless the condition holds."""
        self.routine.add(f"br i1 {holds}, label %step{label}, label %left{label}")
        self.routine.add(f"step{label}:")

    def _listen(self, counter: str) -> None:
        """Check for signals at some of the steps."""
        routine = self.routine
        work = max(sum(layout.work for layout in self.called.layouts), 1)
        steps = 1 << max((UNASKED // work).bit_length() - 1, 0)
        for name, result, *arguments in (
            ("PyGILState_Ensure", "i32"),
            ("PyErr_CheckSignals", "i32"),
            ("PyErr_Fetch", "void", "ptr", "ptr", "ptr"),
            ("PyGILState_Release", "void", "i32"),
        ):
            routine.functions.declare(result, name, *arguments)
        routine.functions.texts.setdefault("interrupted", ASKING)
        remainder = routine.assigned(f"and i64 {counter}, {steps - 1}")
        asks = routine.assigned(f"icmp eq i64 {remainder}, {steps - 1}")
        label = routine.label()
        routine.add(f"br i1 {asks}, label %ask{label}, label %on{label}")
        routine.add(f"ask{label}:")
        routine.leave_if(routine.assigned("call i1 @interrupted(ptr %fault)"))
        routine.add(f"br label %on{label}")
        routine.add(f"on{label}:")

    def _divided(self, items: Sequence[str], count: int) -> tuple[list[str], list[str]]:
        return list(items[:count]), list(items[count:])

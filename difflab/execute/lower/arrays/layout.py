"""Memory layout of an array program: reused buffers, views, results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from difflab.execute.lower.ops import (
    FLAT,
    FLOAT,
    WRITING,
    Array,
    NumpyProgram,
    Op,
    OpForm,
    viewed,
)
from difflab.execute.lower.plan import assign_slots, memory_roots
from difflab.execute.memory_plan import MemoryPlan

_END = -1


@dataclass
class BufferLayout:
    """The memory of every value of a program.

    Attributes
    ----------
    program : NumpyProgram
        The program.
    fresh : set of int
        The values that are results, in newly allocated memory at each call.
    slots : dict of int to ((elements, bytes of an element), int)
        The buffers of the other written values.
    prepared : set of int
        The values that are created with a workspace: constants, buffers and their views.
    first : dict of int to int
        For each value the first one with the same buffer, shape and dtype.
    dropped : dict of int to list of int
        The values that are dropped after each operation: those of their own memory after their
        last use, if a row evaluates functions in order to need little memory.
    """

    program: NumpyProgram
    fresh: set[int] = field(default_factory=set)
    slots: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)
    prepared: set[int] = field(default_factory=set)
    first: dict[int, int] = field(default_factory=dict)
    dropped: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._choose_fresh()
        roots = self._roots()
        self._assign(roots)
        if any(op.workspace for op in self.program.ops):
            self._drop()

    def shape(self, number: int) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.program.shape(number)

    def below(self, number: int) -> int:
        """Return the value of which `number` shows all elements in order, or `number` itself."""
        op = self.program.made.get(number)
        while op is not None and op.form == OpForm.VIEW and op.detail[0] in FLAT:
            number = op.reads[0]
            op = self.program.made.get(number)
        return number

    def _choose_fresh(self) -> None:
        for output in self.program.outputs:
            op = self.program.made.get(self.below(output))
            if op is not None and op.form in WRITING and op.shape != ():
                self.fresh.add(op.number)

    @property
    def inputs(self) -> int:
        """The number of inputs, which are the first values."""
        return self.program.inputs

    @property
    def values(self) -> int:
        """The number of values: one more than the largest value."""
        return max([self.inputs, *(number + 1 for number in self.program.made)])

    def runs(self, op: Op) -> bool:
        """Whether an operation is executed at every call."""
        return op.number not in self.prepared or self.written(op)

    def written(self, op: Op) -> bool:
        """Whether an operation writes into a buffer."""
        return op.form in WRITING and op.shape != () and op.number not in self.fresh

    def _roots(self) -> dict[int, tuple[int, ...]]:
        """Return for every value the buffers whose memory it may share, and fill `prepared`."""
        roots: dict[int, tuple[int, ...]] = {}
        self.prepared.update(self.program.known)
        for op in self.program.ops:
            if self.written(op):
                roots[op.number] = (op.number,)
                self.prepared.add(op.number)
            elif op.form == OpForm.VIEW:
                if op.reads[0] in self.prepared and self._shares(op):
                    self.prepared.add(op.number)
                roots[op.number] = roots.get(op.reads[0], ())
            elif op.form == OpForm.KERNEL:
                below = (root for read in op.reads for root in roots.get(read, ()))
                roots[op.number] = tuple(dict.fromkeys(below))
        return roots

    def _shares(self, op: Op) -> bool:
        """Whether a view certainly shares memory: a reshape may have to copy."""
        name = op.detail[0]
        if name != "reshape":
            return True
        source = self.program.made.get(self.below(op.reads[0]))
        return source is None or source.form != OpForm.VIEW

    def _assign(self, roots: dict[int, tuple[int, ...]]) -> None:
        ops = [op for op in self.program.ops if self.runs(op)]
        reads = [memory_roots(op.reads, roots) for op in ops]
        reads.append(memory_roots(self.program.outputs, roots))
        kept = {op.number for op in ops if not self.written(op)}
        self.slots = assign_slots(
            [*(op.number for op in ops), _END],
            reads,
            [*((op.size, op.dtype.itemsize) for op in ops), (0, 0)],
            [*(self._in_place(op) for op in ops), True],
            frozenset({_END, *kept}),
        )
        homes: dict[Any, int] = {}
        for number, slot in self.slots.items():
            op = self.program.made[number]
            self.first[number] = homes.setdefault((slot, op.shape, op.dtype), number)

    def _drop(self) -> None:
        """Choose where values of their own memory are dropped, views of them included."""
        last: dict[int, int] = {}
        for op in self.program.ops:
            last |= dict.fromkeys((op.number, *op.reads), op.number)
        for number, op_number in last.items():
            own = number >= self.inputs and number not in self.prepared
            if own and number in self.program.made and number not in self.program.outputs:
                self.dropped.setdefault(op_number, []).append(number)

    def _in_place(self, op: Op) -> bool:
        """Whether an operation may overwrite an operand: elementwise, in the same order."""
        return op.form == OpForm.UFUNC and all(
            self.program.made[below].form != OpForm.VIEW
            for below in map(self.below, op.reads)
            if below in self.program.made
        )

    def memory_plan(self) -> MemoryPlan:
        """Return the memory that a call needs."""
        computed = [op for op in self.program.ops if op.form != OpForm.VIEW and op.shape != ()]
        outputs = [op for op in map(self.program.made.get, self.program.outputs) if op is not None]
        whole = [op for op in computed if op.form == OpForm.KERNEL and op not in outputs]
        return MemoryPlan(
            len(computed),
            tuple(size * itemsize for (size, itemsize), _ in sorted(set(self.slots.values()))),
            1,
            sum(self._nbytes(number) for number in self.program.outputs),
            self._peak(whole) if self.dropped else sum(op.nbytes for op in whole),
        )

    def _peak(self, whole: list[Op]) -> int:
        """Return the most bytes of memory outside of buffers, where values are dropped."""
        own = {op.number: op.nbytes for op in whole}
        owner: dict[int, int] = {}
        views: dict[int, int] = {}
        alive = peak = 0
        for op in self.program.ops:
            read = op.reads[0] if op.form == OpForm.VIEW else op.number
            root = owner[op.number] = owner.get(read, read)
            views[root] = views.get(root, 0) + 1
            size = own.get(op.number, 0)
            peak = max(peak, alive + max(op.workspace, size))
            alive += size
            for number in self.dropped.get(op.number, ()):
                views[owner[number]] -= 1
                if not views[owner[number]]:
                    alive -= own.get(owner[number], 0)
        return peak

    def _nbytes(self, number: int) -> int:
        """Return the bytes of an output."""
        made = self.program.made.get(number)
        return made.nbytes if made is not None else FLOAT.itemsize * math.prod(self.shape(number))

    def cells(self) -> dict[int, Array]:
        """Return the prepared values, with newly allocated buffers."""
        memory: dict[Any, Array] = {}
        cells: dict[int, Array] = dict(self.program.known)
        for op in self.program.ops:
            if op.number in self.slots:
                slot = self.slots[op.number]
                if slot not in memory:
                    memory[slot] = np.empty(math.prod(slot[0]), np.uint8)
                cells[op.number] = memory[slot].view(op.dtype).reshape(op.shape)
            elif op.number in self.prepared:
                cells[op.number] = viewed(cells[op.reads[0]], op.detail)
        return cells

"""Groups of instructions as loop nests.

The innermost axis of a nest is computed a vector at a time. Its last vector ends with the last
element, and may compute some again: these are not accumulated twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflab.execute.targets.llvm.arrays.blocks import BlockedNest, DotNest, JoinedNest, pieces
from difflab.execute.targets.llvm.arrays.panels import PanelNest
from difflab.execute.targets.llvm.functions import SPELLINGS, OperationWriter
from difflab.lower.nests import (
    COPY,
    GATHER,
    SCATTER,
    Instruction,
    Ref,
    squeezed,
)

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


# --- vectors of neighbouring points --------------------------------------------------------------


class PointerOperand(NamedTuple):
    """A pointer that a nest has made for an operand, and its step along the innermost axis.

    Where a table holds the steps, it is a pointer into the table.
    """

    pointer: str
    stride: int
    table: str = ""


def first_written(steps: Sequence[Instruction]) -> dict[int, int]:
    """Return the index of the first instruction of a nest that writes each value.

    Later instructions read the value from registers; those up to it read it from memory.
    """
    made: dict[int, int] = {}
    for index, step in enumerate(steps):
        made.setdefault(step.out.root, index)
    return made


class Vector(OperationWriter):
    """Writes all instructions of a nest for a vector of neighbouring points.

    Parameters
    ----------
    routine : Routine
        The routine to which code is appended.
    steps : sequence of Instruction
        The instructions of the nest.
    operands : mapping of (int, int) to PointerOperand
        The operands in memory, by the index of an instruction and of its operand; 0 is the result.
    start : str
        The first point.
    width : int
        How many points.
    again : int
        How many of them, the first ones, were computed before: nothing is accumulated there.
    """

    def __init__(
        self,
        routine: Routine,
        steps: Sequence[Instruction],
        operands: Mapping[tuple[int, int], PointerOperand],
        start: str,
        width: int,
        again: int,
    ) -> None:
        super().__init__(routine.functions, width, routine.lines)
        self.routine = routine
        self.steps = steps
        self.made = first_written(steps)
        self.operands = operands
        self.start = start
        self.again = again

    def write(self) -> None:
        """Write the instructions."""
        for index, step in enumerate(self.steps):
            read = step.args if step.lookup is None else step.args[:1]
            keys = [self._key(index, slot, ref) for slot, ref in enumerate(read, 1)]
            if step.name in (COPY, GATHER, SCATTER):
                self.numbers[step.out.root] = self.number(keys[0])
            else:
                self.operation(step.name, keys, step.out.root, truth=step.truth)
            if (index, 0) in self.operands:
                self._put(step, self.operands[index, 0])

    def _key(self, index: int, slot: int, ref: Ref) -> Any:
        """Return the key of an operand's value, which is loaded once."""
        if self.made.get(ref.root, index) < index:
            return ref.root
        operand = self.operands[index, slot]
        if operand not in self.numbers:
            self.numbers[operand] = self._loaded(*operand)
        return operand

    def _loaded(self, pointer: str, stride: int, table: str) -> str:
        if table:
            return self.routine.gathered(pointer, stride, self._at(table, 1), self.width)
        return self.routine.vector(self._at(pointer, stride), stride, self.width)

    def name(self, key: Any, kind: str) -> str:
        """Return a new name."""
        return self.routine.name()

    # --- memory -----------------------------------------------------------------------------

    def _at(self, pointer: str, stride: int, lane: int = 0) -> str:
        """Return a pointer to a point's element."""
        if not self.start.startswith("%"):
            return self.routine.moved(pointer, int(self.start) + lane, stride)
        return self.routine.moved(self.routine.moved(pointer, self.start, stride), lane, stride)

    def _put(self, step: Instruction, operand: PointerOperand) -> None:
        """Store a result, or accumulate it into the stored value."""
        number = self.number(step.out.root)
        if operand.table:  # of a scatter: one point, as indices may repeat
            position = self.routine.position(self._at(operand.table, 1))
            target = self.routine.moved(operand.pointer, position, operand.stride)
            self._join(step, number, target, 1)
            return
        if not step.into or not self.again:
            self._put_lanes(step, operand, number, 0, self.width)
            return
        for start, width in pieces(self.width - self.again, self.width):
            lane = self.again + start
            part = self.routine.lanes(number, self.width, lane, width)
            self._put_lanes(step, operand, part, lane, width)

    def _put_lanes(
        self, step: Instruction, operand: PointerOperand, number: str, lane: int, width: int
    ) -> None:
        """Store the result at `width` points, the first of which is in a lane."""
        pointer, stride, _ = operand
        if stride == 0 and width > 1:
            if step.into:
                number = self.routine.folded(step.into, number, width)
            else:
                number = self.routine.lanes(number, width, 0, 1)
            width = 1
        if stride in (0, 1) or width == 1:
            self._join(step, number, self._at(pointer, stride, lane), width)
            return
        if stride == 2:
            target = self._at(pointer, stride, lane)
            if step.into:
                there = self.routine.vector(target, stride, width)
                number = self.routine.joined(step.into, there, number, width)
            self.routine.store_every_second(number, target, width)
            return
        for each in range(width):
            one = self.routine.lanes(number, width, each, 1)
            self._join(step, one, self._at(pointer, stride, lane + each), 1)

    def _join(self, step: Instruction, number: str, target: str, width: int) -> None:
        if step.into:
            there = self.routine.load(target, width)
            number = self.routine.joined(step.into, there, number, width)
        self.routine.store(number, target, width)


# --- nests ---------------------------------------------------------------------------------------

STRAIGHT = 2
"""Vectors along an axis that are written one after the other."""
LONG = 24
"""Instructions on vectors above which they are a loop: long code takes long to compile."""


class Nest:
    """Writes the loop nest of a group of instructions."""

    def __init__(
        self,
        routine: Routine,
        steps: Sequence[Instruction],
        later: Sequence[Sequence[Instruction]],
    ) -> None:
        self.routine = routine
        self.steps = steps
        self.later = later
        self.domain = squeezed(steps[0].domain)
        self.made = first_written(steps)
        self.looked = {
            (index, int(step.name == GATHER)): len(squeezed(step.domain[: step.lookup.axis]))
            for index, step in enumerate(steps)
            if step.lookup is not None
        }
        """The axes along which a table says where gathers read, and scatters write."""
        self.axes = self._order()

    def write(self) -> None:
        """Write it."""
        if math.prod(self.domain) == 0:
            return
        pointers: dict[tuple[int, int], str] = {}
        for index, (step, later) in enumerate(zip(self.steps, self.later, strict=True)):
            for slot, ref in enumerate((step.out, *step.args)):
                if self._in_memory(index, slot, ref):
                    refs = [(each.out, *each.args)[slot] for each in later]
                    domain = step.along(slot)
                    pointers[index, slot] = self.routine.operand(step.name, ref, domain, refs)
        for block in self._blocks():
            if block.fits:
                block.write([pointers[0, slot] for slot in range(1 + len(self.steps[0].args))])
                return
        self._outer(list(self.axes[:-1]), pointers)

    def _blocks(self) -> list[JoinedNest]:
        """Return the candidates for writing a nest of one instruction on several axes in blocks."""
        step = self.steps[0]
        if len(self.steps) > 1 or len(self.domain) < 2 or step.lookup is not None:
            return []
        if step.name != COPY and not _plain(step):
            return []
        strides = [ref.squeezed(step.domain).strides for ref in (step.out, *step.args)]
        how = self.routine, step, self.domain, strides, self.axes[-1]
        return [DotNest(*how), PanelNest(*how), BlockedNest(*how)]

    def _in_memory(self, index: int, slot: int, ref: Ref) -> bool:
        """Whether an operand is read from memory, or a result written there."""
        if slot == 0:
            return bool(self.steps[index].into) or self.routine.layout.is_kept(ref.root)
        return self.made.get(ref.root, index) >= index

    def _order(self) -> tuple[int, ...]:
        """Return the axes in loop order, with the one that is most often contiguous innermost.

        Those of a scatter stay in their order.
        """
        axes = range(len(self.domain))
        if self.steps[0].name == SCATTER:
            return tuple(axes)

        def cost(axis: int) -> tuple[int, int]:
            apart = 0
            for index, step in enumerate(self.steps):
                for slot, ref in enumerate((step.out, *step.args)):
                    stride = ref.squeezed(step.domain).strides[axis]
                    looked = self.looked.get((index, slot)) == axis
                    apart += stride not in (0, 1) or looked
                    apart += 2 * (slot == 0 and stride == 0)
            return apart, -axis

        inner = min(axes, key=cost, default=-1)
        return (*[axis for axis in axes if axis != inner], *([inner] if axes else []))

    def _outer(self, axes: list[int], pointers: dict[tuple[int, int], str]) -> None:
        """Write the loops around the innermost axis."""
        if not axes:
            self._inner(pointers)
            return
        axis, *rest = axes
        routine = self.routine
        for counter in routine.loop(0, self.domain[axis], 1):
            moved: dict[tuple[int, int], str] = {}
            steps: dict[int, str] = {}
            for (index, slot), pointer in pointers.items():
                step = self.steps[index]
                stride = (step.out, *step.args)[slot].squeezed(step.domain).strides[axis]
                if self.looked.get((index, slot)) == axis:
                    position = routine.position(routine.moved(pointers[index, 2], counter))
                    moved[index, slot] = routine.moved(pointer, position, stride)
                    continue
                if stride and stride not in steps:
                    steps[stride] = routine.assigned(f"mul i64 {counter}, {stride}")
                moved[index, slot] = routine.moved(pointer, steps[stride]) if stride else pointer
            self._outer(rest, moved)

    def _inner(self, pointers: dict[tuple[int, int], str]) -> None:
        """Write the innermost axis, a vector at a time."""
        size = self.domain[self.axes[-1]] if self.axes else 1
        scattered = self.looked.get((0, 0)) in self.axes[-1:]
        width = 1 if scattered else min(self.routine.host.width, 1 << (size.bit_length() - 1))
        whole = size // width
        operands = {
            key: PointerOperand(pointer, self._inner_stride(*key), self._table(*key, pointers))
            for key, pointer in pointers.items()
        }
        done = 0
        if whole > STRAIGHT or (whole > 1 and whole * len(self.steps) > LONG):
            for counter in self.routine.loop(0, whole * width, width):
                self._vector(operands, counter, width)
            done = whole * width
        while done + width <= size:
            self._vector(operands, str(done), width)
            done += width
        if done < size:
            self._vector(operands, str(size - width), width, again=done - (size - width))

    def _table(self, index: int, slot: int, pointers: dict[tuple[int, int], str]) -> str:
        """Return a pointer to the table of an operand's steps along the innermost axis, if any."""
        looked = self.looked.get((index, slot)) in self.axes[-1:]
        return pointers[index, 2] if looked else ""

    def _inner_stride(self, index: int, slot: int) -> int:
        step = self.steps[index]
        if not self.axes:
            return 0
        return (step.out, *step.args)[slot].squeezed(step.domain).strides[self.axes[-1]]

    def _vector(
        self,
        operands: dict[tuple[int, int], PointerOperand],
        start: str,
        width: int,
        again: int = 0,
    ) -> None:
        Vector(self.routine, self.steps, operands, start, width, again).write()


def _plain(step: Instruction) -> bool:
    """Whether an operation on floats is a machine instruction rather than a call."""
    spelling = SPELLINGS[step.name]
    called = spelling.function or "{exp}" in spelling.template
    return not (called or spelling.truths or step.truth)

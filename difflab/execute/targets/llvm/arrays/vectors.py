"""All instructions of a nest for some neighbouring points, each number a lane of a vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflab.execute.targets.llvm.arrays.blocks import pieces
from difflab.execute.targets.llvm.arrays.instructions import COPY, GATHER, Instruction, Ref
from difflab.execute.targets.llvm.operations import OperationWriter

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


class PointerOperand(NamedTuple):
    """A pointer that a nest has made for an operand, and its step along the innermost axis.

    Where a table holds the steps, it is a pointer into the table.
    """

    pointer: str
    stride: int
    table: str = ""


def first_written(steps: Sequence[Instruction]) -> dict[int, int]:
    """Return which of a nest's instructions, by their places, is the first to write each value.

    Those after it have its numbers in registers; those up to it read the value from memory.
    """
    made: dict[int, int] = {}
    for place, step in enumerate(steps):
        made.setdefault(step.out.root, place)
    return made


class Vector(OperationWriter):
    """Writes them.

    Parameters
    ----------
    routine : Routine
        What is written to.
    steps : sequence of Instruction
        What is computed.
    operands : mapping of (int, int) to PointerOperand
        What lies in memory, by the place of an instruction and of its operand; 0 is its result.
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
        """Write them."""
        for place, step in enumerate(self.steps):
            read = step.args[:1] if step.name == GATHER else step.args
            keys = [self._key(place, slot, ref) for slot, ref in enumerate(read, 1)]
            if step.name in (COPY, GATHER):
                self.numbers[step.out.root] = self.number(keys[0])
            else:
                self.operation(step.name, keys, step.out.root, truth=step.truth)
            if (place, 0) in self.operands:
                self._put(step, self.operands[place, 0])

    def _key(self, place: int, slot: int, ref: Ref) -> Any:
        """Return the name of an operand's numbers, which are loaded once."""
        if self.made.get(ref.root, place) < place:
            return ref.root
        operand = self.operands[place, slot]
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
        """Return a pointer to a point's number."""
        if not self.start.startswith("%"):
            return self.routine.moved(pointer, int(self.start) + lane, stride)
        return self.routine.moved(self.routine.moved(pointer, self.start, stride), lane, stride)

    def _put(self, step: Instruction, operand: PointerOperand) -> None:
        """Store a result, or join it to what is there."""
        number = self.number(step.out.root)
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
            place = self._at(pointer, stride, lane)
            if step.into:
                there = self.routine.vector(place, stride, width)
                number = self.routine.joined(step.into, there, number, width)
            self.routine.store_every_second(number, place, width)
            return
        for each in range(width):
            one = self.routine.lanes(number, width, each, 1)
            self._join(step, one, self._at(pointer, stride, lane + each), 1)

    def _join(self, step: Instruction, number: str, place: str, width: int) -> None:
        if step.into:
            there = self.routine.load(place, width)
            number = self.routine.joined(step.into, there, number, width)
        self.routine.store(number, place, width)

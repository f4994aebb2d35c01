"""Groups of instructions as loop nests.

The innermost axis of a nest is computed a vector at a time. Its last vector ends with the last
number, and may compute some again: what is accumulated there is not joined once more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.execute.targets.llvm.arrays.blocks import BlockedNest, JoinedNest
from difflab.execute.targets.llvm.arrays.dots import DotNest
from difflab.execute.targets.llvm.arrays.groups import squeezed
from difflab.execute.targets.llvm.arrays.instructions import COPY, GATHER, Instruction, Ref
from difflab.execute.targets.llvm.arrays.panels import PanelNest
from difflab.execute.targets.llvm.arrays.vectors import PointerOperand, Vector, first_written
from difflab.execute.targets.llvm.spelling import SPELLINGS

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


STRAIGHT = 2
"""Vectors along an axis that are written one after the other."""
LONG = 24
"""Instructions on vectors above which they are a loop: long code takes long to compile."""


class Nest:
    """Writes the nest of a group."""

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
            place: len(squeezed(step.domain[: step.lookup.axis]))
            for place, step in enumerate(steps)
            if step.lookup is not None
        }
        """The axes along which gathers look up where they read."""
        self.axes = self._order()

    def write(self) -> None:
        """Write it."""
        if math.prod(self.domain) == 0:
            return
        pointers: dict[tuple[int, int], str] = {}
        for place, (step, later) in enumerate(zip(self.steps, self.later, strict=True)):
            for slot, ref in enumerate((step.out, *step.args)):
                if self._in_memory(place, slot, ref):
                    turns = [(turn.out, *turn.args)[slot] for turn in later]
                    domain = step.along(slot)
                    pointers[place, slot] = self.routine.operand(step.name, ref, domain, turns)
        for block in self._blocks():
            if block.fits:
                block.write([pointers[0, slot] for slot in range(1 + len(self.steps[0].args))])
                return
        self._outer(list(self.axes[:-1]), pointers)

    def _blocks(self) -> list[JoinedNest]:
        """Return how a nest of one instruction on several axes may be written in blocks."""
        step = self.steps[0]
        if len(self.steps) > 1 or len(self.domain) < 2 or step.name == GATHER:
            return []
        if step.name != COPY and not _plain(step):
            return []
        strides = [self._strides(ref, step) for ref in (step.out, *step.args)]
        how = self.routine, step, self.domain, strides, self.axes[-1]
        return [DotNest(*how), PanelNest(*how), BlockedNest(*how)]

    def _in_memory(self, place: int, slot: int, ref: Ref) -> bool:
        """Whether an operand is read from memory, or a result written there."""
        if slot == 0:
            return bool(self.steps[place].into) or self.routine.layout.is_kept(ref.root)
        return self.made.get(ref.root, place) >= place

    def _strides(self, ref: Ref, step: Instruction) -> list[int]:
        return [s for s, size in zip(ref.strides, step.domain, strict=True) if size != 1]

    def _order(self) -> tuple[int, ...]:
        """Return the axes, the one whose numbers lie side by side most often innermost."""
        axes = range(len(self.domain))

        def cost(axis: int) -> tuple[int, int]:
            apart = 0
            for place, step in enumerate(self.steps):
                for slot, ref in enumerate((step.out, *step.args)):
                    stride = self._strides(ref, step)[axis]
                    looked = slot == 1 and self.looked.get(place) == axis
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
            for (place, slot), pointer in pointers.items():
                step = self.steps[place]
                stride = self._strides((step.out, *step.args)[slot], step)[axis]
                if slot == 1 and self.looked.get(place) == axis:
                    position = routine.position(routine.moved(pointers[place, 2], counter))
                    moved[place, slot] = routine.moved(pointer, position, stride)
                    continue
                if stride and stride not in steps:
                    steps[stride] = routine.assigned(f"mul i64 {counter}, {stride}")
                moved[place, slot] = routine.moved(pointer, steps[stride]) if stride else pointer
            self._outer(rest, moved)

    def _inner(self, pointers: dict[tuple[int, int], str]) -> None:
        """Write the innermost axis, a vector at a time."""
        size = self.domain[self.axes[-1]] if self.axes else 1
        width = min(self.routine.host.width, 1 << (size.bit_length() - 1))
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

    def _table(self, place: int, slot: int, pointers: dict[tuple[int, int], str]) -> str:
        """Return where the steps of an operand along the innermost axis lie, if in a table."""
        looked = slot == 1 and self.looked.get(place) in self.axes[-1:]
        return pointers[place, 2] if looked else ""

    def _inner_stride(self, place: int, slot: int) -> int:
        step = self.steps[place]
        if not self.axes:
            return 0
        return self._strides((step.out, *step.args)[slot], step)[self.axes[-1]]

    def _vector(
        self,
        operands: dict[tuple[int, int], PointerOperand],
        start: str,
        width: int,
        again: int = 0,
    ) -> None:
        Vector(self.routine, self.steps, operands, start, width, again).write()


def _plain(step: Instruction) -> bool:
    """Whether an operation is an instruction of the machine on numbers."""
    spelling = SPELLINGS[step.name]
    called = spelling.function or "{exp}" in spelling.template
    return not (called or spelling.truths or step.truth)

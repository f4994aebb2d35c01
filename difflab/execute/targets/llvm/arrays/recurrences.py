"""Nests of recurrences along an axis, and of scatter-adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.lower.nests import RECURRENCES, Instruction

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


class _OwnNest:
    """Base class of the nests of one instruction, which share no loop with others.

    Parameters
    ----------
    routine : Routine
        Where it is written.
    step : Instruction
        The instruction.
    later : sequence of Instruction
        The same instruction in all iterations from this on.
    """

    def __init__(self, routine: Routine, step: Instruction, later: Sequence[Instruction]) -> None:
        self.routine = routine
        self.step = step
        self.refs = (step.out, *step.args)
        self.later = later
        self.axis = None if step.lookup is None else step.lookup.axis

    def write(self) -> None:
        """Write it."""
        if 0 not in self.step.domain:
            self._loop(0, self.routine.operands(self.step, self.later))

    def _loop(self, axis: int, pointers: Sequence[str]) -> None:
        """Write the loops from an axis on."""
        raise NotImplementedError


class RecurrenceNest(_OwnNest):
    """Writes a recurrence along the last axis: a loop for each axis, the last value in a register.

    The operands are the terms and, in a linear recurrence, the coefficients.
    """

    def _loop(self, axis: int, pointers: Sequence[str]) -> None:
        if axis == len(self.step.domain) - 1:
            self._line(pointers)
            return
        for counter in self.routine.loop(0, self.step.domain[axis], 1):
            moved = [
                self.routine.moved(pointer, counter, ref.strides[axis])
                for pointer, ref in zip(pointers, self.refs, strict=False)
            ]
            self._loop(axis + 1, moved)

    def _line(self, pointers: Sequence[str]) -> None:
        """Write the recurrence itself, on pointers to its first elements."""
        routine, (out, terms, *coefficients) = self.routine, pointers
        strides = [ref.strides[-1] for ref in self.refs]
        first = routine.load(terms)
        routine.store(first, out)
        if self.step.domain[-1] == 1:
            return
        loop = routine.carrying_loop(1, self.step.domain[-1], 1, [first], ["double"])
        with loop as (counter, (before,), after):
            term = routine.load(routine.moved(terms, counter, strides[1]))
            if coefficients:
                place = routine.assigned(f"sub i64 {counter}, 1")
                factor = routine.load(routine.moved(coefficients[0], place, strides[2]))
                value = routine.with_product(term, [factor, before], 1)
            else:
                value = routine.joined(RECURRENCES[self.step.name], before, term, 1)
            routine.store(value, routine.moved(out, counter, strides[0]))
            after.append(value)


# --- scatter-adds --------------------------------------------------------------------------------


class ScatterNest(_OwnNest):
    """Writes a scatter-add, by a `Lookup`: a loop for each axis, the last one by vectors."""

    def _loop(self, axis: int, pointers: Sequence[str]) -> None:
        step, routine = self.step, self.routine
        if axis == len(step.domain):
            self._elements(pointers, 1)
            return
        size = step.domain[axis]
        if axis == len(step.domain) - 1 and axis != self.axis and self._beside(axis):
            width, done = routine.host.width, size - size % routine.host.width
            if done:
                for counter in routine.loop(0, done, width):
                    self._elements(self._moved(pointers, axis, counter), width)
            for place in range(done, size):
                self._elements(self._moved(pointers, axis, str(place)), 1)
            return
        for counter in routine.loop(0, size, 1):
            self._loop(axis + 1, self._moved(pointers, axis, counter))

    def _beside(self, axis: int) -> bool:
        """Whether the elements along an axis lie side by side."""
        return self.step.out.strides[axis] == self.step.args[0].strides[axis] == 1

    def _moved(self, pointers: Sequence[str], axis: int, counter: str) -> list[str]:
        """Return the pointers at a position of an axis."""
        routine, counters = self.routine, [counter] * len(self.refs)
        if axis == self.axis:
            counters[0] = routine.position(routine.moved(pointers[2], counter))
        return [
            routine.moved(pointer, place, ref.strides[axis])
            for pointer, place, ref in zip(pointers, counters, self.refs, strict=True)
        ]

    def _elements(self, pointers: Sequence[str], width: int) -> None:
        """Add elements that lie side by side."""
        routine, (target, source, _) = self.routine, pointers
        number = routine.load(source, width)
        number = routine.joined(self.step.into, routine.load(target, width), number, width)
        routine.store(number, target, width)

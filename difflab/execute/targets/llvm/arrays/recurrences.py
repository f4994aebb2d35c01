"""Nests of recurrences along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.lower.nests import RECURRENCES, Instruction

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


class RecurrenceNest:
    """Writes a recurrence along the last axis: a loop for each axis, the last value in a register.

    Parameters
    ----------
    routine : Routine
        Where it is written.
    step : Instruction
        The instruction: its operands are the terms and, in a linear recurrence, the coefficients.
    later : range
        The same instruction in all iterations from this on.
    """

    def __init__(self, routine: Routine, step: Instruction, later: range) -> None:
        self.routine = routine
        self.step = step
        self.refs = (step.out, *step.args)
        self.later = later

    def write(self) -> None:
        """Write it."""
        if 0 not in self.step.domain:
            self._loop(0, self.routine.operands(self.step, self.later))

    def _loop(self, axis: int, pointers: Sequence[str]) -> None:
        """Write the loops from an axis on."""
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
                previous = routine.assigned(f"sub i64 {counter}, 1")
                factor = routine.load(routine.moved(coefficients[0], previous, strides[2]))
                value = routine.with_product(term, [factor, before], 1)
            else:
                value = routine.joined(RECURRENCES[self.step.name], before, term, 1)
            routine.store(value, routine.moved(out, counter, strides[0]))
            after.append(value)

"""What the nests of one instruction whose results are each joined of many terms have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.execute.targets.llvm.arrays.instructions import Instruction

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


class JoinedNest(ABC):
    """Writes the nest of one instruction whose results are each joined of many terms.

    Parameters
    ----------
    routine : Routine
        What is written to.
    step : Instruction
        The instruction.
    domain : sequence of int
        The sizes of its axes of more than one point.
    strides : sequence of sequences of int
        The steps of the result and of each operand along those axes.
    inner : int
        The axis that vectors of results would lie along.
    """

    def __init__(
        self,
        routine: Routine,
        step: Instruction,
        domain: Sequence[int],
        strides: Sequence[Sequence[int]],
        inner: int,
    ) -> None:
        self.routine = routine
        self.step = step
        self.domain = domain
        self.strides = strides
        self.inner = inner

    @property
    @abstractmethod
    def fits(self) -> bool:
        """Whether the instruction has the form that this class writes."""

    @abstractmethod
    def write(self, pointers: Sequence[str]) -> None:
        """Write the nest, given where the result and the operands begin."""

    def moved(self, pointers: Sequence[str], count: str, axis: int) -> list[str]:
        """Return pointers advanced by a number of points along an axis."""
        return [
            self.routine.moved(pointer, count, strides[axis]) if count != "0" else pointer
            for pointer, strides in zip(pointers, self.strides, strict=True)
        ]

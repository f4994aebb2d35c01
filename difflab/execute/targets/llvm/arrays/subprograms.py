"""The functions that a control instruction calls, and their memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from difflab.graph.control import Branches, Checkpoint, Control, Loop
from difflab.graph.ir import Shape

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.groups import NestLayout


def sizes(shapes: Sequence[Shape]) -> list[int]:
    """Return the number of elements of each shape."""
    return [math.prod(shape) for shape in shapes]


@dataclass(frozen=True, eq=False)
class Subprograms:
    """The functions of a loop or a choice.

    The memory consists of the results; a double buffer for each carried value, one half of which a
    step reads and the other it writes; a truth value; and the memory of the functions, of which
    one is called at a time.

    Attributes
    ----------
    control : Control
        The loop or the choice.
    layouts : tuple of NestLayout
        Its functions. Their last inputs are their output buffers.
    """

    control: Control
    layouts: tuple[NestLayout, ...]

    @cached_property
    def carried(self) -> list[int]:
        """The sizes of the carried values."""
        control = self.control
        if isinstance(control, Branches | Checkpoint):
            return []
        count = control.carries if isinstance(control, Loop) else None
        return sizes(control.output_shapes[:count])

    @cached_property
    def results(self) -> int:
        """The number of elements of all results."""
        return sum(sizes(self.control.output_shapes))

    @property
    def truth(self) -> int:
        """The offset of the truth value."""
        return self.results + 2 * sum(self.carried)

    @property
    def room(self) -> int:
        """The offset of the memory of the functions."""
        return self.truth + 1

    @property
    def size(self) -> int:
        """The size of the memory, in elements."""
        return self.room + max(layout.room for layout in self.layouts)

    @property
    def counts(self) -> tuple[int, ...]:
        """The element counts of that memory and of the operands."""
        return (self.size, *sizes(self.control.input_shapes))

    @property
    def operations(self) -> int:
        """The instructions of the functions, of those that they call as well."""
        return sum(layout.operations for layout in self.layouts)

    @property
    def work(self) -> int:
        """The scalar operations of a run, one step of a loop whose steps are not known."""
        steps = self.control.steps if isinstance(self.control, Loop) else 1
        return steps * sum(layout.work for layout in self.layouts)

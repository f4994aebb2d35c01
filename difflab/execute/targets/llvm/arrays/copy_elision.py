"""Copy elision: what would be computed and then copied into a larger value is computed there.

This concerns the parts of a concatenation, and the results of a routine.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from difflab.execute.targets.llvm.arrays.instructions import COPY, Instruction, Instructions, Ref
from difflab.execute.targets.llvm.arrays.strides import in_order


def elided(program: Instructions) -> Instructions:
    """Return a program in which the parts of a value are written into it, not copied.

    A value is written in place where one instruction copies all of it, in order, into a part of
    another value. Nothing else may write that part, and nothing may read any of the other value
    before all its parts are there.

    Examples
    --------
    >>> import difflab as dl
    >>> import numpy as np
    >>> from difflab.execute.lower.schedule import Schedule
    >>> from difflab.execute.targets.llvm.arrays.expansion import instructions
    >>> f = dl.trace(lambda x: np.concatenate([np.sin(x), x]), np.ones(3))
    >>> for step in elided(instructions(Schedule.of(f))).code:
    ...     print(step.name, step.out)
    sin Ref(root=2, offset=0, strides=(1,))
    copy Ref(root=2, offset=3, strides=(1,))
    """
    uses = _Uses(program)
    homes: dict[int, Ref] = {}
    copies: set[int] = set()
    for place, step in enumerate(program.code):
        if step.name != COPY or step.args[0].root in homes:
            continue
        if uses.is_part(place, step) and uses.is_assembled(step.out.root):
            homes[step.args[0].root] = step.out
            copies.add(place)
    if not homes:
        return program

    def moved(ref: Ref) -> Ref:
        while ref.root in homes:
            home = homes[ref.root]
            ref = Ref(home.root, home.offset + ref.offset, ref.strides)
        return ref

    code = [
        step._replace(out=moved(step.out), args=tuple(map(moved, step.args)))
        for place, step in enumerate(program.code)
        if place not in copies
    ]
    return replace(program, code=code, outputs=list(map(moved, program.outputs)))


class _Uses:
    """Which instructions write and read each value."""

    def __init__(self, program: Instructions) -> None:
        self.program = program
        self.writes: dict[int, list[int]] = {}
        self.first_read: dict[int, int] = {}
        self.assembled: dict[int, bool] = {}
        for place, step in enumerate(program.code):
            self.writes.setdefault(step.out.root, []).append(place)
            for ref in step.args:
                self.first_read.setdefault(ref.root, place)

    def is_part(self, place: int, step: Instruction) -> bool:
        """Whether a copy moves a whole value, which is complete, as it lies in memory."""
        (source,) = step.args
        writes = self.writes.get(source.root)  # none for inputs and constants
        return (
            not step.into
            and writes is not None
            and writes[-1] < place
            and source.root >= self.program.inputs
            and source.root not in self.program.truths
            and self.program.sizes[source.root] == math.prod(step.domain)
            and in_order(source.strides, step.domain)
        )

    def is_assembled(self, root: int) -> bool:
        """Whether a value consists of parts that are copied side by side before it is read."""
        if root not in self.assembled:
            self.assembled[root] = self._is_assembled(root)
        return self.assembled[root]

    def _is_assembled(self, root: int) -> bool:
        places = self.writes[root]
        steps = [self.program.code[place] for place in places]
        if self.first_read.get(root, places[-1]) < places[-1]:
            return False
        if any(step.name != COPY for step in steps):
            return False
        if not all(in_order(step.out.strides, step.domain) for step in steps):
            return False
        parts = sorted((step.out.offset, math.prod(step.domain)) for step in steps)
        return all(start + size <= following for (start, size), (following, _) in pairwise(parts))

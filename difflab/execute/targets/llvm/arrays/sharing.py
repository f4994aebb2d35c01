"""Which instructions may share a nest: none changes what another one reads at other points."""

from __future__ import annotations

import math
from typing import NamedTuple

from difflab.execute.targets.llvm.arrays.instructions import Instruction, Ref

__all__ = ["OpenNest"]

Way = tuple[int, tuple[int, ...]]


def _way(ref: Ref, step: Instruction) -> Way:
    """Return where an operand begins, and its steps along the axes of more than one point."""
    strides = zip(ref.strides, step.domain, strict=True)
    return ref.offset, tuple([stride for stride, size in strides if size != 1])


class Access(NamedTuple):
    """The numbers that an operand reaches, by the first and the last."""

    low: int
    high: int

    def meets(self, other: Access) -> bool:
        """Whether both may reach the same number."""
        return self.low <= other.high and other.low <= self.high


class Write(NamedTuple):
    """Where an instruction writes: its way, what it reaches, and whether it joins numbers there."""

    way: Way
    reached: Access
    joins: bool

    @classmethod
    def of(cls, step: Instruction) -> Write:
        """Return where an instruction writes."""
        ref, domain = step.accesses()[0]
        return cls(_way(step.out, step), Access(*ref.reach(domain)), bool(step.into))

    def between(self, other: Write) -> bool:
        """Whether both store along the same steps, but never meet: real and imaginary parts.

        Examples
        --------
        >>> real = Write((0, (8, 2)), Access(0, 22), False)
        >>> real.between(Write((1, (8, 2)), Access(1, 23), False))
        True
        >>> real.between(Write((4, (8, 2)), Access(4, 26), False))
        False
        """
        period = math.gcd(*self.way[1])
        stores = not self.joins and not other.joins and self.way[1] == other.way[1]
        return stores and period > 0 and (self.way[0] - other.way[0]) % period != 0


class OpenNest:
    """What the instructions of a nest write and read, while more may be taken into it.

    Attributes
    ----------
    written : dict of int to list
        Where they write each value.
    read : dict of int to list
        What they read of each value before any of them writes there.
    """

    def __init__(self) -> None:
        self.written: dict[int, list[Write]] = {}
        self.read: dict[int, list[Access]] = {}

    def add(self, step: Instruction) -> None:
        """Take in an instruction."""
        for ref, domain in step.accesses()[1:]:
            if ref.root not in self.written:
                self.read.setdefault(ref.root, []).append(Access(*ref.reach(domain)))
        self.written.setdefault(step.out.root, []).append(Write.of(step))

    def leaves(self, step: Instruction) -> bool:
        """Whether the instructions neither read what another one writes nor write there."""
        own, root = Write.of(step).reached, step.out.root
        written = any(own.meets(other.reached) for other in self.written.get(root, ()))
        return not written and not any(map(own.meets, self.read.get(root, ())))

    def shares(self, step: Instruction) -> bool:
        """Whether the others leave what an instruction reads and writes as it expects it."""
        own, others = Write.of(step), self.written.get(step.out.root, ())
        between = step.out.root not in self.read and all(map(own.between, others))
        if not between and not self.leaves(step):
            return False
        if step.lookup is not None and step.args[0].root in self.written:
            return False
        return all(self._left(ref, step) for ref in step.args)

    def _left(self, ref: Ref, step: Instruction) -> bool:
        """Whether what an operand reads is not written here, or just before at the same point."""
        writes = self.written.get(ref.root)
        if writes is None:
            return True
        return len(writes) == 1 and not writes[0].joins and writes[0].way == _way(ref, step)

"""Which instructions may share a nest: none changes what another one reads at other points."""

from __future__ import annotations

import math
from typing import NamedTuple

from difflab.execute.targets.llvm.arrays.instructions import Instruction, Ref
from difflab.graph.ir import Shape

__all__ = ["OpenNest"]


class Access(NamedTuple):
    """The numbers that an operand reaches, by the first and the last."""

    low: int
    high: int

    def meets(self, other: Access) -> bool:
        """Whether both may reach the same number."""
        return self.low <= other.high and other.low <= self.high


class Write(NamedTuple):
    """Where an instruction writes, what it reaches, and whether it accumulates there."""

    out: Ref
    reached: Access
    accumulates: bool

    @classmethod
    def of(cls, step: Instruction) -> Write:
        """Return where an instruction writes."""
        ref, domain = step.accesses()[0]
        out = _squeezed(step.out, step.domain)
        return cls(out, Access(*ref.reach(domain)), bool(step.into))

    def interleaves(self, other: Write) -> bool:
        """Whether both store with the same strides, but never meet: real and imaginary parts.

        Examples
        --------
        >>> real = Write(Ref(0, 0, (8, 2)), Access(0, 22), False)
        >>> real.interleaves(Write(Ref(0, 1, (8, 2)), Access(1, 23), False))
        True
        >>> real.interleaves(Write(Ref(0, 4, (8, 2)), Access(4, 26), False))
        False
        """
        period = math.gcd(*self.out.strides)
        stores = not self.accumulates and not other.accumulates
        same = self.out.strides == other.out.strides and period > 0
        return stores and same and (self.out.offset - other.out.offset) % period != 0


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

    def is_apart(self, step: Instruction) -> bool:
        """Whether an instruction writes nothing that the others read or write."""
        own, root = Write.of(step).reached, step.out.root
        written = any(own.meets(other.reached) for other in self.written.get(root, ()))
        return not written and not any(map(own.meets, self.read.get(root, ())))

    def shares(self, step: Instruction) -> bool:
        """Whether the others leave what an instruction reads and writes as it expects it."""
        own, others = Write.of(step), self.written.get(step.out.root, ())
        interleaved = step.out.root not in self.read and all(map(own.interleaves, others))
        if not interleaved and not self.is_apart(step):
            return False
        if step.lookup is not None and step.args[0].root in self.written:
            return False
        return all(self._unchanged(ref, step) for ref in step.args)

    def _unchanged(self, ref: Ref, step: Instruction) -> bool:
        """Whether what an operand reads is not written here, or just before at the same point."""
        writes = self.written.get(ref.root)
        if writes is None:
            return True
        (write, *others) = writes
        return not others and not write.accumulates and write.out == _squeezed(ref, step.domain)


def _squeezed(ref: Ref, domain: Shape) -> Ref:
    """Return where an operand begins, and its strides along the axes of more than one point."""
    strides = zip(ref.strides, domain, strict=True)
    return Ref(ref.root, ref.offset, tuple([stride for stride, size in strides if size != 1]))

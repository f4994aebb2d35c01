"""Grouping of instructions into shared nests, and the memory of values.

Consecutive instructions over one domain are fused: values that only they read stay in registers.
Straight-line code reuses the memory of values that are no longer read. In a function with loops,
every value that is kept has memory of its own; the iterations of a loop are consecutive there, so
that an address is an offset plus a stride per iteration.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError
from difflab.execute.targets.llvm.arrays.loop_detection import (
    Segment,
    Segments,
    ValuePositions,
    elided,
    segmented,
)
from difflab.execute.targets.llvm.arrays.subprograms import Subprograms
from difflab.execute.targets.llvm.libraries import Transform
from difflab.graph.ir import Shape
from difflab.lower.nests import COPY, Instruction, Instructions, Ref, Refs, squeezed

# --- instructions that may share a nest: none writes values that another reads at other points ---

FARTHEST = 2
"""Elements between writes that are added up in registers: the width of the narrowest vectors."""
FEWEST = 32
"""Points from which they are: vectors are whole, and writes farther apart do not overlap."""


class Access(NamedTuple):
    """The range of elements that an operand accesses, as the first and the last."""

    low: int
    high: int

    def meets(self, other: Access) -> bool:
        """Whether both may access the same element."""
        return self.low <= other.high and other.low <= self.high


class Write(NamedTuple):
    """The output of an instruction, its range, and whether the instruction accumulates."""

    out: Ref
    reached: Access
    accumulates: bool

    @classmethod
    def of(cls, step: Instruction) -> Write:
        """Return the write of an instruction."""
        ref, domain = step.accesses()[0]
        out = step.out.squeezed(step.domain)
        return cls(out, Access(*ref.reach(domain)), bool(step.into))

    def interleaves(self, other: Write) -> bool:
        """Whether both store with the same strides but never overlap: real and imaginary parts.

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

    def joins(self, others: Sequence[Write]) -> bool:
        """Whether it can be added in registers to what the others write to the same elements.

        The first one of them stores, and all lie along one axis, at most `FARTHEST` elements apart.

        Examples
        --------
        >>> stored = Write(Ref(0, 1, (1,)), Access(1, 40), False)
        >>> Write(Ref(0, 0, (1,)), Access(0, 39), True).joins([stored])
        True
        >>> Write(Ref(0, 9, (1,)), Access(9, 48), True).joins([stored])
        False
        """
        same = [other for other in others if self.reached.meets(other.reached)]
        return not same or (
            self.accumulates
            and not same[0].accumulates
            and all(other.out.strides == self.out.strides == (1,) for other in same)
            and all(abs(other.out.offset - self.out.offset) <= FARTHEST for other in same)
            and self.reached.high - self.reached.low >= FEWEST
        )


class OpenNest:
    """The writes and reads of a nest to which more instructions may be added.

    Parameters
    ----------
    repeated : bool
        Whether the nest is inside a loop.

    Attributes
    ----------
    written : dict of int to list
        Where they write each value.
    read : dict of int to list
        The ranges of each value that they read before any of them writes there.
    """

    def __init__(self, repeated: bool = False) -> None:
        self.repeated = repeated
        self.written: dict[int, list[Write]] = {}
        self.read: dict[int, list[Access]] = {}

    def add(self, step: Instruction) -> None:
        """Add an instruction."""
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
        """Whether an instruction can share the nest without changing its result."""
        own, others = Write.of(step), self.written.get(step.out.root, ())
        unread = step.out.root not in self.read
        added = not self.repeated and own.joins(others)
        shared = unread and (added or all(map(own.interleaves, others)))
        if not shared and not self.is_apart(step):
            return False
        if step.lookup is not None and step.args[0].root in self.written:
            return False
        return all(self._unchanged(ref, step) for ref in step.args)

    def _unchanged(self, ref: Ref, step: Instruction) -> bool:
        """Whether an operand is unwritten in the nest, or written once, at the same point."""
        writes = self.written.get(ref.root)
        if writes is None:
            return True
        (write, *others) = writes
        return not others and not write.accumulates and write.out == ref.squeezed(step.domain)


# --- groups, and the memory of values ------------------------------------------------------------

_LARGEST = 400  # instructions in a nest: more would not fit in registers anyway

_STRAIGHT = 1000  # instructions that are written without loops: LLVM takes a second for them


class Address(NamedTuple):
    """An address: the memory, the offset, and the stride per iteration of a loop."""

    memory: str
    start: int
    step: int


class Group(NamedTuple):
    """Instructions of a segment's piece that share a nest, by their indices in the piece."""

    steps: tuple[int, ...]


@dataclass(eq=False)
class NestLayout:
    """Groups of every segment, and the memory of their values.

    Parameters
    ----------
    program : Instructions
        The instructions to group.
    cut : Segments
        Its segments.
    """

    program: Instructions
    cut: Segments

    def __post_init__(self) -> None:
        self.groups = [self._grouped(segment) for segment in self.cut.segments]
        self.kept = self._kept()
        self.room = 0
        self.starts: list[tuple[dict[int, int], int]] = []
        for number, segment in enumerate(self.cut.segments):
            self._arrange(number, segment)

    @classmethod
    def empty(cls) -> NestLayout:
        """Return the layout of an empty program."""
        nothing = ValuePositions(np.empty(0, np.int64), np.empty((3, 0), np.int64))
        return cls(Instructions(0), Segments([], nothing, []))

    def _arrange(self, number: int, segment: Segment) -> None:
        """Allocate memory for the kept values of a segment."""
        if len(self.cut.segments) == 1 == segment.count:
            offsets, self.room = self._shared()
            self.starts.append((offsets, self.room))
            return
        offsets = {}
        start, size = self.room, 0
        for value, length in enumerate(self.cut.sizes[number]):
            if (number, value) in self.kept:
                offsets[value] = start + size
                size += length
        self.starts.append((offsets, size))
        self.room += size * segment.count

    def _shared(self) -> tuple[dict[int, int], int]:
        """Return memory for the values of straight-line code, and its size.

        A value reuses memory of values that no later group reads, so that less leaves the cache. Of
        the values that a control instruction writes, later groups read only the results.
        """
        sizes = self.cut.sizes[0]
        used: dict[int, list[int]] = {}
        results: dict[int, int] = {}
        for number, group in enumerate(self.groups[0]):
            for step in (self.program.code[index] for index in group.steps):
                for ref in (step.out, *step.args):
                    if ref.root not in self.cut.places:
                        continue
                    position = self.cut.places[ref.root]
                    if position[:2] in self.kept:
                        used.setdefault(position.value, []).append(number)
                if isinstance(step.called, Subprograms):
                    results[self.cut.places[step.out.root].value] = step.called.results
        for ref in self.program.outputs:
            if ref.root in self.cut.places:
                used[self.cut.places[ref.root].value].append(len(self.groups[0]))
        offsets: dict[int, int] = {}
        ending: dict[int, list[tuple[int, int]]] = {}
        memory, done = _Memory(), 0
        for value, groups in used.items():
            while done < groups[0]:
                memory.release(ending.pop(done, ()))
                done += 1
            start = offsets[value] = memory.taken(sizes[value])
            read = results.get(value, sizes[value])
            ending.setdefault(groups[0], []).append((sizes[value] - read, start + read))
            ending.setdefault(groups[-1], []).append((read, start))
        return offsets, memory.room

    @property
    def controls(self) -> list[Subprograms]:
        """The subprograms of the control instructions; those that a loop repeats count once."""
        pieces = (self._piece(segment, 0) for segment in self.cut.segments)
        called = (step.called for piece in pieces for step in piece)
        return [each for each in called if isinstance(each, Subprograms)]

    @property
    def may_fail(self) -> bool:
        """Whether a run may end early."""
        pieces = (self._piece(segment, 0) for segment in self.cut.segments)
        return bool(self.controls) or any(
            isinstance(step.called, Transform) for piece in pieces for step in piece
        )

    @property
    def operations(self) -> int:
        """The instructions, those that are called as well, and those in a loop counted once."""
        own = sum(segment.period for segment in self.cut.segments)
        return own + sum(control.operations for control in self.controls)

    @property
    def work(self) -> int:
        """The scalar operations of a run; loops whose steps are not known count as one step."""
        code = self.program.code
        counts = np.bincount(code.kinds).tolist()
        return sum(step.work * count for step, count in zip(code.firsts, counts, strict=True))

    # --- groups -----------------------------------------------------------------------------

    def _grouped(self, segment: Segment) -> list[Group]:
        """Split a piece where instructions cannot share a nest, in one of the iterations."""
        different = min(segment.before + 1, segment.count)
        variants = [self._piece(segment, turn) for turn in range(different)]
        groups: list[Group] = []
        steps: list[int] = []
        repeated = segment.count > 1
        nests = [OpenNest(repeated) for _ in variants]
        domain: tuple[int, ...] = ()
        for index in range(segment.period):
            each = [(nest, piece[index]) for nest, piece in zip(nests, variants, strict=True)]
            if steps and all(self._opens(step, nest) for nest, step in each):
                groups.append(Group((index,)))  # before the open nest, which stays open
                continue
            own = squeezed(variants[0][index].domain)
            fits = bool(steps) and own == domain and len(steps) < _LARGEST
            fits = fits and not any(
                step.alone for step in (variants[0][index], variants[0][steps[-1]])
            )
            if not (fits and all(nest.shares(step) for nest, step in each)):
                if steps:
                    groups.append(Group(tuple(steps)))
                steps, domain = [], own
                nests = [OpenNest(repeated) for _ in variants]
            steps.append(index)
            for nest, piece in zip(nests, variants, strict=True):
                nest.add(piece[index])
        groups.append(Group(tuple(steps)))
        return groups

    def _opens(self, step: Instruction, nest: OpenNest) -> bool:
        """Whether an instruction only writes constants, as the neutral element of a sum.

        Nothing in the open nest accesses the same elements before.
        """
        constant = all(ref.root in self.program.known for ref in step.args)
        own = step.out.root >= self.program.inputs
        return step.name == COPY and not step.into and constant and own and nest.is_apart(step)

    def _piece(self, segment: Segment, turn: int) -> list[Instruction]:
        start = segment.start + turn * segment.period
        piece: list[Instruction] = self.program.code[start : start + segment.period]
        return piece

    # --- memory -----------------------------------------------------------------------------

    def _kept(self) -> set[tuple[int, int]]:
        """Return the values that are read outside the nest that defines them, except results.

        The results of a routine go where its caller says.
        """
        kept: set[tuple[int, int]] = set()
        positions, program = self.cut.places, self.program
        for number, segment in enumerate(self.cut.segments):
            home: dict[int, int] = {}
            for group, entry in enumerate(self.groups[number]):
                home |= dict.fromkeys(entry.steps, group)
            # A later iteration is like the first of the loop, but the loops that read it are, too.
            for turn in {*range(min(segment.before + 2, segment.count)), segment.count - 1}:
                made: dict[int, int] = {}
                for index, step in enumerate(self._piece(segment, turn)):
                    for ref in step.args:
                        if made.get(ref.root) != home[index] and ref.root in positions:
                            kept.add(positions[ref.root][:2])
                    alone = step.into or step.alone
                    if alone or made.setdefault(step.out.root, home[index]) != home[index]:
                        kept.add(positions[step.out.root][:2])
                    if squeezed(step.domain) and 0 in step.out.strides and not step.into:
                        kept.add(positions[step.out.root][:2])
        for ref in program.outputs:
            if ref.root in positions:
                kept.add(positions[ref.root][:2])
        return kept - {positions[root][:2] for root in range(program.inputs) if root in positions}

    def is_kept(self, root: int) -> bool:
        """Return whether a value has memory."""
        return root < self.program.inputs or self.cut.places[root][:2] in self.kept

    def address(self, ref: Ref, later: Refs | None = None) -> Address:
        """Return the address of an operand, given the operand in this and all later iterations.

        Raises
        ------
        ConsistencyError
            The offsets do not increase by a constant stride per iteration.
        """
        memories, offsets = self._starts
        memory, start = int(memories[ref.root]), int(offsets[ref.root]) + ref.offset
        name = {_VALUES: "values", _CONSTANTS: "constants"}.get(memory) or f"input {memory}"
        if later is None or not len(later.roots):
            return Address(name, start, 0)
        starts = offsets[later.roots] + later.offsets
        step = int(starts[1]) - start
        wanted = start + step * np.arange(len(starts))
        if not ((memories[later.roots] == memory) & (starts == wanted)).all():
            raise ConsistencyError(f"an operand in {name} moves by different steps")
        return Address(name, start, step)

    def capacity(self, memory: str) -> int:
        """Return the number of elements of a memory."""
        if memory == "values":
            return self.room
        if memory == "constants":
            return len(self.program.constants)
        return self.program.sizes[int(memory.split()[1])]

    def check(self, address: Address, ref: Ref, domain: Shape, count: int) -> None:
        """Raise `ConsistencyError` where an iteration of a nest leaves its memory."""
        if 0 in domain:
            return
        low, high = Ref(ref.root, address.start, ref.strides).reach(domain)
        moved = address.step * (count - 1)
        low, high = low + min(moved, 0), high + max(moved, 0)
        if low < 0 or high >= self.capacity(address.memory):
            raise ConsistencyError(f"a nest over {domain} comes to {low} to {high} of {address}")

    @cached_property
    def _starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The memory of each value, and where it begins there."""
        ordinals, (segments, values, pieces) = self.cut.places.ordinals, self.cut.places.where
        first = np.cumsum([0, *map(len, self.cut.sizes)])
        begin = np.full(first[-1], _NOWHERE)
        for number, (places, _) in enumerate(self.starts):
            begin[[first[number] + value for value in places]] = list(places.values())
        steps = np.array([step for _, step in self.starts], dtype=np.int64)
        memories = np.full(len(ordinals), _VALUES)
        starts = np.full(len(ordinals), _NOWHERE)
        defined = ordinals >= 0
        starts[defined] = (begin[first[segments] + values] + pieces * steps[segments])[
            ordinals[defined]
        ]
        inputs, known = self.program.inputs, self.program.known
        memories[:inputs], starts[:inputs] = np.arange(inputs), 0
        memories[list(known)], starts[list(known)] = _CONSTANTS, list(known.values())
        return memories, starts


_VALUES, _CONSTANTS = -1, -2
"""Memories that are no inputs, which are those from 0 on."""
_NOWHERE = -(1 << 40)
"""The start of a value that has no memory."""


class _Memory:
    """An allocator that reuses released memory; `room` is the total size."""

    def __init__(self) -> None:
        self.room = 0
        self.free: list[tuple[int, int]] = []  # sizes and starts, the smallest first

    def release(self, parts: Iterable[tuple[int, int]]) -> None:
        """Add parts that are no longer used: sizes and starts."""
        for part in parts:
            if part[0]:
                bisect.insort(self.free, part)

    def taken(self, size: int) -> int:
        """Return the start of a free part: the smallest that suffices, else new memory.

        New memory begins with a free part that is the last one.
        """
        smallest = bisect.bisect_left(self.free, (size,))
        if smallest < len(self.free):
            free_size, start = self.free.pop(smallest)
            self.release([(free_size - size, start + size)])
            return start
        last = [part for part in self.free if sum(part) == self.room]
        start = last[0][1] if last else self.room
        if last:
            self.free.remove(last[0])
        self.room = start + size
        return start


def arranged(program: Instructions) -> NestLayout:
    """Return the layout of a program: with loops, or straight-line if that needs less memory.

    A loop keeps the values of all its iterations; a nest of the same instructions, one iteration
    after the other, keeps them in registers.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> from difflab.execute.targets.llvm.arrays.expansion import instructions
    >>> def power(x):
    ...     y = x
    ...     for _ in range(20):
    ...         y = y * x
    ...     return y
    >>> import numpy as np
    >>> arranged(instructions(Schedule.of(dl.trace(power, np.ones(1000))))).room
    1000
    """
    cut = segmented(program)
    repeats = any(segment.count > 1 for segment in cut.segments)
    if repeats and len(program.code) > _STRAIGHT:
        return NestLayout(program, cut)
    direct = elided(program)
    straight = NestLayout(direct, segmented(direct, loops=False))
    if not repeats:
        return straight
    looped = NestLayout(program, cut)
    return straight if straight.room < 0.75 * looped.room else looped

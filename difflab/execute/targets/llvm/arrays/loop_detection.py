"""Transformations of a sequence of instructions: repeated ones as loops, and fewer copies.

A sequence of instructions is one loop if it consists of equal consecutive pieces, and the offset of
each operand changes by the same stride from piece to piece: along an input, or along the results of
a loop. The first pieces read values from outside and are peeled off the loop: one piece if a step
reads the step before it, k pieces if it reads the k steps before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.lower.nests import (
    COPY,
    Instruction,
    Instructions,
    Ref,
    in_order,
)

LEAST = 4
"""Pieces that make a loop of which one stands before it."""
MOST_BEFORE = 4
"""Pieces that stand before a loop at most: the steps back that a recurrence reads."""
_WINDOW = 8  # instructions that are compared to find how long a piece is
_PERIODS = 12  # lengths of pieces that are tried
_FACTOR = 6364136223846793005  # of the sums that tell windows apart (Knuth's MMIX)


@dataclass(frozen=True)
class Segment:
    """Instructions from `start`: `count` pieces of `period`; one where nothing repeats.

    The first pieces, `before` of them, are peeled off the loop of the others.
    """

    start: int
    period: int
    count: int
    before: int = 1


class ValuePosition(NamedTuple):
    """The definition of a value: its segment, its index in the piece, the index of the piece."""

    segment: int
    value: int
    piece: int


@dataclass
class Segments:
    """Instructions cut into segments.

    Attributes
    ----------
    segments : list of Segment
        All instructions, in order.
    places : dict of int to ValuePosition
        The position at which each value is defined.
    sizes : list of list of int
        For each segment the sizes of the values of a piece.
    """

    segments: list[Segment]
    places: dict[int, ValuePosition]
    sizes: list[list[int]]


def segmented(program: Instructions, *, loops: bool = True) -> Segments:
    """Return the instructions cut into segments; one straight segment without `loops`.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.targets.llvm.arrays.expansion import instructions
    >>> from difflab.execute.lower.schedule import Schedule
    >>> def steps(x):
    ...     for _ in range(20):
    ...         x = np.sin(x) * 0.5
    ...     return x
    >>> segments = segmented(instructions(Schedule.of(dl.trace(steps, np.ones(3)))))
    >>> [(segment.start, segment.period, segment.count) for segment in segments.segments]
    [(0, 1, 1), (1, 2, 19), (39, 1, 1)]
    """
    return _Segmenter(program).result(loops)


def equal_stretches(kinds: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return stretches of equal pieces, the longest first: ``(start, stop, period)``.

    Examples
    --------
    >>> equal_stretches(np.array([7, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 5, 6]))
    [(1, 11, 2)]
    """
    stretches = []
    for period in _periods(kinds):
        same = kinds[:-period] == kinds[period:]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]])))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if stop - start >= (LEAST - 1) * period:
                stretches.append((start, stop + period, period))
    return sorted(stretches, key=lambda stretch: (stretch[0] - stretch[1], stretch[2]))


def _periods(kinds: NDArray[np.int64]) -> Iterator[int]:
    """Yield candidate periods: the distances between equal windows of instructions."""
    size = len(kinds)
    if size < 2 * LEAST:
        return
    window = min(_WINDOW, size // LEAST)
    with np.errstate(over="ignore"):
        factors = np.cumprod(np.full(window, _FACTOR))
        shifted = [1 + kinds[k : size - window + 1 + k] for k in range(window)]
        sums = sum(factor * shift for factor, shift in zip(factors, shifted, strict=True))
    last: dict[int, int] = {}
    apart: Counter[int] = Counter()
    for index, key in enumerate(np.asarray(sums).tolist()):
        if key in last:
            apart[index - last[key]] += 1
        last[key] = index
    likely = [period for period, _ in apart.most_common(_PERIODS)]
    yield from dict.fromkeys([*likely, 1])


class _Segmenter:
    """Cuts instructions, in order."""

    def __init__(self, program: Instructions) -> None:
        self.program = program
        self.code = program.code
        self.ordinal: dict[int, int] = {}
        self.roots: list[int] = []
        self.made: list[int] = []  # how many values are made before each instruction
        signatures: dict[Any, int] = {}
        # The operands' values, where they begin in them, and where the result begins.
        self.slots = max([len(step.args) for step in self.code], default=0)
        self.width = 2 * self.slots + 1
        self.numbers = np.zeros((len(self.code), self.width), dtype=np.int64)
        self.own = np.zeros((len(self.code), self.width), dtype=bool)
        kinds = np.empty(len(self.code), dtype=np.int64)
        for index, step in enumerate(self.code):
            self.made.append(len(self.ordinal))
            kinds[index] = signatures.setdefault(self._signature(index, step), len(signatures))
        self.made.append(len(self.ordinal))
        self.kinds = kinds
        total = len(self.ordinal)
        self.where = np.stack([np.full(total, -1), np.arange(total), np.zeros(total)]).astype(int)

    def _signature(self, index: int, step: Instruction) -> Any:
        """Return the parts of an instruction that equal pieces share; record its offsets."""
        slots: list[Any] = []
        for slot, ref in enumerate(step.args):
            known = self.program.known.get(ref.root)
            begin = self.slots + slot
            if known is not None:
                self.numbers[index, begin] = known + ref.offset
                slots.append((-1, ref.strides))
                continue
            self.numbers[index, begin] = ref.offset
            if ref.root < self.program.inputs:
                slots.append((ref.root, ref.strides))
            else:
                self.numbers[index, slot] = self.ordinal[ref.root]
                self.own[index, slot] = True
                slots.append((-2, ref.strides))
        out = step.out
        self.numbers[index, -1] = out.offset
        new = out.root not in self.ordinal
        number = self.ordinal.setdefault(out.root, len(self.ordinal))
        back = 0 if new else len(self.ordinal) - number
        # Each result of a routine has a buffer of its own.
        result = out.root if out.root < self.program.inputs else -1
        output = (new, back, self.program.sizes[out.root], out.strides, result)
        calls = (step.lookup, step.called)
        kind = (step.name, step.domain, step.into, step.truth, *calls)
        return *kind, output, tuple(slots)

    def result(self, loops: bool) -> Segments:
        """Cut."""
        segments: list[Segment] = []
        self.roots = list(self.ordinal)
        straight = index = 0
        stretches = equal_stretches(self.kinds) if loops else []
        while index < len(self.code):
            loop = self._loop(index, stretches, len(segments) + (index > straight))
            if loop is None:
                index += 1
                continue
            if index > straight:
                self._close(segments, Segment(straight, index - straight, 1))
            self._close(segments, loop)
            index = straight = loop.start + loop.period * loop.count
        if index > straight:
            self._close(segments, Segment(straight, index - straight, 1))
        made = zip(*self.where.tolist(), strict=True)
        homes = {root: ValuePosition(*where) for root, where in zip(self.roots, made, strict=True)}
        return Segments(segments, homes, [self._sizes(segment) for segment in segments])

    def _close(self, segments: list[Segment], segment: Segment) -> None:
        """Record the positions at which the values of a segment are defined."""
        first, last = self.made[segment.start], self.made[segment.start + segment.period]
        count = max(last - first, 1)
        total = self.made[segment.start + segment.period * segment.count] - first
        steps = np.arange(total)
        self.where[:, first : first + total] = [
            np.full(total, len(segments)),
            steps % count,
            steps // count,
        ]
        segments.append(segment)

    def _sizes(self, segment: Segment) -> list[int]:
        first, last = self.made[segment.start], self.made[segment.start + segment.period]
        return [self.program.sizes[root] for root in self.roots[first:last]]

    def _loop(
        self, index: int, stretches: Sequence[tuple[int, int, int]], segment: int
    ) -> Segment | None:
        """Return the loop that begins at an instruction, if one does."""
        for start, stop, period in stretches:
            if not start <= index <= stop - LEAST * period:
                continue
            whole = (stop - index) // period
            few = min(LEAST + MOST_BEFORE - 1, whole)
            moves, sources = self._operands(index, period, few, segment)
            for before in range(1, few - LEAST + 2):
                if _turns(moves, sources, before) >= LEAST + before - 1:
                    every = self._operands(index, period, whole, segment)
                    return Segment(index, period, _turns(*every, before), before)
        return None

    def _operands(
        self, index: int, period: int, count: int, segment: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the piece whose value each operand of `count` pieces reads, or its offset.

        The second array states the segment that defines the value, and its index there.
        """
        stop = index + period * count
        shape = (count, period, self.width)
        numbers, own = self.numbers[index:stop].reshape(shape), self.own[index:stop].reshape(shape)
        first, each = self.made[index], self.made[index + period] - self.made[index]
        inside = own & (numbers >= first)
        known = self.where[:, np.where(own & ~inside, numbers, 0)]
        mine = numbers - first
        iterations = mine // max(each, 1)
        where = np.where(inside, segment, np.where(own, known[0], -2))
        which = np.where(inside, mine % max(each, 1), np.where(own, known[1], 0))
        moves = np.where(inside, iterations, np.where(own, known[2], numbers))
        return moves, np.stack([where, which], axis=-1)


def _turns(moves: NDArray[np.int64], sources: NDArray[np.int64], before: int) -> int:
    """Return how many pieces are iterations of one loop, of which `before` are peeled off."""
    step = moves[before + 1] - moves[before]
    even = moves[before:] == moves[before] + step * np.arange(len(moves) - before)[:, None, None]
    fits = even & (sources[before:] == sources[before]).all(axis=-1)
    broken = np.flatnonzero(~fits.all(axis=(1, 2)))
    return before + int(broken[0]) if len(broken) else len(moves)


# --- copy elision: the parts of a concatenation and results are computed in place ----------------


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
    for index, step in enumerate(program.code):
        if step.name != COPY or step.args[0].root in homes:
            continue
        if uses.is_part(index, step) and uses.is_assembled(step.out.root):
            homes[step.args[0].root] = step.out
            copies.add(index)
    if not homes:
        return program

    def moved(ref: Ref) -> Ref:
        while ref.root in homes:
            home = homes[ref.root]
            ref = Ref(home.root, home.offset + ref.offset, ref.strides)
        return ref

    code = [
        step._replace(out=moved(step.out), args=tuple(map(moved, step.args)))
        for index, step in enumerate(program.code)
        if index not in copies
    ]
    return replace(program, code=code, outputs=list(map(moved, program.outputs)))


class _Uses:
    """Which instructions write and read each value."""

    def __init__(self, program: Instructions) -> None:
        self.program = program
        self.writes: dict[int, list[int]] = {}
        self.first_read: dict[int, int] = {}
        self.assembled: dict[int, bool] = {}
        for index, step in enumerate(program.code):
            self.writes.setdefault(step.out.root, []).append(index)
            for ref in step.args:
                self.first_read.setdefault(ref.root, index)

    def is_part(self, index: int, step: Instruction) -> bool:
        """Whether a copy is of a whole, complete value, in its order in memory."""
        (source,) = step.args
        writes = self.writes.get(source.root)  # none for inputs and constants
        return (
            not step.into
            and writes is not None
            and writes[-1] < index
            and source.root >= self.program.inputs
            and source.root not in self.program.truths
            and self.program.sizes[source.root] == math.prod(step.domain)
            and in_order(source.strides, step.domain)
        )

    def is_assembled(self, root: int) -> bool:
        """Whether a value is concatenated from parts before it is read."""
        if root not in self.assembled:
            self.assembled[root] = self._is_assembled(root)
        return self.assembled[root]

    def _is_assembled(self, root: int) -> bool:
        writes = self.writes[root]
        steps = [self.program.code[index] for index in writes]
        if self.first_read.get(root, writes[-1]) < writes[-1]:
            return False
        if any(step.name != COPY for step in steps):
            return False
        if not all(in_order(step.out.strides, step.domain) for step in steps):
            return False
        parts = sorted((step.out.offset, math.prod(step.domain)) for step in steps)
        return all(start + size <= following for (start, size), (following, _) in pairwise(parts))

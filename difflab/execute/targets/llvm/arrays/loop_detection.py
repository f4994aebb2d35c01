"""Transformations of a sequence of instructions: repeated ones as loops, and fewer copies.

A sequence of instructions is one loop if it consists of equal consecutive pieces, and the offset of
each operand changes by the same stride from piece to piece: along an input, or along the results of
a loop. The first pieces read values from outside and are peeled off the loop: one piece if a step
reads the step before it, k pieces if it reads the k steps before it.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True)
class ValuePositions:
    """The position at which each value is defined, if an instruction defines it.

    Attributes
    ----------
    ordinals : array of int
        For each value how many are defined before it; -1 if no instruction defines it.
    where : (3, values) array of int
        The segments, indices and pieces, in the order of the definitions.
    """

    ordinals: NDArray[np.int64]
    where: NDArray[np.int64]

    def __contains__(self, root: int) -> bool:
        return root < len(self.ordinals) and bool(self.ordinals[root] >= 0)

    def __getitem__(self, root: int) -> ValuePosition:
        return ValuePosition(*self.where[:, self.ordinals[root]].tolist())


@dataclass
class Segments:
    """Instructions cut into segments.

    Attributes
    ----------
    segments : list of Segment
        All instructions, in order.
    places : ValuePositions
        The position at which each value is defined.
    sizes : list of list of int
        For each segment the sizes of the values of a piece.
    """

    segments: list[Segment]
    places: ValuePositions
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
    keys = np.asarray(sums)
    order = np.argsort(keys, kind="stable")
    again = keys[order[1:]] == keys[order[:-1]]
    places = order[1:][again]
    apart = (places - order[:-1][again])[np.argsort(places)]
    by_length = np.argsort(apart, kind="stable")
    begin = np.flatnonzero(np.diff(apart[by_length], prepend=0))
    first, counts = by_length[begin], np.diff(begin, append=len(apart))
    likely = apart[first[np.lexsort((first, -counts))]][:_PERIODS].tolist()
    yield from dict.fromkeys([*likely, 1])


class _Segmenter:
    """Cuts instructions, in order."""

    def __init__(self, program: Instructions) -> None:
        self.program = program
        self.code = program.code
        ends, integers = np.array(self.code.ends), _narrowed(np.array(self.code.integers))
        arity = np.diff(ends) // 2
        # The operands' values, where they begin in them, and where the result begins.
        self.slots = int(arity.max(initial=1)) - 1
        self.width = 2 * self.slots + 1
        slots = np.arange(self.slots + 1)
        present = slots < arity[:, None]
        first = _narrowed(np.where(present, ends[:-1, None] + 2 * slots, 0))
        roots = np.where(present, integers[first], -1)
        offsets = np.where(present, integers[first + 1], 0)
        out = roots[:, 0]
        size = 1 + max([int(roots.max(initial=-1)), *program.known, *program.sizes])
        written = np.full(size, -1)
        written[out[::-1]] = np.arange(len(out))[::-1]  # the first instruction that writes it
        new = written[out] == np.arange(len(out))
        # How many values are made before each instruction.
        self.made = np.concatenate([[0], np.cumsum(new)])
        self.roots = out[new]
        self.ordinals = np.full(size, -1, integers.dtype)
        self.ordinals[self.roots] = np.arange(len(self.roots))
        known = np.full(size, -1, integers.dtype)
        known[list(program.known)] = list(program.known.values())
        constant = present & (known[roots] >= 0)
        self.own = np.zeros((len(out), self.width), dtype=bool)
        self.own[:, : self.slots] = (present & ~constant & (roots >= program.inputs))[:, 1:]
        self.numbers = np.concatenate(
            [
                np.where(self.own[:, : self.slots], self.ordinals[roots[:, 1:]], 0),
                (offsets + np.where(constant, known[roots], 0))[:, 1:],
                offsets[:, :1],
            ],
            axis=1,
        )
        sources = np.where(constant, -1, np.where(roots < program.inputs, roots, -2))[:, 1:]
        back = np.where(new, 0, self.made[:-1] - self.ordinals[out])
        sizes = np.ones(size, dtype=np.int64)
        sizes[list(program.sizes)] = list(program.sizes.values())
        # Each result of a routine has a buffer of its own.
        result = np.where(out < program.inputs, out, -1)
        shared = (np.array(self.code.kinds), new, back, sizes[out], result, *sources.T)
        self.kinds = _joint_kinds(shared)
        total = len(self.roots)
        self.where = np.stack([np.full(total, -1), np.arange(total), np.zeros(total)]).astype(int)

    def result(self, loops: bool) -> Segments:
        """Cut."""
        segments: list[Segment] = []
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
        places = ValuePositions(self.ordinals, self.where)
        return Segments(segments, places, [self._sizes(segment) for segment in segments])

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
        return [self.program.sizes[root] for root in self.roots[first:last].tolist()]

    def _loop(
        self, place: int, stretches: Sequence[tuple[int, int, int]], segment: int
    ) -> Segment | None:
        """Return the loop that begins at an instruction, if one does."""
        for start, stop, period in stretches:
            if not start <= place <= stop - LEAST * period:
                continue
            whole = (stop - place) // period
            few = min(LEAST + MOST_BEFORE - 1, whole)
            begin = self._operands(place, period, range(few), segment)
            for before in range(1, few - LEAST + 2):
                count = _turns(begin, begin, before)
                if count >= LEAST + before - 1:
                    step = max(_BLOCK // period, 1)
                    for start in range(few, whole, step):
                        if count < start:
                            break
                        block = range(start, min(start + step, whole))
                        every = self._operands(place, period, block, segment)
                        count += _turns(begin, every, before, start)
                    return Segment(place, period, count, before)
        return None

    def _operands(self, index: int, period: int, pieces: range, segment: int) -> _Operands:
        """Return the piece whose value each operand of some pieces reads, or its offset.

        The second array states the segment that defines the value, and its index there.
        """
        shape = (len(pieces), period, self.width)
        rows = slice(index + period * pieces.start, index + period * pieces.stop)
        numbers, own = self.numbers[rows].reshape(shape), self.own[rows].reshape(shape)
        first, each = self.made[index], self.made[index + period] - self.made[index]
        inside = own & (numbers >= first)
        known = self.where[:, np.where(own & ~inside, numbers, 0)]
        mine = numbers - first
        turns = mine // max(each, 1)
        where = np.where(inside, segment, np.where(own, known[0], -2))
        which = np.where(inside, mine % max(each, 1), np.where(own, known[1], 0))
        moves = np.where(inside, turns, np.where(own, known[2], numbers))
        return moves, np.stack([where, which], axis=-1)


_Operands = tuple[NDArray[np.int64], NDArray[np.int64]]
_BLOCK = 65_536
"""Instructions whose operands are compared at a time."""


def _turns(begin: _Operands, pieces: _Operands, before: int, first: int = 0) -> int:
    """Return how many pieces, from a first one on, are iterations of the loop that begins so.

    The pieces before the loop, `before` of them, are counted where they are among them.
    """
    moves, sources = begin
    step = moves[before + 1] - moves[before]
    numbers = np.arange(first, first + len(pieces[0]))
    even = pieces[0] == moves[before] + step * (numbers - before)[:, None, None]
    fits = (even & (pieces[1] == sources[before]).all(axis=-1)).all(axis=(1, 2))
    broken = np.flatnonzero(~(fits | (numbers < before)))
    return int(broken[0]) if len(broken) else len(numbers)


def _narrowed(integers: NDArray[np.int64]) -> NDArray[Any]:
    """Return integers of half the size, if they fit: those of a million instructions are many."""
    return integers.astype(np.int32) if integers.max(initial=0) < 1 << 31 else integers


def _joint_kinds(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return integers that are equal where all columns are."""
    kinds, count = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if count * (high - low + 1) >= 1 << 62:
            distinct, kinds = np.unique(kinds, return_inverse=True)
            count = len(distinct)
        kinds = kinds * (high - low + 1) + (column - low)
        count *= high - low + 1
    return kinds


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

    shorter = Instructions(program.inputs)
    for index, step in enumerate(program.code):
        if index not in copies:
            args = tuple(map(moved, step.args))
            shorter.code.append(step._replace(out=moved(step.out), args=args))
    return replace(program, code=shorter.code, outputs=list(map(moved, program.outputs)))


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

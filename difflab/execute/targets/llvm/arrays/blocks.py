"""Loop nests of sums and products of arrays, whose results stay in registers while they add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from difflab.execute.targets.llvm.functions import SPELLINGS, types
from difflab.lower.nests import COPY, Instruction

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


class JoinedNest(ABC):
    """Base class of loop nests of one instruction that computes reductions.

    Parameters
    ----------
    routine : Routine
        The routine to which code is appended.
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
        """Write the nest, given pointers to the result and the operands."""

    def moved(self, pointers: Sequence[str], count: str, axis: int) -> list[str]:
        """Return pointers advanced by a number of points along an axis."""
        return [
            self.routine.moved(pointer, count, strides[axis]) if count != "0" else pointer
            for pointer, strides in zip(pointers, self.strides, strict=True)
        ]


_ROWS = 4
_REGISTERS = 24  # of 32 that hold results, where vectors are widest; half of them elsewhere
TERMS = 128
"""Terms that all blocks add before any adds more: operands stay in the cache between blocks."""
Piece = tuple[int, int]


class BlockedNest(JoinedNest):
    """Writes blocks of results, which stay in registers while their terms are added up.

    Parameters
    ----------
    routine, step, domain, strides, inner
        As in `JoinedNest`.
    scale : str, optional
        A factor of the sums, if the values they are added to are not scaled.
    """

    def __init__(
        self,
        routine: Routine,
        step: Instruction,
        domain: Sequence[int],
        strides: Sequence[Sequence[int]],
        inner: int,
        scale: str | None = None,
    ) -> None:
        super().__init__(routine, step, domain, strides, inner)
        self.scale = scale

    @cached_property
    def along(self) -> int:
        """The last reduction axis; -1 for none."""
        return max((axis for axis in self._axes if self.strides[0][axis] == 0), default=-1)

    @cached_property
    def row(self) -> int:
        """The axis of the rows of a block; -1 for none."""
        return max((axis for axis in self._axes if self.strides[0][axis] != 0), default=-1)

    @cached_property
    def outer(self) -> list[int]:
        """The axes of the loops around the blocks."""
        return [axis for axis in self._axes if axis not in (self.along, self.row)]

    @cached_property
    def columns(self) -> int:
        """The most columns of a block."""
        width = self.routine.host.width
        return max(_REGISTERS * width // 8 // _ROWS, 1) * width

    @cached_property
    def _axes(self) -> list[int]:
        return [axis for axis in range(len(self.domain)) if axis != self.inner]

    @property
    def fits(self) -> bool:
        """Whether the results are contiguous along the vectors, and are reductions."""
        return bool(self.step.into) and self.along >= 0 and self.strides[0][self.inner] == 1

    def write(self, pointers: Sequence[str]) -> None:
        """Write the loops around the blocks, given pointers to the result and the operands."""
        self._outer(self.outer, list(pointers))

    def _outer(self, axes: list[int], pointers: list[str]) -> None:
        if not axes:
            self._parts(pointers)
            return
        axis, *rest = axes
        for counter in self.routine.loop(0, self.domain[axis], 1):
            self._outer(rest, self.moved(pointers, counter, axis))

    def _parts(self, pointers: list[str]) -> None:
        """Write the blocks for successive groups of terms, in order."""
        terms = self.domain[self.along]
        again = self.row >= 0 and self.domain[self.row] > _ROWS  # operands are read by many blocks
        whole = terms // TERMS * TERMS if again and terms > TERMS else 0
        if whole:
            for counter in self.routine.loop(0, whole, TERMS):
                self._rows(self.moved(pointers, counter, self.along), TERMS)
        if terms > whole:
            left = self.moved(pointers, str(whole), self.along) if whole else pointers
            self._rows(left, terms - whole)

    def _rows(self, pointers: list[str], terms: int) -> None:
        """Write blocks of rows, then the remaining rows."""
        size = self.domain[self.row] if self.row >= 0 else 1
        whole = size // _ROWS * _ROWS
        if whole:
            for counter in self.routine.loop(0, whole, _ROWS):
                self._columns(self.moved(pointers, counter, self.row), _ROWS, terms)
        if size > whole:
            left = self.moved(pointers, str(whole), self.row) if whole else pointers
            self._columns(left, size - whole, terms)

    def _columns(self, pointers: list[str], rows: int, terms: int) -> None:
        """Write blocks of adjacent vectors, then the remaining columns."""
        width, size = self.routine.host.width, self.domain[self.inner]
        block = self.columns
        most = block // width
        whole = size // block * block
        if whole:
            full = [(k * width, width) for k in range(most)]
            for counter in self.routine.loop(0, whole, block):
                self._block(self.moved(pointers, counter, self.inner), rows, full, terms)
        rest = list(pieces(size - whole, width))
        if rest:
            left = self.moved(pointers, str(whole), self.inner) if whole else pointers
            for start in range(0, len(rest), most):
                self._block(left, rows, rest[start : start + most], terms)

    # --- one block --------------------------------------------------------------------------

    def _block(self, pointers: list[str], rows: int, parts: Sequence[Piece], terms: int) -> None:
        """Write a block: its results are loaded, accumulated over some terms, and stored."""
        routine = self.routine
        cells = [(row, piece) for row in range(rows) for piece in parts]
        outputs = [self._at(pointers[0], 0, row, start) for row, (start, _) in cells]
        before = [
            routine.load(out, width) for out, (_, (_, width)) in zip(outputs, cells, strict=True)
        ]
        first = before if self.scale is None else ["zeroinitializer"] * len(cells)
        kinds = [types(width)["v"] for _, (_, width) in cells]
        with routine.carrying_loop(0, terms, 1, first, kinds) as (counter, names, after):
            moved = self.moved(pointers, counter, self.along)
            loaded: dict[object, str] = {}
            for (row, piece), name in zip(cells, names, strict=True):
                operands = [
                    self._operand(loaded, moved[slot], slot, row, piece)
                    for slot in range(1, len(self.strides))
                ]
                after.append(self._joined(name, operands, piece[1]))
        if self.scale is not None:
            scales = {width: routine.spread(self.scale, width) for _, width in parts}
            after = [
                routine.with_product(there, [total, scales[width]], width)
                for there, total, (_, (_, width)) in zip(before, after, cells, strict=True)
            ]
        for out, (_, (_, width)), result in zip(outputs, cells, after, strict=True):
            routine.store(result, out, width)

    def _at(self, pointer: str, slot: int, row: int, start: int) -> str:
        strides = self.strides[slot]
        offset = start * strides[self.inner] + (row * strides[self.row] if self.row >= 0 else 0)
        return self.routine.moved(pointer, offset)

    def _operand(
        self, loaded: dict[object, str], pointer: str, slot: int, row: int, piece: Piece
    ) -> str:
        """Return the vector of an operand's elements, which is loaded once."""
        start, width = piece
        strides = self.strides[slot]
        along, across = strides[self.inner], strides[self.row] if self.row >= 0 else 0
        key = slot, row if across else 0, start if along else 0, width
        if key not in loaded:
            element = self._at(pointer, slot, row, start)
            loaded[key] = self.routine.vector(element, along, width)
        return loaded[key]

    def _joined(self, there: str, terms: Sequence[str], width: int) -> str:
        """Return a result combined with one more term."""
        routine, kinds = self.routine, types(width)
        if (self.step.name, self.step.into) == ("multiply", "add"):
            return routine.with_product(there, terms, width)
        term = terms[0]
        if self.step.name != COPY:
            term = routine.name()
            routine.add(SPELLINGS[self.step.name].template.format(*terms, r=term, **kinds))
        return routine.joined(self.step.into, there, term, width)


def pieces(size: int, width: int) -> Iterator[Piece]:
    """Yield ``(start, width)`` of vectors that cover `size` elements without overlap."""
    start = 0
    while start < size:
        while width > size - start:
            width //= 2
        yield start, width
        start += width


# --- products of contiguous vectors --------------------------------------------------------------

_SUMS = 8
"""Results that are summed together, so that their additions overlap."""


class DotNest(JoinedNest):
    """Writes a sum of products, vectors of terms at a time: a matrix times a vector."""

    @property
    def along(self) -> int:
        """The axis that is summed: of two, the other one."""
        return 1 - self.inner

    @property
    def fits(self) -> bool:
        """Whether the reduction is over many contiguous terms, so that it can be vectorized.

        Other products reuse an operand for several results, and are written in blocks.
        """
        step = self.step
        if (step.name, step.into) != ("multiply", "add") or len(self.domain) != 2:
            return False
        if [own[self.along] for own in self.strides] != [0, 1, 1]:
            return False
        apart = any(own[self.inner] not in (0, 1) for own in self.strides[1:])
        return apart and self.domain[self.along] >= 2 * self.routine.host.width

    def write(self, pointers: Sequence[str]) -> None:
        """Write blocks of rows, and the remaining rows, given pointers to the operands."""
        size = self.domain[self.inner]
        whole = size // _SUMS * _SUMS
        if whole:
            for counter in self.routine.loop(0, whole, _SUMS):
                self._sums(self.moved(pointers, counter, self.inner), _SUMS)
        if size > whole:
            self._sums(self.moved(pointers, str(whole), self.inner), size - whole)

    def _sums(self, pointers: list[str], rows: int) -> None:
        """Write the sums of rows: vector accumulators, their reduction, the remaining terms."""
        routine, width = self.routine, self.routine.host.width
        size = self.domain[self.along]
        whole = size // width * width
        out, *operands = [
            [routine.moved(pointer, row, own[self.inner]) for row in range(rows)]
            for pointer, own in zip(pointers, self.strides, strict=True)
        ]
        zeros, kinds = ["zeroinitializer"] * rows, [types(width)["v"]] * rows
        with routine.carrying_loop(0, whole, width, zeros, kinds) as (counter, sums, after):
            after += self._added(sums, operands, counter, width)
        totals = [routine.folded("add", after[row], width) for row in range(rows)]
        for index in range(whole, size):
            totals = self._added(totals, operands, str(index), 1)
        for pointer, total in zip(out, totals, strict=True):
            routine.store(routine.joined("add", routine.load(pointer), total, 1), pointer)

    def _added(
        self, sums: Sequence[str], operands: Sequence[Sequence[str]], start: str, width: int
    ) -> list[str]:
        """Return sums with one more vector of terms each."""
        routine = self.routine
        loaded: dict[str, str] = {}
        totals = []
        for sum_, *pair in zip(sums, *operands, strict=True):
            for pointer in pair:
                if pointer not in loaded:
                    loaded[pointer] = routine.load(routine.moved(pointer, start), width)
            terms = [loaded[pointer] for pointer in pair]
            totals.append(routine.with_product(sum_, terms, width))
        return totals

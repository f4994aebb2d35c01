"""Products of arrays whose operands lie side by side along the axis that is summed."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.execute.targets.llvm.arrays.blocks import JoinedNest
from difflab.execute.targets.llvm.functions import types

_ROWS = 8
"""Results that are summed together, so that their additions overlap."""


class DotNest(JoinedNest):
    """Writes a sum of products, vectors of terms at a time: a matrix times a vector."""

    @property
    def along(self) -> int:
        """The axis that is summed: of two, the other one."""
        return 1 - self.inner

    @property
    def fits(self) -> bool:
        """Whether a vector results from terms that lie side by side, and are many.

        Other products use an operand again for several results, and are written in blocks.
        """
        step = self.step
        if (step.name, step.into) != ("multiply", "add") or len(self.domain) != 2:
            return False
        if [own[self.along] for own in self.strides] != [0, 1, 1]:
            return False
        apart = any(own[self.inner] not in (0, 1) for own in self.strides[1:])
        return apart and self.domain[self.along] >= 2 * self.routine.host.width

    def write(self, pointers: Sequence[str]) -> None:
        """Write blocks of rows, and the rows that are left, given where the operands begin."""
        size = self.domain[self.inner]
        whole = size // _ROWS * _ROWS
        if whole:
            for counter in self.routine.loop(0, whole, _ROWS):
                self._sums(self.moved(pointers, counter, self.inner), _ROWS)
        if size > whole:
            self._sums(self.moved(pointers, str(whole), self.inner), size - whole)

    def _sums(self, pointers: list[str], rows: int) -> None:
        """Write the sums of some rows: vectors of terms, then their sum, then what is left."""
        routine, width = self.routine, self.routine.host.width
        size = self.domain[self.along]
        whole = size // width * width
        out, *operands = [
            [routine.moved(pointer, row, own[self.inner]) for row in range(rows)]
            for pointer, own in zip(pointers, self.strides, strict=True)
        ]
        loop = routine.loop(0, whole, width)
        counter = next(loop)
        number = counter.removeprefix("%i")
        sums = [routine.name() for _ in range(rows)]
        patched = len(routine.lines)
        routine.lines += [""] * rows
        after = self._added(sums, operands, counter, width)
        for row in range(rows):
            ends = f"[zeroinitializer, %in{number}], [{after[row]}, %end{number}]"
            routine.lines[patched + row] = f"{sums[row]} = phi {types(width)['v']} {ends}"
        next(loop, None)
        totals = [routine.folded("add", after[row], width) for row in range(rows)]
        for place in range(whole, size):
            totals = self._added(totals, operands, str(place), 1)
        for pointer, total in zip(out, totals, strict=True):
            routine.store(routine.joined("add", routine.load(pointer), total, 1), pointer)

    def _added(
        self, sums: Sequence[str], operands: Sequence[Sequence[str]], start: str, width: int
    ) -> list[str]:
        """Return sums with one more vector of terms each."""
        routine = self.routine
        loaded: dict[str, str] = {}
        found = []
        for sum_, *pair in zip(sums, *operands, strict=True):
            for pointer in pair:
                if pointer not in loaded:
                    loaded[pointer] = routine.load(routine.moved(pointer, start), width)
            terms = [loaded[pointer] for pointer in pair]
            found.append(routine.with_product(sum_, terms, width))
        return found

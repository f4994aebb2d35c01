"""Large matrix products: panels of an operand are packed into a buffer that fits the cache.

Many processors take some hundred cycles to multiply a subnormal number, and a product uses each
element of a panel for every row. A panel with subnormal numbers is therefore scaled by a power of
two, if that is exact: nothing can overflow. Its sums are scaled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from difflab.execute.targets.llvm.arrays.blocks import TERMS, BlockedNest, pieces
from difflab.execute.targets.llvm.functions import constant, types

_LEAST_ROWS = 16
_LEAST_TERMS = 16
_LEAST_PANELS = 2
"""Smaller products are written without copies."""
_SCALE = 64
"""The exponent of the factor: the least subnormal number times 2^52 is normal."""
_BITS = (1 << 63) - 1  # of the magnitude of a double
_TINY = (1 << 52) - 1  # the magnitude of the largest subnormal number
_LARGE = (1023 + 400) << 52
"""The magnitude of 2^400: smaller factors of scaled products, and their sums, do not overflow."""


class PanelNest(BlockedNest):
    """Writes a product of two operands, of which one has the rows and one the columns."""

    @cached_property
    def _slots(self) -> tuple[int, int]:
        """Return the operand with the rows and that with the columns; zeros where there is none."""
        slots = [
            [slot for slot in (1, 2) if self.strides[slot][own] and not self.strides[slot][other]]
            for own, other in ((self.row, self.inner), (self.inner, self.row))
        ]
        return (slots[0][0], slots[1][0]) if all(slots) else (0, 0)

    @property
    def fits(self) -> bool:
        """Whether it is a product large enough for packing a panel to pay off."""
        if (self.step.name, self.step.into) != ("multiply", "add"):
            return False
        return (
            super().fits
            and self.row >= 0
            and self.domain[self.row] >= _LEAST_ROWS
            and self.domain[self.along] >= _LEAST_TERMS
            and self.domain[self.inner] >= _LEAST_PANELS * self.columns
            and all(self._slots)
        )

    def _rows(self, pointers: list[str], terms: int) -> None:
        """Write the products of some terms, one panel of columns after the other."""
        bounded = self._bounded(pointers[self._slots[0]], terms)
        size = self.domain[self.inner]
        whole = size // self.columns * self.columns
        for counter in self.routine.loop(0, whole, self.columns):
            self._panel(self.moved(pointers, counter, self.inner), terms, self.columns, bounded)
        if size > whole:
            left = self.moved(pointers, str(whole), self.inner)
            self._panel(left, terms, size - whole, bounded)

    def _panel(self, pointers: list[str], terms: int, columns: int, bounded: str) -> None:
        """Copy a panel, and write its products with all rows."""
        routine, (rows, panel) = self.routine, self._slots
        buffer = routine.within(routine.room(TERMS * self.columns), TERMS * self.columns, "a panel")
        self._copied(pointers[panel], buffer, terms, columns)
        scale = self._scaled(buffer, terms * columns, bounded)
        domain = self.domain[self.row], terms, columns
        row, along = self.strides[rows][self.row], self.strides[rows][self.along]
        strides = [[self.strides[0][self.row], 0, 1], [row, along, 0], [0, columns, 1]]
        nest = BlockedNest(routine, self.step, domain, strides, 2, scale)
        nest.write([pointers[0], pointers[rows], buffer])

    def _copied(self, source: str, buffer: str, terms: int, columns: int) -> None:
        """Pack a panel contiguously."""
        routine, (_, panel) = self.routine, self._slots
        along, across = self.strides[panel][self.along], self.strides[panel][self.inner]
        width = routine.host.width
        if terms * columns % width:  # elements behind the last ones are read as well
            behind = routine.moved(buffer, terms * columns // width * width)
            routine.store("zeroinitializer", behind, width)
        for counter in routine.loop(0, terms, 1):
            term = routine.moved(source, counter, along)
            target = routine.moved(buffer, counter, columns)
            for start, lanes in pieces(columns, width):
                vector = routine.vector(routine.moved(term, start, across), across, lanes)
                routine.store(vector, routine.moved(target, start), lanes)

    # --- subnormal numbers ------------------------------------------------------------------

    def _bounded(self, pointer: str, terms: int) -> str:
        """Return whether all elements of the rows are small enough for scaled products."""
        routine, (slot, _) = self.routine, self._slots
        row_stride, stride = self.strides[slot][self.row], self.strides[slot][self.along]
        largest = routine.slot("i64")
        routine.add(f"store i64 0, ptr {largest}")
        for row in routine.loop(0, self.domain[self.row], 1):
            first = routine.moved(pointer, row, row_stride)
            before = routine.assigned(f"load i64, ptr {largest}")
            (magnitude,) = self._extremes(("umax",), [before], first, terms, stride, 1)
            routine.add(f"store i64 {magnitude}, ptr {largest}")
        magnitude = routine.assigned(f"load i64, ptr {largest}")
        return routine.assigned(f"icmp ult i64 {magnitude}, {_LARGE}")

    def _scaled(self, buffer: str, size: int, bounded: str) -> str:
        """Scale a panel that has subnormal numbers; return the factor of its sums."""
        routine = self.routine
        width = routine.host.width
        starts = [_integers(-1, width), _integers(0, width)]
        extremes = self._extremes(("umin", "umax"), starts, buffer, -(-size // width), width, width)
        least, largest = (
            self._reduced(name, number, width)
            for name, number in zip(("umin", "umax"), extremes, strict=True)
        )
        tiny = routine.assigned(f"icmp ult i64 {least}, {_TINY}")
        small = routine.assigned(f"icmp ult i64 {largest}, {_LARGE}")
        exact = routine.assigned(f"and i1 {small}, {bounded}")
        scaled = routine.assigned(f"and i1 {tiny}, {exact}")
        label = routine.label()
        routine.add(f"br i1 {scaled}, label %scale{label}, label %scaled{label}")
        routine.add(f"scale{label}:")
        v, factor = types(width)["v"], constant(2.0**_SCALE, width)
        for counter in routine.loop(0, size, width):
            pointer = routine.moved(buffer, counter)
            number = routine.assigned(f"fmul {v} {routine.load(pointer, width)}, {factor}")
            routine.store(number, pointer, width)
        routine.add(f"br label %scaled{label}")
        routine.add(f"scaled{label}:")
        back, one = constant(2.0**-_SCALE, 1), constant(1.0, 1)
        return routine.assigned(f"select i1 {scaled}, double {back}, double {one}")

    def _extremes(
        self,
        names: Sequence[str],
        starts: Sequence[str],
        pointer: str,
        count: int,
        stride: int,
        width: int,
    ) -> list[str]:
        """Return the extremes of strided elements or vectors, as ordered by `_magnitude`.

        By ``umin`` of the magnitude minus 1, zeros are the largest values.
        """
        routine, kind = self.routine, _kind(width)
        suffix = f"v{width}i64" if width > 1 else "i64"
        kinds = [kind] * len(names)
        with routine.carrying_loop(0, count, 1, starts, kinds) as (counter, before, after):
            value = routine.load(routine.moved(pointer, counter, stride), width)
            magnitude = self._magnitude(value, width)
            for name, there in zip(names, before, strict=True):
                one = magnitude
                if name == "umin":
                    one = routine.assigned(f"sub {kind} {magnitude}, {_integers(1, width)}")
                operands = f"{kind} {there}, {kind} {one}"
                after.append(routine.assigned(f"call {kind} @llvm.{name}.{suffix}({operands})"))
        return after

    def _reduced(self, name: str, number: str, width: int) -> str:
        """Return the extreme of the lanes of a vector."""
        if width == 1:
            return number
        called = f"@llvm.vector.reduce.{name}.v{width}i64"
        return self.routine.assigned(f"call i64 {called}({_kind(width)} {number})")

    def _magnitude(self, number: str, width: int) -> str:
        """Return the bits of floats without the sign bit, which are ordered as the magnitudes."""
        kind = _kind(width)
        bits = self.routine.assigned(f"bitcast {types(width)['v']} {number} to {kind}")
        return self.routine.assigned(f"and {kind} {bits}, {_integers(_BITS, width)}")


def _kind(width: int) -> str:
    """Return the integer type of the bits of `width` floats."""
    return f"<{width} x i64>" if width > 1 else "i64"


def _integers(value: int, width: int) -> str:
    """Return an integer, in each lane of a vector."""
    return f"splat (i64 {value})" if width > 1 else str(value)

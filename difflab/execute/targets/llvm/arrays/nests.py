"""Groups of instructions as loop nests.

The innermost axis of a nest is computed a vector at a time. Its last vector ends with the last
element, and may compute some again: these are not accumulated twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflab.execute.targets.llvm.arrays.blocks import BlockedNest, DotNest, JoinedNest, pieces
from difflab.execute.targets.llvm.arrays.groups import Write
from difflab.execute.targets.llvm.arrays.panels import PanelNest
from difflab.execute.targets.llvm.functions import SPELLINGS, OperationWriter, types
from difflab.lower.nests import (
    COPY,
    GATHER,
    IN_ORDER,
    SCATTER,
    Instruction,
    Ref,
    squeezed,
)

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.routine import Routine


# --- vectors of neighbouring points --------------------------------------------------------------


class PointerOperand(NamedTuple):
    """A pointer that a nest has made for an operand, and its step along the innermost axis.

    Where a table holds the steps, it is a pointer into the table.
    """

    pointer: str
    stride: int
    table: str = ""


def first_written(steps: Sequence[Instruction]) -> dict[int, int]:
    """Return the index of the first instruction of a nest that writes each value.

    Later instructions read the value from registers; those up to it read it from memory.
    """
    made: dict[int, int] = {}
    for index, step in enumerate(steps):
        made.setdefault(step.out.root, index)
    return made


class Vector(OperationWriter):
    """Writes all instructions of a nest for a vector of neighbouring points.

    Parameters
    ----------
    routine : Routine
        The routine to which code is appended.
    steps : sequence of Instruction
        The instructions of the nest.
    operands : mapping of (int, int) to PointerOperand
        The operands in memory, by the index of an instruction and of its operand; 0 is the result.
    start : str
        The first point.
    width : int
        How many points.
    again : int
        How many of them, the first ones, were computed before: nothing is accumulated there.
    carried : dict of int to str
        Values of the vector before, by the index of the instruction, which those of this vector
        replace: of sums in order, and of instructions that write to overlapping elements.
    windows : dict of int to sequence of int
        The instructions that write to overlapping elements, by the last of them.
    """

    def __init__(
        self,
        routine: Routine,
        steps: Sequence[Instruction],
        operands: Mapping[tuple[int, int], PointerOperand],
        start: str,
        width: int,
        again: int,
        carried: dict[int, str],
        windows: Mapping[int, Sequence[int]],
    ) -> None:
        super().__init__(routine.functions, width, routine.lines)
        self.routine = routine
        self.steps = steps
        self.made = first_written(steps)
        self.operands = operands
        self.start = start
        self.again = again
        self.carried = carried
        self.windows = windows
        self.joined = {place: "" for window in windows.values() for place in window}

    def write(self) -> None:
        """Write the instructions."""
        for index, step in enumerate(self.steps):
            read = step.args if step.lookup is None else step.args[:1]
            keys = [self._key(index, slot, ref) for slot, ref in enumerate(read, 1)]
            if step.name == IN_ORDER:
                self._add_in_order(index, step, [self.number(key) for key in keys])
                continue
            if step.name in (COPY, GATHER, SCATTER):
                self.numbers[step.out.root] = self.number(keys[0])
            else:
                self.operation(step.name, keys, step.out.root, truth=step.truth)
            if index in self.joined:
                self.joined[index] = self.number(step.out.root)
                if index in self.windows:
                    self._put_window(self.windows[index])
            elif (index, 0) in self.operands:
                self._put(step, self.operands[index, 0], self.number(step.out.root))

    def _key(self, index: int, slot: int, ref: Ref) -> Any:
        """Return the key of an operand's value, which is loaded once."""
        if self.made.get(ref.root, index) < index:
            return ref.root
        operand = self.operands[index, slot]
        if operand not in self.numbers:
            self.numbers[operand] = self._loaded(*operand)
        return operand

    def _loaded(self, pointer: str, stride: int, table: str) -> str:
        if table:
            return self.routine.gathered(pointer, stride, self._at(table, 1), self.width)
        return self.routine.vector(self._at(pointer, stride), stride, self.width)

    def name(self, key: Any, kind: str) -> str:
        """Return a new name."""
        return self.routine.name()

    def _add_in_order(self, place: int, step: Instruction, terms: Sequence[str]) -> None:
        """Add terms to a sum lane after lane, or to a sum in each lane."""
        if place not in self.carried:
            for term in terms:
                self._put(step, self.operands[place, 0], term)
            return
        for lane in range(self.again, self.width):
            for term in terms:
                one = self.routine.lanes(term, self.width, lane, 1) if self.width > 1 else term
                self.carried[place] = self.routine.joined("add", self.carried[place], one, 1)

    # --- memory -----------------------------------------------------------------------------

    def _at(self, pointer: str, stride: int, lane: int = 0) -> str:
        """Return a pointer to a point's element."""
        if not self.start.startswith("%"):
            return self.routine.moved(pointer, int(self.start) + lane, stride)
        return self.routine.moved(self.routine.moved(pointer, self.start, stride), lane, stride)

    def _put(self, step: Instruction, operand: PointerOperand, number: str) -> None:
        """Store a result, or accumulate it into the stored value."""
        if operand.table:  # of a scatter: one point, as indices may repeat
            position = self.routine.position(self._at(operand.table, 1))
            place = self.routine.moved(operand.pointer, position, operand.stride)
            self._join(step, number, place, 1)
            return
        if not step.into or not self.again:
            self._put_lanes(step, operand, number, 0, self.width)
            return
        for start, width in pieces(self.width - self.again, self.width):
            lane = self.again + start
            part = self.routine.lanes(number, self.width, lane, width)
            self._put_lanes(step, operand, part, lane, width)

    def _put_window(self, window: Sequence[int]) -> None:
        """Store the elements that no later point writes to: sums in the order of the instructions.

        An instruction that writes further ahead wrote to some of them at the points before.
        """
        first = min(self.steps[place].out.offset for place in window)
        new, total = self.width - self.again, ""
        for place in window:
            ahead = self.steps[place].out.offset - first
            term = self.joined[place]
            if ahead or self.again:
                before = self.carried.get(place, term)
                lanes = [self.width - ahead + lane for lane in range(min(ahead, new))]
                lanes += [self.width + self.again + lane for lane in range(new - len(lanes))]
                term = self.routine.shuffled(before, term, self.width, lanes)
            total = self.routine.joined("add", total, term, self.width) if total else term
            if ahead:
                self.carried[place] = self.joined[place]
        (pointer, stride, _) = next(
            self.operands[place, 0] for place in window if self.steps[place].out.offset == first
        )
        for start, width in pieces(new, self.width):
            part = self.routine.lanes(total, self.width, start, width)
            self.routine.store(part, self._at(pointer, stride, self.again + start), width)

    def _put_lanes(
        self, step: Instruction, operand: PointerOperand, number: str, lane: int, width: int
    ) -> None:
        """Store the result at `width` points, the first of which is in a lane."""
        pointer, stride, _ = operand
        if stride == 0 and width > 1:
            if step.into:
                number = self.routine.folded(step.into, number, width)
            else:
                number = self.routine.lanes(number, width, 0, 1)
            width = 1
        if stride in (0, 1) or width == 1:
            self._join(step, number, self._at(pointer, stride, lane), width)
            return
        if stride == 2:
            place = self._at(pointer, stride, lane)
            if step.into:
                there = self.routine.vector(place, stride, width)
                number = self.routine.joined(step.into, there, number, width)
            self.routine.store_every_second(number, place, width)
            return
        for each in range(width):
            one = self.routine.lanes(number, width, each, 1)
            self._join(step, one, self._at(pointer, stride, lane + each), 1)

    def _join(self, step: Instruction, number: str, place: str, width: int) -> None:
        if step.into:
            there = self.routine.load(place, width)
            number = self.routine.joined(step.into, there, number, width)
        self.routine.store(number, place, width)


# --- nests ---------------------------------------------------------------------------------------

STRAIGHT = 2
"""Vectors along an axis that are written one after the other."""
LONG = 24
"""Instructions on vectors above which they are a loop: long code takes long to compile."""


class Nest:
    """Writes the loop nest of a group of instructions."""

    def __init__(
        self,
        routine: Routine,
        steps: Sequence[Instruction],
        later: Sequence[range],
    ) -> None:
        self.routine = routine
        self.steps = steps
        self.later = later
        self.domain = squeezed(steps[0].domain)
        self.made = first_written(steps)
        self.looked = {
            (place, int(step.name == GATHER)): len(squeezed(step.domain[: step.lookup.axis]))
            for place, step in enumerate(steps)
            if step.lookup is not None
        }
        """The axes along which a table says where gathers read, and scatters write."""
        self.axes = self._order()
        self.windows = self._windows()

    def write(self) -> None:
        """Write it."""
        if math.prod(self.domain) == 0:
            return
        pointers: dict[tuple[int, int], str] = {}
        for place, (step, later) in enumerate(zip(self.steps, self.later, strict=True)):
            for slot, ref in enumerate((step.out, *step.args)):
                if self._in_memory(place, slot, ref):
                    turns = self.routine.layout.program.refs(later, slot)
                    domain = step.along(slot)
                    pointers[place, slot] = self.routine.operand(step.name, ref, domain, turns)
        for block in self._blocks():
            if block.fits:
                block.write([pointers[0, slot] for slot in range(1 + len(self.steps[0].args))])
                return
        self._outer(list(self.axes[:-1]), pointers)

    def _blocks(self) -> list[JoinedNest]:
        """Return the candidates for writing a nest of one instruction on several axes in blocks."""
        step = self.steps[0]
        if len(self.steps) > 1 or len(self.domain) < 2 or step.lookup is not None:
            return []
        if step.name == IN_ORDER or (step.name != COPY and not _plain(step)):
            return []
        strides = [ref.squeezed(step.domain).strides for ref in (step.out, *step.args)]
        how = self.routine, step, self.domain, strides, self.axes[-1]
        return [DotNest(*how), PanelNest(*how), BlockedNest(*how)]

    def _in_memory(self, place: int, slot: int, ref: Ref) -> bool:
        """Whether an operand is read from memory, or a result written there."""
        if slot == 0:
            return bool(self.steps[place].into) or self.routine.layout.is_kept(ref.root)
        return self.made.get(ref.root, place) >= place

    def _order(self) -> tuple[int, ...]:
        """Return the axes in loop order, with the one that is most often contiguous innermost.

        Those of a scatter stay in their order.
        """
        axes = range(len(self.domain))
        if self.steps[0].name == SCATTER:
            return tuple(axes)

        def cost(axis: int) -> tuple[int, int]:
            apart = 0
            for place, step in enumerate(self.steps):
                for slot, ref in enumerate((step.out, *step.args)):
                    stride = ref.squeezed(step.domain).strides[axis]
                    looked = self.looked.get((place, slot)) == axis
                    apart += stride not in (0, 1) or looked
                    apart += 2 * (slot == 0 and stride == 0)
            return apart, -axis

        inner = min(axes, key=cost, default=-1)
        return (*[axis for axis in axes if axis != inner], *([inner] if axes else []))

    def _outer(self, axes: list[int], pointers: dict[tuple[int, int], str]) -> None:
        """Write the loops around the innermost axis."""
        if not axes:
            self._inner(pointers)
            return
        axis, *rest = axes
        routine = self.routine
        for counter in routine.loop(0, self.domain[axis], 1):
            moved: dict[tuple[int, int], str] = {}
            steps: dict[int, str] = {}
            for (index, slot), pointer in pointers.items():
                step = self.steps[index]
                stride = (step.out, *step.args)[slot].squeezed(step.domain).strides[axis]
                if self.looked.get((index, slot)) == axis:
                    position = routine.position(routine.moved(pointers[index, 2], counter))
                    moved[index, slot] = routine.moved(pointer, position, stride)
                    continue
                if stride and stride not in steps:
                    steps[stride] = routine.assigned(f"mul i64 {counter}, {stride}")
                moved[index, slot] = routine.moved(pointer, steps[stride]) if stride else pointer
            self._outer(rest, moved)

    def _inner(self, pointers: dict[tuple[int, int], str]) -> None:
        """Write the innermost axis, a vector at a time."""
        size = self.domain[self.axes[-1]] if self.axes else 1
        scattered = self.looked.get((0, 0)) in self.axes[-1:]
        width = 1 if scattered else min(self.routine.host.width, 1 << (size.bit_length() - 1))
        whole = size // width
        operands = {
            key: PointerOperand(pointer, self._inner_stride(*key), self._table(*key, pointers))
            for key, pointer in pointers.items()
        }
        sums = [
            place
            for place, step in enumerate(self.steps)
            if step.name == IN_ORDER and operands[place, 0].stride == 0
        ]
        carried = {place: self.routine.load(pointers[place, 0]) for place in sums}
        for window in self.windows.values():
            carried |= self._before(window, pointers, width)
        kinds = [types(1 if place in sums else width)["v"] for place in carried]
        done, last = 0, whole * width
        if whole > STRAIGHT or (whole > 1 and whole * len(self.steps) > LONG):
            loop = self.routine.carrying_loop(0, last, width, [*carried.values()], kinds)
            with loop as (counter, names, after):
                inside = dict(zip(carried, names, strict=True))
                self._vector(operands, counter, width, inside)
                after += inside.values()
            carried, done = inside, last
        while done + width <= size:
            self._vector(operands, str(done), width, carried)
            done += width
        if done < size:
            again = done - (size - width)
            self._vector(operands, str(size - width), width, carried, again)
        for place in sums:
            self.routine.store(carried.pop(place), pointers[place, 0])
        self._behind(carried, operands, size, width)

    def _windows(self) -> dict[int, list[int]]:
        """Return the instructions that write to overlapping elements, by the last of them."""
        windows: list[list[int]] = []
        for place, step in enumerate(self.steps):
            for window in windows if step.into else ():
                first = self.steps[window[0]]
                same = first.out.root == step.out.root
                if same and Write.of(first).reached.meets(Write.of(step).reached):
                    window.append(place)
                    break
            else:
                windows.append([place])
        return {window[-1]: window for window in windows if len(window) > 1}

    def _before(
        self, window: Sequence[int], pointers: Mapping[tuple[int, int], str], width: int
    ) -> dict[int, str]:
        """Return what instructions that write ahead wrote before: the elements that are there.

        The first one stores; -0 is added for the others, which changes nothing.
        """
        offsets = {place: self.steps[place].out.offset for place in window}
        first = min(offsets, key=offsets.__getitem__)
        values: dict[int, str] = {}
        for place, offset in offsets.items():
            ahead = offset - offsets[first]
            if ahead and place != window[0]:
                values[place] = self.routine.spread("-0.0", width)
            elif ahead:
                there = [self.routine.moved(pointers[first, 0], lane) for lane in range(ahead)]
                lanes = ["-0.0"] * (width - ahead) + list(map(self.routine.load, there))
                values[place] = self.routine.together(lanes)
        return values

    def _behind(
        self,
        carried: Mapping[int, str],
        operands: Mapping[tuple[int, int], PointerOperand],
        size: int,
        width: int,
    ) -> None:
        """Write the last points of instructions that write ahead of others."""
        for window in self.windows.values():
            first = min(self.steps[place].out.offset for place in window)
            for place in window:
                step, (pointer, stride, _) = self.steps[place], operands[place, 0]
                for lane in range(width - step.out.offset + first, width):
                    number = self.routine.lanes(carried[place], width, lane, 1)
                    at = self.routine.moved(pointer, size - width + lane, stride)
                    if step.into:
                        number = self.routine.joined(step.into, self.routine.load(at), number, 1)
                    self.routine.store(number, at)

    def _table(self, index: int, slot: int, pointers: dict[tuple[int, int], str]) -> str:
        """Return a pointer to the table of an operand's steps along the innermost axis, if any."""
        looked = self.looked.get((index, slot)) in self.axes[-1:]
        return pointers[index, 2] if looked else ""

    def _inner_stride(self, index: int, slot: int) -> int:
        step = self.steps[index]
        if not self.axes:
            return 0
        return (step.out, *step.args)[slot].squeezed(step.domain).strides[self.axes[-1]]

    def _vector(
        self,
        operands: dict[tuple[int, int], PointerOperand],
        start: str,
        width: int,
        carried: dict[int, str],
        again: int = 0,
    ) -> None:
        Vector(
            self.routine, self.steps, operands, start, width, again, carried, self.windows
        ).write()


def _plain(step: Instruction) -> bool:
    """Whether an operation on floats is a machine instruction rather than a call."""
    spelling = SPELLINGS[step.name]
    called = spelling.function or "{exp}" in spelling.template
    return not (called or spelling.truths or step.truth)

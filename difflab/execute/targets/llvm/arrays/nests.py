"""Groups of instructions as an LLVM module: ``run(x, y, v, n)``.

x is the table of the inputs' addresses, y the constants, v the memory of all values. The
innermost axis of a nest is computed a vector at a time; where nothing is accumulated, its last
vector ends with the last number and may compute some again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from difflab.execute.targets.llvm.arrays.blocks import BlockedNest
from difflab.execute.targets.llvm.arrays.groups import Address, Group, NestLayout, squeezed
from difflab.execute.targets.llvm.arrays.instructions import COPY, Instruction, Ref
from difflab.execute.targets.llvm.arrays.loop_detection import Segment
from difflab.execute.targets.llvm.arrays.vectors import PointerOperand, Vector
from difflab.execute.targets.llvm.functions import Functions, types
from difflab.execute.targets.llvm.libraries import Host
from difflab.execute.targets.llvm.spelling import SPELLINGS

__all__ = ["Module", "Region"]

_STRAIGHT = 4
"""Vectors along an axis that are written one after the other."""


class Region(NamedTuple):
    """The numbers that a pointer may come to, and what uses it."""

    start: str
    size: int
    user: str


class Module:
    """Writes the module.

    Parameters
    ----------
    layout : NestLayout
        What is computed.
    host : Host
        What it is written for.
    checked : bool
        Whether every access is compared with the bounds of its value before it is made. One
        outside of them ends the run, and its number in `accesses`, counted from 1, is left
        behind the inputs' addresses.
    """

    def __init__(self, layout: NestLayout, host: Host, *, checked: bool = False) -> None:
        self.layout = layout
        self.host = host
        self.checked = checked
        self.regions: dict[str, Region] = {}
        self.accesses: list[str] = []
        self.functions = Functions(host)
        self.lines: list[str] = []
        self.operations = 0
        self._names = 0
        self.turn = ""
        self.bases: dict[tuple[str, int], str] = {}

    def text(self) -> str:
        """Return the module."""
        inputs = range(self.layout.program.inputs)
        if self.checked:
            self.add(f"%fault = getelementptr i64, ptr %x, i64 {len(inputs)}")
        for number in inputs:
            self.add(f"%q{number} = getelementptr ptr, ptr %x, i64 {number}")
            self.add(f"%p{number} = load ptr, ptr %q{number}, align 8")
        for number, segment in enumerate(self.layout.cut.segments):
            self._segment(number, segment)
        bits = max(64 * self.host.width, 128)
        return "\n".join(
            [
                "define void @run(ptr noalias %x, ptr noalias %y, ptr noalias %v, i64 %n) #0 {",
                "start:",
                *self.lines,
                "ret void",
                "}",
                *self.functions.texts.values(),
                f'attributes #0 = {{ nounwind "min-legal-vector-width"="{bits}"'
                f' "prefer-vector-width"="{bits}" }}',
            ]
        )

    # --- lines ------------------------------------------------------------------------------

    def add(self, line: str) -> None:
        """Write a line."""
        self.lines.append(line)

    def name(self) -> str:
        """Return a name that no other value has."""
        self._names += 1
        return f"%t{self._names}"

    def assigned(self, text: str) -> str:
        """Write what gives a value, and return its name."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def loop(self, start: int, stop: int, step: int) -> Iterator[str]:
        """Yield the counter of a loop while its body is written."""
        self._names += 1
        number = self._names
        before = f"%in{number}"
        self.add(f"br label {before}")
        self.add(f"in{number}:")
        self.add(f"br label %loop{number}")
        self.add(f"loop{number}:")
        counter = f"%i{number}"
        self.add(f"{counter} = phi i64 [{start}, {before}], [%next{number}, %end{number}]")
        yield counter
        self.add(f"br label %end{number}")
        self.add(f"end{number}:")
        self.add(f"%next{number} = add i64 {counter}, {step}")
        self.add(f"%more{number} = icmp slt i64 %next{number}, {stop}")
        self.add(f"br i1 %more{number}, label %loop{number}, label %out{number}")
        self.add(f"out{number}:")

    def vector(self, pointer: str, stride: int, width: int) -> str:
        """Return the numbers from a place on, evenly spaced."""
        if stride == 1 or width == 1:
            return self.load(pointer, width)
        v, last = types(width)["v"], "poison"
        for lane in range(width if stride else 1):
            number = self.load(self.moved(pointer, lane * stride))
            last = self.assigned(f"insertelement {v} {last}, double {number}, i32 {lane}")
        if stride:
            return last
        zeros = f"<{width} x i32> zeroinitializer"
        return self.assigned(f"shufflevector {v} {last}, {v} poison, {zeros}")

    def joined(self, into: str, there: str, number: str, width: int) -> str:
        """Return numbers joined by a sum or an extreme."""
        name = self.name()
        self.add(SPELLINGS[into].template.format(there, number, r=name, **types(width)))
        return name

    # --- memory -----------------------------------------------------------------------------

    def moved(self, pointer: str, count: int | str, stride: int = 1) -> str:
        """Return a pointer advanced by `count` strides: an integer, or a name that holds one."""
        offset = count if isinstance(count, str) else count * stride
        if stride == 0 or offset == 0:
            return pointer
        if isinstance(count, str) and stride != 1:
            offset = self.assigned(f"mul i64 {count}, {stride}")
        name = self.assigned(f"getelementptr double, ptr {pointer}, i64 {offset}")
        if pointer in self.regions:
            self.regions[name] = self.regions[pointer]
        return name

    def load(self, pointer: str, width: int = 1) -> str:
        """Return the numbers that lie side by side from a place on."""
        self._check(pointer, width)
        return self.assigned(f"load {types(width)['v']}, ptr {pointer}, align 8")

    def store(self, number: str, pointer: str, width: int = 1) -> None:
        """Write numbers side by side from a place on."""
        self._check(pointer, width)
        self.add(f"store {types(width)['v']} {number}, ptr {pointer}, align 8")

    def within(self, pointer: str, region: Region) -> str:
        """Return a pointer that is held to a region wherever it is moved, where that is asked."""
        if not self.checked:
            return pointer
        name = self.assigned(f"getelementptr double, ptr {pointer}, i64 0")
        self.regions[name] = region
        return name

    def _check(self, pointer: str, width: int) -> None:
        """Leave where numbers from a place on are not all in the pointer's region."""
        if not self.checked:
            return
        start, size, user = self.regions[pointer]
        self.accesses.append(user)
        number = len(self.accesses)
        here, there = (self.assigned(f"ptrtoint ptr {name} to i64") for name in (pointer, start))
        offset = self.assigned(f"sub i64 {here}, {there}")
        # Unsigned, so that what lies before the start is too large as well.
        inside = self.assigned(f"icmp ult i64 {offset}, {8 * max(size - width + 1, 0)}")
        self.add(f"br i1 {inside}, label %fine{number}, label %bad{number}")
        self.add(f"bad{number}:")
        self.add(f"store i64 {number}, ptr %fault, align 8")
        self.add("ret void")
        self.add(f"fine{number}:")

    # --- segments ---------------------------------------------------------------------------

    def _segment(self, number: int, segment: Segment) -> None:
        """Write the first piece, and the others as a loop."""
        groups = self.layout.groups[number]
        self._pieces(segment, groups, 0)
        if segment.count == 1:
            return
        for counter in self.loop(1, segment.count, 1):
            self.turn = self.assigned(f"sub i64 {counter}, 1")
            self._pieces(segment, groups, 1)
        self.turn = ""
        self.bases.clear()

    def _pieces(self, segment: Segment, groups: Sequence[Group], turn: int) -> None:
        self.bases.clear()
        code = self.layout.program.code
        first = segment.start + turn * segment.period
        for group in groups:
            steps = [code[first + place] for place in group.steps]
            later: list[Sequence[Instruction]] = [()] * len(steps)
            if turn:
                stop = segment.start + segment.period * segment.count
                later = [code[first + place : stop : segment.period] for place in group.steps]
            self.operations += len(steps)
            _Nest(self, steps, later).write()

    def pointer(self, address: Address) -> str:
        """Return a pointer to a place, in this turn."""
        memory, start, step = address
        base = {"constants": "%y", "values": "%v"}.get(memory) or f"%p{memory.split()[1]}"
        if step:
            key = (memory, step)
            if key not in self.bases:
                moved = self.assigned(f"mul i64 {self.turn}, {step}")
                self.bases[key] = self.assigned(f"getelementptr double, ptr {base}, i64 {moved}")
            base = self.bases[key]
        return self.moved(base, start)


class _Nest:
    """Writes the nest of a group."""

    def __init__(
        self,
        module: Module,
        steps: Sequence[Instruction],
        later: Sequence[Sequence[Instruction]],
    ) -> None:
        self.module = module
        self.steps = steps
        self.later = later
        self.domain = squeezed(steps[0].domain)
        self.made = {step.out.root for step in steps}
        self.axes = self._order()
        self.exact = any(step.into for step in steps)

    def write(self) -> None:
        """Write it."""
        if math.prod(self.domain) == 0:
            return
        pointers: dict[tuple[int, int], str] = {}
        for place, (step, later) in enumerate(zip(self.steps, self.later, strict=True)):
            for slot, ref in enumerate((step.out, *step.args)):
                if self._in_memory(slot, ref, step):
                    turns = [(turn.out, *turn.args)[slot] for turn in later]
                    pointers[place, slot] = self._pointer(step, ref, turns)
        block = self._block()
        if block is not None and block.fits:
            block.write([pointers[0, slot] for slot in range(1 + len(self.steps[0].args))])
            return
        self._outer(list(self.axes[:-1]), pointers)

    def _pointer(self, step: Instruction, ref: Ref, turns: Sequence[Ref]) -> str:
        """Return a pointer to an operand in this turn, all of whose turns lie in its memory."""
        module, layout = self.module, self.module.layout
        address = layout.address(ref, turns)
        layout.check(address, ref, step.domain, max(len(turns), 1))
        pointer = module.pointer(address)
        if not module.checked:
            return pointer
        user = f"{step.name} over {step.domain} at {ref}"
        if address.memory == "constants":  # from turn to turn another constant
            return module.within(pointer, Region("%y", layout.capacity(address.memory), user))
        root = layout.address(Ref(ref.root, 0, ()), [Ref(turn.root, 0, ()) for turn in turns])
        size = layout.program.sizes[ref.root]
        return module.within(pointer, Region(module.pointer(root), size, user))

    def _block(self) -> BlockedNest | None:
        """Return how a nest of one instruction on several axes may be written in blocks."""
        step = self.steps[0]
        if len(self.steps) > 1 or len(self.domain) < 2 or (step.name != COPY and not _plain(step)):
            return None
        strides = [self._strides(ref, step) for ref in (step.out, *step.args)]
        return BlockedNest(self.module, step, self.domain, strides, self.axes[-1])

    def _in_memory(self, slot: int, ref: Ref, step: Instruction) -> bool:
        """Whether an operand is read from memory, or a result written there."""
        layout = self.module.layout
        if slot == 0:
            return bool(step.into) or layout.is_kept(ref.root)
        return ref.root not in self.made

    def _strides(self, ref: Ref, step: Instruction) -> list[int]:
        return [s for s, size in zip(ref.strides, step.domain, strict=True) if size != 1]

    def _order(self) -> tuple[int, ...]:
        """Return the axes, the one whose numbers lie side by side most often innermost."""
        axes = range(len(self.domain))

        def cost(axis: int) -> tuple[int, int]:
            apart = 0
            for step in self.steps:
                for slot, ref in enumerate((step.out, *step.args)):
                    stride = self._strides(ref, step)[axis]
                    apart += stride not in (0, 1)
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
        module = self.module
        for counter in module.loop(0, self.domain[axis], 1):
            moved: dict[tuple[int, int], str] = {}
            steps: dict[int, str] = {}
            for (place, slot), pointer in pointers.items():
                step = self.steps[place]
                stride = self._strides((step.out, *step.args)[slot], step)[axis]
                if stride and stride not in steps:
                    steps[stride] = module.assigned(f"mul i64 {counter}, {stride}")
                moved[place, slot] = module.moved(pointer, steps[stride]) if stride else pointer
            self._outer(rest, moved)

    def _inner(self, pointers: dict[tuple[int, int], str]) -> None:
        """Write the innermost axis, a vector at a time."""
        size = self.domain[self.axes[-1]] if self.axes else 1
        width = min(self.module.host.width, 1 << (size.bit_length() - 1))
        whole = size // width
        operands = {
            key: PointerOperand(pointer, self._inner_stride(*key))
            for key, pointer in pointers.items()
        }
        done = 0
        if whole > _STRAIGHT:
            for counter in self.module.loop(0, whole * width, width):
                self._vector(operands, counter, width)
            done = whole * width
        while done + width <= size:
            self._vector(operands, str(done), width)
            done += width
        if done < size and not self.exact:
            self._vector(operands, str(size - width), width)
            return
        while done < size:
            width = 1 << ((size - done).bit_length() - 1)
            self._vector(operands, str(done), width)
            done += width

    def _inner_stride(self, place: int, slot: int) -> int:
        step = self.steps[place]
        if not self.axes:
            return 0
        return self._strides((step.out, *step.args)[slot], step)[self.axes[-1]]

    def _vector(
        self, operands: dict[tuple[int, int], PointerOperand], start: str, width: int
    ) -> None:
        Vector(self.module, self.steps, operands, start, width).write()


def _plain(step: Instruction) -> bool:
    """Whether an operation is an instruction of the machine on numbers."""
    spelling = SPELLINGS[step.name]
    called = spelling.function or "{exp}" in spelling.template
    return not (called or spelling.truths or step.truth)

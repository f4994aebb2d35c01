"""An LLVM module of groups of instructions, ``run(x, y, v, n)``, and its functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.execute.targets.llvm.arrays.control import INTERRUPTED, ControlWriter
from difflab.execute.targets.llvm.arrays.groups import Address, Group, NestLayout
from difflab.execute.targets.llvm.arrays.loop_detection import Segment
from difflab.execute.targets.llvm.arrays.nests import STRAIGHT, Nest
from difflab.execute.targets.llvm.arrays.recurrences import RecurrenceNest
from difflab.execute.targets.llvm.arrays.subprograms import Subprograms
from difflab.execute.targets.llvm.functions import (
    SPELLINGS,
    Functions,
    function_attributes,
    types,
)
from difflab.execute.targets.llvm.libraries import FOURIER_SYMBOL, Host, MatrixLoop, Transform
from difflab.graph.ir import Shape
from difflab.lower.nests import RECURRENCES, Instruction, Ref, Refs


class Region(NamedTuple):
    """The elements that a pointer may access, and a description of the access."""

    start: str
    size: int
    user: str


class Routine:
    """Emits the body of one function of the module.

    Parameters
    ----------
    module : Module
        The module that contains it.
    layout : NestLayout
        The instructions, and the memory of their values.
    symbol : str
        The function's name.

    Attributes
    ----------
    constants : int
        Where its constants begin among those of the module.
    """

    def __init__(self, module: Module, layout: NestLayout, symbol: str) -> None:
        self.module = module
        self.layout = layout
        self.symbol = symbol
        self.host = module.host
        self.checked = module.checked
        self.functions = module.functions
        self.constants = len(module.constants)
        module.constants += layout.program.constants
        self.regions: dict[str, Region] = {}
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.rooms: dict[int, str] = {}
        self._names = 0
        self.turn = ""
        self.bases: dict[tuple[str, int], str] = {}

    def write(self) -> None:
        """Write the instructions."""
        for number, segment in enumerate(self.layout.cut.segments):
            self._segment(number, segment)

    @property
    def definition(self) -> str:
        """The function, called with a pointer per input."""
        inputs = [f"ptr noalias %p{number}" for number in range(self.layout.program.inputs)]
        parameters = ", ".join([*inputs, "ptr %y", "ptr noalias %v", "ptr noalias %fault"])
        head = f"define internal void @{self.symbol}({parameters}) #0 {{"
        return "\n".join([head, "start:", *self.slots, *self.lines, "ret void", "}"])

    # --- lines ------------------------------------------------------------------------------

    def add(self, line: str) -> None:
        """Write a line."""
        self.lines.append(line)

    def name(self) -> str:
        """Return a name that no other value has."""
        self._names += 1
        return f"%t{self._names}"

    def label(self) -> int:
        """Return a unique suffix for the labels of one branch."""
        self._names += 1
        return self._names

    def slot(self, kind: str) -> str:
        """Return a pointer to memory for one value of a type."""
        name = f"%slot{len(self.slots)}"
        self.slots.append(f"{name} = alloca {kind}")
        return name

    def room(self, size: int) -> str:
        """Return a pointer to a scratch buffer of the given size; equal sizes share one."""
        if size not in self.rooms:
            self.rooms[size] = self.slot(f"[{size} x double], align 64")
        return self.rooms[size]

    def assigned(self, text: str) -> str:
        """Emit the instruction that defines a value, and return its name."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def loop(self, start: int, stop: int | str, step: int) -> Iterator[str]:
        """Yield the counter of a loop while its body is written."""
        number = self.label()
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

    @contextmanager
    def carrying_loop(
        self, start: int, stop: int | str, step: int, first: Sequence[str], kinds: Sequence[str]
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Write a loop that carries values of these types, given those of its first iteration.

        Its body gets the counter, the values' names, and a list to append their new values to;
        these are the results of the loop.
        """
        for counter in self.loop(start, stop, step):
            names, body = [self.name() for _ in first], len(self.lines)
            after: list[str] = []
            yield counter, names, after
            number = counter.removeprefix("%i")
            self.lines[body:body] = [
                f"{name} = phi {kind} [{before}, %in{number}], [{new}, %end{number}]"
                for name, kind, before, new in zip(names, kinds, first, after, strict=True)
            ]

    def vector(self, pointer: str, stride: int, width: int) -> str:
        """Return evenly spaced elements, the first of them at a pointer."""
        if stride == 1 or width == 1:
            return self.load(pointer, width)
        if stride == 2:
            return self._every_second(pointer, width)
        if stride == 0:
            return self.spread(self.load(pointer), width)
        return self.together([self.load(self.moved(pointer, k * stride)) for k in range(width)])

    def together(self, elements: Sequence[str]) -> str:
        """Return a vector of scalars."""
        v, last = types(len(elements))["v"], "poison"
        for lane, number in enumerate(elements):
            last = self.assigned(f"insertelement {v} {last}, double {number}, i32 {lane}")
        return last

    def position(self, table: str) -> str:
        """Load an index from a table."""
        return self.assigned(f"fptosi double {self.load(table)} to i64")

    def gathered(self, pointer: str, stride: int, table: str, width: int) -> str:
        """Return the elements at the indices of a table, in units of `stride` from a pointer."""
        lanes = [self.position(self.moved(table, lane)) for lane in range(width)]
        elements = [self.load(self.moved(pointer, lane, stride)) for lane in lanes]
        return self.together(elements) if width > 1 else elements[0]

    def spread(self, number: str, width: int) -> str:
        """Return a vector with a scalar in each lane."""
        if width == 1:
            return number
        v = types(width)["v"]
        first = self.assigned(f"insertelement {v} poison, double {number}, i32 0")
        zeros = f"<{width} x i32> zeroinitializer"
        return self.assigned(f"shufflevector {v} {first}, {v} poison, {zeros}")

    def lanes(self, vector: str, size: int, first: int, width: int) -> str:
        """Return consecutive lanes of a vector."""
        v = types(size)["v"]
        if width == 1:
            return self.assigned(f"extractelement {v} {vector}, i32 {first}")
        mask = ", ".join(f"i32 {lane}" for lane in range(first, first + width))
        return self.assigned(f"shufflevector {v} {vector}, {v} poison, <{width} x i32> <{mask}>")

    def shuffled(self, left: str, right: str, width: int, lanes: Sequence[int]) -> str:
        """Return lanes of two vectors as one of the same width, whose other lanes are undefined."""
        v = types(width)["v"]
        mask = ", ".join(
            [*(f"i32 {lane}" for lane in lanes), *["i32 poison"] * (width - len(lanes))]
        )
        return self.assigned(f"shufflevector {v} {left}, {v} {right}, <{width} x i32> <{mask}>")

    def _every_second(self, pointer: str, width: int) -> str:
        """Load elements at stride 2, by two overlapping vector loads."""
        v = types(width)["v"]
        low, high = self.load(pointer, width), self.load(self.moved(pointer, width - 1), width)
        lanes = [*range(0, width, 2), *range(width + 1, 2 * width, 2)]
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.assigned(f"shufflevector {v} {low}, {v} {high}, <{width} x i32> <{mask}>")

    def joined(self, into: str, there: str, number: str, width: int) -> str:
        """Return two values combined by a sum or an extreme."""
        name = self.name()
        self.add(SPELLINGS[into].template.format(there, number, r=name, **types(width)))
        return name

    def folded(self, into: str, number: str, width: int) -> str:
        """Return the sum or extreme of a vector's lanes, by pairwise reduction."""
        while width > 2:
            v = types(width)["v"]
            lanes = [f"i32 {lane}" for lane in range(width)]
            kind = f"<{width // 2} x i32>"
            parts = [
                self.assigned(f"shufflevector {v} {number}, {v} poison, {kind} <{', '.join(side)}>")
                for side in (lanes[: width // 2], lanes[width // 2 :])
            ]
            width //= 2
            number = self.joined(into, parts[0], parts[1], width)
        ends = [self.assigned(f"extractelement <2 x double> {number}, i32 {k}") for k in (0, 1)]
        return self.joined(into, ends[0], ends[1], 1)

    def with_product(self, there: str, factors: Sequence[str], width: int) -> str:
        """Add a product to a value, by a fused multiply-add where the machine has one."""
        kinds = types(width)
        v = kinds["v"]
        if "+fma" in self.host.features:
            typed = ", ".join(f"{v} {number}" for number in (*factors, there))
            return self.assigned(f"call {v} @llvm.fma{kinds['w']}({typed})")
        term = self.name()
        self.add(SPELLINGS["multiply"].template.format(*factors, r=term, **kinds))
        return self.joined("add", there, term, width)

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
        """Return contiguous elements at a pointer."""
        self._check(pointer, width)
        return self.assigned(f"load {types(width)['v']}, ptr {pointer}, align 8")

    def store(self, number: str, pointer: str, width: int = 1) -> None:
        """Store contiguous elements at a pointer."""
        self._check(pointer, width)
        self.add(f"store {types(width)['v']} {number}, ptr {pointer}, align 8")

    def store_every_second(self, number: str, pointer: str, width: int) -> None:
        """Store elements at stride 2, by masked stores that keep the elements between them."""
        v, b = types(width)["v"], types(width)["b"]
        name = f"llvm.masked.store.v{width}f64.p0"
        for half in (0, 1):  # the second store begins one early, so that it ends with a number
            target = self.moved(pointer, half * (width - 1))
            self._check(target, width)
            lanes = ["i32 poison"] * width
            for lane in range(width // 2):
                lanes[2 * lane + half] = f"i32 {lane + half * (width // 2)}"
            mask = ", ".join(f"i1 {int(lane % 2 == half)}" for lane in range(width))
            spread = f"shufflevector {v} {number}, {v} poison, <{width} x i32> <{', '.join(lanes)}>"
            shuffled = self.assigned(spread)
            self.add(f"call void @{name}({v} {shuffled}, ptr {target}, i32 8, {b} <{mask}>)")

    def within(self, pointer: str, size: int, user: str, start: str = "") -> str:
        """Return a pointer whose accesses are bounds-checked against a region, in checked code.

        The region has `size` elements, and begins at the pointer if not at `start`.
        """
        if not self.checked:
            return pointer
        name = self.assigned(f"getelementptr double, ptr {pointer}, i64 0")
        self.regions[name] = Region(start or pointer, size, user)
        return name

    def _check(self, pointer: str, width: int) -> None:
        """Exit if an access is out of the bounds of the pointer's region."""
        if not self.checked:
            return
        start, size, user = self.regions[pointer]
        self.module.accesses.append(user)
        number = len(self.module.accesses)
        here, there = (self.assigned(f"ptrtoint ptr {name} to i64") for name in (pointer, start))
        offset = self.assigned(f"sub i64 {here}, {there}")
        # Unsigned, so that offsets before the start are too large as well.
        inside = self.assigned(f"icmp ult i64 {offset}, {8 * max(size - width + 1, 0)}")
        self.leave_if(self.assigned(f"xor i1 {inside}, true"), number)

    def leave_if(self, holds: str, fault: int | None = None) -> None:
        """Exit the run if the condition holds; record the fault if it is a new one."""
        label = self.label()
        self.add(f"br i1 {holds}, label %bad{label}, label %fine{label}")
        self.add(f"bad{label}:")
        if fault is not None:
            self.add(f"store i64 {fault}, ptr %fault, align 8")
        self.add("ret void")
        self.add(f"fine{label}:")

    def call(self, layout: NestLayout, pointers: Sequence[str], memory: str) -> None:
        """Call the routine of a function, and exit if it failed."""
        target = self.module.routine(layout)
        constants = self.moved("%y", target.constants - self.constants)
        arguments = ", ".join(f"ptr {name}" for name in (*pointers, constants, memory, "%fault"))
        self.add(f"call void @{target.symbol}({arguments})")
        if self.checked or layout.may_fail:
            fault = self.assigned("load i64, ptr %fault, align 8")
            self.leave_if(self.assigned(f"icmp ne i64 {fault}, 0"))

    def copied(self, source: str, target: str, size: int) -> None:
        """Copy contiguous elements."""
        width, done = self.host.width, 0
        whole = size // width * width
        if whole > STRAIGHT * width:
            for counter in self.loop(0, whole, width):
                number = self.load(self.moved(source, counter), width)
                self.store(number, self.moved(target, counter), width)
            done = whole
        while done < size:
            width = min(self.host.width, 1 << ((size - done).bit_length() - 1))
            number = self.load(self.moved(source, done), width)
            self.store(number, self.moved(target, done), width)
            done += width

    # --- segments ---------------------------------------------------------------------------

    def _segment(self, number: int, segment: Segment) -> None:
        """Write the peeled pieces, and the others as a loop."""
        groups, before = self.layout.groups[number], segment.before
        for turn in range(before):
            self._pieces(segment, groups, turn)
        if segment.count == before:
            return
        for counter in self.loop(before, segment.count, 1):
            self.turn = self.assigned(f"sub i64 {counter}, {before}")
            self._pieces(segment, groups, before)
        self.turn = ""
        self.bases.clear()

    def _pieces(self, segment: Segment, groups: Sequence[Group], turn: int) -> None:
        self.bases.clear()
        code = self.layout.program.code
        first = segment.start + turn * segment.period
        for group in groups:
            steps = [code[first + index] for index in group.steps]
            later = [range(0)] * len(steps)
            if turn == segment.before:
                stop = segment.start + segment.period * segment.count
                later = [range(first + index, stop, segment.period) for index in group.steps]
            self.module.operations += len(steps)
            if isinstance(steps[0].called, Subprograms):
                ControlWriter(self, steps[0], later[0]).write()
            elif steps[0].called is not None:
                self._by_library(steps[0], later[0])
            elif steps[0].name in RECURRENCES:
                RecurrenceNest(self, steps[0], later[0]).write()
            else:
                Nest(self, steps, later).write()

    def _by_library(self, step: Instruction, later: range) -> None:
        """Call a function of a library."""
        called, (target, *sources) = step.called, self.operands(step, later)
        if isinstance(called, Transform):
            self._transformed(called, sources[0], target)
            return
        assert isinstance(called, MatrixLoop)
        function = self.functions.of_matrices(called)
        self.add(f"call void @{function}({', '.join(f'ptr {at}' for at in (*sources, target))})")

    def _transformed(self, transform: Transform, source: str, target: str) -> None:
        """Call a Fourier transform, and exit with its exception if it raised one."""
        self.functions.declare("i32", FOURIER_SYMBOL, *["i64"] * len(transform), *["ptr"] * 3)
        raised = self.assigned("getelementptr ptr, ptr %fault, i64 1")
        integers = [f"i64 {number}" for number in transform]
        pointers = [f"ptr {name}" for name in (source, target, raised)]
        failed = self.assigned(f"call i32 @{FOURIER_SYMBOL}({', '.join([*integers, *pointers])})")
        self.leave_if(self.assigned(f"icmp ne i32 {failed}, 0"), INTERRUPTED)

    def pointer(self, address: Address) -> str:
        """Return a pointer to an address, in this iteration."""
        memory, start, step = address
        base = {"constants": "%y", "values": "%v"}.get(memory) or f"%p{memory.split()[1]}"
        if step:
            key = (memory, step)
            if key not in self.bases:
                moved = self.assigned(f"mul i64 {self.turn}, {step}")
                self.bases[key] = self.assigned(f"getelementptr double, ptr {base}, i64 {moved}")
            base = self.bases[key]
        return self.moved(base, start)

    def operands(self, step: Instruction, later: range) -> list[str]:
        """Return pointers to the result and the operands of a step; `later` are its iterations."""
        return [
            self.operand(step.name, ref, domain, self.layout.program.refs(later, slot))
            for slot, (ref, domain) in enumerate(step.accesses())
        ]

    def operand(self, name: str, ref: Ref, domain: Shape, later: Refs) -> str:
        """Return a pointer to an operand; in all iterations it stays inside its memory."""
        layout = self.layout
        address = layout.address(ref, later)
        layout.check(address, ref, domain, max(len(later.roots), 1))
        pointer = self.pointer(address)
        if not self.checked:
            return pointer
        user = f"{name} over {domain} at {ref}"
        if address.memory == "constants":  # from iteration to iteration another constant
            return self.within(pointer, layout.capacity(address.memory), user, "%y")
        root = layout.address(Ref(ref.root, 0, ()), Refs(later.roots, 0 * later.offsets))
        size = layout.program.sizes[ref.root]
        return self.within(pointer, size, user, self.pointer(root))


# --- the module ----------------------------------------------------------------------------------


class Module:
    """Writes the module: ``run(x, y, v, n)`` and the routines that its control instructions call.

    x is a table of addresses, y the constants, v the memory of all values.

    Parameters
    ----------
    layout : NestLayout
        The instructions of ``run``, and the memory of their values.
    host : Host
        The processor to compile for.
    checked : bool
        Whether every access is compared with the bounds of its value before it is made. One
        outside of them ends the run, and its number in `accesses`, counted from 1, is left
        behind the inputs' addresses.

    Attributes
    ----------
    constants : list of float
        The constants of all routines.
    operations : int
        How many instructions are written.
    """

    def __init__(self, layout: NestLayout, host: Host, *, checked: bool = False) -> None:
        self.layout = layout
        self.host = host
        self.checked = checked
        self.accesses: list[str] = []
        self.constants: list[float] = []
        self.functions = Functions(host)
        self.operations = 0
        self._routines: dict[NestLayout, Routine] = {}

    def memory(self) -> NDArray[np.float64]:
        """Return memory for the values of a call; in checked code, unwritten elements are nan."""
        size = self.layout.room + 1
        return np.full(size, np.nan) if self.checked else np.zeros(size)

    def text(self) -> str:
        """Return the module; x is the table of the inputs' addresses, and n is unused."""
        main = Routine(self, self.layout, "run")
        main.write()
        return self._with(main, self._addresses(self.layout.program.inputs, 0))

    def batch_text(self) -> str:
        """Return the module for n points, whose layout is that of a routine.

        x is the table of the addresses of the inputs and outputs, and then of their strides.
        """
        pointers = range(self.layout.program.inputs)
        main = Routine(self, NestLayout.empty(), "run")
        for counter in main.loop(0, "%n", 1):
            addresses = [
                main.moved(f"%p{number}", main.assigned(f"mul i64 {counter}, %s{number}"))
                for number in pointers
            ]
            main.call(self.layout, addresses, "%v")
        steps = []
        for number in pointers:
            steps.append(f"%r{number} = getelementptr i64, ptr %x, i64 {len(pointers) + number}")
            steps.append(f"%s{number} = load i64, ptr %r{number}, align 8")
        return self._with(main, [*self._addresses(len(pointers), len(pointers)), *steps])

    def _addresses(self, count: int, others: int) -> list[str]:
        """Return the lines that read `count` addresses; that of the fault follows them all."""
        lines = [f"%fault = getelementptr i64, ptr %x, i64 {count + others}"]
        for number in range(count):
            lines.append(f"%q{number} = getelementptr ptr, ptr %x, i64 {number}")
            lines.append(f"%p{number} = load ptr, ptr %q{number}, align 8")
        return lines

    def _with(self, main: Routine, loads: Sequence[str]) -> str:
        """Return the module with its main function."""
        return "\n".join(
            [
                "define void @run(ptr noalias %x, ptr noalias %y, ptr noalias %v, i64 %n) #0 {",
                "start:",
                *main.slots,
                *loads,
                *main.lines,
                "ret void",
                "}",
                *[routine.definition for routine in self._routines.values()],
                *self.functions.texts.values(),
                function_attributes(max(64 * self.host.width, 128)),
            ]
        )

    def routine(self, layout: NestLayout) -> Routine:
        """Return the routine of a function that a control instruction calls."""
        routine = self._routines.get(layout)
        if routine is None:
            routine = Routine(self, layout, f"routine{len(self._routines)}")
            self._routines[layout] = routine
            routine.write()
        return routine

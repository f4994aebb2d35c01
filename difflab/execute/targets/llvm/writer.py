"""The LLVM module of a program: one function for a block of points, or for one point.

The function is ``run(x, y, v, n)``. For one point, x and y are the flattened inputs and outputs.
For n points, they are tables of pointers, one for each element, and the loop computes one vector
of points per iteration. The last vector ends with the last point and may recompute some points, so
n is at least a vector's width. Too many operations for one function are split into pieces, which
share values through the memory v. For one point, independent calls of a function are one call of a
vector function, which leaves its results in v. For packed points, each input and output is a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from difflab.errors import ConsistencyError
from difflab.execute.lower.ops import BOOL, FLOAT, NumpyProgram, Op
from difflab.execute.targets.llvm.functions import (
    SIZES,
    SPELLINGS,
    Functions,
    OperationWriter,
    constant,
    function_attributes,
    types,
)
from difflab.execute.targets.llvm.libraries import Host
from difflab.lower.records import Records

# --- independent calls of one function, as one call of a vector function -------------------------
# The operations of a window are sorted by the largest number of such calls on a path to them.
# Calls of one function that have this number in common do not depend on one another.

LEAST = 20_000
"""Operations below which calls stay single: the functions of the C library are more accurate than
vector functions, and short code gains little."""
WINDOW = 8_000
"""Operations that are sorted at a time, so that the values between them stay in the cache."""


def _grouped_calls(ops: Collection[Op], functions: Functions, width: int) -> Iterator[list[Op]]:
    """Yield operations in order: groups of up to `width` calls, and groups of one operation."""
    arities = {op.name: len(op.reads) for op in ops} if len(ops) >= LEAST else {}
    names = {
        name
        for name, arity in arities.items()
        if SPELLINGS[name].function and functions.vector(SPELLINGS[name].function, arity, width)
    }
    if not names:
        yield from ([op] for op in ops)
        return
    steps = iter(ops)
    while window := list(islice(steps, WINDOW)):
        yield from _by_level(window, names, width)


def _split(group: Sequence[Op]) -> tuple[Any, list[int]]:
    """Return what the operations of a group share, and their values."""
    form, detail, reads, _, shape, dtype = group[0]
    template = form, detail, shape, dtype, 1 + len(reads)
    return template, [value for op in group for value in (op.number, *op.reads)]


def _joined(template: Any, values: tuple[int, ...]) -> list[Op]:
    form, detail, shape, dtype, size = template
    return [
        Op(form, detail, values[start + 1 : start + size], values[start], shape, dtype)
        for start in range(0, len(values), size)
    ]


def _by_level(ops: Sequence[Op], names: set[str], width: int) -> Iterator[list[Op]]:
    """Yield the operations of a window, with calls of the functions `names` in groups."""
    levels: dict[int, int] = {}
    others: dict[int, list[Op]] = defaultdict(list)
    calls: dict[int, dict[str, list[Op]]] = defaultdict(lambda: defaultdict(list))
    for op in ops:
        level, name = max([levels.get(read, 0) for read in op.reads]), op.name
        if name in names:
            calls[level][name].append(op)
        else:
            others[level].append(op)
        levels[op.number] = level + (name in names)
    for level in range(max(levels.values()) + 1):
        yield from ([op] for op in others[level])
        for same in calls[level].values():
            yield from (same[start : start + width] for start in range(0, len(same), width))


# --- modules -------------------------------------------------------------------------------------

PIECE = 1000
"""Groups of operations in one function: LLVM's compile time grows faster than linearly."""
MOST_PIECES = 32
"""Functions in one module: LLVM's memory for a module is released before the next one."""


class LlvmWriter:
    """Writes a module.

    Parameters
    ----------
    code : NumpyProgram
        The operations.
    host : Host
        The processor to compile for.
    width : int
        1 for one point, else the number of points computed at once.
    truths : sequence of bool
        For each output whether it is stored as a truth value (a byte) instead of a float.

    Attributes
    ----------
    lanes : int
        The number of lanes of a vector.
    groups : sequence of list of Op
        The operations; those of a group are computed together.
    pieces : int
        The functions that they are split into.
    slots : dict of int to int
        Where values are in the memory v.
    memory : int
        The size of v in elements.
    """

    def __init__(self, code: NumpyProgram, host: Host, width: int, truths: Sequence[bool]) -> None:
        self.real = "double" if code.real == FLOAT else "float"
        self.align = SIZES[self.real]
        self.code = code
        self.host = host
        self.width = width
        self.truths = truths
        self.functions = Functions(host, self.real)
        self.lanes = host.width * SIZES["double"] // self.align
        self.slots: dict[int, int] = {}
        self.memory = 0
        self.types = types(width, self.real)
        self.places: dict[int, list[int]] = {}
        for place, value in enumerate(code.outputs):
            self.places.setdefault(value, []).append(place)
        self.groups: Records[list[Op]] = Records(_split, _joined)
        groups: Iterator[list[Op]] = ([op] for op in code.ops)
        if width == 1:
            groups = _grouped_calls(code.ops, self.functions, self.lanes)
        home: dict[int, int] = {}
        for group in groups:
            self._share(group, home, len(self.groups) // PIECE)
            self.groups.append(group)
        self.pieces = max(1, -(-len(self.groups) // PIECE))

    def text(self) -> str:
        """Return the module."""
        if self.pieces == 1:
            head, body = self.piece(0).text()
            return self._module(self._run([*head], body))
        pieces = self._functions(range(self.pieces), "internal ")
        return self._module([*pieces, *self._run([], self._calls())])

    def modules(self) -> Iterator[str]:
        """Yield the module, or that of each part of a large program, the function ``run`` last."""
        if self.pieces <= MOST_PIECES:
            yield self.text()
            return
        for start in range(0, self.pieces, MOST_PIECES):
            part = range(start, min(start + MOST_PIECES, self.pieces))
            yield self._module(self._functions(part))
        declared = [f"declare void @piece{number}({_KINDS})" for number in range(self.pieces)]
        yield self._module([*declared, *self._run([], self._calls())])

    def _functions(self, pieces: Iterable[int], linkage: str = "") -> Iterator[str]:
        """Yield the function of each piece."""
        for number in pieces:
            head, body = self.piece(number).text()
            define = f"define {linkage}void @piece{number}({_PARAMETERS}) #0 {{"
            yield "\n".join([define, *head, *body, "ret void", "}"])

    def _calls(self) -> list[str]:
        return [f"call void @piece{number}({_ARGUMENTS})" for number in range(self.pieces)]

    def _module(self, lines: Iterable[str]) -> str:
        """Return a module with what its functions call."""
        written = list(lines)
        attributes = function_attributes(8 * self.align * self.lanes)
        return "\n".join([*written, *self.functions.texts.values(), attributes])

    def piece(self, number: int) -> PieceWriter:
        """Return the writer of a piece."""
        return PieceWriter(self, number)

    def _run(self, head: Sequence[str], body: Sequence[str]) -> Iterator[str]:
        """Yield the function ``run``."""
        yield "define void @run(ptr noalias %x, ptr noalias %y, ptr noalias %v, i64 %n) #0 {"
        if self.width == 1:
            yield "%j = add i64 0, 0"
            yield from (*head, *body, "ret void", "}")
            return
        yield "start:"
        yield f"%end = sub i64 %n, {self.width}"
        yield from head
        yield "br label %loop"
        yield "loop:"
        yield "%i = phi i64 [0, %start], [%next, %loop]"
        yield "%late = icmp sgt i64 %i, %end"
        yield "%j = select i1 %late, i64 %end, i64 %i"
        yield from body
        yield f"%next = add i64 %i, {self.width}"
        yield "%more = icmp slt i64 %next, %n"
        yield "br i1 %more, label %loop, label %done"
        yield from ("done:", "ret void", "}")

    def _share(self, group: Sequence[Op], home: dict[int, int], piece: int) -> None:
        """Assign an index in the memory to each value that a piece reads from there."""
        for op in group:
            for arg in op.reads:
                if home.get(arg, piece) != piece and arg not in self.slots:
                    self._reserve([arg], self.width)
            home[op.number] = piece
        if len(group) > 1:
            self._reserve([op.number for op in group], self.lanes)

    def _reserve(self, values: Sequence[int], size: int) -> None:
        """Assign consecutive elements of the memory."""
        self.slots.update(zip(values, range(self.memory, self.memory + size), strict=False))
        self.memory += size


_PARAMETERS = "ptr noalias %x, ptr noalias %y, ptr noalias %v, i64 %j"
_KINDS = "ptr noalias, ptr noalias, ptr noalias, i64"
_ARGUMENTS = "ptr %x, ptr %y, ptr %v, i64 %j"


class PieceWriter(OperationWriter):
    """Writes the instructions of one piece.

    Pointers are loaded in a separate head, which is placed before the loop if there is only one
    piece.
    """

    def __init__(self, writer: LlvmWriter, number: int) -> None:
        self.head: list[str] = []
        self.body: list[str] = []
        super().__init__(writer.functions, writer.width, self.body)
        self.writer = writer
        self.piece = number
        self.pointers: set[str] = set()
        code = writer.code
        for value in code.known.keys() & code.truths:
            self.bits[value] = self.types["true" if code.known[value] else "false"]

    def text(self) -> tuple[list[str], list[str]]:
        """Return the head and the body."""
        writer, code = self.writer, self.writer.code
        for group in writer.groups[self.piece * PIECE : (self.piece + 1) * PIECE]:
            if len(group) > 1:
                self._call(group)
            else:
                self._compute(group[0])
            for op in group:
                for index in writer.places.get(op.number, ()):
                    self.store_output(index, op.number)
        if self.piece == 0:
            for index, value in enumerate(code.outputs):
                if value < code.inputs or value in code.known:
                    self.store_output(index, value)
        return self.head, self.body

    def _compute(self, op: Op) -> None:
        """Write an operation, whose result is stored if it is read from the memory."""
        writer, result = self.writer, op.number
        self.operation(op.name, op.reads, result, truth=op.dtype == BOOL)
        if result in writer.slots:
            address = self._address("%v", writer.slots[result], f"v{result}")
            self.body.append(f"store {self._typed(result)}, ptr {address}, align {writer.align}")

    def _call(self, group: Sequence[Op]) -> None:
        """Write one call for calls of a function; the last fills the lanes that are left."""
        writer, first = self.writer, group[0]
        lanes = [*group, *[group[-1]] * (writer.lanes - len(group))]
        operands = [f"{writer.real} {self.number(read)}" for op in lanes for read in op.reads]
        called = SPELLINGS[first.name].function
        function = self.functions.on_scalars(called, len(first.reads), writer.lanes)
        address = self._address("%v", writer.slots[first.number], f"v{first.number}")
        self.body.append(f"call void @{function}({', '.join(operands)}, ptr {address})")

    def name(self, key: Any, kind: str) -> str:
        """Return a new name for a value."""
        return f"%{kind}{key}"

    def loaded(self, value: int) -> str:
        """Load an input, or a value computed by another piece; return the literal of a constant."""
        writer = self.writer
        if value in writer.code.known:
            return constant(float(writer.code.known[value]), writer.width, writer.real)
        if value < writer.code.inputs:
            self.load_input(value)
        else:
            address = self._address("%v", writer.slots[value], f"w{value}")
            self._load(value, address)
        return f"%l{value}"

    def load_input(self, value: int) -> None:
        """Load an input."""
        self._load(value, self._cell("%x", value, f"x{value}", self.writer.real))

    def _load(self, value: int, address: str) -> None:
        v, align = self.writer.types["v"], self.writer.align
        self.body.append(f"%l{value} = load {v}, ptr {address}, align {align}")

    def store_output(self, index: int, value: int) -> None:
        """Store an output."""
        writer = self.writer
        if writer.truths[index]:
            bytes_ = writer.types["c"]
            self.body.append(f"%c{index} = zext {writer.types['b']} {self.bit(value)} to {bytes_}")
            address = self._cell("%y", index, f"y{index}", "i8")
            self.body.append(f"store {bytes_} %c{index}, ptr {address}, align 1")
        else:
            typed = self._typed(value)
            address = self._cell("%y", index, f"y{index}", writer.real)
            self.body.append(f"store {typed}, ptr {address}, align {writer.align}")

    def _typed(self, value: int) -> str:
        return f"{self.writer.types['v']} {self.number(value)}"

    def _cell(self, table: str, index: int, name: str, kind: str) -> str:
        """Return the address of an element of an input or output at the point j."""
        size = self.writer.code.inputs if table == "%x" else len(self.writer.code.outputs)
        if not 0 <= index < size:
            raise ConsistencyError(
                f"index {index} is outside of table {table}, which has {size} elements"
            )
        if self.writer.width == 1:
            return self._address(table, index, f"a{name}")
        if name not in self.pointers:
            self.pointers.add(name)
            self.head.append(f"%g{name} = getelementptr ptr, ptr {table}, i64 {index}")
            self.head.append(f"%p{name} = load ptr, ptr %g{name}, align 8")
            self.body.append(f"%a{name} = getelementptr {kind}, ptr %p{name}, i64 %j")
        return f"%a{name}"

    def _address(self, base: str, offset: int, name: str) -> str:
        self.body.append(f"%{name} = getelementptr {self.writer.real}, ptr {base}, i64 {offset}")
        return f"%{name}"


# --- packed points, whose inputs and outputs are rows --------------------------------------------
# The function ``run(x, y, v, n)`` reads n rows of inputs at x and writes n rows of outputs at y.
# The rows of one vector of points are loaded together, and shuffles in registers give the vector
# of each input; the outputs are shuffled into rows before they are stored. The operations between
# are those of `LlvmWriter`, so the results have the bits of any other batch.

MOST_ELEMENTS = 16
"""Elements of a row that are shuffled: the shuffles of a point are about their square."""


def packs(code: NumpyProgram) -> bool:
    """Return whether a program can read and write rows.

    The outputs of a row are stored together, so one function has to compute them all.
    """
    widths = code.inputs, len(code.outputs)
    return min(widths) > 0 and max(widths) <= MOST_ELEMENTS and len(code.ops) <= PIECE


class PackedWriter(LlvmWriter):
    """Writes a module for packed points; `packs` tells whether it can.

    Parameters
    ----------
    code : NumpyProgram
        The operations, in float64. Truth values are stored as floats.
    host : Host
        The processor to compile for.
    """

    def __init__(self, code: NumpyProgram, host: Host) -> None:
        super().__init__(code, host, host.width, [False] * len(code.outputs))

    def piece(self, number: int) -> PieceWriter:
        """Return the writer of the only piece."""
        return _RowsWriter(self, number)


class _RowsWriter(PieceWriter):
    """Writes the instructions between the rows of inputs and the rows of outputs."""

    def __init__(self, writer: LlvmWriter, number: int) -> None:
        super().__init__(writer, number)
        self.results = [""] * len(writer.code.outputs)

    def text(self) -> tuple[list[str], list[str]]:
        """Return the head and the body."""
        head, body = super().text()
        self._store_rows()
        return head, body

    def load_input(self, value: int) -> None:
        """Select an input from the rows of the points."""
        inputs, width = self.writer.code.inputs, self.writer.width
        rows = f"<{inputs * width} x {self.writer.real}>"
        if not self.pointers:
            self.pointers.add("x")
            address = self._rows_address("x", inputs)
            self.body.append(f"%rows = load {rows}, ptr {address}, align {self.writer.align}")
        indices = [point * inputs + value for point in range(width)]
        self.body.append(f"%l{value} = {_shuffle(rows, '%rows', 'poison', indices)}")

    def store_output(self, index: int, value: int) -> None:
        """Record the value of the output of index `index`."""
        self.results[index] = self.number(value)

    def _store_rows(self) -> None:
        """Join the outputs to one vector, pair by pair, and store it in the order of the rows."""
        count, width, real = len(self.results), self.writer.width, self.writer.real
        joined, size = self.results, width
        while len(joined) > 1:
            pairs = zip(joined[::2], [*joined[1::2], "poison"], strict=False)
            joined = [self._joined(a, b, size) for a, b in pairs]
            size *= 2
        indices = [index * width + point for point in range(width) for index in range(count)]
        text = _shuffle(f"<{size} x {real}>", joined[0], "poison", indices)
        address = self._rows_address("y", count)
        self.body.append(f"%results = {text}")
        self.body.append(
            f"store <{count * width} x {real}> %results, ptr {address}, align {self.writer.align}"
        )

    def _joined(self, a: str, b: str, size: int) -> str:
        """Return the name of the concatenation of two vectors of a size."""
        name = f"%j{len(self.body)}"
        kind = f"<{size} x {self.writer.real}>"
        self.body.append(f"{name} = {_shuffle(kind, a, b, list(range(2 * size)))}")
        return name

    def _rows_address(self, table: str, elements: int) -> str:
        """Return the address of the row of the point j."""
        self.body.append(f"%o{table} = mul i64 %j, {elements}")
        self.body.append(
            f"%a{table} = getelementptr {self.writer.real}, ptr %{table}, i64 %o{table}"
        )
        return f"%a{table}"


def _shuffle(kind: str, a: str, b: str, indices: list[int]) -> str:
    """Return the instruction that selects lanes of two concatenated vectors.

    Examples
    --------
    >>> _shuffle("<4 x double>", "%rows", "poison", [0, 2])
    'shufflevector <4 x double> %rows, <4 x double> poison, <2 x i32> <i32 0, i32 2>'
    """
    lanes = ", ".join(f"i32 {index}" for index in indices)
    return f"shufflevector {kind} {a}, {kind} {b}, <{len(indices)} x i32> <{lanes}>"

"""The LLVM module of a program on packed points, whose inputs and outputs are rows.

The function ``run(x, y, v, n)`` reads n rows of inputs at x and writes n rows of outputs at y. The
rows of one vector of points are loaded together, and shuffles in registers give the vector of each
input; the outputs are shuffled into rows before they are stored. The operations between are those
of `LlvmWriter`, so the results have the bits of any other batch.
"""

from __future__ import annotations

from difflab.execute.lower.ops import NumpyProgram
from difflab.execute.targets.llvm.libraries import Host
from difflab.execute.targets.llvm.writer import PIECE, LlvmWriter, PieceWriter

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
        The operations, in float64. Truth values are stored as numbers.
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
        places = [point * inputs + value for point in range(width)]
        self.body.append(f"%l{value} = {_shuffle(rows, '%rows', 'poison', places)}")

    def store_output(self, place: int, value: int) -> None:
        """Keep an output for its place in the rows."""
        self.results[place] = self.number(value)

    def _store_rows(self) -> None:
        """Join the outputs to one vector, pair by pair, and store it in the order of the rows."""
        count, width, real = len(self.results), self.writer.width, self.writer.real
        joined, size = self.results, width
        while len(joined) > 1:
            pairs = zip(joined[::2], [*joined[1::2], "poison"], strict=False)
            joined = [self._joined(a, b, size) for a, b in pairs]
            size *= 2
        places = [place * width + point for point in range(width) for place in range(count)]
        text = _shuffle(f"<{size} x {real}>", joined[0], "poison", places)
        address = self._rows_address("y", count)
        self.body.append(f"%results = {text}")
        self.body.append(
            f"store <{count * width} x {real}> %results, ptr {address}, align {self.writer.align}"
        )

    def _joined(self, a: str, b: str, size: int) -> str:
        """Return the name of two vectors of a size, one behind the other."""
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


def _shuffle(kind: str, a: str, b: str, places: list[int]) -> str:
    """Return the instruction that selects lanes of two vectors, one behind the other.

    Examples
    --------
    >>> _shuffle("<4 x double>", "%rows", "poison", [0, 2])
    'shufflevector <4 x double> %rows, <4 x double> poison, <2 x i32> <i32 0, i32 2>'
    """
    lanes = ", ".join(f"i32 {place}" for place in places)
    return f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{lanes}>"

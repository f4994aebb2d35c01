"""Points and results in tables: CSV and Parquet, a column for each input."""

from __future__ import annotations

import csv
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import require
from difflab.core.system import open_regular
from difflab.core.table import csv_text
from difflab.core.wording import counted
from difflab.errors import InputError, PointError, described
from difflab.interop.large.formats.protocol import PieceResults, ResultLayout, chosen_columns

_INDEXED = 4096
"""Lines between two positions of the file that are remembered."""


class CsvPoints:
    """The columns of a CSV file that are named like the inputs; without names, all, in order.

    One pass over the file finds where the lines begin.
    """

    grain = _INDEXED

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        try:
            with open_regular(path) as file:
                first = self._cells(file.readline(), 1)
                self._named = not all(map(_is_number, first))
                if self._named:
                    self._columns = chosen_columns(first, names, str(path))
                elif len(first) == len(names):
                    self._columns = list(range(len(names)))
                else:
                    raise PointError(
                        f"{path} has {counted(len(first), 'column')}, "
                        f"but the function has {counted(len(names), 'flattened input')}",
                        hint="name the columns in the first line, or give one for each input",
                    )
                file.seek(0)
                if self._named:
                    file.readline()
                self._offsets, self.count = _line_offsets(file)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise InputError(f"cannot read {str(path)!r}: {why}") from error

    def read(
        self, start: int, stop: int, buffer: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield some of the rows, each column contiguous."""
        with open_regular(self.path) as file:
            file.seek(self._offsets[start // _INDEXED])
            for _ in range(start % _INDEXED):
                file.readline()
            lines = [file.readline() for _ in range(stop - start)]
        try:
            table = np.loadtxt(
                lines, delimiter=",", quotechar='"', comments=None, usecols=self._columns, ndmin=2
            )
        except ValueError:
            table = np.empty(0)
        if len(table) < len(lines):  # read one by one, which finds the location of the fault
            first = start + 1 + self._named
            rows = [self._numbers(line, number) for number, line in enumerate(lines, first)]
            table = np.array(rows)
        yield np.asfortranarray(table)

    def _cells(self, content: bytes, line: int) -> list[str]:
        """Return the cells of a line."""
        try:
            cells = next(csv.reader([content.decode("utf-8-sig")], strict=True), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise PointError(f"line {line} of {self.path} is not CSV text: {error}") from error
        if not cells:
            raise PointError(f"line {line} of {self.path} is empty")
        return [cell.strip() for cell in cells]

    def _numbers(self, content: bytes, line: int) -> list[float]:
        """Return the values of a line."""
        cells = self._cells(content, line)
        values = []
        for column in self._columns:
            if column >= len(cells):
                raise PointError(f"line {line} of {self.path} has no column {column + 1}")
            try:
                values.append(float(cells[column]))
            except ValueError:
                raise PointError(
                    f"line {line}, column {column + 1} of {self.path} is not a number: "
                    f"{cells[column]!r}"
                ) from None
        return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _line_offsets(file: BinaryIO) -> tuple[list[int], int]:
    """Return the position of every line that is indexed, and the number of lines.

    Empty lines at the end are not counted.
    """
    offsets: list[int] = []
    filled = 0
    position = file.tell()
    for line, content in enumerate(file):
        if line % _INDEXED == 0:
            offsets.append(position)
        position += len(content)
        if content.strip():
            filled = line + 1
    return offsets, filled


class CsvResults(PieceResults):
    """A CSV file; values are written with the shortest digits that round-trip."""

    def _write(self, path: Path, rows: NDArray[np.float64]) -> None:
        path.write_text(csv_text(rows.tolist()), encoding="ascii")

    def _join(self, pieces: Iterable[Path], path: Path) -> None:
        with path.open("wb") as file:
            file.write(csv_text([self._names]).encode())
            for piece in pieces:
                with piece.open("rb") as lines:
                    shutil.copyfileobj(lines, file)


class ParquetPoints:
    """The columns of a Parquet file that are named like the inputs."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        self._parquet = require("pyarrow.parquet", "large")
        file = self._opened()
        self._metadata = file.metadata
        schema = file.schema_arrow
        self._columns = [schema.names[i] for i in chosen_columns(schema.names, names, str(path))]
        types = require("pyarrow", "large").types
        for name in self._columns:
            kind = schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise PointError(f"column {name!r} of {path} holds {kind}, not real numbers")
        sizes = [self._metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._starts = np.cumsum([0, *sizes]).tolist()
        self.count: int = self._starts[-1]
        self.grain = max([*sizes, 1])

    def _opened(self, **options: Any) -> Any:
        try:
            return self._parquet.ParquetFile(self.path, **options)
        except Exception as error:  # what a damaged file raises differs by where it is damaged
            raise InputError(f"cannot read {str(self.path)!r}: {described(error)}") from error

    def read(
        self, start: int, stop: int, buffer: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield some of the rows, each column contiguous."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, stop - 1)
        file = self._opened(metadata=self._metadata)  # one file for each thread
        try:
            table = file.read_row_groups(list(range(first, last)), columns=self._columns)
        except Exception as error:  # what a damaged file raises differs by where it is damaged
            raise InputError(f"cannot read {str(self.path)!r}: {described(error)}") from error
        table = table.slice(start - self._starts[first], stop - start)
        points = np.empty((len(self._columns), stop - start))
        for position, name in enumerate(self._columns):
            column = table.column(name)
            if column.null_count:
                row = start + int(np.argmax(column.is_null().to_numpy()))
                raise PointError(f"column {name!r} of {self.path} has no value in row {row}")
            points[position] = column.to_numpy()
        yield points.T


class ParquetResults(PieceResults):
    """A Parquet file, a row group for each piece."""

    def __init__(self, folder: Path, layout: ResultLayout) -> None:
        super().__init__(folder, layout)
        self._arrow = require("pyarrow", "large")
        self._parquet = require("pyarrow.parquet", "large")

    def _write(self, path: Path, rows: NDArray[np.float64]) -> None:
        columns = [np.ascontiguousarray(column) for column in rows.T]
        self._parquet.write_table(self._arrow.table(columns, names=self._names), path)

    def _join(self, pieces: Iterable[Path], path: Path) -> None:
        schema = self._arrow.schema([(name, self._arrow.float64()) for name in self._names])
        with self._parquet.ParquetWriter(path, schema) as writer:
            for piece in pieces:
                writer.write_table(self._parquet.read_table(piece, partitioning=None))

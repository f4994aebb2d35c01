"""Points and results in Parquet files: a column for each input and each element of a result."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import require
from difflab.errors import InputError, PointError, described
from difflab.interop.large.formats.protocol import PieceResults, ResultLayout, chosen_columns


class ParquetPoints:
    """The columns of a Parquet file that are named like the inputs."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        self._parquet = require("pyarrow.parquet", "large")
        file = self._opened()
        self._metadata = file.metadata
        known = file.schema_arrow
        self._columns = [known.names[i] for i in chosen_columns(known.names, names, str(path))]
        types = require("pyarrow", "large").types
        for name in self._columns:
            kind = known.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise PointError(f"column {name!r} of {path} holds {kind}, not real numbers")
        sizes = [self._metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._starts = np.cumsum([0, *sizes]).tolist()
        self.count: int = self._starts[-1]
        self.grain = max([*sizes, 1])

    def _opened(self, **known: Any) -> Any:
        try:
            return self._parquet.ParquetFile(self.path, **known)
        except Exception as error:  # what a damaged file raises differs by where it is damaged
            raise InputError(f"cannot read {str(self.path)!r}: {described(error)}") from error

    def read(
        self, start: int, stop: int, room: NDArray[np.float64]
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
        for place, name in enumerate(self._columns):
            column = table.column(name)
            if column.null_count:
                row = start + int(np.argmax(column.is_null().to_numpy()))
                raise PointError(f"column {name!r} of {self.path} has no value in row {row}")
            points[place] = column.to_numpy()
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

"""The records of a study as columns, and as a CSV or a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from difflab.core.optional import require
from difflab.core.table import csv_text, guarded
from difflab.errors import printable
from difflab.lab.study.store import COLUMNS, Record

_EXPORTED = tuple(name for name in COLUMNS if name != "comparison")


def to_columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return records as columns, without their derivatives; None for an unknown value."""
    return {name: [record[name] for record in records] for name in _EXPORTED}


def to_csv(records: Sequence[Record]) -> bytes:
    """Return records as CSV: a line each, an empty cell for an unknown value.

    Text is safe to open in a spreadsheet: control characters are escaped, and a quotation mark
    precedes what would be a formula.
    """
    lines = [[_cell(record[name], COLUMNS[name]) for name in _EXPORTED] for record in records]
    return csv_text([_EXPORTED, *lines]).encode("utf-8")


def to_parquet(records: Sequence[Record]) -> bytes:
    """Return records as a Parquet file with typed columns.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    pyarrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds[COLUMNS[name]]) for name in _EXPORTED])
    columns = to_columns(records).values()
    arrays = [
        pyarrow.array(column, type=kind.type) for column, kind in zip(columns, schema, strict=True)
    ]
    buffer = BytesIO()
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), buffer)
    return buffer.getvalue()


def _cell(value: object, kind: type) -> str:
    if value is None:
        return ""
    return guarded(printable(str(value))) if kind is str else repr(value)

"""The records of a study: the columns of its file, and the same as a CSV or a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from difflab.core.optional import require
from difflab.core.table import csv_text, guarded
from difflab.errors import printable
from difflab.lab import store
from difflab.lab.provenance import MACHINE
from difflab.lab.record import STORED
from difflab.lab.store import Record, packed_json, unpacked_json

__all__ = ["COLUMNS", "Record", "Store", "packed_json", "to_columns", "to_csv", "to_parquet"]
__all__ += ["unpacked_json"]

COLUMNS: Mapping[str, type] = {
    "key": str,
    "identity": str,
    "study": str,
    "formula": str,
    "text": str,
    "family": str,
    "size": int,
    "point": str,
    "order": int,
    "target": str,
    "version": str,
    "method": str,
    "status": str,
    "message": str,
    "verdict": str,
    **{each.name: each.stored or str for each in STORED if not each.cost},
    "tree": str,
    "dag": str,
    **{each.name: each.stored or str for each in STORED if each.cost},
    **MACHINE,
    "timeout": float,
    "repeats": int,
    "date": str,
    "m": int,
    "over": str,
    "points": int,
    "blocks": str,
    "comparison": str,
}
"""The columns of a record. `tree` and `dag` are exact integers of any length, as text; `point`,
`over` (a domain, with its scale and seed), `blocks` (the samples) and `comparison` (of the schema
``difflab.comparison/5``, or ``difflab.domain/3`` over a domain) are JSON."""
_EXPORTED = tuple(name for name in COLUMNS if name != "comparison")


class Store(store.Store):
    """The open file of a study: a `difflab.lab.store.Store` with its columns."""

    def __init__(self, path: Path, *, new: bool = False) -> None:
        super().__init__(path, COLUMNS, new=new)


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

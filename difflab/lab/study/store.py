"""The file of a study: its columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from difflab.lab import store
from difflab.lab.provenance import MACHINE
from difflab.lab.record import STORED
from difflab.lab.store import Record, packed_json, unpacked_json

__all__ = ["COLUMNS", "Record", "Store", "packed_json", "unpacked_json"]

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


class Store(store.Store):
    """The open file of a study: a `difflab.lab.store.Store` with its columns."""

    def __init__(self, path: Path, *, new: bool = False) -> None:
        super().__init__(path, COLUMNS, new=new)

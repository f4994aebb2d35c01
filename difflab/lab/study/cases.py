"""The cells of a study, a function at a point and how it is differentiated, and their records.

The records have the columns of the study's file, the same as a CSV or a Parquet file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import Any, Self

from difflab.core.optional import require
from difflab.core.strict_json import strict
from difflab.core.table import csv_text, guarded
from difflab.errors import printable
from difflab.lab import store
from difflab.lab.provenance import MACHINE
from difflab.lab.record import STORED
from difflab.lab.store import Record, digest, packed_json, unpacked_json

THIS = "this"
"""The name of the difflab that runs the study, among its versions."""
_SHOWN = 60  # characters of a formula in a label


@dataclass(frozen=True)
class Domain:
    """A domain of a study, as `difflab.compare` takes it.

    Attributes
    ----------
    over : mapping
        The interval of every input that varies, ``[low, high]``.
    points : int
        The number of points of the sample.
    scale : mapping
        ``"log"`` for inputs whose points are even in the logarithm.
    seed : int
        The seed of the sample.
    """

    over: Mapping[str, Any]
    points: int = 10_000
    scale: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0

    @classmethod
    def of_record(cls, record: Record) -> Self | None:
        """Return the domain of a record; None for one at a point."""
        if record["over"] is None:
            return None
        return cls(points=record["points"], **unpacked_json(record["over"]))

    @property
    def label(self) -> str:
        """The intervals in short, as the option ``--over`` takes them.

        Examples
        --------
        >>> Domain({"x": [0.1, 10], "y": [-5, 5]}).label
        'x=0.1:10,y=-5:5'
        """
        return ",".join(f"{name}={low}:{high}" for name, (low, high) in self.over.items())


@dataclass(frozen=True)
class StudyCase:
    """A comparison of a study: every named method at one point, or over one domain.

    Attributes
    ----------
    text : str
        The function, a program of the language.
    point : mapping
        The value of every input; over a domain, of those that do not vary.
    methods : tuple of str
        The names of the methods; one record each.
    formula : str
        The function as the study writes it: a formula, a file or a problem.
    family : str
        The family that the function belongs to; empty without one.
    size, m : int or None
        Its sizes.
    order : int
        1 for Jacobians, 2 for Hessians.
    target : str
        The target to which `forward` and `reverse` are compiled.
    version : str
        The version of difflab that computes it; `THIS` for the one that runs the study.
    timeout : float
        Seconds for each method and for the referee.
    repeats : int
        Blocks of timing; 0 to judge only.
    domain : Domain or None
        Where the methods are compared, if not at a point.
    """

    text: str
    point: Mapping[str, Any]
    methods: tuple[str, ...]
    formula: str = ""
    family: str = ""
    size: int | None = None
    order: int = 1
    target: str = "auto"
    version: str = THIS
    timeout: float = 10.0
    repeats: int = 10
    m: int | None = None
    domain: Domain | None = None

    @property
    def what(self) -> dict[str, Any]:
        """Identity of a case: the function, the point and the settings, equal in every study."""
        identity = {
            "text": self.text,
            "point": strict(self.point),
            "order": self.order,
            "target": self.target,
        }
        return identity if self.domain is None else {**identity, "domain": strict(self.domain)}

    @classmethod
    def of_record(cls, record: Record, **changed: Any) -> Self:
        """Return the case of a record, with the methods, or other fields, that are given."""
        values = {"methods": (), "domain": Domain.of_record(record)}
        values["point"] = unpacked_json(record["point"])
        own: Record = {item.name: record.get(item.name) for item in fields(cls)}
        return cls(**{**own, **values, **changed})

    def record(self) -> Record:
        """Return the columns of a record that state the case."""
        columns = {**vars(self), "identity": self.identity, "over": None, "points": None}
        columns["point"] = packed_json(strict(self.point))
        if self.domain is not None:
            over = strict(self.domain)
            columns |= {"points": over.pop("points"), "over": packed_json(over)}
        del columns["methods"], columns["domain"]
        return columns

    @property
    def identity(self) -> str:
        """Hash of the identity of a case."""
        return digest(self.what)

    @property
    def key(self) -> str:
        """Hash of the case with the settings of its measurement."""
        settings = {"version": self.version, "timeout": self.timeout, "repeats": self.repeats}
        return digest({**self.what, **settings})

    @property
    def label(self) -> str:
        """A short description, safe to print."""
        sizes = "×".join(str(size) for size in (self.size, self.m) if size is not None)
        name = f"{self.family} {sizes}" if self.family else self.formula
        parts = [printable(" ".join(name.split()))]
        parts = [part if len(part) <= _SHOWN else f"{part[:_SHOWN]}…" for part in parts]
        parts += [] if self.domain is None else [f"over {printable(self.domain.label)}"]
        seed = 0 if self.domain is None else self.domain.seed
        parts += [f"seed {seed}"] * (seed != 0)
        parts += [f"order {self.order}"] * (self.order != 1)
        parts += [self.target] * (self.target != "auto")
        parts += [printable(self.version)] * (self.version != THIS)
        return ", ".join(parts)


# --- their records ----------------------------------------------------------------------------

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


class StudyStore(store.Store):
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

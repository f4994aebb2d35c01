"""Columns of records, declared once: a form of a record, written or read, is derived from them.

A field of a frozen dataclass is declared as ``Annotated[type, KIND(about, heading)]``. The kind
states how its values are read, stored and printed, the column its titles and the version of the
schema in which it came. JSON, CSV, SQLite, the tables of reports and the documentation follow.

A document may come from an untrusted source, so every part is checked before use; the message of
an error names the path of the invalid part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.strict_json import strict
from difflab.core.table import Column
from difflab.core.wording import ABSENT, bytes_text, count, error, seconds
from difflab.errors import InputError
from difflab.methods.protocol import Size

_WORDS = ("nan", "inf", "-inf")
_LARGEST = 10**15  # for every count except the sizes of a tree
_MAX_RANK = 64  # the largest rank of a NumPy array

T = TypeVar("T")


class FaultError(InputError):
    """A part that violates the schema."""


class RecordPart:
    """A part of a document, its path and the version of the schema, with checks of its type."""

    def __init__(self, value: Any, path: str, version: int) -> None:
        self.value = value
        self.path = path
        self.version = version

    def fault(self, wanted: str) -> FaultError:
        """Return the error of an unexpected part."""
        shown = repr(self.value)[:40] if isinstance(self.value, str | float) else _kind(self.value)
        return FaultError(f"{self.path} is {shown}, not {wanted}")

    def __getitem__(self, name: str) -> RecordPart:
        path = f"{self.path}.{name}".lstrip(".")
        if not isinstance(self.value, Mapping):
            raise self.fault("an object")
        if name not in self.value:
            raise FaultError(f"{path} is missing")
        return RecordPart(self.value[name], path, self.version)

    def items(self) -> list[tuple[str, RecordPart]]:
        """Return the parts of an object by their names."""
        if not isinstance(self.value, Mapping):
            raise self.fault("an object")
        return [(str(name), self[name]) for name in self.value]

    def each(self) -> list[RecordPart]:
        """Return the elements of a list."""
        if not isinstance(self.value, list | tuple):
            raise self.fault("a list")
        return [
            RecordPart(value, f"{self.path}[{i}]", self.version)
            for i, value in enumerate(self.value)
        ]

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            raise self.fault("text")
        return self.value

    def flag(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self.fault("true or false")
        return self.value

    def one_of(self, allowed: Sequence[str]) -> str:
        """Return a text that is one of those allowed."""
        if not isinstance(self.value, str) or self.value not in allowed:
            raise self.fault(f"one of {', '.join(allowed)}")
        return self.value

    def integer(self, least: int = 0, most: int | None = _LARGEST) -> int:
        """Return an integer in a range."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.fault(f"an integer from {least}")
        if most is not None and value > most:
            raise self.fault(f"an integer up to {most:,}")
        return value

    def number(self) -> float:
        """Return a number; those that are not finite are texts."""
        value = self.value
        if isinstance(value, str) and value in _WORDS:
            return float(value)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.fault("a number")
        try:
            return float(value)
        except OverflowError:
            raise self.fault("within the range of float64") from None

    def magnitude(self) -> float:
        """Return an error or a bound: a non-negative number or nan."""
        value = self.number()
        if value < 0:
            raise self.fault("a non-negative number")
        return value

    def seconds(self) -> float:
        """Return a number of seconds."""
        value = self.number()
        if not 0 <= value <= _LARGEST:
            raise self.fault("a number of seconds")
        return value

    def maybe(self, read: Callable[[RecordPart], T]) -> T | None:
        """Return the value by `read`, or None for null."""
        return None if self.value is None else read(self)

    def array(self, rank: int | None = None) -> NDArray[float64]:
        """Return a regular numeric array, checked axis by axis."""
        shape: list[int] = []
        first = self.value
        while isinstance(first, list | tuple) and len(shape) <= _MAX_RANK:
            shape.append(len(first))
            first = first[0] if first else None
        if len(shape) > _MAX_RANK or rank not in (None, len(shape)):
            raise self.fault("an array of numbers" if rank is None else f"one of rank {rank}")
        level = [self]
        for extent in shape:
            inner: list[RecordPart] = []
            for part in level:
                parts = part.each()
                if len(parts) != extent:
                    raise FaultError(f"{part.path} has {len(parts)} elements instead of {extent}")
                inner += parts
            level = inner
        return np.array([part.number() for part in level], dtype=float64).reshape(shape)

    def matrix(self) -> NDArray[float64]:
        """Return an array of two axes; that without elements may have one."""
        return self.array(rank=2) if self.value != [] else np.zeros((0, 0))

    def shape(self) -> tuple[int, ...]:
        """Return the shape of an array."""
        extents = tuple(part.integer() for part in self.each())
        if len(extents) > _MAX_RANK or math.prod(extents) > _LARGEST:
            raise self.fault("the shape of an array")
        return extents


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "an integer", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "something else")


def _plain(value: Any) -> str:
    return ABSENT if value is None else str(value)


@dataclass(frozen=True, eq=False)
class RecordColumn:
    """A kind of columns, and with a meaning the declaration of a field.

    Attributes
    ----------
    read : callable
        Returns the value of a part of a JSON document, after checking it.
    stored : type or None
        The type in CSV, SQLite and Parquet: `str`, `int` or `float`; None if one cell cannot hold
        a value.
    text : callable
        Returns the text of a value in tables.
    cells : callable
        Returns the cells of flat tables by their names, given the name of the column and its value
        in JSON.
    rank : int
        Orders the columns of flat tables; those of equal rank are in the order of the fields.
    cost, judged : bool
        Whether it is time or memory, and whether it is an error against the referee.
    about : str
        Its meaning, for the documentation.
    heading : str
        The heading in the tables of reports, which lack the columns without one.
    title : str
        The name in CSV and dataframes, by default that of the field.
    since : int
        The version of the schema in which it came; a record read from an earlier one has the
        default of the field.
    brief : bool
        Whether tables that compare two records show it.
    name : str
        The field.
    optional : bool
        Whether None is a value.
    options : tuple of str
        The texts that it can have, if these are few.
    record : type or None
        The dataclass of values that are records themselves.
    """

    read: Callable[[RecordPart], Any]
    stored: type | None = None
    text: Callable[[Any], str] = _plain
    cells: Callable[[str, Any], dict[str, Any]] = lambda name, value: {name: value}
    rank: int = 0
    cost: bool = False
    judged: bool = False
    about: str = ""
    heading: str = ""
    title: str = ""
    since: int = 1
    brief: bool = False
    name: str = ""
    optional: bool = False
    options: tuple[str, ...] = ()
    record: Any = None

    def __call__(self, about: str, heading: str = "", **changes: Any) -> RecordColumn:
        """Return the declaration of a field of this kind."""
        return replace(self, about=about, heading=heading, **changes)

    @property
    def figure(self) -> bool:
        """Whether a value is one number."""
        return self.stored in (int, float)

    @property
    def shown(self) -> Column:
        """The column of a report's table."""
        return Column(self.heading, right=self.rank > 0, format=self.text)


@cache
def columns(record: type) -> tuple[RecordColumn, ...]:
    """Return the declared columns of a dataclass, in the order of its fields."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(
        replace(
            declared,
            name=item.name,
            title=declared.title or item.name,
            optional=type(None) in get_args(get_args(hints[item.name])[0]),
        )
        for item in fields(record)
        for declared in getattr(hints[item.name], "__metadata__", ())
    )


def latest(record: Any) -> int:
    """Return the version of the schema of a dataclass: the last in which a column came."""
    return max(
        max(column.since, 0 if column.record is None else latest(column.record))
        for column in columns(record)
    )


def read(record: Any, part: RecordPart) -> Any:
    """Return a dataclass from its object in a JSON document."""
    values = {}
    for column in columns(record):
        if column.since <= part.version:
            inner = part[column.name]
            empty = column.optional and inner.value is None
            values[column.name] = None if empty else column.read(inner)
    return record(**values)


def written(record: Any, **overrides: Any) -> dict[str, Any]:
    """Return the strict JSON of a dataclass; `overrides` gives the JSON of some of its fields."""
    return {
        column.name: overrides[column.name]
        if column.name in overrides
        else strict(getattr(record, column.name))
        for column in columns(record.__class__)
    }


def cells(record: type, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a record in flat tables, given its JSON; None for a missing value."""
    flat: dict[str, Any] = {}
    for column in sorted(columns(record), key=lambda column: column.rank):
        flat |= column.cells(column.title, document.get(column.name))
    return flat


def choice(*options: str) -> RecordColumn:
    """Return the kind of a column with a few known texts, or members of a `StrEnum`."""
    by_name = {str(option): option for option in options}
    return RecordColumn(lambda part: by_name[part.one_of(options)], str, options=options)


def nested(record: type) -> RecordColumn:
    """Return the kind of a column that is a record itself."""
    return RecordColumn(lambda part: read(record, part), record=record)


def many(record: type) -> RecordColumn:
    """Return the kind of a column of any number of records."""
    each = nested(record)
    return replace(each, read=lambda part: tuple(map(each.read, part.each())))


def _sizes(part: RecordPart) -> Size | None:
    """Return the sizes as exact integers; None if none is known."""
    items = dict(part.items())
    sizes = [
        items[item.name].maybe(lambda each: each.integer(most=None)) if item.name in items else None
        for item in fields(Size)
    ]
    return Size(*sizes) if any(size is not None for size in sizes) else None


def _sizes_text(size: Size | None) -> str:
    """Return the tree and DAG size of a derivative, ``tree/dag``."""
    if size is None or (size.tree is None and size.dag is None):
        return ABSENT
    return f"{count(size.tree)}/{count(size.dag)}"


def _size_cells(name: str, value: Any) -> dict[str, Any]:
    return {f"{name}_{item.name}": (value or {}).get(item.name) for item in fields(Size)}


def _number(name: str, value: Any) -> dict[str, Any]:
    """Return a number of strict JSON, in which nan and infinities are texts."""
    return {name: float(value) if isinstance(value, str) else value}


def _nested_list(name: str, value: Any) -> dict[str, Any]:
    return {name: None if value is None else json.dumps(value)}


TEXT = RecordColumn(RecordPart.text, str)
REMARK = RecordColumn(RecordPart.text, str, rank=4)
"""A sentence, after everything else."""
MATRIX = RecordColumn(RecordPart.matrix, cells=_nested_list, rank=3)
SIZES = RecordColumn(_sizes, text=_sizes_text, cells=_size_cells, rank=2)
COUNT = RecordColumn(RecordPart.integer, int, count, _number, 1)
SECONDS = RecordColumn(RecordPart.seconds, float, seconds, _number, 1, cost=True)
BYTES = RecordColumn(RecordPart.integer, int, bytes_text, _number, 1, cost=True)
ESTIMATE = RecordColumn(RecordPart.magnitude, float, error, _number, 1)
"""An error by the method's own account."""
ERROR = replace(ESTIMATE, judged=True)
"""An error against the referee."""

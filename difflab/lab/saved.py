"""Reader of saved comparisons: the schemas ``difflab.comparison/1`` to ``/3`` to their record.

A file may come from an untrusted source, so the type and the size of every part are checked before
use; an error message names the path of the invalid part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.strict_json import long_integers
from difflab.errors import InputError
from difflab.lab.record import (
    SAMPLES,
    SCHEMA,
    TIMING,
    Comparison,
    Expression,
    MethodRow,
    ReferenceRow,
    Status,
    Variable,
    read_samples,
)
from difflab.methods.protocol import Family, Size

__all__ = ["from_dict", "from_json"]

_READ = ("difflab.comparison/1", "difflab.comparison/2", SCHEMA)
"""The schemas that can be read; the first has no proofs, and the third another verdict."""

_NUMBERS = (
    "max_abs_error",
    "max_rel_error",
    "max_ulp_error",
    "error_estimate",
)
_TIMES = ("prepare_seconds", "call_seconds")
_COUNTS = ("operations", "function_evaluations", "peak_bytes")
_SIZES = ("tree", "dag", "simplified_tree", "simplified_dag")
_VERDICTS = ("agree", "disagree", "convention", "declared", "inconclusive")
_WORDS = ("nan", "inf", "-inf")
_LARGEST = 10**15  # for every count except the sizes of a tree
_MAX_RANK = 64  # the largest rank of a NumPy array

T = TypeVar("T")


def from_json(text: str) -> Comparison:
    """Return the comparison that `Comparison.to_json` wrote.

    Raises
    ------
    InputError
        The text is not JSON, or does not follow the schema.
    """
    try:
        with long_integers():
            record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON file: {error}") from error
    return from_dict(record)


def from_dict(record: Any) -> Comparison:
    """Return the comparison that `Comparison.to_dict` described.

    Raises
    ------
    InputError
        The dictionary does not follow the schema; the message names the invalid part.
    """
    schema = record.get("schema") if isinstance(record, Mapping) else None
    if not isinstance(schema, str) or schema not in _READ:
        raise InputError(f"its schema is none of {', '.join(map(repr, _READ))}")
    try:
        return _comparison(_RecordPart(record, ""))
    except _FaultError as error:
        raise InputError(f"it does not follow the schema {schema!r}: {error}") from error


class _FaultError(Exception):
    """A part that violates the schema."""


class _RecordPart:
    """A part of the record and its path, with readers that check its type."""

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    def fault(self, wanted: str) -> _FaultError:
        shown = repr(self.value)[:40] if isinstance(self.value, str | float) else _kind(self.value)
        return _FaultError(f"{self.path} is {shown}, not {wanted}")

    def __getitem__(self, name: str) -> _RecordPart:
        path = f"{self.path}.{name}".lstrip(".")
        if not isinstance(self.value, Mapping):
            raise self.fault("an object")
        if name not in self.value:
            raise _FaultError(f"{path} is missing")
        return _RecordPart(self.value[name], path)

    def items(self) -> list[tuple[str, _RecordPart]]:
        if not isinstance(self.value, Mapping):
            raise self.fault("an object")
        return [(str(name), self[name]) for name in self.value]

    def each(self) -> list[_RecordPart]:
        if not isinstance(self.value, list | tuple):
            raise self.fault("a list")
        return [_RecordPart(value, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.fault("text")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.fault("true or false")
        return self.value

    def one_of(self, allowed: Sequence[str]) -> str:
        if not isinstance(self.value, str) or self.value not in allowed:
            raise self.fault(f"one of {', '.join(allowed)}")
        return self.value

    def integer(self, least: int = 0, most: int | None = _LARGEST) -> int:
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.fault(f"an integer from {least}")
        if most is not None and value > most:
            raise self.fault(f"an integer up to {most:,}")
        return value

    def number(self) -> float:
        value = self.value
        if isinstance(value, str) and value in _WORDS:
            return float(value)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.fault("a number")
        try:
            return float(value)
        except OverflowError:
            raise self.fault("within the range of float64") from None

    def size(self) -> float:
        """Return an error or a bound: a non-negative number or nan."""
        value = self.number()
        if value < 0:
            raise self.fault("a non-negative number")
        return value

    def seconds(self) -> float:
        value = self.number()
        if not 0 <= value <= _LARGEST:
            raise self.fault("a number of seconds")
        return value

    def maybe(self, read: Callable[[_RecordPart], T]) -> T | None:
        return None if self.value is None else read(self)

    def array(self, rank: int | None = None) -> NDArray[float64]:
        """Return a regular array of numbers, checked axis by axis."""
        shape: list[int] = []
        first = self.value
        while isinstance(first, list | tuple) and len(shape) <= _MAX_RANK:
            shape.append(len(first))
            first = first[0] if first else None
        if len(shape) > _MAX_RANK or rank not in (None, len(shape)):
            raise self.fault("an array of numbers" if rank is None else f"one of rank {rank}")
        level = [self]
        for extent in shape:
            inner: list[_RecordPart] = []
            for part in level:
                parts = part.each()
                if len(parts) != extent:
                    raise _FaultError(f"{part.path} has {len(parts)} elements instead of {extent}")
                inner += parts
            level = inner
        return np.array([part.number() for part in level], dtype=float64).reshape(shape)


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "an integer", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "something else")


def _comparison(record: _RecordPart) -> Comparison:
    expression = _expression(record["expression"])
    order = record["order"].integer(1, 2)
    environment = _environment(record["environment"])
    return Comparison(
        expression=expression,
        point={name: part.array() for name, part in record["point"].items()},
        order=order,
        value=record["value"].array(rank=1),
        reference=_reference(record["reference"], proofs=record["schema"].value != _READ[0]),
        methods=tuple(_with_samples(map(_method, record["methods"].each()), record)),
        environment={k: v for k, v in environment.items() if k not in TIMING},
    )


def _with_samples(rows: Iterable[MethodRow], record: _RecordPart) -> list[MethodRow]:
    """Return the rows with the raw samples, which the environment holds as JSON text."""
    part = record["environment"]
    try:
        samples = read_samples(part.value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise part[SAMPLES].fault("the JSON text of every method's samples") from None
    return [replace(row, **samples.get(row.name, {})) for row in rows]


def _expression(record: _RecordPart) -> Expression:
    inputs, outputs = (_variables(record[part]) for part in ("inputs", "outputs"))
    return Expression(record["text"].text(), inputs, outputs)


def _variables(records: _RecordPart) -> tuple[Variable, ...]:
    return tuple(Variable(part["name"].text(), _shape(part["shape"])) for part in records.each())


def _shape(record: _RecordPart) -> tuple[int, ...]:
    extents = tuple(part.integer() for part in record.each())
    if len(extents) > _MAX_RANK or math.prod(extents) > _LARGEST:
        raise record.fault("the shape of an array")
    return extents


def _matrix(record: _RecordPart) -> NDArray[float64]:
    return record.array(rank=2) if record.value != [] else np.zeros((0, 0))


def _reference(record: _RecordPart, *, proofs: bool) -> ReferenceRow:
    return ReferenceRow(
        jacobian=record["jacobian"].maybe(_matrix),
        digits=record["digits"].integer(),
        error_bound=record["error_bound"].maybe(_RecordPart.size),
        status=record["status"].text(),
        proved=proofs and record["proved"].flag(),
        contradiction=record["contradiction"].text() if proofs else "",
    )


def _method(record: _RecordPart) -> MethodRow:
    status = Status(record["status"].one_of(list(Status)))
    verdict = record["verdict"].maybe(lambda part: part.one_of(_VERDICTS))
    if status is Status.OK and verdict is None:
        raise record["verdict"].fault(f"one of {', '.join(_VERDICTS)}")
    rest: dict[str, Any] = {name: record[name].maybe(_RecordPart.size) for name in _NUMBERS}
    rest |= {name: record[name].maybe(_RecordPart.seconds) for name in _TIMES}
    rest |= {name: record[name].maybe(_RecordPart.integer) for name in _COUNTS}
    return MethodRow(
        name=record["name"].text(),
        family=Family(record["family"].one_of(list(Family))),
        status=status,
        message=record["message"].text(),
        jacobian=record["jacobian"].maybe(_matrix),
        verdict=verdict,
        size=record["size"].maybe(_size),
        **rest,
    )


def _size(record: _RecordPart) -> Size | None:
    """Return the sizes as exact integers; None if none is known."""
    known = dict(record.items())
    sizes = [
        known[name].maybe(lambda part: part.integer(most=None)) if name in known else None
        for name in _SIZES
    ]
    return Size(*sizes) if any(size is not None for size in sizes) else None


def _environment(record: _RecordPart) -> dict[str, str | int | None]:
    found: dict[str, str | int | None] = {}
    for name, part in record.items():
        value = part.value
        found[name] = part.text() if isinstance(value, str) else part.maybe(_RecordPart.integer)
    return found

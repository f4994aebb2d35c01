"""Reader of saved comparisons: every schema ``difflab.comparison/…`` to its record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from difflab.core.strict_json import long_integers
from difflab.errors import InputError
from difflab.lab.kinds import FaultError, RecordPart, read
from difflab.lab.record import (
    SAMPLES,
    SCHEMAS,
    VERDICTS,
    Comparison,
    MethodRow,
    Status,
    read_samples,
)


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
    if not isinstance(schema, str) or schema not in SCHEMAS:
        raise InputError(f"its schema is none of {', '.join(map(repr, SCHEMAS))}")
    part = RecordPart(record, "", SCHEMAS.index(schema) + 1)
    try:
        found: Comparison = read(Comparison, part)
        return replace(found, methods=tuple(_checked(found.methods, part)))
    except FaultError as error:
        raise InputError(f"it does not follow the schema {schema!r}: {error}") from error


def _checked(rows: tuple[MethodRow, ...], record: RecordPart) -> Iterator[MethodRow]:
    """Yield the rows with the raw samples, which the environment holds as JSON text."""
    environment = record["environment"]
    try:
        samples = read_samples(environment.value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise environment[SAMPLES].fault("the JSON text of every method's samples") from None
    for row, part in zip(rows, record["methods"].each(), strict=True):
        if row.status is Status.OK and row.verdict is None:
            raise part["verdict"].fault(f"one of {', '.join(VERDICTS)}")
        yield replace(row, **samples.get(row.name, {}))

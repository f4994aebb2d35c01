"""A comparison as columns and as CSV, a row per method, safe to open in a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from difflab.core.table import csv_text, guarded
from difflab.lab import kinds
from difflab.lab.record import MethodRow, read_samples
from difflab.lab.sampling import spread
from difflab.report.style import clean

_SOURCE = (
    *("difflab", "python", "numpy", "scipy", "sympy", "mpmath", "python-flint", "llvmlite"),
    *("packages", "system", "cpu", "threads", "target", "timeout", "seed", "date"),
)
_ABOUT, _TIMES = ("expression", "point", "order"), ("repetitions", "spread")
COLUMNS = (*_ABOUT, *kinds.cells(MethodRow, {}), *_SOURCE, *_TIMES)


def columns(comparison: Any) -> dict[str, list[Any]]:
    """Return the columns of a comparison, an element per method.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.

    Returns
    -------
    dict of str to list
        The columns `COLUMNS`, numbers in full; None for a missing value.
    """
    record = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
    samples = read_samples(record["environment"])
    rows = []
    for method in record["methods"]:
        times = samples.get(method["name"], {}).get("samples", ())
        rows.append(_row(record, method, times))
    return {name: [row[index] for row in rows] for index, name in enumerate(COLUMNS)}


def csv(comparison: Any) -> str:
    """Return the `columns` of a comparison as CSV (RFC 4180).

    Returns
    -------
    str
        A header of `COLUMNS` and a row per method. Text that a spreadsheet would treat as a
        formula begins with an apostrophe; a missing value is an empty cell.
    """
    cells = ([_cell(value) for value in column] for column in columns(comparison).values())
    return csv_text([COLUMNS, *zip(*cells, strict=True)])


def _row(
    record: Mapping[str, Any], method: Mapping[str, Any], times: Sequence[float]
) -> list[object]:
    made = (record["environment"].get(name) for name in _SOURCE)
    return [
        record["expression"]["text"],
        json.dumps(record["point"], ensure_ascii=False),
        record["order"],
        *kinds.cells(MethodRow, method).values(),
        *(None if value is None else str(value) for value in made),
        *((len(times), spread(times)) if times else (None, None)),
    ]


def _cell(value: object) -> object:
    """Return a text on one line, such that no spreadsheet treats it as a formula."""
    return guarded(clean(value)) if isinstance(value, str) else value

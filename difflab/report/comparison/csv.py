"""A comparison as CSV, a row per method, safe to open in a spreadsheet."""

from __future__ import annotations

import csv as writer
import json
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from difflab.lab.measure import spread
from difflab.lab.record import read_samples
from difflab.report.comparison.view import record_of
from difflab.report.style import clean

__all__ = ["COLUMNS", "csv", "guarded"]

_FIGURES = (
    "max_abs_error",
    "max_rel_error",
    "max_ulp_error",
    "error_estimate",
    "operations",
    "function_evaluations",
    "prepare_seconds",
    "call_seconds",
    "peak_bytes",
)
_SIZES = ("tree", "dag", "simplified_tree", "simplified_dag")
_SOURCE = (
    *("difflab", "python", "numpy", "scipy", "sympy", "mpmath", "llvmlite", "packages"),
    *("system", "cpu", "threads", "target", "timeout", "seed", "date"),
)
COLUMNS = (
    *("expression", "point", "order", "method", "family", "status", "verdict"),
    *_FIGURES,
    *(f"size_{name}" for name in _SIZES),
    *("derivative", "message"),
    *_SOURCE,
    *("repetitions", "spread"),
)

# Some spreadsheets treat a cell that begins with one of these as a formula; the wide forms do
# so in East Asian locales (OWASP, "CSV Injection").
_FORMULA = tuple("=+-@＝＋－＠|%")


def csv(comparison: Any) -> str:
    """Return a comparison as CSV (RFC 4180), numbers in full.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.

    Returns
    -------
    str
        A header of `COLUMNS` and a row per method. Text that a spreadsheet would treat as a
        formula begins with an apostrophe; a missing value is an empty cell.
    """
    record = record_of(comparison)
    buffer = StringIO()
    out = writer.writer(buffer, lineterminator="\n")
    out.writerow(COLUMNS)
    samples = read_samples(record["environment"])
    for method in record["methods"]:
        times = samples.get(method["name"], {}).get("samples", ())
        out.writerow(_row(record, method, times))
    return buffer.getvalue()


def _row(
    record: Mapping[str, Any], method: Mapping[str, Any], times: Sequence[float]
) -> list[object]:
    size = method.get("size") or {}
    made = (record["environment"].get(name) for name in _SOURCE)
    return [
        guarded(record["expression"]["text"]),
        guarded(json.dumps(record["point"], ensure_ascii=False)),
        record["order"],
        *(guarded(method[name] or "") for name in ("name", "family", "status", "verdict")),
        *(method.get(name) for name in _FIGURES),
        *(size.get(name) for name in _SIZES),
        "" if method.get("jacobian") is None else json.dumps(method["jacobian"]),
        guarded(method.get("message") or ""),
        *("" if value is None else guarded(str(value)) for value in made),
        *((len(times), spread(times)) if times else ("", "")),
    ]


def guarded(text: str) -> str:
    """Return `text` on one line, such that no spreadsheet treats it as a formula.

    Examples
    --------
    >>> guarded("=cmd()"), guarded("-x^2"), guarded("sin(x)")
    ("'=cmd()", "'-x^2", 'sin(x)')
    """
    line = clean(text)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line

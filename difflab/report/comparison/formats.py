"""A comparison as a table, CSV, Markdown, LaTeX, an HTML page and a part of a notebook.

A comparison is a record or its dictionary. All text is escaped; CSV has a row per method and is
safe to open in a spreadsheet; pages need no network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

from difflab.core.table import csv_text, guarded
from difflab.core.wording import counted, seconds
from difflab.lab import kinds
from difflab.lab.record import MethodRow, read_samples
from difflab.lab.sampling import spread
from difflab.report import html
from difflab.report.comparison.plots import inline_svg
from difflab.report.comparison.view import ComparisonView
from difflab.report.comparison.view import view as content
from difflab.report.terminal import clean, shorten

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


def view(comparison: Any) -> ComparisonView:
    """Return the content of the reports about a comparison, with the picture of its page."""
    picture, caption = partial(inline_svg, comparison), "accuracy against cost"
    return replace(content(comparison), picture=picture, caption=caption)


def index(comparisons: Sequence[tuple[str, Any]], faults: Mapping[str, str]) -> str:
    """Return one page about many saved comparisons, those with a wrong method first.

    Parameters
    ----------
    comparisons : sequence of (str, Comparison or mapping)
        The name of each file, and its comparison.
    faults : mapping of str to str
        The files that could not be read as a comparison, and why.
    """
    views = [(name, view(comparison)) for name, comparison in comparisons]
    wrong = sum(not shown.agreed for _, shown in views)
    body = [
        "<main>",
        f"<h1>{counted(len(views), 'comparison')}, {wrong} with a method that disagrees</h1>",
    ]
    for name, shown in sorted(views, key=lambda pair: (pair[1].agreed, pair[0])):
        body += [
            f"<details{'' if shown.agreed else ' open class=wrong'}>",
            f"<summary><code>{escape(shorten(shown.expression, 90))}</code> "
            f'<span class="note">{escape(_in_short(shown))} · {escape(name)}</span></summary>',
            *shown.html_lines(),
            "</details>",
        ]
    if faults:
        body += ["<h2>Skipped</h2>", "<ul>"]
        body += [
            f"<li><code>{escape(name)}</code>: {escape(why)}</li>" for name, why in faults.items()
        ]
        body.append("</ul>")
    return html.document("difflab comparisons", [*body, "</main>"])


def _in_short(shown: ComparisonView) -> str:
    """Return the number of methods that agree, and the fastest of them."""
    agreeing = [row for row in shown.rows if row.outcome in ("agree", "convention")]
    text = f"{len(agreeing)} of {len(shown.rows)} agree"
    timed = [(row.call_seconds, row.name) for row in agreeing if row.call_seconds is not None]
    if not timed:
        return text
    call, name = min(timed)
    return f"{text}, fastest {name} ({seconds(call)})"

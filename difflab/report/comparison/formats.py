"""A comparison as a table, Markdown, LaTeX, an HTML page and a part of a notebook.

A comparison is a record or its dictionary. All text is escaped; pages need no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

from difflab.core.quantities import seconds
from difflab.core.wording import counted
from difflab.report import html
from difflab.report.comparison.csv import csv
from difflab.report.comparison.plots import inline_svg
from difflab.report.comparison.view import ComparisonView
from difflab.report.comparison.view import view as content
from difflab.report.style import shorten

__all__ = ["csv", "index", "view"]


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

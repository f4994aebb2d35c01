"""A comparison as one HTML page without network access, and as a part of a notebook.

All text is escaped; the picture is part of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from difflab.core.quantities import seconds
from difflab.core.wording import counted
from difflab.report import html
from difflab.report.comparison.plots import inline_svg
from difflab.report.comparison.view import ComparisonView, view
from difflab.report.style import shorten

__all__ = ["fragment", "index", "page", "summary"]


def page(comparison: Any) -> str:
    """Return a comparison as a whole HTML page.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    shown = view(comparison)
    return html.document(
        f"{shown.derivative_name} of {shown.expression}", _whole(comparison, shown)
    )


def fragment(comparison: Any) -> str:
    """Return a comparison as a part of another page, such as a notebook.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    return html.fragment(_whole(comparison, view(comparison)))


def _whole(comparison: Any, shown: ComparisonView) -> list[str]:
    """Return the texts and the picture of one comparison."""
    return [
        f"<main{'' if shown.agreed else ' class=wrong'}>",
        f"<h1>{escape(shown.derivative_name.capitalize())} of</h1>",
        *summary(shown),
        '<figure style="margin:0" role="img" aria-label="accuracy against cost">',
        inline_svg(comparison),
        "</figure>",
        f"<footer>{escape(' · '.join(map(' '.join, shown.environment)))}</footer>",
        "</main>",
    ]


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
            *summary(shown),
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


def summary(shown: ComparisonView) -> list[str]:
    """Return all but the picture."""
    parts = [f"<pre>{escape(shown.expression)}</pre>"]
    parts += [html.labelled(shown.facts), html.table(shown.table)]
    parts += [
        f'<p class="note">{escape(name)}: {escape(message)}</p>' for name, message in shown.notes
    ]
    if shown.sentence:
        parts.append(f'<p class="sentence">{escape(shown.sentence)}</p>')
    return parts

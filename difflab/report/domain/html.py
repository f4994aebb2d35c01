"""A comparison over a domain as one HTML page without network access, and in a notebook.

All text is escaped; the picture is part of the page.
"""

from __future__ import annotations

from html import escape

from difflab.lab.domain.record import DomainComparison
from difflab.report import html
from difflab.report.domain.plots import inline_svg
from difflab.report.domain.view import view

__all__ = ["fragment", "page"]


def page(result: DomainComparison) -> str:
    """Return a comparison over a domain as a whole HTML page."""
    shown = view(result)
    return html.document(f"{shown.expression} over a domain", _whole(result))


def fragment(result: DomainComparison) -> str:
    """Return a comparison over a domain as a part of another page, such as a notebook."""
    return html.fragment(_whole(result))


def _whole(result: DomainComparison) -> list[str]:
    shown = view(result)
    notes = [
        f'<p class="note">{escape(name)}: {escape(message)}</p>' for name, message in shown.notes
    ]
    return [
        f"<main{'' if shown.agreed else ' class=wrong'}>",
        "<h1>Over a domain</h1>",
        f"<pre>{escape(shown.expression)}</pre>",
        html.labelled(shown.facts),
        html.table(shown.table),
        *notes,
        f'<p class="sentence">{escape(shown.sentence)}</p>' if shown.sentence else "",
        '<figure style="margin:0" role="img" aria-label="verdicts and errors over the domain">',
        inline_svg(result),
        "</figure>",
        f"<footer>{escape(' · '.join(map(' '.join, shown.environment)))}</footer>",
        "</main>",
    ]

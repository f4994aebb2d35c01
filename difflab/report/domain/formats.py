"""A comparison over a domain as a table, Markdown, an HTML page and a part of a notebook.

All text is escaped; pages need no network.
"""

from __future__ import annotations

from typing import Unpack

from difflab.lab.domain.record import DomainComparison
from difflab.report import html, summary
from difflab.report.domain.data import csv, parquet
from difflab.report.domain.plots import inline_svg
from difflab.report.domain.view import view
from difflab.report.terminal import Screen

__all__ = ["csv", "fragment", "markdown", "page", "parquet", "table"]

_PICTURE = "verdicts and errors over the domain"


def table(result: DomainComparison, **screen: Unpack[Screen]) -> str:
    """Return the table of all methods, as `difflab.report.terminal.draw`."""
    return summary.table(view(result), **screen)


def markdown(result: DomainComparison) -> str:
    """Return a comparison over a domain as Markdown."""
    return summary.markdown(view(result))


def page(result: DomainComparison) -> str:
    """Return a comparison over a domain as a whole HTML page."""
    shown = view(result)
    body = summary.html_page(shown, inline_svg(result), _PICTURE)
    return html.document(f"{shown.expression} over a domain", body)


def fragment(result: DomainComparison) -> str:
    """Return a comparison over a domain as a part of another page, such as a notebook."""
    return html.fragment(summary.html_page(view(result), inline_svg(result), _PICTURE))

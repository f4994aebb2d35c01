"""A comparison over a domain on the page of its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from difflab.lab.domain.record import read_rows
from difflab.lab.study.cases import Domain
from difflab.report import html
from difflab.report.domain.view import methods_table, notes
from difflab.report.style import clean


def domain_summary(
    text: str, domain: Domain, documents: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the function, the domain, and a table with a line for each method.

    Parameters
    ----------
    text : str
        The function.
    domain : Domain
        The domain.
    documents : sequence of mapping
        Comparisons of the schema ``difflab.domain/3``.
    """
    yield f"<h1>Over {escape(clean(domain.label))}</h1><pre>{escape(clean(text))}</pre>"
    yield f"<p>{domain.points:,} points, and those that a search suspects.</p>"
    rows = [row for document in documents for row in read_rows(document)]
    yield html.table(methods_table(rows))
    for name, remark in (note for row in rows for note in notes(row)):
        yield f'<p class="note">{escape(f"{name}: {remark}")}</p>'

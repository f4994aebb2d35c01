"""A comparison over a domain on the page of its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from difflab.core.quantities import error, percent, seconds
from difflab.core.table import Cell, Column, Table
from difflab.lab.study.cases import Domain
from difflab.report import html
from difflab.report.style import clean

__all__ = ["domain_summary"]


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
        Comparisons of the schema ``difflab.domain/2``.
    """
    yield f"<h1>Over {escape(clean(domain.label))}</h1><pre>{escape(clean(text))}</pre>"
    yield f"<p>{domain.points:,} points, and those that a search suspects.</p>"
    rows = [_row(row) for document in documents for row in document["methods"]]
    yield html.table(Table(_COLUMNS, rows))


def _row(row: Mapping[str, Any]) -> tuple[object, ...]:
    shares = ", ".join(f"{percent(share)} {name}" for name, share in row["shares"].items() if share)
    ulps, worst = row["ulps"] or {}, row["worst"]
    verdict = str(worst["verdict"] if worst else row["status"])
    point = worst["point"].items() if worst else ()
    return (
        *(clean(row["name"]), shares or clean(row["message"])),
        *(ulps.get(level) for level in ("50", "99", "100")),
        *(Cell(verdict, verdict), clean(", ".join(f"{name} = {value}" for name, value in point))),
        *(row["prepare_seconds"], row["batch_seconds"]),
    )


def _ulp(value: Any) -> str:
    """Return an error of strict JSON, where infinity is text."""
    return error(None if value is None else float(value))


_COLUMNS = (
    *(Column("method"), Column("verdicts")),
    *(Column(name, right=True, format=_ulp) for name in ("ULP 50 %", "99 %", "100 %")),
    *(Column("worst verdict"), Column("worst point")),
    *(Column(name, right=True, format=seconds) for name in ("prepare", "all points")),
)

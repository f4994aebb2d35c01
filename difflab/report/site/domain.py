"""A comparison over a domain on the page of its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from difflab.core.quantities import ABSENT, error, percent, seconds
from difflab.lab.study.cases import Domain
from difflab.report.style import clean

__all__ = ["domain_summary"]

_HEADINGS = (
    *("method", "verdicts", "ULP 50 %", "99 %", "100 %"),
    *("worst verdict", "worst point", "prepare", "all points"),
)


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
        Comparisons of the schema ``difflab.domain/1``.
    """
    yield f"<h1>Over {escape(clean(domain.label))}</h1><pre>{escape(clean(text))}</pre>"
    yield f"<p>{domain.points:,} points, and those that a search suspects.</p>"
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in _HEADINGS)
    lines = "".join(_line(row) for document in documents for row in document["methods"])
    yield (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _line(row: Mapping[str, Any]) -> str:
    shares = ", ".join(f"{percent(share)} {name}" for name, share in row["shares"].items() if share)
    ulps, worst = row["ulps"] or {}, row["worst"]
    verdict = worst["verdict"] if worst else row["status"]
    point = (
        ", ".join(f"{name} = {value}" for name, value in worst["point"].items()) if worst else ""
    )
    cells = [
        f"<td>{escape(clean(row['name']))}</td>",
        f"<td>{escape(shares or clean(row['message']))}</td>",
        *(f'<td class="figure">{_ulp(ulps.get(level))}</td>' for level in ("50", "99", "100")),
        f'<td class="{escape(str(verdict))}">{escape(str(verdict))}</td>',
        f"<td>{escape(clean(point))}</td>",
        *(
            f'<td class="figure">{ABSENT if row[name] is None else seconds(row[name])}</td>'
            for name in ("prepare_seconds", "batch_seconds")
        ),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _ulp(value: Any) -> str:
    """Return an error of strict JSON, where infinity is text."""
    return error(None if value is None else float(value))

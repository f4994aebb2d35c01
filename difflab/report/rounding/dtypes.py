"""The content of the reports about an assignment of dtypes."""

from __future__ import annotations

from html import escape
from typing import Unpack

from difflab.core.table import Column, Table, csv_text, guarded
from difflab.core.wording import counted, percent, significant
from difflab.report import markdown as md
from difflab.report.summary import Section, Summary, heading, point_text
from difflab.report.terminal import SHOWN_EXPRESSION, Screen, clean, shorten
from difflab.rounding.assignment import DtypeAssignment

SHOWN = 40


def view(result: DtypeAssignment) -> Summary:
    """Return the content of the reports, without the code."""
    ends = (f"{clean(name)} = {a:g} … {b:g}" for name, (a, b) in result.over.items())
    expression = shorten(clean(heading(result.original)), SHOWN_EXPRESSION)
    return Summary(
        heading="Cheapest dtypes",
        expression=expression,
        facts=[
            ("over", f"{', '.join(ends)}: {counted(result.points, 'point')}"),
            ("tolerance", f"{result.tolerance:g}"),
        ],
        sections=[Section(_table(result), results=list(_results(result)))],
        title=f"Cheapest dtypes of {expression}",
    )


def _table(result: DtypeAssignment) -> Table:
    columns = (
        *(Column("operation", wrap=True, widest=30), Column("where"), Column("dtype")),
        *(Column("saves", right=True), Column("error", right=True)),
        Column("not narrower because", wrap=True, widest=30),
    )
    rows = [
        (
            shorten(clean(_named(each.operation, each.text)), 60),
            *(clean(str(each.site)), each.dtype, f"{each.saved} bits" if each.saved else ""),
            *(percent(each.error), clean(each.refused)),
        )
        for each in result.operations[:SHOWN]
    ]
    left = len(result.operations) - SHOWN
    if left > 0:
        rows.append((f"{left:,} more", "", "", "", "", "in --format json or csv"))
    return Table(columns, rows)


def _named(operation: str, text: str) -> str:
    return text if operation in (*text.split("("), "input") else f"{operation}: {text}"


def _results(result: DtypeAssignment) -> list[tuple[str, str]]:
    counts = ", ".join(f"{number} in {name}" for name, number in result.counts.items())
    saved = 1 - result.bits / max(result.bits_of_double, 1)
    worst = f"{significant(result.verified, 3)} of the tolerance, at {point_text(result.worst)}"
    compared = f"{counted(result.compared, 'point')} compared with mpmath"
    return [
        ("dtypes", counts),
        ("bits", f"{result.bits:,} of {result.bits_of_double:,}: {percent(saved)} saved"),
        ("error", f"{worst} ({compared})"),
    ]


def python(result: DtypeAssignment) -> str:
    """Return the code, or a comment that says why there is none."""
    return (result.code or NO_CODE) + "\n"


NO_CODE = "# an operation has no code over NumPy, such as a loop"


def table(result: DtypeAssignment, **screen: Unpack[Screen]) -> str:
    """Return the table, and the code below it."""
    return f"{view(result).table(**screen)}\n{python(result)}"


def markdown(result: DtypeAssignment) -> str:
    """Return the report as Markdown, with the code."""
    return f"{view(result).markdown()}\n{md.block(python(result).rstrip())}\n"


def page(result: DtypeAssignment) -> str:
    """Return a page with the code."""
    return _with_code(view(result).page(), result)


def fragment(result: DtypeAssignment) -> str:
    """Return a part of another page, with the code."""
    return _with_code(view(result).fragment(), result)


def _with_code(text: str, result: DtypeAssignment) -> str:
    return text.replace("</main>", f"<pre>{escape(python(result))}</pre></main>")


def csv(result: DtypeAssignment) -> str:
    """Return the operations as CSV."""
    heads = ["node", "operation", "text", "where", "dtype", "saved", "error", "refused"]
    rows = [
        (
            *(each.node, each.operation, guarded(clean(each.text))),
            *(guarded(clean(str(each.site))), each.dtype, each.saved, each.error, each.refused),
        )
        for each in result.operations
    ]
    return csv_text([heads, *rows])

"""A plain and a stabilised function compared: a table, Markdown, LaTeX, HTML page and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, Unpack

from difflab.core.table import Cell, Column, Table, facts
from difflab.lab.kinds import columns
from difflab.lab.record import MethodRow
from difflab.lab.side_by_side import SideBySide
from difflab.report import html
from difflab.report import latex as tex
from difflab.report import markdown as md
from difflab.report.comparison import formats
from difflab.report.comparison.view import ComparisonView, view
from difflab.report.passes import SHOWN_REWRITES, position, remarks, rewrites_text
from difflab.report.terminal import Part, Screen, clean, draw
from difflab.stabilisation.proof import Stabilised

_BRIEF = [column for column in columns(MethodRow) if column.brief]
_FIGURES = [column.shown for column in _BRIEF]
_COLUMNS = (
    *(Column("method", wrap=True), Column("plain"), *_FIGURES),
    *(Column("stabilised"), *_FIGURES),
)


def table(both: SideBySide, **screen: Unpack[Screen]) -> str:
    """Return both as one table, with the rewrites below it.

    Parameters
    ----------
    both : SideBySide
        The result of `compare_stabilised`.
    colour, width, plain
        As for `difflab.report.terminal.draw`.
    """
    pair = view(both.plain), view(both.stabilised)
    parts: list[Part] = [facts(_facts(*pair)), _methods(*pair), rewrites_text(both.rewriting)]
    if pair[1].sentence:
        parts.append(Cell(f"Stabilised: {pair[1].sentence}", "label"))
    return draw(parts, **screen)


def _facts(plain: ComparisonView, stable: ComparisonView) -> list[tuple[str, str]]:
    """Return the labelled lines above the table."""
    values = [("value", f"{plain.value} plain"), ("", f"{stable.value} stabilised")]
    own = list(plain.facts)
    if plain.value != stable.value:
        index = own.index(("value", plain.value))
        own[index : index + 1] = values
    return [("plain", plain.expression), ("stabilised", stable.expression), *own]


def _methods(plain: ComparisonView, stable: ComparisonView) -> Table:
    rows = [
        (left.name, *_cells(left), *_cells(right))
        for left, right in zip(plain.rows, stable.rows, strict=True)
    ]
    return Table(_COLUMNS, rows, gap=2)


def _cells(row: MethodRow) -> tuple[Any, ...]:
    return Cell(row.outcome, row.outcome), *(getattr(row, column.name) for column in _BRIEF)


def csv(both: SideBySide) -> str:
    """Return both as one CSV table; the column of the expression distinguishes them."""
    stable = formats.csv(both.stabilised).split("\n", 1)[1]
    return formats.csv(both.plain) + stable


def markdown(both: SideBySide) -> str:
    """Return both as Markdown, with the user's text escaped."""
    plain, stable = view(both.plain), view(both.stabilised)
    lines = [f"### {plain.derivative_name.capitalize()} of", "", md.block(plain.expression), ""]
    lines += ["stabilised", "", md.block(stable.expression), ""]
    lines += [*md.labelled(_facts(plain, stable)[2:]), "", md.table(_methods(plain, stable)), ""]
    lines += [
        f"- {md.literal(f'{position(item)}{clean(item.before)} → {clean(item.after)}: ')}"
        f"{md.literal(f'{item.why}; {item.proof}')}"
        for item in both.rewriting.first(SHOWN_REWRITES)
    ]
    lines += [f"- {remark}" for remark in remarks(both.rewriting)]
    return "\n".join(lines) + "\n"


def latex(both: SideBySide) -> str:
    """Return both as LaTeX, with the user's text escaped."""
    pair = view(both.plain), view(both.stabilised)
    paragraphs = ["\n".join(tex.labelled(_facts(*pair))), tex.table(_methods(*pair))]
    return "\n\n".join(paragraphs) + "\n"


def page(both: SideBySide) -> str:
    """Return both as a whole HTML page that needs no network."""
    return html.document(f"stabilised {clean(both.plain.expression.text)}", _body(both))


def fragment(both: SideBySide) -> str:
    """Return both as a part of another page, such as a notebook."""
    return html.fragment(_body(both))


def _body(both: SideBySide) -> list[str]:
    plain, stable = view(both.plain), view(both.stabilised)
    parts = ["<main>", f"<h1>{escape(plain.derivative_name.capitalize())}, stabilised</h1>"]
    parts += [html.labelled(_facts(plain, stable)), html.table(_methods(plain, stable))]
    parts.append("<h2>Rewrites</h2>")
    parts += [f'<p class="note">{line}</p>' for line in _rewrites(both.rewriting)]
    parts += ["<h2>Plain</h2>", *plain.html_lines(), "<h2>Stabilised</h2>", *stable.html_lines()]
    return [*parts, "</main>"]


def _rewrites(rewriting: Stabilised) -> Iterator[str]:
    """Yield the lines about the rewrites, with their formulas as code."""
    for item in rewriting.first(SHOWN_REWRITES):
        formulas = (f"<code>{escape(clean(each))}</code>" for each in (item.before, item.after))
        reason = escape(f"{item.why}; {item.proof}")
        yield f"{escape(position(item))}{' → '.join(formulas)}: {reason}"
    yield from map(escape, remarks(rewriting))

"""A plain and a stabilised function compared: as a table, Markdown, HTML page and CSV."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from difflab.lab.side_by_side import SideBySide
from difflab.report.comparison import csv as spreadsheets
from difflab.report.comparison.html import document, style, summary
from difflab.report.comparison.markdown import block, cells, literal
from difflab.report.comparison.view import ComparisonView, DisplayedRow, view
from difflab.report.passes import SHOWN_REWRITES, rewrites_text
from difflab.report.style import ABSENT, OUTCOMES, clean, error
from difflab.report.terminal import WIDTH, draw
from difflab.stabilisation.proof import ProvedRewrite

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["csv", "fragment", "markdown", "page", "table"]

HEADINGS = ("method", "plain", "ULP", "stabilised", "ULP")


def table(
    both: SideBySide, *, colour: bool = False, width: int = WIDTH, plain: bool = False
) -> str:
    """Return both as one table, with the rewrites below it.

    Parameters
    ----------
    both : SideBySide
        The result of `compare_stabilised`.
    colour : bool
        Whether to colour the text with terminal sequences.
    width : int
        Columns to fill at most.
    plain : bool
        Whether to use ASCII only.
    """
    from rich.text import Text

    pair = view(both.plain), view(both.stabilised)
    parts = [_heading(*pair), _methods(*pair), Text(rewrites_text(both.rewriting))]
    if pair[1].sentence:
        parts.append(Text(f"Stabilised: {pair[1].sentence}", style="bold", overflow="fold"))
    return draw(parts, colour=colour, width=width, plain=plain)


def _facts(plain: ComparisonView, stable: ComparisonView) -> list[tuple[str, str]]:
    """Return the labelled lines above the table."""
    facts = [("plain", plain.expression), ("stabilised", stable.expression), ("at", plain.point)]
    values = [("value", f"{plain.value} plain"), ("", f"{stable.value} stabilised")]
    facts += values if plain.value != stable.value else [("value", plain.value)]
    names = [plain.derivative_name, *[""] * (len(plain.entries) - 1)]
    facts += list(zip(names, plain.entries, strict=True))
    return [*facts, ("referee", plain.referee)]


def _heading(plain: ComparisonView, stable: ComparisonView) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, text in _facts(plain, stable):
        grid.add_row(label, Text(text))
    return grid


def _pairs(
    plain: ComparisonView, stable: ComparisonView
) -> list[tuple[DisplayedRow, DisplayedRow]]:
    return list(zip(plain.rows, stable.rows, strict=True))


def _cells(left: DisplayedRow, right: DisplayedRow) -> tuple[str, ...]:
    figures = [error(row.max_ulp_error) if row.computed else ABSENT for row in (left, right)]
    return left.name, left.outcome, figures[0], right.outcome, figures[1]


def _methods(plain: ComparisonView, stable: ComparisonView) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for column, heading in enumerate(HEADINGS):
        grid.add_column(
            heading, justify="right" if heading == "ULP" else "left", no_wrap=column > 0
        )
    for pair in _pairs(plain, stable):
        texts = [Text(text, style=OUTCOMES.get(text, "")) for text in _cells(*pair)]
        grid.add_row(*texts)
    return grid


def csv(both: SideBySide) -> str:
    """Return both as one CSV table; the column of the expression distinguishes them."""
    stable = spreadsheets.csv(both.stabilised).split("\n", 1)[1]
    return spreadsheets.csv(both.plain) + stable


def markdown(both: SideBySide) -> str:
    """Return both as Markdown, with the user's text escaped."""
    plain, stable = view(both.plain), view(both.stabilised)
    lines = [f"### {plain.derivative_name.capitalize()} of", "", block(plain.expression), ""]
    lines += ["stabilised", "", block(stable.expression), ""]
    lines += [
        f"- {literal(f'{label} {text}'.strip())}" for label, text in _facts(plain, stable)[2:]
    ]
    lines += ["", cells(HEADINGS), "|---|---|---:|---|---:|"]
    lines += [cells(_cells(*pair)) for pair in _pairs(plain, stable)]
    lines += [""]
    lines += [
        f"- {literal(_position(item))}{literal(clean(item.before))} → "
        f"{literal(clean(item.after))}: {literal(item.why)}; {literal(item.proof)}"
        for item in both.rewriting.first(SHOWN_REWRITES)
    ]
    lines += _more(both)
    return "\n".join(lines) + "\n"


def _position(item: ProvedRewrite) -> str:
    return f"{item.place}: " if item.place else ""


def _more(both: SideBySide) -> list[str]:
    """Return the lines after the rewrites."""
    left = len(both.rewriting) - SHOWN_REWRITES
    lines = [f"- … and {left:,} more"] if left > 0 else []
    lines += [f"- not applied, values differ: {rule}" for rule in both.rewriting.refused]
    return lines if len(both.rewriting) else [*lines, "- nothing to stabilise"]


def page(both: SideBySide) -> str:
    """Return both as a whole HTML page that needs no network."""
    return document(f"stabilised {clean(both.plain.expression.text)}", _body(both))


def fragment(both: SideBySide) -> str:
    """Return both as a part of another page, such as a notebook."""
    return "\n".join(['<div class="difflab">', style(), *_body(both), "</div>"])


def _body(both: SideBySide) -> list[str]:
    plain, stable = view(both.plain), view(both.stabilised)
    parts = ["<main>", f"<h1>{escape(plain.derivative_name.capitalize())}, stabilised</h1>", "<dl>"]
    for label, text in _facts(plain, stable):
        parts.append(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>")
    parts += ["</dl>", '<div class="scroll"><table>', _line("th", HEADINGS)]
    parts += [_line("td", _cells(*pair)) for pair in _pairs(plain, stable)]
    parts += ["</table></div>", "<h2>Rewrites</h2>"]
    parts += [
        f'<p class="note">{escape(_position(item))}<code>{escape(clean(item.before))}</code> → '
        f"<code>{escape(clean(item.after))}</code>: {escape(item.why)}; {escape(item.proof)}</p>"
        for item in both.rewriting.first(SHOWN_REWRITES)
    ]
    parts += [f'<p class="note">{escape(line.removeprefix("- "))}</p>' for line in _more(both)]
    parts += ["<h2>Plain</h2>", *summary(plain), "<h2>Stabilised</h2>", *summary(stable)]
    return [*parts, "</main>"]


def _line(tag: str, texts: tuple[str, ...]) -> str:
    line = (
        f'<{tag} class="{"figure" if column in (2, 4) else escape(text)}">{escape(text)}</{tag}>'
        for column, text in enumerate(texts)
    )
    return f"<tr>{''.join(line)}</tr>"

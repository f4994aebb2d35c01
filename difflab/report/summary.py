"""What a report says, in every format: as a table, Markdown, LaTeX and HTML.

All text of users is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Unpack

from difflab.core.table import Cell, Table, facts
from difflab.report import html
from difflab.report import latex as tex
from difflab.report import markdown as md
from difflab.report.terminal import Part, Screen, draw

__all__ = ["Summary", "html_lines", "html_page", "latex", "markdown", "table"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The content of a report about one function, as text that is safe to print.

    Attributes
    ----------
    heading : str
        What the report is about, before the function.
    expression : str
        The function.
    facts : sequence of (str, str)
        The labelled texts above the table.
    table : Table
        The table of all methods.
    notes : sequence of (str, str)
        The lines below it: the methods of which something is said, and the message.
    sentence : str
        The conclusion; empty if there is none.
    environment : sequence of (str, str)
        Versions and settings.
    agreed : bool
        Whether no method is wrong.
    """

    heading: str
    expression: str
    facts: Sequence[tuple[str, str]]
    table: Table
    notes: Sequence[tuple[str, str]]
    sentence: str
    environment: Sequence[tuple[str, str]]
    agreed: bool


def table(shown: Summary, **screen: Unpack[Screen]) -> str:
    """Return the table, with the facts above it and the notes below it.

    Parameters
    ----------
    shown : Summary
        The content.
    screen
        As for `difflab.report.terminal.draw`.
    """
    parts: list[Part] = [facts([("f", shown.expression), *shown.facts]), shown.table]
    if shown.notes:
        parts.append([Cell(f"{names}: {message}", "note") for names, message in shown.notes])
    if shown.sentence:
        parts.append(Cell(shown.sentence, "label"))
    return draw(parts, **screen)


def markdown(shown: Summary) -> str:
    """Return the content as Markdown, for a pull request or a notebook."""
    lines = [f"### {shown.heading}", "", md.block(shown.expression), ""]
    lines += [*md.labelled(shown.facts), "", md.table(shown.table)]
    if shown.notes:
        lines.append("")
        lines += [f"- {md.literal(f'{names}: {message}')}" for names, message in shown.notes]
    if shown.sentence:
        lines += ["", f"**{md.literal(shown.sentence)}**"]
    return "\n".join(lines) + "\n"


def latex(shown: Summary) -> str:
    """Return the facts, the table and the notes as LaTeX, for a paper."""
    labelled = tex.labelled([("f", shown.expression), *shown.facts])
    paragraphs = ["\n".join(labelled), tex.table(shown.table)]
    paragraphs += [tex.literal(f"{names}: {message}") for names, message in shown.notes]
    if shown.sentence:
        paragraphs.append(tex.literal(shown.sentence))
    return "\n\n".join(paragraphs) + "\n"


def html_lines(shown: Summary) -> list[str]:
    """Return the lines of HTML, without heading and picture."""
    parts = [f"<pre>{escape(shown.expression)}</pre>"]
    parts += [html.labelled(shown.facts), html.table(shown.table)]
    parts += [
        f'<p class="note">{escape(names)}: {escape(message)}</p>' for names, message in shown.notes
    ]
    if shown.sentence:
        parts.append(f'<p class="sentence">{escape(shown.sentence)}</p>')
    return parts


def html_page(shown: Summary, picture: str, label: str) -> list[str]:
    """Return the lines of a page's main part, with the picture, an element ``<svg>``."""
    return [
        f"<main{'' if shown.agreed else ' class=wrong'}>",
        f"<h1>{escape(shown.heading)}</h1>",
        *html_lines(shown),
        f'<figure style="margin:0" role="img" aria-label="{escape(label)}">',
        f'<div class="picture">{picture}</div>',
        "</figure>",
        f"<footer>{escape(' · '.join(map(' '.join, shown.environment)))}</footer>",
        "</main>",
    ]

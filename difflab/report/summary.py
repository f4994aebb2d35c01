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

__all__ = ["Section", "Summary", "html_lines", "html_page", "latex", "markdown", "table"]


@dataclass(frozen=True)
class Section:
    """A table with its title and its results.

    Attributes
    ----------
    table : Table
        The table.
    title : str
        Its title; empty for an only table.
    results : sequence of (str, str)
        Labelled texts below it.
    kind : str
        What the title is, as of `difflab.core.table.Cell`, if it has a style of its own.
    """

    table: Table
    title: str = ""
    results: Sequence[tuple[str, str]] = ()
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The content of a report, as text that is safe to print.

    Attributes
    ----------
    heading : str
        What the report is about, before the function.
    expression : str
        The function; empty if there is none.
    facts : sequence of (str, str)
        The labelled texts above the tables.
    sections : sequence of Section
        The tables.
    notes : sequence of (str, str)
        The lines below them: the methods of which something is said, and the message.
    sentence : str
        The conclusion; empty if there is none.
    environment : sequence of (str, str)
        Versions and settings.
    agreed : bool
        Whether no method is wrong.
    """

    heading: str
    expression: str = ""
    facts: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section]
    notes: Sequence[tuple[str, str]] = ()
    sentence: str = ""
    environment: Sequence[tuple[str, str]] = ()
    agreed: bool = True

    @property
    def all_facts(self) -> list[tuple[str, str]]:
        """The function and the other facts."""
        return [("f", self.expression)] * bool(self.expression) + [*self.facts]

    @property
    def remarks(self) -> list[str]:
        """The notes as lines."""
        return [": ".join(filter(None, note)) for note in self.notes]


def table(shown: Summary, **screen: Unpack[Screen]) -> str:
    """Return the tables, with the facts above them and the notes below them.

    Parameters
    ----------
    shown : Summary
        The content.
    screen
        As for `difflab.report.terminal.draw`.
    """
    parts: list[Part] = [facts(shown.all_facts)] * bool(shown.all_facts)
    for section in shown.sections:
        parts += [Cell(section.title, section.kind or "label")] * bool(section.title)
        parts.append(section.table)
        if section.results:
            results = ((label, Cell(text, "label")) for label, text in section.results)
            parts.append(facts(results, gap=1))
    if shown.notes:
        parts.append([Cell(remark, "note") for remark in shown.remarks])
    if shown.sentence:
        parts.append(Cell(shown.sentence, "label"))
    return draw(parts, **screen)


def markdown(shown: Summary) -> str:
    """Return the content as Markdown, for a pull request or a notebook."""
    parts = [f"### {md.literal(shown.heading)}"]
    if shown.expression:
        parts.append(md.block(shown.expression))
    if shown.facts:
        parts.append("\n".join(md.labelled(shown.facts)))
    for section in shown.sections:
        if section.title:
            parts.append(f"#### {md.literal(section.title)}")
        parts.append(md.table(section.table))
        if section.results:
            parts.append(
                "\n".join(f"- **{md.literal(' '.join(pair))}**" for pair in section.results)
            )
    if shown.notes:
        parts.append("\n".join(f"- {md.literal(remark)}" for remark in shown.remarks))
    if shown.sentence:
        parts.append(f"**{md.literal(shown.sentence)}**")
    return "\n\n".join(parts) + "\n"


def latex(shown: Summary) -> str:
    """Return the facts, the tables and the notes as LaTeX, for a paper."""
    paragraphs = ["\n".join(tex.labelled(shown.all_facts))]
    for section in shown.sections:
        paragraphs += [tex.literal(section.title)] * bool(section.title)
        paragraphs.append(tex.table(section.table))
        if section.results:
            paragraphs.append("\n".join(tex.labelled(section.results)))
    paragraphs += map(tex.literal, shown.remarks)
    if shown.sentence:
        paragraphs.append(tex.literal(shown.sentence))
    return "\n\n".join(paragraphs) + "\n"


def html_lines(shown: Summary) -> list[str]:
    """Return the lines of HTML, without heading and picture."""
    parts = [f"<pre>{escape(shown.expression)}</pre>"] * bool(shown.expression)
    parts += [html.labelled(shown.facts)] * bool(shown.facts)
    for section in shown.sections:
        if section.title:
            title = escape(section.title)
            kind = f'<span class="{section.kind}">{title}</span>' if section.kind else title
            parts.append(f"<h2>{kind}</h2>")
        parts.append(html.table(section.table))
        if section.results:
            results = "<br>".join(escape(" ".join(pair)) for pair in section.results)
            parts.append(f'<p class="sentence">{results}</p>')
    parts += [f'<p class="note">{escape(remark)}</p>' for remark in shown.remarks]
    if shown.sentence:
        parts.append(f'<p class="sentence">{escape(shown.sentence)}</p>')
    return parts


def html_page(shown: Summary, picture: str = "", label: str = "") -> list[str]:
    """Return the lines of a page's main part, with the picture, an element ``<svg>``."""
    body = [
        f"<main{'' if shown.agreed else ' class=wrong'}>",
        f"<h1>{escape(shown.heading)}</h1>",
        *html_lines(shown),
    ]
    if picture:
        body += [
            f'<figure style="margin:0" role="img" aria-label="{escape(label)}">',
            f'<div class="picture">{picture}</div>',
            "</figure>",
        ]
    if shown.environment:
        body.append(f"<footer>{escape(' · '.join(map(' '.join, shown.environment)))}</footer>")
    return [*body, "</main>"]

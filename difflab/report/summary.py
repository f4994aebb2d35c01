"""Content of a report in every format, and the headings of functions and points.

All text of users is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Unpack

import numpy as np

from difflab.core.table import Cell, Column, Table, facts
from difflab.core.wording import exact, shape_text, significant
from difflab.graph.function import Function
from difflab.report import html
from difflab.report import latex as tex
from difflab.report import markdown as md
from difflab.report.terminal import Part, Screen, clean, draw

READABLE = 400
"""Most nodes of a graph whose text is shown."""


def heading(function: Function) -> str:
    """Return the program that was parsed, else the function as text, or its inputs and outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> heading(dl.parse("x^2 # a square")), heading(dl.gradient(dl.parse("x^2")))
    ('x^2 # a square', 'gradient = [2*x]')
    """
    if function.text is not None:
        return function.text
    if len(function.graph) > READABLE:
        return repr(function)
    from difflab.language.printers import text

    return text(function, whole=True, calls=True)


_SHOWN = 6


def point_text(point: Mapping[str, Any]) -> str:
    """Return the values of the first inputs and of the last, in one line."""
    names = list(point)
    texts = [f"{clean(name)} = {_values(point[name])}" for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        last = names[-1]
        texts[-1] = f"…, {clean(last)} = {_values(point[last])}  ({len(names)} inputs)"
    return ", ".join(texts)


def _values(value: Any) -> str:
    """Return a scalar or a few elements in full, an array as its first entries and its shape."""
    array = np.asarray(value)
    if array.ndim == 0:
        return exact(array.item())
    if array.size <= _SHOWN:
        return f"[{', '.join(map(_values, array))}]"
    first = array.reshape(-1, array.shape[-1])[0]
    shown = ", ".join(map(significant, first[:3].tolist()))
    return f"{'[' * array.ndim}{shown}, …{']' * array.ndim} of shape {shape_text(array.shape)}"


def method_column(rows: Sequence[Any]) -> Column:
    """Return the column of the methods, wide enough for a method and its dtype."""
    return Column("method", wrap=True, widest=15 if {r.dtype for r in rows} <= {"float64"} else 24)


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
    title : str
        The title of its page; by default the heading.
    picture : callable, optional
        Draws the picture of its page, an element ``<svg>``.
    caption : str
        What the picture shows.
    """

    heading: str
    expression: str = ""
    facts: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section]
    notes: Sequence[tuple[str, str]] = ()
    sentence: str = ""
    environment: Sequence[tuple[str, str]] = ()
    agreed: bool = True
    title: str = ""
    picture: Callable[[], str] | None = None
    caption: str = ""

    @property
    def all_facts(self) -> list[tuple[str, str]]:
        """The function and the other facts."""
        return [("f", self.expression)] * bool(self.expression) + [*self.facts]

    @property
    def remarks(self) -> list[str]:
        """The notes as lines."""
        return [": ".join(filter(None, note)) for note in self.notes]

    def table(self, **screen: Unpack[Screen]) -> str:
        """Return the tables, with the facts above them and the notes below them.

        Parameters
        ----------
        self : Summary
            The content.
        screen
            As for `difflab.report.terminal.draw`.
        """
        parts: list[Part] = [facts(self.all_facts)] * bool(self.all_facts)
        for section in self.sections:
            parts += [Cell(section.title, section.kind or "label")] * bool(section.title)
            parts.append(section.table)
            if section.results:
                results = ((label, Cell(text, "label")) for label, text in section.results)
                parts.append(facts(results, gap=1))
        if self.notes:
            parts.append([Cell(remark, "note") for remark in self.remarks])
        if self.sentence:
            parts.append(Cell(self.sentence, "label"))
        return draw(parts, **screen)

    def markdown(self) -> str:
        """Return the content as Markdown, for a pull request or a notebook."""
        parts = [f"### {md.literal(self.heading)}"]
        if self.expression:
            parts.append(md.block(self.expression))
        if self.facts:
            parts.append("\n".join(md.labelled(self.facts)))
        for section in self.sections:
            if section.title:
                parts.append(f"#### {md.literal(section.title)}")
            parts.append(md.table(section.table))
            if section.results:
                parts.append(
                    "\n".join(f"- **{md.literal(' '.join(pair))}**" for pair in section.results)
                )
        if self.notes:
            parts.append("\n".join(f"- {md.literal(remark)}" for remark in self.remarks))
        if self.sentence:
            parts.append(f"**{md.literal(self.sentence)}**")
        return "\n\n".join(parts) + "\n"

    def latex(self) -> str:
        """Return the facts, the tables and the notes as LaTeX, for a paper."""
        paragraphs = ["\n".join(tex.labelled(self.all_facts))]
        for section in self.sections:
            paragraphs += [tex.literal(section.title)] * bool(section.title)
            paragraphs.append(tex.table(section.table))
            if section.results:
                paragraphs.append("\n".join(tex.labelled(section.results)))
        paragraphs += map(tex.literal, self.remarks)
        if self.sentence:
            paragraphs.append(tex.literal(self.sentence))
        return "\n\n".join(paragraphs) + "\n"

    def html_lines(self) -> list[str]:
        """Return the lines of HTML, without heading and picture."""
        parts = [f"<pre>{escape(self.expression)}</pre>"] * bool(self.expression)
        parts += [html.labelled(self.facts)] * bool(self.facts)
        for section in self.sections:
            if section.title:
                title = escape(section.title)
                kind = f'<span class="{section.kind}">{title}</span>' if section.kind else title
                parts.append(f"<h2>{kind}</h2>")
            parts.append(html.table(section.table))
            if section.results:
                results = "<br>".join(escape(" ".join(pair)) for pair in section.results)
                parts.append(f'<p class="sentence">{results}</p>')
        parts += [f'<p class="note">{escape(remark)}</p>' for remark in self.remarks]
        if self.sentence:
            parts.append(f'<p class="sentence">{escape(self.sentence)}</p>')
        return parts

    def page(self) -> str:
        """Return a whole page, which needs no network."""
        return html.document(self.title or self.heading, self._body())

    def fragment(self) -> str:
        """Return a part of another page, such as a notebook."""
        return html.fragment(self._body())

    def _body(self) -> list[str]:
        body = [
            f"<main{'' if self.agreed else ' class=wrong'}>",
            f"<h1>{escape(self.heading)}</h1>",
            *self.html_lines(),
        ]
        if self.picture is not None:
            body += [
                f'<figure style="margin:0" role="img" aria-label="{escape(self.caption)}">',
                f'<div class="picture">{self.picture()}</div>',
                "</figure>",
            ]
        if self.environment:
            body.append(f"<footer>{escape(' · '.join(map(' '.join, self.environment)))}</footer>")
        return [*body, "</main>"]

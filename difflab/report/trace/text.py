"""An evaluation trace as a terminal table, Markdown, LaTeX, JSON, an HTML page or a PDF.

The user's text is escaped in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from difflab.core.quantities import exact
from difflab.core.strict_json import dumps
from difflab.core.table import Cell, Column, Table, facts
from difflab.drawing.order import short
from difflab.report import html, latex, markdown
from difflab.report.canvas import pages
from difflab.report.style import clean, shorten
from difflab.report.terminal import WIDTH, Part, draw
from difflab.report.trace.steps import Adjoint, EvaluationTrace, TraceRows, TraceStep

__all__ = [
    "FORMATS",
    "as_fragment",
    "as_html",
    "as_json",
    "as_latex",
    "as_markdown",
    "as_pdf",
    "as_table",
]

EXPRESSION = 300
LISTED = 12


def _texts(*headings: str) -> tuple[Column, ...]:
    return tuple(Column(heading, wrap=True) for heading in headings)


_VALUE = Column("value", right=True)
_PRIMAL = (*_texts("step"), _VALUE)
_FORWARD = (*_texts("primal"), _VALUE, *_texts("tangent"), _VALUE)
_REVERSE = (*_texts("adjoint", "contribution"), _VALUE, Column("sum", right=True))


@dataclass(frozen=True)
class _TraceTable:
    """A table of the trace with its title, and the results below it."""

    title: str
    table: Table
    results: list[tuple[str, str]]


def _steps(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]], kept: TraceRows[Any]
) -> Table:
    """Return a table of rows, with a note in place of the omitted ones.

    If functions or layers are called, a column names the call of each row.
    """
    lines = list(rows)
    if any(row.call for row in kept):
        columns = (*columns, *_texts("call"))
        lines = [(*line, clean(row.call)) for line, row in zip(lines, kept, strict=True)]
    if kept.skipped:
        notes = [f"… {kept.skipped:,} more steps", "use --format json for all"]
        blank = ["" if column.right or not notes else notes.pop(0) for column in columns]
        lines.insert(len(kept.head), tuple(blank))
    return Table(columns, lines)


def _value(value: Any) -> str:
    """Return a result with all its digits, an array by its first and last elements."""
    if isinstance(value, bool) or np.ndim(value):
        return short(value, 8)
    return exact(value)


def _figure(value: Any) -> str:
    """Return a number with six digits, an array abbreviated."""
    return short(value, 3 if np.ndim(value) else 6).partition(" (")[0]


def _tables(trace: EvaluationTrace, numbers: bool) -> list[_TraceTable]:
    """Return the tables; with `numbers`, formulas are repeated with values inserted."""
    forward = trace.tangents
    tables = [_primal(trace, numbers) if forward is None else _forward(trace, forward, numbers)]
    if trace.adjoints is not None:
        tables.append(_reverse(trace, trace.adjoints, numbers))
    return tables


def _equation(row: TraceStep, numbers: bool) -> str:
    inserted = f" = {row.numbers}" if numbers and row.numbers not in ("", row.formula) else ""
    return clean(f"{row.shown} = {row.formula}{inserted}")


def _primal(trace: EvaluationTrace, numbers: bool) -> _TraceTable:
    rows = [(_equation(row, numbers), _figure(row.value)) for row in trace.primal]
    table = _steps(_PRIMAL, rows, trace.primal)
    return _TraceTable("Forward evaluation trace", table, _outputs(trace))


def _outputs(trace: EvaluationTrace) -> list[tuple[str, str]]:
    return [(clean(name), _value(value)) for name, value in trace.outputs]


def _forward(trace: EvaluationTrace, tangents: TraceRows[TraceStep], numbers: bool) -> _TraceTable:
    """Return primal and tangent trace side by side, as in Table 2 of Baydin et al."""
    rows = [
        (_equation(a, numbers), _figure(a.value), _equation(b, numbers), _figure(b.value))
        for a, b in zip(trace.primal, tangents, strict=True)
    ]
    results = [
        (clean(f"∂{name}/∂{trace.seed}"), _value(value)) for name, value in trace.directional
    ]
    return _TraceTable(
        f"Forward mode: tangents v̇ = ∂v/∂{clean(trace.seed or '')}, step by step downwards",
        _steps(_FORWARD, rows, tangents),
        _outputs(trace) + results,
    )


def _reverse(trace: EvaluationTrace, adjoints: TraceRows[Adjoint], numbers: bool) -> _TraceTable:
    """Return the contributions to the adjoints, as in Table 3 of Baydin et al."""
    rows = [_adjoint(row, numbers) for row in adjoints]
    output = clean(trace.output or "")
    results = [(clean(f"∂{output}/∂{name}"), _value(value)) for name, value in trace.gradient]
    if len(results) > LISTED:
        left = len(results) - LISTED
        results[LISTED - 1 : -1] = [("…", f"{left + 1:,} more; use --format json for all")]
    return _TraceTable(
        f"Reverse mode: adjoints v̄ = ∂{output}/∂v, from the output back to the inputs",
        _steps(_REVERSE, rows, adjoints),
        results,
    )


def _adjoint(row: Adjoint, numbers: bool) -> tuple[str, ...]:
    sum_ = f"{row.shown} + " if row.accumulates else ""
    formula = "" if row.formula == row.partial else row.formula
    if numbers and row.numbers not in ("", row.formula):
        formula += f" = {row.numbers}"
    cells = (f"{row.shown} = {sum_}{row.partial}", formula + _taken(row.mask))
    return (*map(clean, cells), _figure(row.contribution), _figure(row.value))


def _taken(mask: Any) -> str:
    """Return whether a branch was selected, or for how many elements of an array."""
    if mask is None:
        return ""
    count, size = int(np.sum(mask)), int(np.size(mask))
    if size == 1:
        return "  (taken)" if count else "  (not taken)"
    return f"  (taken: {count:,} of {size:,})"


def _facts(trace: EvaluationTrace) -> list[tuple[str, str]]:
    point = [f"{clean(name)} = {_value(value)}" for name, value in trace.point]
    if len(point) > LISTED:
        point[LISTED - 1 : -1] = ["…"]
    return [("f", shorten(clean(trace.expression), EXPRESSION)), ("at", ", ".join(point))]


def as_table(
    trace: EvaluationTrace, *, colour: bool = False, width: int = WIDTH, plain: bool = False
) -> str:
    """Return a trace as tables for the terminal, at most `width` columns wide.

    From 120 columns on, formulas are repeated with values inserted.

    Parameters
    ----------
    trace : EvaluationTrace
    colour, width, plain
        As for `difflab.report.terminal.draw`.
    """
    parts: list[Part] = [facts(_facts(trace))]
    for each in _tables(trace, numbers=width >= 120):
        results = (
            (label, Cell(f"= {text}" if label != "…" else text, "label"))
            for label, text in each.results
        )
        parts += [Cell(each.title, "label"), each.table, facts(results, gap=1)]
    parts += [Cell(clean(note), "note") for note in trace.notes]
    return draw(parts, colour=colour, width=width, plain=plain)


def as_markdown(trace: EvaluationTrace) -> str:
    """Return a trace as Markdown tables."""
    literal = markdown.literal
    (_, expression), (_, point) = _facts(trace)
    lines = ["### Evaluation trace of", "", markdown.block(expression), "", f"at {literal(point)}"]
    for each in _tables(trace, numbers=True):
        lines += ["", f"#### {literal(each.title)}", "", markdown.table(each.table), ""]
        lines += [f"- **{literal(label)} = {literal(text)}**" for label, text in each.results]
    if trace.notes:
        lines += ["", *(f"- {literal(clean(note))}" for note in trace.notes)]
    return "\n".join(lines) + "\n"


def as_latex(trace: EvaluationTrace) -> str:
    """Return a trace as LaTeX, a tabular for each of its tables."""
    paragraphs = ["\n".join(latex.labelled(_facts(trace)))]
    for each in _tables(trace, numbers=False):
        paragraphs += [latex.literal(each.title), latex.table(each.table)]
        paragraphs.append("\n".join(latex.labelled((a, f"= {b}") for a, b in each.results)))
    paragraphs += [latex.literal(clean(note)) for note in trace.notes]
    return "\n\n".join(paragraphs) + "\n"


def as_pdf(trace: EvaluationTrace) -> bytes:
    """Return the tables of a trace on pages of a PDF."""
    return pages(as_table(trace))


def as_html(trace: EvaluationTrace) -> str:
    """Return a trace as a page that needs no network."""
    (_, expression), _ = _facts(trace)
    return html.document(f"trace of {expression}", _body(trace))


def as_fragment(trace: EvaluationTrace) -> str:
    """Return a trace as a part of another page, such as a notebook."""
    return html.fragment(_body(trace))


def _body(trace: EvaluationTrace) -> list[str]:
    """Return the lines of HTML."""
    (_, expression), point = _facts(trace)
    body = ["<main>", "<h1>Evaluation trace of</h1>"]
    body += [f"<pre>{escape(expression)}</pre>", html.labelled([point])]
    for each in _tables(trace, numbers=True):
        results = "<br>".join(escape(f"{label} = {text}") for label, text in each.results)
        body += [f"<h2>{escape(each.title)}</h2>", html.table(each.table)]
        body.append(f'<p class="sentence">{results}</p>')
    body += [f'<p class="note">{escape(clean(note))}</p>' for note in trace.notes]
    return [*body, "</main>"]


def as_json(trace: EvaluationTrace) -> str:
    """Return the whole trace as strict JSON, schema ``difflab.trace/1``."""
    return dumps(trace.to_dict()) + "\n"


FORMATS: Mapping[str, Callable[[EvaluationTrace], str | bytes]] = MappingProxyType(
    {
        "table": as_table,
        "md": as_markdown,
        "latex": as_latex,
        "html": as_html,
        "pdf": as_pdf,
        "json": as_json,
    }
)

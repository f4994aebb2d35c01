"""An evaluation trace as a terminal table, Markdown, JSON or an HTML page.

The user's text is escaped in all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from difflab.drawing.order import short
from difflab.report.style import clean, exact, shorten
from difflab.report.trace.steps import Adjoint, EvaluationTrace, TraceRows, TraceStep

__all__ = ["FORMATS", "as_html", "as_json", "as_markdown", "as_table"]

WIDTH = 80
EXPRESSION = 300
LISTED = 12
# Characters that JSON allows but a terminal interprets.
CONTROL = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@dataclass(frozen=True)
class _TraceTable:
    """A table of the trace; `figures` are its numeric columns."""

    title: str
    headings: tuple[str, ...]
    figures: tuple[int, ...]
    rows: Sequence[tuple[str, ...]]
    skipped: int
    position: int
    results: list[tuple[str, str]]

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows, with a note in place of the omitted ones."""
        yield from self.rows[: self.position]
        if self.skipped:
            notes = [f"… {self.skipped:,} more steps", "use --format json for all"]
            blank = range(len(self.headings))
            yield tuple("" if k in self.figures or not notes else notes.pop(0) for k in blank)
        yield from self.rows[self.position :]


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
    tables = []
    if trace.tangents is None:
        tables.append(_primal(trace, numbers))
    else:
        tables.append(_forward(trace, trace.tangents, numbers))
    if trace.adjoints is not None:
        tables.append(_reverse(trace, trace.adjoints, numbers))
    return tables


def _equation(row: TraceStep, numbers: bool) -> str:
    inserted = f" = {row.numbers}" if numbers and row.numbers not in ("", row.formula) else ""
    return clean(f"{row.shown} = {row.formula}{inserted}")


def _primal(trace: EvaluationTrace, numbers: bool) -> _TraceTable:
    rows = [(_equation(row, numbers), _figure(row.value)) for row in trace.primal]
    return _TraceTable(
        "Forward evaluation trace", ("step", "value"), (1,), rows, trace.primal.skipped,
        len(trace.primal.head), [(clean(name), _value(value)) for name, value in trace.outputs],
    )  # fmt: skip


def _forward(trace: EvaluationTrace, tangents: TraceRows[TraceStep], numbers: bool) -> _TraceTable:
    """Return primal and tangent trace side by side, as in Table 2 of Baydin et al."""
    rows = [
        (_equation(a, numbers), _figure(a.value), _equation(b, numbers), _figure(b.value))
        for a, b in zip(trace.primal, tangents, strict=True)
    ]
    results = [(clean(name), _value(value)) for name, value in trace.outputs]
    results += [
        (clean(f"∂{name}/∂{trace.seed}"), _value(value)) for name, value in trace.directional
    ]
    return _TraceTable(
        f"Forward mode: tangents v̇ = ∂v/∂{clean(trace.seed or '')}, step by step downwards",
        ("primal", "value", "tangent", "value"), (1, 3), rows, tangents.skipped,
        len(tangents.head), results,
    )  # fmt: skip


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
        ("adjoint", "contribution", "value", "sum"), (2, 3), rows, adjoints.skipped,
        len(adjoints.head), results,
    )  # fmt: skip


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

    Parameters
    ----------
    trace : EvaluationTrace
    colour : bool
        Whether to colour the text with terminal sequences.
    width : int
        Columns to fill at most; from 120 on, formulas are repeated with values inserted.
    plain : bool
        Whether to use ASCII only.
    """
    from rich.table import Table
    from rich.text import Text

    from difflab.report.terminal import draw

    head = Table.grid(padding=(0, 2, 0, 0))
    head.add_column(no_wrap=True, style="bold")
    head.add_column(overflow="fold")
    for label, text in _facts(trace):
        head.add_row(label, Text(text))
    parts: list[Any] = [head]
    for table in _tables(trace, numbers=width >= 120):
        parts += [Text(table.title, style="bold"), _grid(table), _results(table.results)]
    parts += [Text(clean(note), style="dim", overflow="fold") for note in trace.notes]
    return draw(parts, colour=colour, width=width, plain=plain)


def _grid(table: _TraceTable) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column, heading in enumerate(table.headings):
        figure = column in table.figures
        grid.add_column(heading, justify="right" if figure else "left", no_wrap=figure)
    for line in table.lines():
        grid.add_row(*map(Text, line))
    return grid


def _results(results: Sequence[tuple[str, str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold", style="bold")
    for label, text in results:
        grid.add_row(label, Text(f"= {text}" if label != "…" else text))
    return grid


def as_markdown(trace: EvaluationTrace) -> str:
    """Return a trace as Markdown tables."""
    from difflab.report.comparison.markdown import block, cells, literal

    (_, expression), (_, point) = _facts(trace)
    lines = ["### Evaluation trace of", "", block(expression), "", f"at {literal(point)}"]
    for table in _tables(trace, numbers=True):
        rule = ["---:" if k in table.figures else "---" for k in range(len(table.headings))]
        lines += ["", f"#### {literal(table.title)}", "", cells(table.headings)]
        lines.append(f"|{'|'.join(rule)}|")
        lines += [*map(cells, table.lines()), ""]
        lines += [f"- **{literal(label)} = {literal(text)}**" for label, text in table.results]
    if trace.notes:
        lines += ["", *(f"- {literal(clean(note))}" for note in trace.notes)]
    return "\n".join(lines) + "\n"


def as_html(trace: EvaluationTrace) -> str:
    """Return a trace as a page that needs no network."""
    from difflab.report.comparison.html import document

    (_, expression), (_, point) = _facts(trace)
    body = [
        "<main>",
        "<h1>Evaluation trace of</h1>",
        f"<pre>{escape(expression)}</pre>",
        f"<dl><dt>at</dt><dd>{escape(point)}</dd></dl>",
    ]
    for table in _tables(trace, numbers=True):
        body += [f"<h2>{escape(table.title)}</h2>", '<div class="scroll"><table>']
        headings = "".join(_cell("th", table, *cell) for cell in enumerate(table.headings))
        body.append(f"<thead><tr>{headings}</tr></thead><tbody>")
        for line in table.lines():
            cells = "".join(_cell("td", table, *cell) for cell in enumerate(line))
            body.append(f"<tr>{cells}</tr>")
        body.append("</tbody></table></div>")
        body += [f'<p class="sentence">{_equations(table.results)}</p>']
    body += [f'<p class="note">{escape(clean(note))}</p>' for note in trace.notes]
    return document(f"trace of {expression}", [*body, "</main>"])


def _cell(tag: str, table: _TraceTable, column: int, text: str) -> str:
    kind = ' class="figure"' if column in table.figures else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _equations(results: Sequence[tuple[str, str]]) -> str:
    return "<br>".join(escape(f"{label} = {text}") for label, text in results)


def as_json(trace: EvaluationTrace) -> str:
    """Return the whole trace as strict JSON, schema ``difflab.trace/1``."""
    text = json.dumps(trace.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


FORMATS: Mapping[str, Callable[[EvaluationTrace], str]] = MappingProxyType(
    {"table": as_table, "md": as_markdown, "html": as_html, "json": as_json}
)

"""An evaluation trace as a terminal table, Markdown, LaTeX, JSON, an HTML page or a PDF.

The user's text is escaped in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np

from difflab.core.table import Column, Table
from difflab.core.wording import exact
from difflab.drawing.order import short
from difflab.report.summary import Section, Summary
from difflab.report.terminal import WIDTH, Screen, clean, shorten
from difflab.report.trace import mathematics
from difflab.report.trace.steps import Adjoint, EvaluationTrace, TraceRows, TraceStep

EXPRESSION = 300
LISTED = 12


def _texts(*headings: str) -> tuple[Column, ...]:
    return tuple(Column(heading, wrap=True) for heading in headings)


_VALUE = Column("value", right=True)
_PRIMAL = (*_texts("step"), _VALUE)
_FORWARD = (*_texts("primal"), _VALUE, *_texts("tangent"), _VALUE)
_REVERSE = (*_texts("adjoint", "contribution"), _VALUE, Column("sum", right=True))


def _steps(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]], kept: TraceRows[Any]
) -> Table:
    """Return a table of rows, with a note that counts the omitted ones.

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


def _equation(row: TraceStep, numbers: bool) -> str:
    inserted = f" = {row.numbers}" if numbers and row.numbers not in ("", row.formula) else ""
    return clean(f"{row.shown} = {row.formula}{inserted}")


def _primal(trace: EvaluationTrace, numbers: bool) -> Section:
    rows = [(_equation(row, numbers), _figure(row.value)) for row in trace.primal]
    table = _steps(_PRIMAL, rows, trace.primal)
    return Section(table, "Forward evaluation trace", _outputs(trace))


def _outputs(trace: EvaluationTrace) -> list[tuple[str, str]]:
    return _results(trace.outputs)


def _results(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(clean(name), f"= {_value(value)}") for name, value in pairs]


def _forward(trace: EvaluationTrace, tangents: TraceRows[TraceStep], numbers: bool) -> Section:
    """Return primal and tangent trace side by side, as in Table 2 of Baydin et al."""
    rows = [
        (_equation(a, numbers), _figure(a.value), _equation(b, numbers), _figure(b.value))
        for a, b in zip(trace.primal, tangents, strict=True)
    ]
    results = _results((f"∂{name}/∂{trace.seed}", value) for name, value in trace.directional)
    return Section(
        _steps(_FORWARD, rows, tangents),
        f"Forward mode: tangents v̇ = ∂v/∂{clean(trace.seed or '')}, step by step downwards",
        _outputs(trace) + results,
    )


def _reverse(trace: EvaluationTrace, adjoints: TraceRows[Adjoint], numbers: bool) -> Section:
    """Return the contributions to the adjoints, as in Table 3 of Baydin et al."""
    rows = [_adjoint(row, numbers) for row in adjoints]
    output = clean(trace.output or "")
    results = _results((f"∂{output}/∂{name}", value) for name, value in trace.gradient)
    if len(results) > LISTED:
        left = len(results) - LISTED
        results[LISTED - 1 : -1] = [("…", f"{left + 1:,} more; use --format json for all")]
    return Section(
        _steps(_REVERSE, rows, adjoints),
        f"Reverse mode: adjoints v̄ = ∂{output}/∂v, from the output back to the inputs",
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


def view(trace: EvaluationTrace, *, numbers: bool = True) -> Summary:
    """Return the content; with `numbers`, formulas are repeated with values inserted."""
    point = [f"{clean(name)} = {_value(value)}" for name, value in trace.point]
    if len(point) > LISTED:
        point[LISTED - 1 : -1] = ["…"]
    forward = trace.tangents
    sections = [_primal(trace, numbers) if forward is None else _forward(trace, forward, numbers)]
    if trace.adjoints is not None:
        sections.append(_reverse(trace, trace.adjoints, numbers))
    expression = shorten(clean(trace.expression), EXPRESSION)
    return Summary(
        heading="Evaluation trace of",
        title=f"trace of {expression}",
        expression=expression,
        facts=[("at", ", ".join(point))],
        sections=sections,
        notes=[("", clean(note)) for note in trace.notes],
    )


def table(trace: EvaluationTrace, **screen: Unpack[Screen]) -> str:
    """Return a trace as tables that fit the terminal; values in formulas need 120 columns."""
    return view(trace, numbers=screen.get("width", WIDTH) >= 120).table(**screen)


def latex(trace: EvaluationTrace) -> str:
    """Return a trace as LaTeX, its formulas as mathematics."""
    return mathematics.as_latex(view(trace, numbers=False))


def pdf(trace: EvaluationTrace) -> bytes:
    """Return a trace as the pages of a PDF, its formulas as mathematics."""
    return mathematics.as_pdf(view(trace, numbers=False))

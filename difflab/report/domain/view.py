"""The texts of a comparison over a domain that all its reports show."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.core.table import Cell, Column, Table
from difflab.core.wording import ABSENT, counted, error, exact, percent, seconds, significant
from difflab.lab.domain.record import LEVELS, UNANSWERED, DomainComparison, DomainRow, WorstPoint
from difflab.referee.verdict import Verdict
from difflab.report.summary import Section, Summary, method_column, point_text
from difflab.report.terminal import SHOWN_EXPRESSION, clean, shorten

_ALWAYS = ("agree", "disagree")
"""The verdicts that always have a column."""


def view(result: DomainComparison) -> Summary:
    """Return the view of a comparison over a domain."""
    expression = shorten(clean(result.expression.text), SHOWN_EXPRESSION)
    return Summary(
        heading="Over a domain",
        expression=expression,
        facts=_facts(result),
        sections=[Section(methods_table(result.methods))],
        notes=[note for row in result.methods for note in notes(row)],
        sentence=_sentence(result),
        environment=[
            (clean(str(name)), clean(str(value)))
            for name, value in result.environment.items()
            if value not in (None, "")
        ],
        agreed=result.agreed,
        title=f"{expression} over a domain",
    )


def domain_text(result: DomainComparison) -> str:
    """Return the domain in one line: the intervals, then the inputs that do not vary."""
    parts = [
        f"{clean(name)} = {_end(each.low)} … {_end(each.high)}"
        + (" (log)" if each.scale == "log" else "")
        for name, each in result.box.ranges.items()
    ]
    if result.box.fixed:
        parts.append(point_text(result.box.fixed))
    return ", ".join(parts)


def _end(value: float) -> str:
    """Return an end of an interval, with all its digits; a large power of ten as such."""
    short = significant(value)
    return short if float(short) == value else exact(value)


def _facts(result: DomainComparison) -> list[tuple[str, str]]:
    facts = [("over", domain_text(result))]
    searched = f", and a search of {counted(result.searched, 'point')}" if result.searched else ""
    facts.append(("points", f"{counted(len(result.points), 'point')}{searched}"))
    parts = [f"{clean(name)} at {percent(share)}" for name, share in result.regularity.items()]
    if result.contradiction:
        parts.insert(0, f"CONTRADICTION: {clean(result.contradiction)}")
    if result.proved:
        parts.append(f"proved at {percent(result.proved)}")
    return [*facts, ("referee", ", ".join(parts))]


def methods_table(rows: Sequence[DomainRow]) -> Table:
    """Return the table of all methods; a verdict that no point has needs no column."""
    needed = [
        name
        for name in (*map(str, Verdict), UNANSWERED)
        if name in _ALWAYS or any(row.shares.get(name) for row in rows)
    ]
    columns = (
        method_column(rows),
        *(Column(name, right=True) for name in needed),
        *(Column(f"{'ULP ' * (level == LEVELS[0])}{level} %", right=True) for level in LEVELS),
        Column("batch", right=True),
    )
    return Table(columns, [_line(row, needed, len(columns)) for row in rows])


def _line(row: DomainRow, needed: Sequence[str], width: int) -> list[Cell]:
    name = Cell(clean(row.label), row.family)
    if not row.shares:
        status = str(row.status)
        return [name, Cell(status, status), *[Cell("")] * (width - 2)]
    shares = [
        Cell(percent(share), each) if (share := row.shares.get(each)) else Cell(ABSENT)
        for each in needed
    ]
    levels = [Cell(error(row.ulps[level]) if row.ulps else ABSENT) for level in LEVELS]
    return [name, *shares, *levels, Cell(seconds(row.batch_seconds))]


def notes(row: DomainRow) -> list[tuple[str, str]]:
    """Return the notes about one method below the table."""
    name = clean(row.label)
    if row.message:
        return [(name, clean(row.message))]
    pairs = []
    if row.worst is not None:
        pairs.append((name, _worst(row.worst)))
    for silence in row.silences[:3]:
        where = f"{point_text(silence.low)} to {point_text(silence.high)}"
        number = counted(silence.count, "point")
        pairs.append((name, f"{silence.status} at {number} ({where}): {clean(silence.reason)}"))
    if len(row.silences) > 3:
        pairs.append((name, f"{len(row.silences) - 3} more reasons, in --format json"))
    return pairs


def _worst(worst: WorstPoint) -> str:
    size = error(worst.max_ulp_error)
    text = f"worst ({worst.found}): {size} ULP at {point_text(worst.point)}, {worst.verdict}"
    if worst.message:
        text += f": {clean(worst.message)}"
    if worst.node is not None:
        text += f"; the digits are lost in {clean(worst.node.call)}"
    return text


def _sentence(result: DomainComparison) -> str:
    """Return one sentence: which methods are wrong, or that none is."""
    wrong = [
        clean(row.label)
        for row in result.methods
        if row.shares.get("disagree") or (row.worst and row.worst.verdict == "disagree")
    ]
    if wrong:
        verb = "is" if len(wrong) == 1 else "are"
        return f"{', '.join(wrong)} {verb} wrong in a part of this domain."
    if any(row.shares for row in result.methods):
        return "No method is wrong at any point that was judged."
    return ""

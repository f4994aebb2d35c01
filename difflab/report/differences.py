"""Changes between two sets of records, as a table, Markdown and a page."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Unpack

from difflab.core.table import Cell, Column, Table
from difflab.core.wording import counted, error, seconds
from difflab.lab.diff.difference import Change, Difference, Kind
from difflab.report.summary import Section, Summary
from difflab.report.terminal import Screen, clean, shorten

_TITLES = {
    Kind.WRONG: "Became wrong",
    Kind.VERDICT: "Worse verdict",
    Kind.LESS_ACCURATE: "Less accurate, in ULP",
    Kind.SLOWER: "Slower",
    Kind.GONE: "Gone",
    Kind.NEW: "New",
    Kind.BETTER: "Better verdict",
    Kind.MORE_ACCURATE: "More accurate, in ULP",
    Kind.FASTER: "Faster",
}
_SHOWN = 300  # characters of a label


def _sentence(difference: Difference) -> str:
    """Return counts of compared and worse records, and of times that could not be judged."""
    worse = sum(change.kind.worse for change in difference.changes)
    better = len(difference.changes) - worse
    hidden = ""
    if difference.smallest_slowdown is not None:
        least = f"{difference.smallest_slowdown - 1:.0%}".replace("%", " %")
        hidden = f"; in half of those, noise hides slowdowns below {least}"
    why = ", ".join(f"{clean(reason)} ({count})" for reason, count in difference.untimed.items())
    return (
        f"{counted(difference.compared, 'record')} compared, {difference.timed} of them in time: "
        f"{counted(worse, 'change')} for the worse, {better} other{hidden}"
        f"{'; times not compared: ' if why else ''}{why}"
    )


def table(difference: Difference, **screen: Unpack[Screen]) -> str:
    """Return a difference as tables that fit the terminal."""
    return replace(view(difference), sentence=_sentence(difference)).table(**screen)


def view(difference: Difference) -> Summary:
    """Return the content, with a section for each kind of change."""
    groups = groupby(difference.changes, key=lambda change: change.kind)
    sections = [_section(kind, list(group)) for kind, group in groups]
    heading = _sentence(difference)
    return Summary(
        heading=heading, sections=sections, agreed=not difference.worse, title="What changed"
    )


def _section(kind: Kind, changes: list[Change]) -> Section:
    title = f"{_TITLES[kind]}: {len(changes)}"
    return Section(_table(kind, changes), title, kind="disagree" if kind.worse else "agree")


def _table(kind: Kind, changes: list[Change]) -> Table:
    columns = [Column("method"), Column("of", wrap=True)]
    timed = kind in (Kind.SLOWER, Kind.FASTER)
    sized = kind in (Kind.LESS_ACCURATE, Kind.MORE_ACCURATE)
    shown = seconds if timed else error if sized else str
    right = timed or sized
    columns += [Column("before", right, format=shown)] * (kind is not Kind.NEW)
    columns += [Column("now", right, format=shown)] * (kind is not Kind.GONE)
    columns += [Column("ratio", right=True, format="{:.3f}".format)] * timed
    rows = []
    for change in changes:
        row: list[object] = [clean(change.method), shorten(clean(change.label), _SHOWN)]
        row += [_cell(change.old)] * (kind is not Kind.NEW)
        row += [_cell(change.new)] * (kind is not Kind.GONE)
        row += [change.ratio] * timed
        rows.append(row)
    return Table(columns, rows)


def _cell(value: str | float | None) -> object:
    """Return a verdict with its style, any other value as it is."""
    return Cell(value, value) if isinstance(value, str) else value

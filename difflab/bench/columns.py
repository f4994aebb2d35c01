"""Layouts of benches by the names of their columns, and their rows as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from difflab.core.quantities import bytes_text, count, error, seconds
from difflab.core.table import Column, Table
from difflab.lab import provenance
from difflab.lab.provenance import ADDED
from difflab.lab.sweep import CellType, SweepLayout, SweepRow
from difflab.report.style import clean
from difflab.report.terminal import Screen, draw

_INTEGERS = """
bytes columns depth evaluations inputs layers m n numbers operations outputs points recomputed rows
snapshots steps
"""
_REALS = """
bound break_even error high low peak_states ratio seconds step tolerance ulps
"""
_TYPES: dict[str, CellType] = dict.fromkeys(_INTEGERS.split(), int)
_TYPES |= dict.fromkeys(_REALS.split(), float)


def layout(columns: str, key: str) -> SweepLayout:
    """Return the layout of a bench, its columns followed by those of the provenance.

    Parameters
    ----------
    columns : str
        The names of the bench's own columns. The name, or its last word, gives the type:
        ``call_seconds`` is a real number, as all seconds; what has no other type is text.
    key : str
        Those of them that identify what is measured.

    Returns
    -------
    SweepLayout
        As `difflab.lab.provenance.layout`.

    Examples
    --------
    >>> layout("method inputs call_seconds", key="method inputs").columns["call_seconds"]
    <class 'float'>
    """
    types = {name: _type(name) for name in columns.split()}
    return provenance.layout(types, key.split())


def _type(name: str) -> CellType:
    return _TYPES.get(name) or _TYPES.get(name.rpartition("_")[2], str)


def table(layout: SweepLayout, rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table with a line for every row; values common to all rows are in its heading.

    Parameters
    ----------
    layout : SweepLayout
        The columns of the rows. Those that say how a row was made are left out.
    rows : sequence of row
        The rows.
    screen
        As for `difflab.report.terminal.draw`.
    """
    cells = {
        name: [row[name] for row in rows]
        for name in layout.columns
        if name not in ADDED and any(row[name] not in (None, "") for row in rows)
    }
    shared = [name for name, column in cells.items() if len({*column}) == 1 and len(rows) > 1]
    shown = {name: _shown(name, layout.columns[name]) for name in cells}
    heading = [f"{_title(name)}: {shown[name](cells[name][0])}" for name in shared]
    names = [name for name in cells if name not in shared]
    columns = [
        Column(_title(name), right=layout.columns[name] is not str, wrap=name == "message")
        for name in names
    ]
    lines = [[shown[name](row[name]) for name in names] for row in rows]
    return draw([part for part in ("\n".join(heading), Table(columns, lines)) if part], **screen)


def _title(name: str) -> str:
    return name.replace("_", " ").removesuffix(" seconds").removesuffix(" bytes")


def _shown(name: str, kind: CellType) -> Callable[[Any], str]:
    """Return how the cells of a column are shown."""
    known: dict[str, Callable[[Any], str]] = {"seconds": seconds, "bytes": bytes_text}
    form = known.get(name.rpartition("_")[2]) or {int: count, float: error}.get(kind, _text)
    return lambda value: "–" if value is None else form(value)


def _text(value: Any) -> str:
    return clean(str(value))

"""The rows of any benchmark as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from difflab.core.quantities import bytes_text, count, error, seconds
from difflab.core.table import Column, Table
from difflab.lab.provenance import ADDED
from difflab.lab.sweep import CellType, SweepLayout, SweepRow
from difflab.report.terminal import Screen, clean, draw


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

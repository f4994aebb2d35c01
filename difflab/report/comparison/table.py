"""A comparison as a table that fits the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflab.report.comparison.view import ComparisonView, view
from difflab.report.style import FAMILIES, OUTCOMES, PLAIN
from difflab.report.terminal import WIDTH, draw

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["table"]

_NAME_WIDTH = 15


def table(comparison: Any, *, colour: bool = False, width: int = WIDTH, plain: bool = False) -> str:
    """Return a comparison as a table, with the facts above it and the notes below it.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    colour : bool
        Whether to colour the text with terminal sequences.
    width : int
        Columns to fill at most.
    plain : bool
        Whether to use ASCII only.

    Returns
    -------
    str
        Lines of at most `width` columns. User text in it is escaped.
    """
    shown = view(comparison)
    parts = [_heading(shown), _methods(shown, width)]
    if shown.notes:
        parts.append(_notes(shown))
    if shown.sentence:
        parts.append(_sentence(shown))
    return draw(parts, colour=colour, width=width, plain=plain)


def _heading(shown: ComparisonView) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    grid.add_row("f", Text(shown.expression))
    grid.add_row("at", Text(shown.point))
    if shown.chosen:
        grid.add_row("", Text("a point chosen inside the domain; --at sets another", style="dim"))
    grid.add_row("value", Text(shown.value))
    for line, entry in enumerate(shown.entries):
        grid.add_row("" if line else shown.derivative_name, Text(entry))
    grid.add_row("referee", Text(shown.referee, style="dim"))
    return grid


def _methods(shown: ComparisonView, width: int) -> RenderableType:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    lines = [shown.headings, *(row.cells for row in shown.rows)]
    widths = [max(cell_len(line[k]) for line in lines) for k in range(len(lines[0]))]
    widths[0] = min(widths[0], _NAME_WIDTH)
    gap = 1 if sum(widths) + 2 * (len(widths) - 1) <= width else 0
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False)
    # Only names are wrapped: a truncated number would be another number.
    grid.add_column(shown.headings[0], max_width=_NAME_WIDTH, overflow="fold")
    grid.add_column(shown.headings[1], no_wrap=True)
    for heading in shown.headings[2:]:
        grid.add_column(heading, justify="right", no_wrap=True)
    for row in shown.rows:
        name, outcome, *figures = row.cells
        grid.add_row(
            Text(name, style=FAMILIES.get(row.family, PLAIN).terminal),
            Text(outcome, style=OUTCOMES.get(outcome, "")),
            *(Text(figure) for figure in figures),
        )
    return grid


def _notes(shown: ComparisonView) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    notes = (f"{names}: {message}" for names, message in shown.notes)
    return Group(*(Text(note, style="dim", overflow="fold") for note in notes))


def _sentence(shown: ComparisonView) -> RenderableType:
    from rich.text import Text

    return Text(shown.sentence, style="bold", overflow="fold")

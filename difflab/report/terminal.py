"""Rich renderables as text that fits a terminal's width and character set."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from difflab.report.ascii import ascii_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["WIDTH", "draw", "fitted"]

WIDTH = 80
"""The width of a terminal if unknown."""

_READABLE = 12
"""The least width of a column whose text is wrapped."""

_WORD = 16
"""The longest word that such a column keeps whole."""


def draw(
    parts: list[RenderableType], *, colour: bool = False, width: int = WIDTH, plain: bool = False
) -> str:
    """Return rich renderables as text, separated by empty lines.

    No line is wider than `width`: a wider table becomes a list of its rows.
    """
    buffer = StringIO()
    console = _console(buffer, colour, width)
    for index, part in enumerate(parts):
        if index:
            console.print()
        console.print(fitted(part, width, plain=plain))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _console(buffer: StringIO, colour: bool, width: int) -> Console:
    from rich.console import Console

    # The caller has determined the terminal's properties. Rich must not detect them again: in a
    # notebook it would display the text in addition to writing it.
    return Console(
        file=buffer,
        width=width,
        force_terminal=colour,
        force_jupyter=False,
        force_interactive=False,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )


def fitted(part: RenderableType, width: int, *, plain: bool) -> RenderableType:
    """Return `part` such that it fits: a table that is too wide becomes a list of its rows.

    Parameters
    ----------
    part : renderable
        A text, a table of texts, or a group of these.
    width : int
        The terminal's columns.
    plain : bool
        Whether to use ASCII only.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if isinstance(part, Group):
        return Group(*(fitted(inner, width, plain=plain) for inner in part.renderables))
    if isinstance(part, Table):
        if plain:
            for column in part.columns:
                column.header = _plain(column.header)
                column._cells = [_plain(cell) for cell in column._cells]
        return part if _fits(part, width) else _listed(part, width)
    return _plain(part) if plain and isinstance(part, Text | str) else part


def _plain(cell: RenderableType) -> Text:
    """Return a cell in ASCII; if changed, it has one style for the whole text."""
    text = _text(cell)
    written = ascii_text(text.plain)
    if written == text.plain:
        return text
    from rich.text import Text

    return Text(written, style=text.style, overflow=text.overflow, no_wrap=text.no_wrap)


def _text(cell: RenderableType) -> Text:
    from rich.text import Text

    return cell if isinstance(cell, Text) else Text(str(cell))


def _fits(table: Table, width: int) -> bool:
    """Whether unwrapped columns fit whole and wrapped ones get a readable width."""
    from rich.cells import cell_len

    needed = 0
    for column in table.columns:
        lines = [_text(cell).plain for cell in (column.header, *column._cells)]
        widest = max((cell_len(line) for text in lines for line in text.split("\n")), default=0)
        if column.max_width is not None:
            widest = min(widest, column.max_width)
        words = max((len(word) for text in lines for word in text.split()), default=0)
        needed += widest if column.no_wrap else min(widest, max(_READABLE, min(words, _WORD)))
    _, right, _, left = table.padding
    gap = left + right + (table.box is not None)
    return needed + gap * (len(table.columns) - 1) <= width


def _listed(table: Table, width: int) -> RenderableType:
    """Return the rows as a list: the first cell, then a line for each other cell."""
    from rich.console import Group
    from rich.table import Table as Grid
    from rich.text import Text

    headed = table.show_header and any(_text(column.header).plain for column in table.columns)
    parts: list[RenderableType] = []
    for first, *others in zip(*(column._cells for column in table.columns), strict=True):
        if parts and headed:
            parts.append(Text())
        title = _text(first)
        parts.append(Text(title.plain, style=title.style or "bold", overflow="fold"))
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column(style="dim", overflow="fold", max_width=width // 2)
        grid.add_column(overflow="fold")
        for column, cell in zip(table.columns[1:], others, strict=True):
            if _text(cell).plain:
                grid.add_row(Text(f"  {_text(column.header).plain}"), _text(cell))
        parts.append(grid)
    return Group(*parts)

"""A comparison as a table that fits the terminal."""

from __future__ import annotations

from typing import Any

from difflab.core.table import Cell, facts
from difflab.report.comparison.view import view
from difflab.report.terminal import WIDTH, Part, draw

__all__ = ["table"]


def table(comparison: Any, *, colour: bool = False, width: int = WIDTH, plain: bool = False) -> str:
    """Return a comparison as a table, with the facts above it and the notes below it.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    colour, width, plain
        As for `difflab.report.terminal.draw`. User text is escaped.
    """
    shown = view(comparison)
    parts: list[Part] = [facts([("f", shown.expression), *shown.facts]), shown.table]
    if shown.notes:
        parts.append([Cell(f"{names}: {message}", "note") for names, message in shown.notes])
    if shown.sentence:
        parts.append(Cell(shown.sentence, "label"))
    return draw(parts, colour=colour, width=width, plain=plain)

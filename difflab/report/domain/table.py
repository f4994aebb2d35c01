"""A comparison over a domain as a table that fits the terminal."""

from __future__ import annotations

from difflab.core.table import Cell, facts
from difflab.lab.domain.record import DomainComparison
from difflab.report.domain.view import view
from difflab.report.terminal import WIDTH, Part, draw

__all__ = ["table"]


def table(
    result: DomainComparison, *, colour: bool = False, width: int = WIDTH, plain: bool = False
) -> str:
    """Return the table of all methods, with the facts above it and the worst points below it.

    Parameters
    ----------
    result : DomainComparison
        The comparison.
    colour, width, plain
        As for `difflab.report.terminal.draw`. User text is escaped.
    """
    shown = view(result)
    parts: list[Part] = [facts([("f", shown.expression), *shown.facts]), shown.table]
    if shown.notes:
        parts.append([Cell(f"{name}: {message}", "note") for name, message in shown.notes])
    if shown.sentence:
        parts.append(Cell(shown.sentence, "label"))
    return draw(parts, colour=colour, width=width, plain=plain)

"""Tables of text: the model that every table of difflab uses, as plain text and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, NamedTuple

# Some spreadsheets treat a cell that begins with one of these as a formula; the wide forms do
# so in East Asian locales (OWASP, "CSV Injection").
_FORMULA = tuple("=+-@＝＋－＠|%")


class Cell(NamedTuple):
    """A text and its kind (a verdict, a family, ``"label"``, …), which determines its style."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    heading : str
        Empty for a column without a heading.
    right : bool
        Whether its cells are figures, which are aligned on the right.
    wrap : bool
        Whether its cells may be wrapped where the table is too wide.
    widest : int or None
        The most characters of a line of a wrapped cell.
    format : callable
        Returns the text of a cell that is no `Cell`.
    """

    heading: str = ""
    right: bool = False
    wrap: bool = False
    widest: int | None = None
    format: Callable[[Any], str] = str


@dataclass(frozen=True)
class Table:
    """Rows of cells: values that their column formats, or `Cell`.

    Attributes
    ----------
    columns : sequence of Column
    rows : sequence of sequence
    gap : int
        The spaces between two columns on the terminal, beside the one of a rule.
    ruled : bool
        Whether a rule separates the headings from the rows on the terminal.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    gap: int = 1
    ruled: bool = True

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [column.heading for column in self.columns]

    @property
    def headed(self) -> bool:
        """Whether any column has a heading."""
        return any(self.headings)

    def lines(self) -> Iterator[list[Cell]]:
        """Yield the cells of every row."""
        for row in self.rows:
            yield [
                cell if isinstance(cell, Cell) else Cell(column.format(cell))
                for column, cell in zip(self.columns, row, strict=True)
            ]

    def text(self, indent: str = "") -> str:
        """Return the headings and the rows as lines of aligned plain text.

        Examples
        --------
        >>> print(Table([Column("name"), Column("n", right=True)], [("a", 10), ("bc", 7)]).text())
        name   n
        a     10
        bc     7
        """
        lines = [self.headings, *([cell.text for cell in line] for line in self.lines())]
        widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
        aligned = (
            indent
            + "  ".join(
                text.rjust(width) if column.right else text.ljust(width)
                for column, text, width in zip(self.columns, line, widths, strict=True)
            ).rstrip()
            for line in lines
        )
        return "\n".join(aligned)


def facts(pairs: Iterable[tuple[str, str | Cell]], gap: int = 2) -> Table:
    """Return the table of labelled texts, such as those above a table of results."""
    rows = [(Cell(label, "label"), text) for label, text in pairs]
    return Table((Column(), Column(wrap=True)), rows, gap)


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    r"""Return lines of cells as CSV (RFC 4180, with ``\n``); None is an empty cell.

    Examples
    --------
    >>> csv_text([["a", "b"], ["x, y", None]])
    'a,b\n"x, y",\n'
    """
    buffer = StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


def guarded(text: str) -> str:
    """Return `text` with an apostrophe before it if a spreadsheet would treat it as a formula.

    Examples
    --------
    >>> guarded("=cmd()"), guarded("-x^2"), guarded("sin(x)")
    ("'=cmd()", "'-x^2", 'sin(x)')
    """
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text

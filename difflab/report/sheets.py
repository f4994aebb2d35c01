"""Tables of formulas on the pages of a PDF, set by matplotlib, which needs no LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING

from difflab.report.canvas import FAINT, INK, style

if TYPE_CHECKING:
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure


A4 = (8.27, 11.69)
"""Width and height of a page in inches."""
_MARGIN = 0.65
_LINE = 0.21
_GAP = 0.22
_SIZE, _SMALLEST = 9.5, 5.5


@dataclass(frozen=True)
class Block:
    """A table with its title, or a title alone.

    Attributes
    ----------
    title : str
        Empty for none.
    rows : list of rows
        For each cell its text, and its mathematics in LaTeX; empty if it is text.
    rights : tuple of bool
        Whether each column is aligned on the right; the columns that it does not name are not.
    headed : bool
        Whether the first row has the headings.
    """

    title: str = ""
    rows: list[list[tuple[str, str]]] = field(default_factory=list)
    rights: tuple[bool, ...] = ()
    headed: bool = False


def pages(title: str, blocks: Iterable[Block]) -> bytes:
    """Return tables below each other on A4 pages of a PDF.

    A table that is too wide is set smaller.
    """
    from matplotlib.backends.backend_pdf import PdfPages

    buffer = BytesIO()
    with style(), PdfPages(buffer, metadata={"CreationDate": None}) as document:
        sheet = _Sheet(document)
        sheet.line(title, 13, bold=True)
        for block in blocks:
            sheet.block(block)
        sheet.finish()
    return buffer.getvalue()


class _Sheet:
    """The page that is written on, from the top."""

    def __init__(self, document: PdfPages) -> None:
        self.document = document
        self.figure = self._fresh()

    def _fresh(self) -> Figure:
        from matplotlib.figure import Figure

        self.below = _MARGIN  # inches from the top
        return Figure(figsize=A4)

    def finish(self) -> None:
        """Write the page out."""
        self.document.savefig(self.figure)  # type: ignore[no-untyped-call]

    def _space(self, height: float) -> None:
        """Begin another page unless so many inches are left."""
        if self.below + height > A4[1] - _MARGIN:
            self.finish()
            self.figure = self._fresh()

    def line(self, text: str, size: float = _SIZE, *, bold: bool = False) -> None:
        """Write a line of text, wrapped at the margin."""
        for part in wrap(text, int(0.9 * 950 / size)):
            self._space(_LINE)
            self._write(part, "", _MARGIN, size, bold=bold)
            self.below += _LINE * size / _SIZE

    def block(self, block: Block) -> None:
        """Write a table, on as many pages as it needs."""
        self.below += _GAP
        if block.title:
            self._space(4 * _LINE)  # no title is left alone at the foot
            self.line(block.title, _SIZE + 1, bold=True)
        if not block.rows:
            return
        size, widths = self._fitted(block.rows)
        rights = (*block.rights, *(False,) * len(widths))
        for number, row in enumerate(block.rows):
            self._space(_LINE)
            left, heading = _MARGIN, block.headed and not number
            for (text, mathematics), width, right in zip(row, widths, rights, strict=False):
                at = left + width if right else left
                self._write(text, mathematics, at, size, right=right, faint=heading)
                left += width + _GAP
            self.below += _LINE

    def _fitted(self, rows: Sequence[Sequence[tuple[str, str]]]) -> tuple[float, list[float]]:
        """Return the size of the letters and the width of each column in inches."""
        columns = [max(_measured(*row[k])[2] for row in rows) for k in range(max(map(len, rows)))]
        room = A4[0] - 2 * _MARGIN - _GAP * (len(columns) - 1)
        size = max(_SIZE * min(1, room / max(sum(columns), 1e-9)), _SMALLEST)
        return size, [width * size / _SIZE for width in columns]

    def _write(
        self,
        text: str,
        mathematics: str,
        left: float,
        size: float,
        *,
        bold: bool = False,
        right: bool = False,
        faint: bool = False,
    ) -> None:
        shown, is_math, _ = _measured(text, mathematics)
        self.figure.text(
            left / A4[0],
            1 - self.below / A4[1],
            shown,
            va="baseline",
            ha="right" if right else "left",
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=FAINT if faint else INK,
            parse_math=is_math,
        )


@lru_cache(2048)
def _measured(text: str, mathematics: str) -> tuple[str, bool, float]:
    """Return a text for matplotlib, whether it is mathematics, and its width in inches.

    Mathematics that matplotlib cannot read is set as text.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_SIZE)
    if mathematics:
        shown = f"${mathematics}$"
        try:
            width = text_to_path.mathtext_parser.parse(shown, 72, font).width
        except ValueError:
            pass
        else:
            return shown, True, float(width) / 72
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return text, False, float(width) / 72

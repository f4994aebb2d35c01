"""Text on the pages of a PDF."""

from __future__ import annotations

from io import BytesIO

from difflab.report.canvas import INK, style

__all__ = ["pages"]

A4 = (8.27, 11.69)
"""Width and height of a page in inches."""
_LINES = 68
_MARGIN = 0.08


def pages(text: str) -> bytes:
    """Return text as a PDF of A4 pages, in a font of fixed width, 90 characters a line."""
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    buffer = BytesIO()
    with style(), PdfPages(buffer, metadata={"CreationDate": None}) as document:
        written = text.rstrip("\n").split("\n")
        for first in range(0, len(written), _LINES):
            page = Figure(figsize=A4)
            page.text(
                _MARGIN,
                1 - _MARGIN / 2,
                "\n".join(written[first : first + _LINES]),
                va="top",
                family="DejaVu Sans Mono",
                fontsize=9,
                color=INK,
                linespacing=1.25,
                parse_math=False,
            )
            document.savefig(page)
    return buffer.getvalue()

"""What all pictures share: style, titles, file formats, and labels beside the ends of lines."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from difflab.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FAINT", "FORMATS", "INK", "Label", "label_ends", "saved", "spread", "style", "titled"]

FORMATS = ("svg", "png", "pdf")
INK = "#1b1c1d"
FAINT = "#8a8d91"
_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "difflab",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
}


@contextmanager
def style() -> Iterator[None]:
    """Set difflab's matplotlib style, and suppress warnings about missing glyphs.

    The user's settings are ignored, since they may require LaTeX.
    """
    from matplotlib.style import context

    with context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def titled(canvas: Figure, title: str, subtitle: str) -> None:
    """Write the title and the subtitle above the panels."""
    inch = canvas.get_figheight()
    texts = ((0.12, title, 13, INK, "bold"), (0.40, subtitle, 9.5, FAINT, "normal"))
    for below, text, size, colour, weight in texts:
        canvas.text(
            0.012,
            1 - below / inch,
            text,
            va="top",
            fontsize=size,
            color=colour,
            fontweight=weight,
            parse_math=False,
        )


def saved(drawing: Figure, kind: str, *, transparent: bool = False) -> bytes:
    """Return a figure as the bytes of a file, the same bytes for the same figure.

    Raises
    ------
    InputError
        The format is not one of `FORMATS`.
    """
    if kind not in FORMATS:
        raise InputError(
            f"cannot draw a picture as {kind!r}", hint="name a file ending in .svg, .png or .pdf"
        )
    buffer = BytesIO()
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    drawing.savefig(buffer, format=kind, dpi=160, metadata=stamp, transparent=transparent)
    return buffer.getvalue()


@dataclass(frozen=True)
class Label:
    """The label of a line, placed beside its last point."""

    text: str
    x: float
    y: float
    colour: str


def label_ends(axes: Axes, labels: Sequence[Label], gap: float = 5.0) -> None:
    """Write every label to the right of its point, moved up or down to avoid overlaps.

    The axes' limits and scales must be final, since positions are measured on the canvas.

    Parameters
    ----------
    axes : matplotlib Axes
        The axes of the lines.
    labels : sequence of Label
        One for each line.
    gap : float
        Points between the line's end and its label.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    dot = figure.dpi / 72
    heights = [float(axes.transData.transform((label.x, label.y))[1]) / dot for label in labels]
    sizes = [11.5 * (label.text.count("\n") + 1) + 2 for label in labels]
    ceiling = float(axes.bbox.y1) / dot
    for label, height, centre in zip(
        labels, heights, spread(heights, sizes, ceiling=ceiling), strict=True
    ):
        axes.annotate(
            label.text,
            (label.x, label.y),
            xytext=(gap, centre - height),
            textcoords="offset points",
            va="center",
            color=label.colour,
            fontsize=8.5,
            annotation_clip=False,
            parse_math=False,
        )


def spread(
    heights: Sequence[float], sizes: Sequence[float], ceiling: float = math.inf
) -> list[float]:
    """Return centres near `heights`, in their order, of intervals that do not overlap.

    Neighbours that would overlap form a group, which is centred at the mean of its heights and
    kept below `ceiling`.

    Examples
    --------
    >>> spread([0.0, 1.0, 50.0], [10.0, 10.0, 10.0])
    [-4.5, 5.5, 50.0]
    """
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    groups: list[list[int]] = []
    for k in order:
        groups.append([k])
        while len(groups) > 1 and _touch(groups[-2], groups[-1], heights, sizes, ceiling):
            last = groups.pop()
            groups[-1] += last
    centres = [math.nan] * len(heights)
    for group in groups:
        low = _low(group, heights, sizes, ceiling)
        for k in group:
            centres[k] = low + sizes[k] / 2
            low += sizes[k]
    return centres


def _low(
    group: Sequence[int], heights: Sequence[float], sizes: Sequence[float], ceiling: float
) -> float:
    """Return the lower edge of a group centred at the mean of its heights."""
    middle = sum(heights[k] for k in group) / len(group)
    size = sum(sizes[k] for k in group)
    return min(middle - size / 2, ceiling - size)


def _touch(
    below: Sequence[int],
    above: Sequence[int],
    heights: Sequence[float],
    sizes: Sequence[float],
    ceiling: float,
) -> bool:
    top = _low(below, heights, sizes, ceiling) + sum(sizes[k] for k in below)
    return top > _low(above, heights, sizes, ceiling)

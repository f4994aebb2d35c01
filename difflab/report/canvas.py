"""The paper that pictures are drawn on: ink, type, file formats, and labels beside their lines."""

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
    """Set difflab's look, and keep quiet about glyphs that the font lacks.

    What the user has set for other pictures does not count: LaTeX may be missing here.
    """
    from matplotlib.style import context

    with context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def titled(canvas: Figure, title: str, subtitle: str) -> None:
    """Write what the picture shows in the room above the panels."""
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
    """A line's name, to be written beside its last point."""

    text: str
    x: float
    y: float
    colour: str


def label_ends(axes: Axes, labels: Sequence[Label], gap: float = 5.0) -> None:
    """Write every label right of its point, moved up or down where two would touch.

    The axes' limits and scales must be final, since places are measured on the canvas.

    Parameters
    ----------
    axes : matplotlib Axes
        What the lines are drawn on.
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
    rooms = [11.5 * (label.text.count("\n") + 1) + 2 for label in labels]
    ceiling = float(axes.bbox.y1) / dot
    for label, height, place in zip(
        labels, heights, spread(heights, rooms, ceiling=ceiling), strict=True
    ):
        axes.annotate(
            label.text,
            (label.x, label.y),
            xytext=(gap, place - height),
            textcoords="offset points",
            va="center",
            color=label.colour,
            fontsize=8.5,
            annotation_clip=False,
            parse_math=False,
        )


def spread(
    heights: Sequence[float], rooms: Sequence[float], ceiling: float = math.inf
) -> list[float]:
    """Return places near `heights`, in their order, each with its room to itself.

    Neighbours that would touch form a group that stands around the mean of its heights, below
    `ceiling`.

    Examples
    --------
    >>> spread([0.0, 1.0, 50.0], [10.0, 10.0, 10.0])
    [-4.5, 5.5, 50.0]
    """
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    groups: list[list[int]] = []
    for k in order:
        groups.append([k])
        while len(groups) > 1 and _touch(groups[-2], groups[-1], heights, rooms, ceiling):
            last = groups.pop()
            groups[-1] += last
    places = [math.nan] * len(heights)
    for group in groups:
        low = _low(group, heights, rooms, ceiling)
        for k in group:
            places[k] = low + rooms[k] / 2
            low += rooms[k]
    return places


def _low(
    group: Sequence[int], heights: Sequence[float], rooms: Sequence[float], ceiling: float
) -> float:
    """Return the lower edge of a group that stands around the mean of its heights."""
    middle = sum(heights[k] for k in group) / len(group)
    room = sum(rooms[k] for k in group)
    return min(middle - room / 2, ceiling - room)


def _touch(
    below: Sequence[int],
    above: Sequence[int],
    heights: Sequence[float],
    rooms: Sequence[float],
    ceiling: float,
) -> bool:
    top = _low(below, heights, rooms, ceiling) + sum(rooms[k] for k in below)
    return top > _low(above, heights, rooms, ceiling)

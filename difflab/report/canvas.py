"""Shared parts of all pictures: style, titles, formats, labels beside lines."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from difflab.core.wording import seconds
from difflab.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Figure
    from matplotlib.lines import Line2D
else:  # matplotlib is loaded when something is drawn, and named by annotations before
    Axes = Figure = Any


Caption = tuple[float, str, float, str, str]
"""The inches above it, the text, and its size, colour and weight."""

WIDTH = 9.0
"""Inches of a picture: text of 8.5 points has 6 in a column of 6.5 inches."""

FORMATS = ("svg", "png", "pdf")
INK = "#1b1c1d"
FAINT = "#8a8d91"
_FIRST_POWER = 3
"""The exponent of ten from which ticks have powers: 1, 10, 100, 10³."""
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
    "axes.formatter.min_exponent": _FIRST_POWER,
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


def titled(canvas: Figure, title: str, subtitle: str) -> float:
    """Write the title and the subtitle above the panels, as `captions` does."""
    lines = ((0.12, title, 13, INK, "bold"), (0.07, subtitle, 9.5, FAINT, "normal"))
    return captions(canvas, lines)


def titled_figure(
    height: float,
    title: str,
    subtitle: str,
    *,
    left: float = 0.9,
    right: float = 0.2,
    top: float = 0.4,
    bottom: float = 0.5,
) -> Figure:
    """Return a figure with its title and subtitle, and margins around its panels, in inches.

    The margin at the top is below the subtitle; by default it has space for a panel's title.
    """
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(WIDTH, height))
    top += titled(canvas, title, subtitle)
    canvas.subplots_adjust(
        left=left / WIDTH, right=1 - right / WIDTH, bottom=bottom / height, top=1 - top / height
    )
    return canvas


def captions(canvas: Figure, lines: Iterable[Caption], left: float = 0.012) -> float:
    """Write lines below each other, wrapped to the width; return their height in inches."""
    inch, below = canvas.get_figheight(), 0.0
    for gap, text, size, colour, weight in lines:
        caption = canvas.text(
            left,
            1 - (below + gap) / inch,
            text,
            va="top",
            fontsize=size,
            color=colour,
            fontweight=weight,
            parse_math=False,
            wrap=True,
        )
        below += gap + caption.get_window_extent().height / canvas.dpi
    return below


def beside(
    axes: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], **options: Any
) -> None:
    """Write a text at an offset in points from a point of the data."""
    usual: dict[str, Any] = {"va": "center", "fontsize": 8.5, "parse_math": False}
    axes.annotate(text, point, offset, textcoords="offset points", **usual | options)


def ticks(axis: Axis, positions: Mapping[float, str]) -> None:
    """Label an axis at these positions only, with lines across the panel."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(list(positions)))
    axis.set_major_formatter(FixedFormatter(list(positions.values())))
    axis.set_minor_locator(NullLocator())
    axis.grid(visible=True)


def decades(axis: Axis, tick: Callable[[float, object], str]) -> None:
    """Label the powers of ten of a logarithmic axis; below a decade 2 and 5 times them too."""

    def minor(value: float, _: object = None) -> str:
        low, high = sorted(axis.get_view_interval())
        leading = round(value / 10 ** math.floor(math.log10(value) + 1e-9))
        return tick(value, _) if high < 10 * low and leading in (2, 5) else ""

    axis.set_major_formatter(tick)
    axis.set_minor_formatter(minor)


def seconds_tick(value: float, _: object = None) -> str:
    """Return a time as the label of a tick, without zeros behind the point."""
    return seconds(value).replace(".00", "").replace(".0", "") if value else "0 s"


def power_tick(value: float, _: object = None) -> str:
    """Return a power of ten, or a small number, as the label of a tick.

    Logarithmic axes have the same labels in this style.

    Examples
    --------
    >>> power_tick(100.0), power_tick(0.01), power_tick(1e-6)
    ('100', '0.01', '$10^{-6}$')
    """
    power = round(math.log10(value))
    plain = abs(power) < _FIRST_POWER or not math.isclose(value, 10.0**power)
    return f"{value:g}" if plain else f"$10^{{{power}}}$"


def ratio_tick(value: float, _: object = None) -> str:
    """Return a ratio as the label of a tick.

    Examples
    --------
    >>> ratio_tick(0.5), ratio_tick(10.0), ratio_tick(1e4)
    ('0.5×', '10×', '$10^{4}$×')
    """
    return f"{power_tick(value)}×"


def marker(label: str, shape: str, colour: str, edge: str, **options: Any) -> Line2D:
    """Return a marker with its meaning for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=shape, color=colour, mec=edge, label=label, **options)


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


def inlined(drawing: Figure) -> str:
    """Return a figure as an ``<svg>`` element that uses the text colour of its page."""
    text = saved(drawing, "svg", transparent=True).decode("utf-8")
    # Whether the theme is dark depends on the page, so ink is replaced by its text colour.
    return text[text.index("<svg") :].replace(INK, "currentColor")


@dataclass(frozen=True)
class Label:
    """The label of a line, placed beside its last point, with the line's marker if given."""

    text: str
    x: float
    y: float
    colour: str
    marker: str = ""


def label_ends(
    axes: Axes, labels: Sequence[Label], gap: float = 12.0, fontsize: float = 8.5
) -> None:
    """Write every label to the right of its point, moved up or down to avoid overlaps.

    A label that is moved is joined to its point by a thin line. The axes' limits and scales must
    be final, since positions are measured on the canvas.

    Parameters
    ----------
    axes : matplotlib Axes
        The axes of the lines.
    labels : sequence of Label
        One for each line.
    gap : float
        Points between the line's end and its label.
    fontsize : float
        Of the labels, in points.
    """
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    dot = figure.dpi / 72
    heights = [float(axes.transData.transform((label.x, label.y))[1]) / dot for label in labels]
    sizes = [1.35 * fontsize * (label.text.count("\n") + 1) + 2 for label in labels]
    bottom, top = float(axes.bbox.y0) / dot, float(axes.bbox.y1) / dot
    centres = spread(heights, sizes, ceiling=top + fontsize, floor=bottom - 2 * fontsize)
    joint: dict[str, Any] = {"arrowstyle": "-", "lw": 0.6, "alpha": 0.6, "shrinkA": 0, "shrinkB": 1}
    for label, height, centre in zip(labels, heights, centres, strict=True):
        point, shift = (label.x, label.y), centre - height
        look: dict[str, Any] = {"color": label.colour, "annotation_clip": False}
        if abs(shift) > 2:
            line = joint | {"color": label.colour}
            beside(axes, "", point, (gap - 1, shift), arrowprops=line, **look)
        offset = gap + 10 if label.marker else gap, shift
        beside(axes, label.text, point, offset, fontsize=fontsize, **look)
        if label.marker:
            move = ScaledTranslation((gap + 4) / 72, shift / 72, figure.dpi_scale_trans)
            sign = Line2D([label.x], [label.y], marker=label.marker, color=label.colour, ms=6)
            sign.set(transform=axes.transData + move, clip_on=False)
            axes.add_artist(sign)


def spread(
    heights: Sequence[float],
    sizes: Sequence[float],
    ceiling: float = math.inf,
    floor: float = -math.inf,
) -> list[float]:
    """Return centres near `heights`, in their order, of intervals that do not overlap.

    Neighbours that would overlap form a group, which is centred at the mean of its heights and
    kept below `ceiling` and above `floor`; where both are impossible, above `floor`.

    Examples
    --------
    >>> spread([0.0, 1.0, 50.0], [10.0, 10.0, 10.0])
    [-4.5, 5.5, 50.0]
    """

    def low(group: Sequence[int]) -> float:
        middle, size = sum(heights[k] for k in group) / len(group), total(group)
        return max(min(middle - size / 2, ceiling - size), floor)

    def total(group: Sequence[int]) -> float:
        return sum(sizes[k] for k in group)

    groups: list[list[int]] = []
    for k in sorted(range(len(heights)), key=lambda k: heights[k]):
        groups.append([k])
        while len(groups) > 1 and low(groups[-2]) + total(groups[-2]) > low(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    centres = [math.nan] * len(heights)
    for group in groups:
        start = low(group)
        for k in group:
            centres[k] = start + sizes[k] / 2
            start += sizes[k]
    return centres

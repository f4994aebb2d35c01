"""A scene as a PNG picture, drawn by Matplotlib's Agg renderer: no Graphviz, no display."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any

from difflab.drawing.layout import Curve
from difflab.drawing.model import Diagram
from difflab.drawing.scene import Outline, PanelFrame, Scene, outlines, scene
from difflab.drawing.svg import HEAT_LINE, LIGHT
from difflab.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PER_INCH = 100.0
DENSITY = 2.0
MOST_PIXELS = 36e6


def png(picture: Diagram) -> bytes:
    """Return a diagram as a PNG file, at twice the size of the SVG unless that is very large.

    Parameters
    ----------
    picture : Diagram

    Returns
    -------
    bytes
    """
    from matplotlib.style import context

    drawn = scene(picture)
    # The user's rcParams are ignored: LaTeX, for example, may be missing.
    with context("default"):
        return _drawn(drawn)


def _drawn(drawn: Scene) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    area = drawn.width * drawn.height
    density = min(DENSITY, (MOST_PIXELS / area) ** 0.5, 30_000 / max(drawn.width, drawn.height))
    figure = Figure(
        figsize=(drawn.width / PER_INCH, drawn.height / PER_INCH), dpi=density * PER_INCH
    )
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, drawn.width), ylim=(drawn.height, 0))
    axes.axis("off")
    _paint(axes, drawn)
    stream = BytesIO()
    with warnings.catch_warnings():
        # Names may hold letters that the font lacks; a box in their place is all one can do.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(stream, format="png", facecolor=LIGHT["paper"], metadata={"Title": None})
    return stream.getvalue()


def _paint(axes: Axes, drawn: Scene) -> None:
    """Draw lines, heads, boxes and texts, back to front."""
    from matplotlib.patches import Circle, Polygon
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.2, foreground=LIGHT["paper"])]
    points = 72.0 / PER_INCH
    for frame in drawn.panels:
        axes.add_patch(_panel(frame))
    for line in drawn.lines:
        axes.add_patch(_curve(line.curve, line.width * points))
    for head in drawn.heads:
        axes.add_patch(Polygon(head, closed=True, facecolor=LIGHT["line"], linewidth=0))
    for dot in drawn.dots:
        axes.add_patch(Circle(dot, 3.2, facecolor=LIGHT["line"], linewidth=0))
    for shape in drawn.shapes:
        for outline in outlines(shape):
            axes.add_patch(_rect(outline))
        if shape.heat:
            axes.add_patch(_heat(outlines(shape)[0], shape.heat))
    colours = {"title": LIGHT["ink"], "label": LIGHT["ink"]}
    colours |= {role: LIGHT[role] for role in ("value", "bar", "bad")}
    for text in drawn.texts:
        axes.text(
            text.x, text.y + 0.36 * text.size, printable(text.text),
            fontsize=text.size * points,
            fontfamily="DejaVu Sans",
            fontweight="bold" if text.role in ("title", "mark", "bad") else "normal",
            color=colours.get(text.role, LIGHT["quiet"]),
            ha={"start": "left", "middle": "center", "end": "right"}[text.anchor],
            va="baseline",
            parse_math=False,
            path_effects=halo if text.role == "mark" else None,
        )  # fmt: skip


def _curve(curve: Curve, width: float) -> Any:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = [Path.MOVETO, Path.LINETO, Path.CURVE4, Path.CURVE4, Path.CURVE4, Path.LINETO]
    return PathPatch(
        Path(list(curve), codes), fill=False, edgecolor=LIGHT["line"], linewidth=width,
        capstyle="butt",
    )  # fmt: skip


def _panel(frame: PanelFrame) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (frame.x, frame.y), frame.width, frame.height,
        boxstyle="round,pad=0,rounding_size=8",
        fill=False,
        edgecolor=LIGHT["coarse line"],
        linewidth=1.2 * 72.0 / PER_INCH,
        linestyle=(0, (2, 3)),
    )  # fmt: skip


def _heat(outline: Outline, heat: float) -> Any:
    from matplotlib.colors import to_rgba

    patch = _rect(outline)
    patch.set(
        facecolor=to_rgba(LIGHT["bad"], 0.5 * heat),
        edgecolor=LIGHT["bad"],
        linewidth=HEAT_LINE * heat * 72.0 / PER_INCH,
        linestyle="solid",
    )
    return patch


def _rect(outline: Outline) -> Any:
    from matplotlib.patches import FancyBboxPatch

    corners = f"round,pad=0,rounding_size={outline.radius}" if outline.radius else "square,pad=0"
    return FancyBboxPatch(
        (outline.x, outline.y), outline.width, outline.height,
        boxstyle=corners,
        facecolor=LIGHT[outline.kind],
        edgecolor=LIGHT[f"{outline.kind} line"],
        linewidth=1.6 * 72.0 / PER_INCH,
        linestyle=(0, (4, 2.5)) if outline.dashed else "solid",
    )  # fmt: skip

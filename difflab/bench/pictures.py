"""What the pictures of several benchmarks share: colours, and how each method's curve is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from difflab.lab.sweep import SweepRow
from difflab.report.canvas import FAINT, saved, style
from difflab.report.style import clean, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "BROWN",
    "GREEN",
    "METHOD_STYLES",
    "ORANGE",
    "OTHER_STYLE",
    "PURPLE",
    "RED",
    "SKY",
    "CurveStyle",
    "formula_at_point",
    "picture",
    "plot_curve",
    "style_of",
]


class CurveStyle(NamedTuple):
    """A curve's colour, marker and stroke; no two curves differ in colour alone."""

    colour: str
    marker: str
    dashes: str = "-"
    width: float = 1.3


# The palette of Okabe and Ito, some colours darkened to be legible as text.
BLUE, SKY, GREEN = "#0072B2", "#3D9BD1", "#009E73"
ORANGE, RED, PURPLE, BROWN = "#D98E00", "#D55E00", "#B5578C", "#8C6D1F"

METHOD_STYLES: Mapping[str, CurveStyle] = {
    "symbolic": CurveStyle(PURPLE, "D"),
    "finite-forward": CurveStyle(ORANGE, "^"),
    "finite-central": CurveStyle(RED, "s"),
    "richardson": CurveStyle(BROWN, "v"),
    "complex-step": CurveStyle(SKY, "P"),
    "forward": CurveStyle(BLUE, "o", width=2.6),
    "reverse": CurveStyle(GREEN, "o", width=2.6),
}
_PEER_STYLES: Mapping[str, CurveStyle] = {
    "exact": CurveStyle("#5E6B75", "*"),
    "jax": CurveStyle("#E7298A", "^"),
    "torch": CurveStyle("#B3261E", "s"),
    "torch-compile": CurveStyle("#7F4F24", "<"),
    "autograd": CurveStyle("#7570B3", "D"),
    "casadi": CurveStyle("#222222", "X"),
    "symengine": CurveStyle("#8F3B76", "P"),
    "numdifftools": CurveStyle("#9A8B00", "v"),
    "pytensor": CurveStyle("#005A8C", "p"),
    "tensorflow": CurveStyle("#00724F", "h"),
    "tinygrad": CurveStyle("#A6761D", ">"),
    "symforce": CurveStyle("#4B3F8F", "d"),
    "jacobi": CurveStyle("#C2571A", "1"),
    "enzyme-ad": CurveStyle("#3B7A57", "2"),
}
"""The styles of what `METHOD_STYLES` leaves out: methods that are not shown by default."""
OTHER_STYLE = CurveStyle(FAINT, ".", ":")
"""The style of a method without an entry, such as a plug-in's."""


def picture(figure: Callable[[Sequence[SweepRow]], Figure]) -> Callable[..., bytes]:
    """Return the `draw` of a benchmark: from rows and a format to the bytes of a file.

    The decorated function draws the rows of the benchmark's `LAYOUT` on a figure, in the style
    of difflab's pictures. The format is the second argument: ``"svg"``, ``"png"`` or ``"pdf"``.
    """

    @wraps(figure)
    def draw(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
        with style():
            return saved(figure(rows), kind)

    return draw


def style_of(method: str) -> CurveStyle:
    """Return the style of a method or peer."""
    return METHOD_STYLES.get(method) or _PEER_STYLES.get(method, OTHER_STYLE)


def formula_at_point(rows: Sequence[SweepRow]) -> str:
    """Return what all rows are about, a formula at a point, as the beginning of a heading."""
    formula, point = (clean(str(rows[0][name])) for name in ("expression", "point"))
    return f"{shorten(formula, 90)} at {shorten(point, 50)}"


def plot_curve(axes: Axes, x: Sequence[float], y: Sequence[float], look: CurveStyle) -> None:
    """Draw a curve with its markers."""
    axes.plot(x, y, look.dashes, color=look.colour, lw=look.width, marker=look.marker, ms=4)

"""Shared parts of the benches: layouts of their rows, tables, and the look of their pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, Unpack

from difflab.core.table import Column, Table
from difflab.core.wording import bytes_text, count, error, seconds
from difflab.lab import provenance
from difflab.lab.provenance import ADDED
from difflab.lab.sweep import CellType, SweepLayout, SweepRow
from difflab.methods.registry import peer_names
from difflab.report.canvas import FAINT, Axes, Figure, saved, style
from difflab.report.terminal import Screen, clean, draw, shorten

_INTEGERS = """
bytes columns depth evaluations inputs layers m n numbers operations outputs points recomputed rows
snapshots steps
"""
_REALS = """
bound break_even error high low peak_states ratio seconds step tolerance ulps
"""
_TYPES: dict[str, CellType] = dict.fromkeys(_INTEGERS.split(), int)
_TYPES |= dict.fromkeys(_REALS.split(), float)


def layout(columns: str, key: str) -> SweepLayout:
    """Return the layout of a bench, its columns followed by those of the provenance.

    Parameters
    ----------
    columns : str
        The names of the bench's own columns. The name, or its last word, gives the type:
        ``call_seconds`` is a real number, as all seconds; columns without another type are text.
    key : str
        Those of them that identify what is measured.

    Returns
    -------
    SweepLayout
        As `difflab.lab.provenance.layout`.

    Examples
    --------
    >>> layout("method inputs call_seconds", key="method inputs").columns["call_seconds"]
    <class 'float'>
    """
    types = {name: _type(name) for name in columns.split()}
    return provenance.layout(types, key.split())


def _type(name: str) -> CellType:
    return _TYPES.get(name) or _TYPES.get(name.rpartition("_")[2], str)


def table(layout: SweepLayout, rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table with a line for every row; values common to all rows are in its heading.

    Parameters
    ----------
    layout : SweepLayout
        The columns of the rows. Those that say how a row was made are left out.
    rows : sequence of row
        The rows.
    screen
        As for `difflab.report.terminal.draw`.
    """
    cells = {
        name: [row[name] for row in rows]
        for name in layout.columns
        if name not in ADDED and any(row[name] not in (None, "") for row in rows)
    }
    shared = [name for name, column in cells.items() if len({*column}) == 1 and len(rows) > 1]
    shown = {name: _shown(name, layout.columns[name]) for name in cells}
    heading = [f"{_title(name)}: {shown[name](cells[name][0])}" for name in shared]
    names = [name for name in cells if name not in shared]
    columns = [
        Column(_title(name), right=layout.columns[name] is not str, wrap=name == "message")
        for name in names
    ]
    lines = [[shown[name](row[name]) for name in names] for row in rows]
    return draw([part for part in ("\n".join(heading), Table(columns, lines)) if part], **screen)


def _title(name: str) -> str:
    return name.replace("_", " ").removesuffix(" seconds").removesuffix(" bytes")


def _shown(name: str, kind: CellType) -> Callable[[Any], str]:
    """Return how the cells of a column are shown."""
    formats: dict[str, Callable[[Any], str]] = {"seconds": seconds, "bytes": bytes_text}
    form = formats.get(name.rpartition("_")[2]) or {int: count, float: error}.get(kind, _text)
    return lambda value: "–" if value is None else form(value)


def _text(value: Any) -> str:
    return clean(str(value))


class CurveStyle(NamedTuple):
    """A curve's colour, marker and stroke; no two curves differ in colour alone."""

    colour: str
    marker: str
    dashes: str = "-"
    width: float = 1.3


# The palette of Okabe and Ito, some colours darkened to be legible as text.
BLUE, SKY, GREEN = "#0072B2", "#3D9BD1", "#009E73"
ORANGE, RED, PURPLE, BROWN = "#D98E00", "#D55E00", "#B5578C", "#8C6D1F"
VIOLET = "#7570B3"

METHOD_STYLES: Mapping[str, CurveStyle] = {
    "symbolic": CurveStyle(PURPLE, "D"),
    "finite-forward": CurveStyle(ORANGE, "^"),
    "finite-central": CurveStyle(RED, "s"),
    "richardson": CurveStyle(BROWN, "v"),
    "complex-step": CurveStyle(SKY, "P"),
    "forward": CurveStyle(BLUE, "o", width=2.6),
    "reverse": CurveStyle(GREEN, "o", width=2.6),
}
_EXACT_STYLE = CurveStyle("#5E6B75", "*")
_PEER_STYLES = tuple(
    CurveStyle(colour, marker)
    for colour, marker in (
        *(("#E7298A", "^"), ("#B3261E", "s"), ("#7570B3", "D"), ("#222222", "X")),
        *(("#8F3B76", "P"), ("#9A8B00", "v"), ("#005A8C", "p"), ("#00724F", "h")),
        *(("#7F4F24", "<"), ("#A6761D", ">"), ("#4B3F8F", "d"), ("#C2571A", "1")),
        *(("#3B7A57", "2"), ("#1F78B4", "*"), ("#6A3D9A", "3"), ("#B15928", "4")),
    )
) + tuple(
    CurveStyle(colour, marker, "--")
    for colour, marker in (
        *(("#8C6D31", "H"), ("#AD494A", "8"), ("#393B79", "s"), ("#637939", "^")),
        *(("#843C39", "D"), ("#7B4173", "v"), ("#3182BD", "P"), ("#31A354", "X")),
    )
)
"""The styles of the peers, in the order of the registry; none of them is shown by default."""
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
    if method in METHOD_STYLES:
        return METHOD_STYLES[method]
    if method == "exact":
        return _EXACT_STYLE
    names = peer_names()
    if method not in names:
        return OTHER_STYLE
    return _PEER_STYLES[names.index(method) % len(_PEER_STYLES)]


def formula_at_point(rows: Sequence[SweepRow]) -> str:
    """Return the formula and the point of all rows, to begin a heading."""
    formula, point = (clean(str(rows[0][name])) for name in ("expression", "point"))
    return f"{shorten(formula, 90)} at {shorten(point, 50)}"


def plot_curve(axes: Axes, x: Sequence[float], y: Sequence[float], look: CurveStyle) -> None:
    """Draw a curve with its markers."""
    axes.plot(x, y, look.dashes, color=look.colour, lw=look.width, marker=look.marker, ms=4)

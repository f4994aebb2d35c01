"""A comparison as one picture: accuracy against cost, and the times to prepare and to call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from difflab.core.wording import count, seconds
from difflab.lab.record import MethodRow
from difflab.report.canvas import (
    INK,
    WIDTH,
    beside,
    inlined,
    marker,
    power_tick,
    saved,
    seconds_tick,
    style,
    ticks,
)
from difflab.report.canvas import titled as write_title
from difflab.report.comparison.view import view
from difflab.report.terminal import FAMILIES, PLAIN, FamilyStyle, shorten

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

# Length, text at the end, colour, opacity.
Bar = tuple[float | None, str, str, float]

# The position of an error of exactly zero on the logarithmic axis.
_EXACT = 0.05
_GOOD = "#009E73"


def picture(comparison: Any, kind: str) -> bytes:
    """Return the picture of a comparison as the bytes of a file.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    kind : {"svg", "png", "pdf"}
        The format.

    Raises
    ------
    InputError
        The format is none of these.
    """
    with style():
        return saved(figure(comparison), kind)


def inline_svg(comparison: Any) -> str:
    """Return the picture as an ``<svg>`` element that uses the text colour of its page."""
    with style():
        return inlined(figure(comparison, titled=False))


def draw_on(axes: Axes, comparison: Any) -> None:
    """Draw accuracy against cost on axes of matplotlib; without timing, the errors alone."""
    rows = view(comparison).rows
    timed = any(row.call_seconds is not None for row in rows)
    with style():
        drawn = (_accuracy_against_cost if timed else _errors)(axes, rows)
        axes.legend(handles=_legend(drawn), frameon=False, fontsize=8.5)


def figure(comparison: Any, *, titled: bool = True) -> Figure:
    """Return the picture of a comparison as a matplotlib figure.

    Left: the largest error, in units in the last place, against the time of a call. Right:
    the times to prepare and to call. Without timing: the errors, and the sizes of the
    derivatives.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    shown = view(comparison)
    timed = any(row.call_seconds is not None for row in shown.rows)
    height = 4.9 + titled * 0.4
    layout = ConstrainedLayoutEngine(w_pad=0.08, wspace=0.03)
    canvas = Figure(figsize=(WIDTH, height), layout=layout)
    if titled:
        heading = f"{shown.derivative_name} of {shorten(shown.expression, 68)}"
        head = write_title(canvas, heading, f"at {shorten(shown.point, 110)}")
        layout.set(rect=(0, 0, 1, 1 - (head + 0.1) / height))
    left, right = canvas.subplots(1, 2, width_ratios=(1.25, 1))
    if timed:
        _times(right, shown.rows)
        drawn = _accuracy_against_cost(left, shown.rows)
    else:
        drawn = _errors(left, shown.rows)
        _sizes(right, shown.rows)
    handles = _legend(drawn)
    canvas.legend(
        handles=handles,
        loc="outside lower left",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handletextpad=0.4,
    )
    return canvas


def _family(row: MethodRow) -> FamilyStyle:
    return FAMILIES.get(row.family, PLAIN)


def _height(ulps: float | None, top: float) -> float:
    """Return the position of an error on its axis, including zero and infinity."""
    if ulps is None or not math.isfinite(ulps):
        return top
    return max(ulps, _EXACT)


def _top(rows: Sequence[MethodRow]) -> float:
    """Return the end of the error axis: a decade above the largest finite error."""
    finite = [row.ulps for row in rows if row.ulps is not None]
    largest = max((ulps for ulps in finite if math.isfinite(ulps)), default=1.0)
    return float(10.0 ** math.ceil(math.log10(max(largest, 10.0)) + 0.5))


def _accuracy_against_cost(axes: Axes, rows: Sequence[MethodRow]) -> list[MethodRow]:
    """Draw the error of every method against the time of a call; return the rows drawn."""
    drawn = [row for row in rows if row.call_seconds is not None and row.max_abs_error is not None]
    times = [row.call_seconds for row in drawn if row.call_seconds is not None] or [1e-6]
    top = _top(drawn)
    axes.set(xscale="log", yscale="log", xlim=(min(times) / 4, max(times) * 6))
    axes.set_title("accuracy against cost: best is below and left", loc="left", fontsize=10)
    _time_axis(axes, "time of a call")
    _error_axis(axes.yaxis, drawn, top)
    axes.axhspan(_EXACT / 6, 2.0, color=_GOOD, alpha=0.10, lw=0)
    axes.set_ylim(_EXACT / 6, top * 2)
    points = [(row.call_seconds or min(times), _height(row.ulps, top)) for row in drawn]
    for point, row in zip(points, drawn, strict=True):
        _mark(axes, point, row)
    place_labels(axes, points, [shorten(row.name, 20) for row in drawn], INK)
    return drawn


def _mark(axes: Axes, point: tuple[float, float], row: MethodRow) -> None:
    """Draw one method; a wrong one is crossed out and a declared one ringed, in any colour."""
    family = _family(row)
    axes.plot(*point, family.marker, color=family.colour, ms=8, mec=INK, mew=0.5, zorder=3)
    if row.outcome == "disagree":
        axes.plot(*point, "x", color=INK, ms=13, mew=1.4, zorder=4)
    elif row.outcome == "declared":
        axes.plot(*point, "o", mfc="none", mec=INK, ms=14, mew=1.0, zorder=4)


def _error_axis(axis: Axis, rows: Sequence[MethodRow], top: float) -> None:
    """Set up an axis of errors: exact, then decades of units in the last place."""
    last = round(math.log10(top))
    powers = range(0, last, max(1, math.ceil(last / 8)))
    labels = {_EXACT: "exact"} | {10.0**power: power_tick(10.0**power) for power in powers}
    if any(_height(row.ulps, top) == top for row in rows):
        labels[top] = "∞"
    ticks(axis, labels)
    axis.set_label_text("largest error, in units in the last place (ULP)")


def _time_axis(axes: Axes, label: str) -> None:
    """Write the decades of a time axis as 1 µs, 10 µs, 100 µs."""
    low, high = axes.get_xlim()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, math.ceil((last - first) / 6))
    decades = [10.0**power for power in range(first, last + 1, step)]
    ticks(axes.xaxis, {t: seconds_tick(t) for t in decades})
    axes.set_xlim(low, high)
    axes.set_xlabel(label)


def _legend(rows: Sequence[MethodRow]) -> list[Artist]:
    """Return a key for every family, and for the marks."""
    from matplotlib.patches import Patch

    handles: list[Artist] = []
    for name in dict.fromkeys(row.family for row in rows):
        family = FAMILIES.get(name, PLAIN)
        handles.append(marker(name, family.marker, family.colour, INK, mew=0.5))
    handles.append(Patch(color=_GOOD, alpha=0.2, label="within 2 ULP"))
    if any(row.outcome == "disagree" for row in rows):
        handles.append(marker("disagrees", "x", INK, INK))
    if any(row.outcome == "declared" for row in rows):
        handles.append(marker("declared by a rule", "o", "none", INK))
    return handles


def _times(axes: Axes, rows: Sequence[MethodRow]) -> None:
    """Draw two bars for every method: the time to prepare faint, the time to call solid."""
    timed = [row for row in rows if row.call_seconds is not None or row.prepare_seconds is not None]
    times = [t for row in timed for t in (row.prepare_seconds, row.call_seconds) if t]
    low, high = min(times) / 3, max(times) * 20
    axes.set(xscale="log", xlim=(low, high))
    axes.set_title("faint: to prepare once · solid: to call", loc="left", fontsize=10)
    _time_axis(axes, "time")
    bars: list[tuple[str, list[Bar]]] = []
    for row in timed:
        colour = _family(row).colour
        pair = [(row.prepare_seconds, seconds(row.prepare_seconds), colour, 0.35)]
        pair.append((row.call_seconds, seconds(row.call_seconds), colour, 1.0))
        bars.append((row.name, pair))
    _bars(axes, bars, low)


def _sizes(axes: Axes, rows: Sequence[MethodRow]) -> None:
    """Draw the operations of a call if known, else the size of the derivative."""
    amounts = [row.operations or (row.size and row.size.dag) or 0 for row in rows]
    largest = max(1, *amounts)
    axes.set(xlim=(0, float(min(largest, 10**300)) * 1.2))
    axes.set_title("operations of a call", loc="left", fontsize=10)
    bars: list[tuple[str, list[Bar]]] = [
        (row.name, [(amount, count(amount), _family(row).colour, 1.0)])
        for row, amount in zip(rows, amounts, strict=True)
        if amount
    ]
    _bars(axes, bars, 0)


def _bars(axes: Axes, groups: Sequence[tuple[str, Sequence[Bar]]], origin: float) -> None:
    """Draw groups of horizontal bars from the top down, each with its value at its end."""
    for row, (_, bars) in enumerate(groups):
        height = 0.8 / len(bars)
        for offset, (length, text, colour, alpha) in enumerate(bars):
            if not length:
                continue
            y = row - 0.4 + height * (offset + 0.5)
            axes.barh(y, length - origin, height * 0.92, origin, color=colour, alpha=alpha)
            beside(axes, text, (length, y), (3, 0))
    axes.set_yticks(range(len(groups)), [shorten(name, 20) for name, _ in groups])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _errors(axes: Axes, rows: Sequence[MethodRow]) -> list[MethodRow]:
    """Draw the error of every method, one line each; return the rows drawn."""
    drawn = [row for row in rows if row.max_abs_error is not None]
    top = _top(drawn)
    axes.set(xscale="log")
    axes.set_title("accuracy: best is left", loc="left", fontsize=10)
    _error_axis(axes.xaxis, drawn, top)
    axes.axvspan(_EXACT / 6, 2.0, color=_GOOD, alpha=0.10, lw=0)
    axes.set_xlim(_EXACT / 6, top * 2)
    for line, row in enumerate(drawn):
        _mark(axes, (_height(row.ulps, top), line), row)
    axes.set_yticks(range(len(drawn)), [shorten(row.name, 20) for row in drawn])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(max(len(drawn), 1) - 0.5, -0.5)
    return drawn


PlotPoint = tuple[float, float]

_MARKER = 5.5  # half the width of a marker, in points
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_GAPS = (3, 7, 12, 18, 26, 36, 48)
_LINE = 30  # characters


def place_labels(
    axes: Axes, points: Sequence[PlotPoint], texts: Sequence[str], colour: str
) -> None:
    """Write every text beside its point, at the nearest free position.

    Points whose markers overlap share one label: their texts, from left to right.

    Parameters
    ----------
    axes : matplotlib Axes
        Its limits and scales must be final: positions are measured on the canvas.
    points : sequence of (x, y)
        In data coordinates.
    texts : sequence of str
        One label per point; never interpreted as mathematical markup.
    colour : str
        The colour of the labels.
    """
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.draw_without_rendering()
    unit = canvas.dpi / 72
    centres = [tuple(axes.transData.transform(point)) for point in points]
    groups = _touching(centres, 2 * _MARKER * unit)
    markers = [_around([centres[k] for k in group], _MARKER * unit) for group in groups]
    occupied = list(markers)
    inside = axes.get_window_extent()
    for group, mark in sorted(zip(groups, markers, strict=True), key=lambda pair: -pair[1].y1):
        names = ", ".join(texts[k] for k in sorted(group, key=lambda k: centres[k]))
        label = axes.text(
            0,
            0,
            "\n".join(wrap(names, _LINE)),
            va="bottom",
            color=colour,
            fontsize=9,
            parse_math=False,
        )
        extent = label.get_window_extent()
        box = _freest(_candidates(mark, (extent.width, extent.height), unit), occupied, inside)
        label.set_position(tuple(axes.transData.inverted().transform((box.x0, box.y0))))
        occupied.append(box)


def _touching(centres: Sequence[PlotPoint], reach: float) -> list[list[int]]:
    """Return groups of the indices of points whose markers overlap."""
    groups: list[list[int]] = []
    for index, (x, y) in enumerate(centres):
        near, far = [index], []
        for group in groups:
            close = any(
                abs(x - centres[k][0]) < reach and abs(y - centres[k][1]) < reach for k in group
            )
            if close:
                near += group
            else:
                far.append(group)
        groups = [*far, near]
    return groups


def _around(centres: Sequence[PlotPoint], reach: float) -> Bbox:
    from matplotlib.transforms import Bbox

    xs, ys = zip(*centres, strict=True)
    return Bbox([[min(xs) - reach, min(ys) - reach], [max(xs) + reach, max(ys) + reach]])


def _candidates(marker: Bbox, size: tuple[float, float], unit: float) -> Iterator[Bbox]:
    """Yield the candidate boxes of a label around its markers, nearest first."""
    from matplotlib.transforms import Bbox

    width, height = size
    middle = ((marker.x0 + marker.x1 - width) / 2, (marker.y0 + marker.y1 - height) / 2)
    for gap in _GAPS:
        for across, up in _SIDES:
            x = (marker.x0 - gap * unit - width, middle[0], marker.x1 + gap * unit)[across + 1]
            y = (marker.y0 - gap * unit - height, middle[1], marker.y1 + gap * unit)[up + 1]
            yield Bbox.from_bounds(x, y, width, height)


def _freest(candidates: Iterator[Bbox], occupied: Sequence[Bbox], inside: Bbox) -> Bbox:
    """Return the first free candidate, else the one with the least overlap."""

    def covered(box: Bbox) -> float:
        outside = float(box.width * box.height) - _shared(box, inside)
        return outside + sum(_shared(box, other) for other in occupied)

    best, least = next(candidates), float("inf")
    for candidate in chain((best,), candidates):
        cost = covered(candidate)
        if cost < least:
            best, least = candidate, cost
        if cost <= 0.5:
            break
    return best


def _shared(box: Bbox, other: Bbox) -> float:
    """Return the area of the intersection of two boxes."""
    width = min(box.x1, other.x1) - max(box.x0, other.x0)
    height = min(box.y1, other.y1) - max(box.y0, other.y0)
    return float(width * height) if width > 0 and height > 0 else 0.0

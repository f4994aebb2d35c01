"""Placement of the labels of a scatter plot without overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox


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
    for group, marker in sorted(zip(groups, markers, strict=True), key=lambda pair: -pair[1].y1):
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
        box = _freest(_candidates(marker, (extent.width, extent.height), unit), occupied, inside)
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

"""Placing the labels of a scatter plot so that they cover neither each other nor a marker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

__all__ = ["place_labels"]

PlotPoint = tuple[float, float]

_MARKER = 5.5  # half the width of a marker, in points
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_GAPS = (3, 7, 12, 18, 26, 36, 48)
_LINE = 30  # characters


def place_labels(
    axes: Axes, points: Sequence[PlotPoint], texts: Sequence[str], colour: str
) -> None:
    """Write every text beside its point, at the nearest place that is free.

    Points whose markers touch share one label: their texts, from left to right.

    Parameters
    ----------
    axes : matplotlib Axes
        Its limits and scales must be final: places are measured on the canvas.
    points : sequence of (x, y)
        In data coordinates.
    texts : sequence of str
        One label a point; shown as they are, never as mathematical markup.
    colour : str
        Of the labels.
    """
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.draw_without_rendering()
    unit = canvas.dpi / 72
    centres = [tuple(axes.transData.transform(point)) for point in points]
    groups = _touching(centres, 2 * _MARKER * unit)
    markers = [_around([centres[place] for place in group], _MARKER * unit) for group in groups]
    taken = list(markers)
    inside = axes.get_window_extent()
    for group, marker in sorted(zip(groups, markers, strict=True), key=lambda pair: -pair[1].y1):
        names = ", ".join(texts[place] for place in sorted(group, key=lambda k: centres[k]))
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
        box = _freest(_candidates(marker, (extent.width, extent.height), unit), taken, inside)
        label.set_position(tuple(axes.transData.inverted().transform((box.x0, box.y0))))
        taken.append(box)


def _touching(centres: Sequence[PlotPoint], reach: float) -> list[list[int]]:
    """Return the places of the points in groups whose markers touch one another."""
    groups: list[list[int]] = []
    for place, (x, y) in enumerate(centres):
        near, far = [place], []
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
    """Yield every room for a label around its markers, nearest first."""
    from matplotlib.transforms import Bbox

    width, height = size
    middle = ((marker.x0 + marker.x1 - width) / 2, (marker.y0 + marker.y1 - height) / 2)
    for gap in _GAPS:
        for across, up in _SIDES:
            x = (marker.x0 - gap * unit - width, middle[0], marker.x1 + gap * unit)[across + 1]
            y = (marker.y0 - gap * unit - height, middle[1], marker.y1 + gap * unit)[up + 1]
            yield Bbox.from_bounds(x, y, width, height)


def _freest(candidates: Iterator[Bbox], taken: Sequence[Bbox], inside: Bbox) -> Bbox:
    """Return the first room that is free, else the one that covers least."""

    def covered(box: Bbox) -> float:
        outside = float(box.width * box.height) - _shared(box, inside)
        return outside + sum(_shared(box, other) for other in taken)

    best, least = next(candidates), float("inf")
    for candidate in chain((best,), candidates):
        cost = covered(candidate)
        if cost < least:
            best, least = candidate, cost
        if cost <= 0.5:
            break
    return best


def _shared(box: Bbox, other: Bbox) -> float:
    """Return the area that two boxes share."""
    width = min(box.x1, other.x1) - max(box.x0, other.x0)
    height = min(box.y1, other.y1) - max(box.y0, other.y0)
    return float(width * height) if width > 0 and height > 0 else 0.0

"""What is checked of every benchmark's picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import unwrap
from itertools import combinations, product

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from difflab.errors import InputError
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import saved, style

COLUMN, SMALLEST = 6.5, 6.0
"""The width of a text in inches, and the size of the smallest print in points."""
WIDEST = 10.0
"""Inches."""
STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def check_picture(
    draw: Callable[[Sequence[SweepRow], str], bytes], rows: Sequence[SweepRow]
) -> None:
    """Check every format, that equal rows give equal bytes, and that other formats are refused.

    `draw` is what the decorator `picture` makes of a function from rows to a figure, which takes
    most of the time and is called once for all formats.
    """
    with style():
        figure = unwrap(draw)(rows)
        check_page(figure)
        check_labels(figure)
        check_axes(figure)
        pictures = {kind: saved(figure, kind) for kind in STARTS}
        with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
            saved(figure, "gif")
    for kind, start in STARTS.items():
        assert pictures[kind].startswith(start)
        assert len(pictures[kind]) > 5_000
    assert draw(rows, "svg") == pictures["svg"]


def check_page(figure: Figure) -> None:
    """Check that a picture fits a page: nothing is cut, and in a column all texts are legible."""
    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    assert width <= WIDEST, f"{width:g} inches are too wide for a page"
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    small = {text.get_text() for text in shown if text.get_fontsize() * COLUMN < SMALLEST * width}
    assert not small, f"too small to be read in print: {small}"
    used = figure.get_tightbbox()
    assert used.x0 >= -0.01, f"{-used.x0:.2f} inches are cut at the left"
    assert used.x1 <= width + 0.01, f"{used.x1 - width:.2f} inches are cut at the right"
    assert used.y0 >= -0.01, f"{-used.y0:.2f} inches are cut at the bottom"
    assert used.y1 <= height + 0.01, f"{used.y1 - height:.2f} inches are cut at the top"


def check_labels(figure: Figure) -> None:
    """Check that labels beside points and ends of lines cover neither each other nor a caption."""
    figure.draw_without_rendering()
    # An annotation's own extent includes the line that joins it to its point.
    boxes = {
        label: Text.get_window_extent(label)
        for label in figure.findobj(Annotation)
        if label.get_text()
    }
    for one, other in combinations(boxes, 2):
        overlapping = boxes[one].overlaps(boxes[other])
        assert not overlapping, f"{one.get_text()!r} covers {other.get_text()!r}"
    for label, caption in product(boxes, figure.texts):
        overlapping = caption.get_text() and boxes[label].overlaps(caption.get_window_extent())
        assert not overlapping, f"{label.get_text()!r} covers {caption.get_text()!r}"
    for axes, caption in product(filter(Axes.get_visible, figure.axes), figure.texts):
        panel = axes.get_tightbbox(bbox_extra_artists=[]) or axes.bbox  # without axes
        overlapping = caption.get_text() and panel.overlaps(caption.get_window_extent())
        assert not overlapping, f"{caption.get_text()!r} covers the panel {axes.get_title('left')}"


def check_axes(figure: Figure) -> None:
    """Check that axes of numbers are labelled, and that their ticks have one form and are apart.

    A panel may share the label of one above, below or beside it; its title may replace that of
    the vertical axis.
    """
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.axison and axes.get_visible()]
    for axes in panels:
        place = axes.get_position()
        column = [o for o in panels if o.get_position().intervalx == pytest.approx(place.intervalx)]
        row = [o for o in panels if o.get_position().intervaly == pytest.approx(place.intervaly)]
        labels = {
            "x": any(other.get_xlabel() for other in column),
            "y": any(other.get_ylabel() for other in row) or axes.get_title(loc="left"),
        }
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            written = [
                tick.label1
                for tick in axis.get_major_ticks()
                if low <= tick.get_loc() <= high and tick.label1.get_visible()
            ]
            ticks = [text.get_text() for text in written]
            for one, other in combinations((text for text in written if text.get_text()), 2):
                overlapping = one.get_window_extent().overlaps(other.get_window_extent())
                assert not overlapping, f"{one.get_text()!r} covers {other.get_text()!r}"
            assert not [text for text in ticks if re.search(r"\de[-+]?\d", text)], ticks
            if any(re.search(r"\d", text) for text in ticks) and not any(
                re.search(r"[a-z]{3}", text.replace("mathdefault", "")) for text in ticks
            ):
                assert labels[name], f"an axis of {ticks} has no label"


def texts(picture: bytes) -> str:
    """Return the texts of a picture; matplotlib names the glyphs' texts in comments."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", picture.decode(), re.DOTALL))

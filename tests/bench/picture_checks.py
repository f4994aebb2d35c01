"""What is checked of every benchmark's picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import unwrap
from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from difflab.errors import InputError
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import saved, style

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
        check_labels(figure)
        pictures = {kind: saved(figure, kind) for kind in STARTS}
        with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
            saved(figure, "gif")
    for kind, start in STARTS.items():
        assert pictures[kind].startswith(start)
        assert len(pictures[kind]) > 5_000
    assert draw(rows, "svg") == pictures["svg"]


def check_labels(figure: Figure) -> None:
    """Check that no two labels beside points and ends of lines overlap, as they are rendered."""
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


def texts(picture: bytes) -> str:
    """Return the texts of a picture; matplotlib names the glyphs' texts in comments."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", picture.decode(), re.DOTALL))

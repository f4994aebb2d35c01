"""What is checked of every benchmark's picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import unwrap

import pytest

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
        pictures = {kind: saved(figure, kind) for kind in STARTS}
        with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
            saved(figure, "gif")
    for kind, start in STARTS.items():
        assert pictures[kind].startswith(start)
        assert len(pictures[kind]) > 5_000
    assert draw(rows, "svg") == pictures["svg"]


def texts(picture: bytes) -> str:
    """Return the texts of a picture; matplotlib names the glyphs' texts in comments."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", picture.decode(), re.DOTALL))

"""What is checked of every benchmark's picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from difflab.errors import InputError
from difflab.lab.sweep import SweepRow

STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def check_picture(
    draw: Callable[[Sequence[SweepRow], str], bytes], rows: Sequence[SweepRow]
) -> None:
    """Check every format, that equal rows give equal bytes, and that other formats are refused."""
    for kind, start in STARTS.items():
        picture = draw(rows, kind)
        assert picture.startswith(start)
        assert len(picture) > 5_000
    assert draw(rows, "svg") == draw(rows, "svg")
    with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
        draw(rows, "gif")


def texts(picture: bytes) -> str:
    """Return the texts of a picture; matplotlib names the glyphs' texts in comments."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", picture.decode(), re.DOTALL))

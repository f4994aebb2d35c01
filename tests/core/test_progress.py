"""Progress from Python: in a notebook a line that rewrites itself, and never an error."""

import io

import pytest

from difflab.core.progress import ProgressLine


class Cell(io.StringIO):
    """The standard error of a notebook's cell, which is no terminal."""


Cell.__module__ = "ipykernel.iostream"


def shown_on(stream: io.TextIOBase | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressLine(patience=0.0) as progress:
        progress(0, 2, "α")
        progress(1, 2, "β")


def test_a_notebook_has_one_line_that_ends_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell()
    shown_on(cell, monkeypatch)
    assert cell.getvalue() == "\r0/2 α\x1b[K\r1/2 β\x1b[K\r\x1b[K"


def test_a_character_that_the_stream_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    shown_on(stream, monkeypatch)
    assert stream.buffer.getvalue() == b"0 of 2: \\u03b1\n"


def test_without_standard_error_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_on(None, monkeypatch)
    closed = io.StringIO()
    closed.close()
    shown_on(closed, monkeypatch)

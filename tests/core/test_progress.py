"""Progress from Python: in a notebook a line that rewrites itself, and never an error."""

import io
from threading import Event

import pytest

import difflab as dl
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


def test_a_long_first_step_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", cell := Cell())
    shown = Event()
    with ProgressLine(patience=0.01) as progress:
        monkeypatch.setattr(progress, "_write", lambda text: (cell.write(text), shown.set()))
        progress(0, 2, "the referee")
        assert shown.wait(60.0)
    assert cell.getvalue().startswith("\r0/2 the referee\x1b[K")


def test_a_proof_is_counted_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", cell := Cell())
    ticks = iter(range(10**9))
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: float(next(ticks)))
    assert dl.prove("ln(x1) + x1*x2 - sin(x2)", {"x1": (1, 1.5), "x2": (4.9, 5.1)}).proved
    assert "pieces are proved, and" in cell.getvalue()
    assert cell.getvalue().endswith("\r\x1b[K")

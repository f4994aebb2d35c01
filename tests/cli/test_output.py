"""Files appear whole or not at all, and text reaches every terminal."""

import io
import stat
import sys
from pathlib import Path

import pytest

from difflab.cli.output import CommandProgressLine, coloured, emit, write_files
from difflab.core import system
from difflab.core.system import check_destination
from difflab.errors import InputError


def test_files_are_written_with_the_usual_permissions(tmp_path):
    path = tmp_path / "a.txt"
    write_files({path: b"one"})
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~system.umask()
    path.chmod(0o640)
    write_files({path: b"two"})
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_all_files_or_none(tmp_path):
    first = tmp_path / "a.txt"
    first.write_bytes(b"old")
    with pytest.raises(InputError, match="no such file or directory"):
        write_files({first: b"new", tmp_path / "missing" / "b.txt": b"new"})
    assert first.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_what_is_left_when_writing_fails_half_way(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(system.os, "fdopen", full)
    with pytest.raises(InputError, match="no space left"):
        write_files({tmp_path / "a.txt": b"new"})
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_written_through(tmp_path):
    target = tmp_path / "target.txt"
    target.write_bytes(b"old")
    (tmp_path / "link.txt").symlink_to(target)
    write_files({tmp_path / "link.txt": b"new"})
    assert target.read_bytes() == b"new"
    assert (tmp_path / "link.txt").is_symlink()


def test_a_device_is_written_to():
    write_files({check_destination("/dev/null"): b"new"})
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["", "missing/a.txt", ".", "a.txt/", "missing/"])
def test_bad_destinations_are_found_before_any_work(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cannot write"):
        check_destination(name)


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding):
        self.content = io.BytesIO()
        super().__init__(self.content, encoding=encoding, write_through=True)

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "1.5 µs – ∂/∂x ψ\n"),
        ("ascii", "1.5 us - d/dx psi\n"),
        ("latin-1", "1.5 us - d/dx psi\n"),
    ],
)
def test_every_encoding_gets_what_it_can_show(encoding, expected, monkeypatch):
    terminal = Terminal(encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    emit("1.5 µs – ∂/∂x ψ\n")
    assert terminal.content.getvalue().decode(encoding) == expected


def test_a_formula_stays_the_same_formula(monkeypatch):
    from difflab.language import parse

    terminal = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    text = "a·b×c² − √(π)"
    emit(text)
    assert parse(terminal.content.getvalue().decode()) == parse(text)


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(Terminal("utf-8"))
    assert not coloured(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not coloured(Terminal("utf-8"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal("utf-8"))


def test_progress_is_a_line_on_a_terminal_and_a_few_lines_elsewhere(monkeypatch):
    terminal = Terminal("utf-8")
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = CommandProgressLine(patience=0.0)
    progress(0, 2, "a\x1b[2J")
    progress(1, 2, "b" * 200)
    progress(2, 2, "")
    first, second, last = terminal.content.getvalue().decode().removeprefix("\r").split("\r")
    assert first == "0/2 a\\x1b[2J\x1b[K"
    assert len(second.removesuffix("\x1b[K")) == 79
    assert last == "\x1b[K"
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    progress = CommandProgressLine(patience=0.0)
    for done in range(3):
        progress(done, 3, "step")
    progress.clear()
    assert plain.getvalue() == "0 of 3: step\n"


def test_what_is_over_soon_needs_no_progress(monkeypatch):
    terminal = Terminal("utf-8")
    monkeypatch.setattr(sys, "stderr", terminal)
    now = [0.0]
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: now[0])
    progress = CommandProgressLine()
    now[0] = 1.9
    progress(0, 2, "a")
    progress.clear()
    assert terminal.content.getvalue() == b""

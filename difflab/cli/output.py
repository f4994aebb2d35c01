"""Where results go: standard output, or files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TextIO, TypedDict, TypeVar

from difflab.core.files import reason, write_whole
from difflab.errors import InputError, printable
from difflab.report.ascii import ascii_text

__all__ = [
    "ProgressLine",
    "ReaderGone",
    "Screen",
    "check_destination",
    "check_picture",
    "coloured",
    "deliver",
    "emit",
    "report_format",
    "say",
    "screen",
    "write_files",
]

_Kinds = TypeVar("_Kinds", bound=StrEnum)

_SEEN = 500  # characters of either end of a label that are looked at
_NARROWEST, _WIDEST = 20, 160
_BEYOND_ASCII = "v̄₋₁ ∂ ≤ … µ −"  # what tables hold


class Screen(TypedDict):
    """What a table is drawn for, as the functions that draw one take it."""

    colour: bool
    width: int
    plain: bool


def screen(*, to_file: bool = False, usual: int = 80) -> Screen:
    """Return the columns, colours and characters of standard output, or those of a file.

    ``COLUMNS`` says how wide it is, as for other commands; a pipe has `usual` ones without it.
    """
    if to_file or sys.stdout is None:
        return {"colour": False, "width": usual, "plain": False}
    width = usual
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        width = shutil.get_terminal_size((usual, 24)).columns
    return {
        "colour": coloured(sys.stdout),
        "width": min(max(width, _NARROWEST), _WIDEST),
        "plain": not _encodable(_BEYOND_ASCII, sys.stdout),
    }


def coloured(stream: TextIO | None) -> bool:
    """Return whether `stream` is a terminal that wants colour (https://no-color.org)."""
    if stream is None:
        return False
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class ReaderGone(Exception):
    """Nobody reads the output any more, as after ``difflab … | head``.

    Not an `OSError`: typer leaves with exit code 1 at a broken pipe, and 1 has a meaning here.
    """


def emit(text: str) -> None:
    """Write a result to standard output, in plain characters where it has no others.

    Raises
    ------
    InputError
        Nothing can be written there: it is closed, or its disk is full.
    """
    if sys.stdout is None:
        raise InputError("cannot write to standard output: it is closed")
    try:
        _write(text, sys.stdout)
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise InputError(f"cannot write to standard output: {reason(error)}") from error


def say(text: str) -> None:
    """Write a line of progress or a warning to standard error.

    Where nothing can be written there, the result matters more.
    """
    _show(text.rstrip("\n") + "\n")


def _write(text: str, stream: TextIO | None) -> None:
    if stream is not None:
        stream.write(text if _encodable(text, stream) else ascii_text(text))
        stream.flush()


def _encodable(text: str, stream: TextIO) -> bool:
    """Whether a stream has all characters of a text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


class ProgressLine:
    """Progress on standard error: a line that rewrites itself on a terminal, else a few lines.

    Parameters
    ----------
    patience : float
        Seconds before anything is shown: what is over by then needs no progress.
    """

    def __init__(self, patience: float = 2.0) -> None:
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._next = monotonic() + patience
        self._shown = False

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show that `done` of `total` steps are done, and `label` is next."""
        if done < total and monotonic() < self._next:
            return
        if self._live:
            if done < total:
                _show(f"\r{f'{done}/{total} {_label(label)}'[:79]}\x1b[K")
                self._shown = True
            else:
                self.clear()
        elif done < total:
            say(f"{done} of {total}: {_label(label)}")
            self._next = monotonic() + 10.0

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            _show("\r\x1b[K")
            self._shown = False


def _show(text: str) -> None:
    with suppress(OSError):
        _write(text, sys.stderr)


def _label(text: str) -> str:
    """Return what is measured in a line's length: a formula may have a million characters."""
    from difflab.report.style import shorten

    return shorten(printable(text[:_SEEN] + text[-_SEEN:] if len(text) > 2 * _SEEN else text), 200)


def check_destination(name: str) -> Path:
    """Return the path `name` if a file can be written there, before any work is done.

    Raises
    ------
    InputError
        It is a directory, its directory is missing, or it may not be written.
    """
    path = Path(name)
    if not name:
        raise InputError("cannot write to a file without a name")
    try:
        if path.is_dir():
            raise InputError(f"cannot write {name!r}: it is a directory")
        if not path.parent.is_dir():
            raise InputError(
                f"cannot write {name!r}: the directory {str(path.parent)!r} does not exist"
            )
        target = path if path.exists() else path.parent
        writable = os.access(target, os.W_OK)
    except OSError as error:
        raise InputError(f"cannot write {name!r}: {reason(error)}") from error
    if not writable:
        raise InputError(f"cannot write {name!r}: permission denied")
    return path


def check_picture(name: str) -> Path:
    """Return where a picture goes, if its name says what kind of picture it is.

    Raises
    ------
    InputError
        It does not, or no file can be written there.
    """
    from difflab.report.canvas import FORMATS

    path = check_destination(name)
    if path.suffix[1:].lower() not in FORMATS:
        raise InputError(
            f"cannot tell the kind of picture from {name!r}",
            hint=f"end the name in {', '.join('.' + kind for kind in FORMATS)}",
        )
    return path


def report_format(asked: _Kinds | None, destination: Path | None, kinds: type[_Kinds]) -> _Kinds:
    """Return the format asked for, otherwise what the file's name ends in, otherwise a table.

    Raises
    ------
    InputError
        The name ends in something that says no format.
    """
    if asked is not None:
        return asked
    ending = destination.suffix.lower() if destination else ""
    if ending in ("", ".txt"):
        return kinds("table")
    try:
        return kinds(ending[1:])
    except ValueError:
        endings = ", ".join(f".{kind}" for kind in kinds if kind != "table")
        raise InputError(
            f"cannot tell the format from {str(destination)!r}",
            hint=f"end the name in .txt, {endings}, or add --format",
        ) from None


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write all files, or none.

    Raises
    ------
    InputError
        A file cannot be written; nothing has changed.
    """
    try:
        write_whole(contents)
    except BrokenPipeError as error:
        raise ReaderGone from error


def deliver(
    result: str | bytes, destination: Path | None, others: Mapping[Path, bytes] | None = None
) -> None:
    """Write a result to its file, or text to standard output where it has none, with `others`.

    The files appear together, or none does; each is named on standard error.

    Raises
    ------
    InputError
        A file cannot be written.
    """
    files = {} if destination is None else {destination: _bytes(result)}
    files |= others or {}
    write_files(files)
    for path in files:
        say(f"wrote {path}")
    if destination is None and isinstance(result, str):
        emit(result)


def _bytes(result: str | bytes) -> bytes:
    return result.encode("utf-8") if isinstance(result, str) else result

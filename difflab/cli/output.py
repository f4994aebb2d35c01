"""Output of results: to standard output, or to files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, get_args

from difflab.core import progress
from difflab.core.system import check_destination, reason, write_whole
from difflab.errors import InputError
from difflab.report.terminal import Screen, ascii_text, report_of

_NARROWEST, _WIDEST = 20, 160
_BEYOND_ASCII = "v̄₋₁ ∂ ≤ … µ −"  # characters in tables


def screen(*, to_file: bool = False, usual: int = 80) -> Screen:
    """Return the width, colours and characters of standard output, or those for a file.

    The environment variable ``COLUMNS`` sets the width; a pipe without it is `usual` wide.
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
    """The reader of the output has closed it, as in ``difflab … | head``.

    Not an `OSError`, for which typer exits with code 1: for difflab 1 means a disagreement.
    """


def emit(text: str) -> None:
    """Write a result to standard output, in ASCII if its encoding lacks a character.

    Raises
    ------
    InputError
        Standard output is closed, or its disk is full.
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

    An error while writing is ignored, since the result matters more.
    """
    _show(text.rstrip("\n") + "\n")


def _write(text: str, stream: TextIO | None) -> None:
    if stream is not None:
        stream.write(text if _encodable(text, stream) else ascii_text(text))
        stream.flush()


def _encodable(text: str, stream: TextIO) -> bool:
    """Whether a stream can encode a text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


class CommandProgressLine(progress.ProgressLine):
    """Progress on standard error, in ASCII if its encoding lacks a character.

    Parameters
    ----------
    patience, stopped
        As for `difflab.core.progress.ProgressLine`.
    """

    def __init__(self, patience: float = progress.PATIENCE, stopped: str = "") -> None:
        super().__init__(patience, stopped, _show)


def _show(text: str) -> None:
    try:
        _write(text, sys.stderr)
    except OSError:
        discard_unwritten(sys.stderr)


def discard_unwritten(stream: TextIO | None) -> None:
    """Discard unwritten output of a stream, which would fail again at the exit."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def check_picture(name: str) -> Path:
    """Return the path of a picture whose name ends in the picture's format.

    Raises
    ------
    InputError
        The name ends in no format, or the file cannot be written.
    """
    from difflab.report.canvas import FORMATS

    path = check_destination(name)
    if path.suffix[1:].lower() not in FORMATS:
        raise InputError(
            f"cannot tell the format of the picture from {name!r}",
            hint=f"end the name in {', '.join('.' + kind for kind in FORMATS)}",
        )
    return path


_ENDINGS = {"latex": "tex", "python": "py"}
"""The endings of files whose format has another name."""


def report_format(requested: str | None, destination: Path | None, formats: Any) -> Any:
    """Return the requested one of some formats, else that of the file's ending, else a table.

    Raises
    ------
    InputError
        The ending of the name is no format.
    """
    if requested is not None:
        return requested
    ending = destination.suffix.lower() if destination else ""
    if ending in ("", ".txt"):
        return "table"
    names = {f".{_ENDINGS.get(name, name)}": name for name in get_args(formats)[1:]}
    try:
        return names[ending]
    except KeyError:
        endings = ", ".join(names)
        raise InputError(
            f"cannot tell the format from {str(destination)!r}",
            hint=f"end the name in .txt, {endings}, or add --format",
        ) from None


def formatted(result: Any, form: str, reports: Any, *, to_file: bool) -> Any:
    """Return a result in a format, with the reports of a module; a table fits the screen."""
    if form == "json":
        return result.to_json().rstrip("\n") + "\n"
    shown = screen(to_file=to_file) if form == "table" else {}
    return report_of(result, form, reports, **shown)


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
    result: str | bytes, destination: Path | None, others: Mapping[Path, str | bytes] | None = None
) -> None:
    """Write a result to its file, or text to standard output without one, and `others`.

    All files are written, or none; each is named on standard error.

    Raises
    ------
    InputError
        A file cannot be written.
    """
    files = {} if destination is None else {destination: _bytes(result)}
    files |= {path: _bytes(other) for path, other in (others or {}).items()}
    write_files(files)
    for path in files:
        say(f"wrote {path}")
    if destination is None and isinstance(result, str):
        emit(result)


def _bytes(result: str | bytes) -> bytes:
    return result.encode("utf-8") if isinstance(result, str) else result

"""Where results go: standard output, or files that appear whole or not at all.

May import `difflab.errors`; `report` to know which pictures can be drawn.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TextIO, TypeVar

from difflab.errors import InputError, printable

__all__ = [
    "ProgressLine",
    "ReaderGone",
    "check_destination",
    "check_picture",
    "coloured",
    "deliver",
    "emit",
    "report_format",
    "say",
    "write_files",
]

_Kinds = TypeVar("_Kinds", bound=StrEnum)

# What reports and formulas use beyond ASCII, for terminals that have nothing beyond it. What a
# formula may hold becomes what the language reads as the same.
_PLAIN = str.maketrans(
    {"–": "-", "─": "-", "…": "...", "µ": "u", "∂": "d", "∞": "inf"}
    | {"·": "*", "×": "*", "−": "-", "²": "^2", "³": "^3", "√": "sqrt", "π": "pi"}
)


def coloured(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that wants colour (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class ReaderGone(Exception):
    """Nobody reads the output any more, as after ``difflab … | head``.

    Not an `OSError`: typer leaves with exit code 1 at a broken pipe, and 1 has a meaning here.
    """


def emit(text: str) -> None:
    """Write a result to standard output, in plain characters where it has no others."""
    _write(text, sys.stdout)


def say(text: str) -> None:
    """Write a line of progress or a warning to standard error."""
    _write(text.rstrip("\n") + "\n", sys.stderr)


def _write(text: str, stream: TextIO) -> None:
    try:
        stream.write(_encodable(text, stream))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_PLAIN)
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    return text


class ProgressLine:
    """Progress on standard error: a line that rewrites itself on a terminal, else a few lines.

    Parameters
    ----------
    patience : float
        Seconds before anything is shown: what is over by then needs no progress.
    """

    def __init__(self, patience: float = 2.0) -> None:
        self._live = sys.stderr.isatty()
        self._next = monotonic() + patience
        self._shown = False

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show that `done` of `total` steps are done, and `label` is next."""
        if done < total and monotonic() < self._next:
            return
        if self._live:
            if done < total:
                sys.stderr.write(f"\r{f'{done}/{total} {printable(label)}'[:79]}\x1b[K")
                self._shown = True
            else:
                self.clear()
            sys.stderr.flush()
        elif done < total:
            say(f"{done} of {total}: {printable(label)}")
            self._next = monotonic() + 10.0

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


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
        raise InputError(f"cannot write {name!r}: {_reason(error)}") from error
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
    """Write all files, or none: each beside its place first, then moved there.

    Raises
    ------
    InputError
        A file cannot be written; nothing has changed.
    """
    beside: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file():
                continue
            beside[path] = _written_beside(path, content)
        for path, content in contents.items():
            if path in beside:
                beside.pop(path).replace(path.resolve())
            else:
                # A pipe or a device such as /dev/stdout cannot be replaced, only written to.
                path.write_bytes(content)
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {_reason(error)}") from error
    finally:
        for leftover in beside.values():
            with suppress(OSError):
                leftover.unlink()


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


def _written_beside(path: Path, content: bytes) -> Path:
    """Write `content` to a new file in the directory of `path`, with the usual permissions."""
    place = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{place.name[:50]}.", suffix=".part", dir=place.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        temporary.chmod(place.stat().st_mode & 0o777 if place.exists() else 0o666 & ~_umask())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

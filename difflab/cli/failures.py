"""What an exception means to the person at the terminal: a message and an exit code.

Exit 2 where the input or the machine is at fault, 70 where difflab is.
"""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from difflab.errors import DifflabError, InputError

__all__ = ["BAD_INPUT", "INTERNAL", "explained"]

BAD_INPUT = 2
INTERNAL = 70  # EX_SOFTWARE of sysexits.h

_ADVICE = {
    errno.ENOSPC: "make room on the disk, or write elsewhere with -o",
    errno.EDQUOT: "make room on the disk, or write elsewhere with -o",
    errno.EFBIG: "the limit on a file's size is the system's: see `ulimit -f`",
    errno.EROFS: "write elsewhere with -o",
    errno.EMFILE: "too many files are open: see `ulimit -n`",
    errno.ENFILE: "too many files are open on this machine",
    errno.EAGAIN: "too many processes are running: see `ulimit -u`",
    errno.ENOMEM: "close other programs, or raise the limit: see `ulimit -v`",
}


def explained(error: BaseException) -> tuple[str, int]:
    """Return what to say about an exception that ended a command, and the exit code."""
    if isinstance(error, InputError):
        return f"difflab: {error.render()}", BAD_INPUT
    if isinstance(error, DifflabError):
        return f"difflab: {error}", BAD_INPUT
    found = _machine(error)
    said, code = (f"difflab: {found}", BAD_INPUT) if found else (_fault(error), INTERNAL)
    if os.environ.get("DIFFLAB_DEBUG"):
        said = f"{''.join(traceback.format_exception(error))}\n{said}"
    return said, code


def _machine(error: BaseException) -> str:
    """Return what the machine lacks or refuses; empty where that is not what went wrong."""
    if isinstance(error, MemoryError):
        asked = _printable(str(error))
        return (
            f"there is not enough memory{f': {asked}' if asked else ''}\n"
            "hint: take fewer or smaller inputs, or raise the limit: see `ulimit -v`"
        )
    if isinstance(error, OSError) and error.errno is not None:
        place = f" at {str(error.filename)!r}" if error.filename else ""
        advice = _ADVICE.get(error.errno)
        said = _printable(f"{(error.strerror or str(error)).lower()}{place}")
        return f"the system refused: {said}" + (f"\nhint: {advice}" if advice else "")
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return (
            "the system refused: it starts no more threads\n"
            "hint: too many processes are running, or too little memory is free: see `ulimit -a`"
        )
    return ""


def _fault(error: BaseException) -> str:
    """Return the words for a fault of difflab's own."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"difflab: internal error at {place}: {_printable(text)}\n"
        "This is a fault in difflab, not in your input. Please report it with the command you\n"
        "ran and what `difflab doctor` prints; DIFFLAB_DEBUG=1 adds the full traceback."
    )


def _printable(text: str) -> str:
    from difflab.report.style import clean, shorten

    return shorten(clean(text), 300)

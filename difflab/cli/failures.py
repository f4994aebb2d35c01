"""The message and the exit code of an exception that ends a command.

The exit code is 2 for a fault of the input or the machine, 70 for one of difflab.
"""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from difflab.errors import DifflabError, InputError

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
    """Return the message for an exception that ended a command, and the exit code."""
    if isinstance(error, InputError):
        return f"difflab: {error.render()}", BAD_INPUT
    if isinstance(error, DifflabError):
        return f"difflab: {error}", BAD_INPUT
    refusal = _machine(error)
    message, code = (f"difflab: {refusal}", BAD_INPUT) if refusal else (_fault(error), INTERNAL)
    if os.environ.get("DIFFLAB_DEBUG"):
        message = f"{''.join(traceback.format_exception(error))}\n{message}"
    return message, code


def _machine(error: BaseException) -> str:
    """Return which resource the machine lacks or refuses; empty for any other error."""
    if isinstance(error, MemoryError):
        detail = _printable(str(error))
        return (
            f"there is not enough memory{f': {detail}' if detail else ''}\n"
            "hint: use fewer or smaller inputs, or raise the limit: see `ulimit -v`"
        )
    if isinstance(error, OSError) and error.errno is not None:
        file = f" at {str(error.filename)!r}" if error.filename else ""
        advice = _ADVICE.get(error.errno)
        reason = _printable(f"{(error.strerror or str(error)).lower()}{file}")
        return f"the system refused: {reason}" + (f"\nhint: {advice}" if advice else "")
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return (
            "the system refused to start another thread\n"
            "hint: too many processes are running, or too little memory is free: see `ulimit -a`"
        )
    return ""


def _fault(error: BaseException) -> str:
    """Return the message for an internal error of difflab."""
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

"""The command `difflab`: arguments to calls, results to the terminal, errors to exit codes.

No mathematics here: every command calls a floor below. Importing this package loads nothing;
the commands and typer are loaded when the command runs, and what a command needs when it is
called.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

__all__ = ["main"]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``difflab``; by default what the process was started with.

    Raises
    ------
    SystemExit
        Always: 0, 1 or 2 as the contract has them, 130 after Ctrl-C, 70 for a fault of
        difflab's own.
    """
    _occupy_streams()
    with _quiet_interrupt():
        from difflab.cli.app import run
    sys.exit(run(arguments))


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """Leave at once at Ctrl-C, without a traceback through modules that are being loaded."""
    before = None
    with suppress(ValueError):  # only the main thread may say what a signal does
        before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _occupy_streams() -> None:
    """Keep the numbers of closed standard streams from files that are opened later."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one

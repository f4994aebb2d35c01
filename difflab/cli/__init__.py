"""The command ``difflab``: arguments, output and exit codes, without mathematics.

Importing this package loads nothing else: `main` loads typer and the commands, and a command
loads its dependencies when it runs. Only SymPy's process starts before.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

__all__ = ["main"]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
OBJECTS = 50_000  # that are made before they are searched for garbage, more than a library can ask


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after ``difflab``; by default those of the process.

    Raises
    ------
    SystemExit
        Always: 0, 1 or 2 as documented in ``difflab --help``, 130 after Ctrl-C, 70 for an
        internal error.
    """
    # Modules that are loaded hold no garbage, and what is left at exit goes with the process:
    # searching them takes a tenth of a second each.
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)
    _occupy_streams()
    with _quiet_interrupt():
        _begin(sys.argv[1:] if arguments is None else arguments)
        from difflab.cli.app import run
    sys.exit(run(arguments))


def _begin(arguments: Sequence[str]) -> None:
    """Start SymPy's process if a comparison is asked for, before this process loads its modules.

    SymPy takes longest to load. A comparison of other methods starts what it needs itself.
    """
    asked = [text.partition("=")[0] for text in arguments]
    if asked[:1] == ["compare"] and {"-h", "--help", "--methods"}.isdisjoint(asked):
        from difflab.methods.registry import begin

        begin()


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """Exit at once at Ctrl-C, without a traceback through modules that are being loaded."""
    before = None
    with suppress(ValueError):  # only the main thread may set a signal handler
        before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _occupy_streams() -> None:
    """Reserve the file descriptors of closed standard streams, so that no file gets them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor, which is this one

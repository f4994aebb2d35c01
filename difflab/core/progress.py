"""Progress of long calls on standard error: one mechanism for scripts, notebooks and commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

from difflab.core.terminal_line import TerminalLine
from difflab.errors import printable

__all__ = ["PATIENCE", "ProgressLine"]

PATIENCE = 2.0
"""Seconds before anything is shown."""
_HEAD, _TAIL = 130, 65  # characters of either end of a label that are shown


def _show(text: str) -> None:
    """Write to standard error; an error is ignored, since the result matters more."""
    stream = sys.stderr
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError):
        return


class ProgressLine:
    """Progress on standard error: a line that rewrites itself on a terminal, else a few lines.

    In a notebook the line rewrites itself too.

    Parameters
    ----------
    patience : float
        Seconds before anything is shown; shorter work shows no progress.
    stopped : str
        The message after Ctrl-C: what is kept, and how to resume.
    write : callable
        Writes a text to standard error, without an error if it is gone.

    Examples
    --------
    >>> with ProgressLine() as progress:
    ...     progress(0, 2, "the first step")  # shown if it is called after two seconds
    """

    def __init__(
        self,
        patience: float = PATIENCE,
        stopped: str = "",
        write: Callable[[str], None] = _show,
    ) -> None:
        self._line = TerminalLine(sys.stderr, write)
        self._write = write
        self._next = monotonic() + patience
        self._stopped = stopped

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.clear()
        if kind is KeyboardInterrupt and self._stopped:
            self._write(f"{self._stopped}\n")

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show that `done` of `total` steps are done, and `label` is next."""
        if done < total and monotonic() < self._next:
            return
        if self._line.live:
            if done < total:
                self._line.show(f"{done}/{total} {_label(label)}")
            else:
                self.clear()
        elif done < total:
            self._write(f"{done} of {total}: {_label(label)}\n")
            self._next = monotonic() + 10.0

    def clear(self) -> None:
        """Erase the line."""
        self._line.clear()


def _label(text: str) -> str:
    """Return a label that fits a line: a formula may have a million characters."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]} … {text[-_TAIL:]}"
    return printable(text)

"""Progress of long calls on standard error: one mechanism for scripts, notebooks and commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import Timer
from time import monotonic
from typing import Protocol

from difflab.errors import printable

PATIENCE = 2.0
"""Seconds before anything is shown."""
PAUSE = 0.2
"""Seconds between two updates of a count."""
_HEAD, _TAIL = 130, 65  # characters of either end of a label that are shown
_WIDTH = 79  # of a line that rewrites itself


class Progress(Protocol):
    """Callback ``progress(done, total, label)``, called before every step."""

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show that `done` of `total` steps are done, and `label` is next."""


def silent(done: int, total: int, label: str) -> None:
    """Show nothing: for work whose caller has progress of its own."""


def shown(progress: Progress | None) -> AbstractContextManager[Progress]:
    """Return a context with the given callback, or with progress on standard error without one."""
    return ProgressLine() if progress is None else nullcontext(progress)


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
        The message after Ctrl-C: the results kept, and how to resume.
    write : callable
        Writes a text to standard error, without an error if it is gone.

    Attributes
    ----------
    live : bool
        Whether it is a line that rewrites itself.

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
        stream = sys.stderr
        shown = stream is not None and not getattr(stream, "closed", False)
        notebook = type(stream).__module__.partition(".")[0] == "ipykernel"
        self.live = shown and (notebook or stream.isatty())
        self._written = False
        self._write = write
        self._began = monotonic()
        self._next = self._began + patience
        self._stopped = stopped
        self._again: Callable[[], None] = self.clear
        self._timer: Timer | None = None
        if patience and self.live:
            # A first step may be long: on a terminal it is shown when the patience ends.
            self._timer = Timer(patience, lambda: self._again())
            self._timer.daemon = True

    def __enter__(self) -> ProgressLine:
        if self._timer is not None:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.clear()
        if kind is KeyboardInterrupt and self._stopped:
            self._write(f"{self._stopped}\n")

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show that `done` of `total` steps are done, and `label` is next."""
        self._again = partial(self, done, total, label)
        if done < total and monotonic() < self._next:
            return
        if self.live:
            if done < total:
                self._rewrite(f"{done}/{total} {_label(label)}")
            else:
                self.clear()
        elif done < total:
            self._write(f"{done} of {total}: {_label(label)}\n")
            self._next = monotonic() + 10.0

    def count(self, text: str) -> None:
        """Show, on a terminal or in a notebook, how far work is whose end is not known."""
        self._again, now = partial(self.count, text), monotonic()
        if self.live and now >= self._next:
            self._next = now + PAUSE
            self._rewrite(f"{text}, {now - self._began:.0f} s")

    def clear(self) -> None:
        """Erase the line."""
        if self._written:
            self._write("\r\x1b[K")
            self._written = False

    def _rewrite(self, text: str) -> None:
        """Write the line in place of its previous text."""
        self._write(f"\r{text[:_WIDTH]}\x1b[K")
        self._written = True


def _label(text: str) -> str:
    """Return a label that fits a line: a formula may have a million characters."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]} … {text[-_TAIL:]}"
    return printable(text)

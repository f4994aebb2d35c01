"""A line on a terminal that rewrites itself, for progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

_WIDTH = 79


class TerminalLine:
    """One line on a terminal or in a notebook; on any other stream it writes nothing.

    Parameters
    ----------
    stream : text stream or None
        Such as standard error.
    write : callable
        Writes a text to it, whatever its encoding, and without an error if it is gone.
    """

    def __init__(self, stream: TextIO | None, write: Callable[[str], None]) -> None:
        self.live = stream is not None and _rewritable(stream)
        self._write = write
        self._shown = False

    def show(self, text: str) -> None:
        """Write the line in place of its previous text."""
        if self.live:
            self._write(f"\r{text[:_WIDTH]}\x1b[K")
            self._shown = True

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False


def _rewritable(stream: TextIO) -> bool:
    """Whether a stream is a terminal, or is shown below a notebook's cell."""
    if getattr(stream, "closed", False):
        return False
    return stream.isatty() or type(stream).__module__.partition(".")[0] == "ipykernel"

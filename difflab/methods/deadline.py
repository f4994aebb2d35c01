"""The moment by which a method must be done. May import `difflab.errors`."""

from __future__ import annotations

from time import monotonic

from difflab.errors import MethodTimeout

__all__ = ["Deadline"]


class Deadline:
    """A number of seconds that begins when it is made.

    Examples
    --------
    >>> Deadline(60).remaining() > 59
    True
    >>> Deadline(0).check()
    Traceback (most recent call last):
        ...
    difflab.errors.MethodTimeout: stopped after 0 s
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds that are left, 0 when it is over."""
        return max(self._end - monotonic(), 0.0)

    def check(self) -> None:
        """Raise `MethodTimeout` when it is over."""
        if monotonic() >= self._end:
            raise MethodTimeout(f"stopped after {self.seconds:g} s")

"""Time limits of methods."""

from __future__ import annotations

from time import monotonic

from difflab.errors import MethodTimeout

PATIENCE = 4.0
"""Factor by which an estimate may exceed a time limit; beyond it the work is not started."""


class Deadline:
    """A time limit that elapses only inside of ``with``.

    Examples
    --------
    >>> with Deadline(3600) as deadline:
    ...     3000 < deadline.remaining() <= 3600
    True
    >>> Deadline(0).check()
    Traceback (most recent call last):
        ...
    difflab.errors.MethodTimeout: stopped after 0 s
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds
        self._began: float | None = None

    def __enter__(self) -> Deadline:
        self._began = monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._left = self.remaining()
        self._began = None

    def remaining(self) -> float:
        """Return the remaining seconds, 0 once the limit is reached."""
        spent = 0.0 if self._began is None else monotonic() - self._began
        return max(self._left - spent, 0.0)

    def check(self) -> None:
        """Raise `MethodTimeout` if the limit is reached."""
        if self.remaining() == 0:
            raise MethodTimeout(f"stopped after {self.seconds:g} s")

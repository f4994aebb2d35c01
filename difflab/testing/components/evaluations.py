"""Progress of a long check: how often the function was evaluated."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from time import monotonic
from typing import Any

from difflab.core.terminal_line import TerminalLine

__all__ = ["evaluations_shown"]

PATIENCE = 2.0
"""Seconds before anything is shown; shorter checks show nothing."""
PAUSE = 0.2
"""Seconds between two updates."""

Callee = Callable[..., Any]


@contextmanager
def evaluations_shown(f: Callee, components: int) -> Iterator[Callee]:
    """Give `f` back, with its evaluations counted on a line of the terminal.

    Where standard error is no terminal, it is `f` itself.

    Parameters
    ----------
    f : callable
        The function that is evaluated.
    components : int
        How many components it has.
    """
    line = TerminalLine(sys.stderr, _to_standard_error)
    if not line.live:
        yield f
        return
    start, count = monotonic(), 0
    due = start + PATIENCE

    @wraps(f, updated=())
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count, due
        count += 1
        now = monotonic()
        if now >= due:
            due = now + PAUSE
            line.show(
                f"check_gradient: {components:,} components, {count:,} evaluations,"
                f" {now - start:.0f} s"
            )
        return f(*args, **kwargs)

    try:
        yield counted
    finally:
        line.clear()


def _to_standard_error(text: str) -> None:
    with suppress(OSError, ValueError):  # the terminal is gone; the check goes on
        sys.stderr.write(text)
        sys.stderr.flush()

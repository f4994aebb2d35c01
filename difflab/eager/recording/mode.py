"""Whether operations are recorded (`no_grad`, `enable_grad`) and noted (`detect_anomaly`)."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Any

__all__ = ["MODE", "WATCHED", "enable_grad", "no_grad"]


class _Mode(threading.local):
    """The mode of one thread; recording is switched on initially."""

    enabled = True
    saw_grad = False
    """Whether something that requires grad was used while nothing was recorded."""
    watch: Any = None
    """The `Watch` of the innermost `detect_anomaly`, which notes the recorded operations."""


MODE = _Mode()
WATCHED: list[None] = []
"""One entry per active watch of any thread; while empty, operations skip `MODE.watch`."""


class _Switch(ContextDecorator):
    """Set recording inside a block or function, and restore it, also after an error."""

    enabled: bool

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(MODE.enabled)
        MODE.enabled = self.enabled

    def __exit__(self, *exception: object) -> None:
        MODE.enabled = self.before.pop()


class no_grad(_Switch):  # noqa: N801  # PyTorch's spelling: used like a statement
    """Record nothing inside: ``with dl.no_grad():``, or as a decorator.

    Results of operations inside do not require grad, and leaves may be changed in place, as in a
    training step. It holds for the current thread.

    Examples
    --------
    >>> import difflab as dl
    >>> w = dl.tensor(2.0, requires_grad=True)
    >>> with dl.no_grad():
    ...     (w * w).requires_grad
    False
    """

    enabled = False


class enable_grad(_Switch):  # noqa: N801
    """Record inside, also within `no_grad`.

    Examples
    --------
    >>> import difflab as dl
    >>> w = dl.tensor(2.0, requires_grad=True)
    >>> with dl.no_grad(), dl.enable_grad():
    ...     (w * w).requires_grad
    True
    """

    enabled = True

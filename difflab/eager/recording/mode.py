"""Whether operations are recorded: `no_grad` and `enable_grad`, and who watches them."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Any

__all__ = ["MODE", "WATCHED", "enable_grad", "no_grad"]


class _Mode(threading.local):
    """Every thread has its own, and starts with recording switched on."""

    enabled = True
    saw_grad = False
    """Whether something that requires grad was used while nothing was recorded."""
    watch: Any = None
    """What `detect_anomaly` notes the recorded operations in."""


MODE = _Mode()
WATCHED: list[None] = []
"""An entry for every watch in any thread: while it is empty, no thread looks for its own."""


class _Switch(ContextDecorator):
    """Set recording inside a block or function; what was before returns, also after an error."""

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

    What is computed inside does not require grad, and tensors may be changed in place, as a
    training step does. It holds for the current thread.

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

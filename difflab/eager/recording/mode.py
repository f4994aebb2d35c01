"""Whether operations are recorded (`no_grad`, `inference_mode`, …) and noted (`detect_anomaly`)."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Any

from difflab.graph.checks import require_flag


class _Mode(threading.local):
    """The mode of one thread; recording is switched on initially."""

    enabled = True
    inference = False
    """Whether tensors are made that can never be recorded."""
    saw_grad = False
    """Whether something that requires grad was used while nothing was recorded."""
    trial = False
    """Whether a checkpoint runs its function unrecorded, to be run again."""
    recorded_again: bool = False
    """Whether the second run of a checkpoint stays on the tape, for derivatives of the gradient."""
    watch: Any = None
    """The `Watch` of the innermost `detect_anomaly`, which notes the recorded operations."""

    @property
    def whole(self) -> bool:
        """Whether checkpoints record every operation: to be examined, or differentiated again."""
        return self.watch is not None or self.recorded_again


MODE = _Mode()
WATCHED: list[None] = []
"""One entry per active watch of any thread; while empty, operations skip `MODE.watch`."""


class _Switch(ContextDecorator):
    """Set recording inside a block or function, and restore it, also after an error."""

    enabled: bool

    def __init__(self) -> None:
        self.before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self.before.append((MODE.enabled, MODE.inference))
        MODE.enabled = self.enabled and not MODE.inference

    def __exit__(self, *exception: object) -> None:
        MODE.enabled, MODE.inference = self.before.pop()


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


class inference_mode(_Switch):  # noqa: N801
    """Record nothing inside, ever: ``with dl.inference_mode():``, or as a decorator.

    As `no_grad`, and `enable_grad` inside has no effect. What is computed or created inside cannot
    be recorded later: an operation outside whose derivative needs its values, and setting
    `requires_grad` on it, raise a `TapeError`; its ``copy()`` is an ordinary tensor.

    Parameters
    ----------
    mode : bool
        False switches the mode off, inside another one.

    Examples
    --------
    >>> import difflab as dl
    >>> w = dl.tensor(2.0, requires_grad=True)
    >>> with dl.inference_mode():
    ...     y = w * w
    >>> y.requires_grad, (w + y).requires_grad
    (False, True)
    >>> w * y
    Traceback (most recent call last):
        ...
    difflab.errors.TapeError: the derivative of 'multiply' needs a tensor of inference_mode ...
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        require_flag(mode, "mode", "inference_mode")
        self.enabled = not mode

    def __enter__(self) -> None:
        self.before.append((MODE.enabled, MODE.inference))
        if not self.enabled:
            MODE.enabled, MODE.inference = False, True
        elif MODE.inference:
            MODE.enabled, MODE.inference = True, False

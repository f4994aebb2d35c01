"""What mpmath computes in the reals, where it does: within a time limit, and without exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from difflab.balls.limit import in_process
from difflab.core.primitive import Primitive

SECONDS = 5.0


def computed(
    task: Callable[..., Any], rows: Iterable[Primitive], subject: Any, *arguments: Any
) -> Any:
    """Return ``task(subject, *arguments)``; None where mpmath raises or takes too long.

    Far outside a function's domain mpmath raises exceptions of many kinds, or adds series for
    minutes. Functions of `rows` that may do so are computed in a process, which can be stopped.

    Examples
    --------
    >>> computed(abs, [], -2)
    2
    >>> computed(abs, [], "text") is None
    True
    """
    try:
        if not any(map(_may_hang, rows)):
            return task(subject, *arguments)
        return in_process(task, subject, *arguments, timeout=SECONDS, grace=0.0)
    except Exception:  # `MethodTimeout`, or one of mpmath's of any kind
        return None


def _may_hang(row: Primitive) -> bool:
    """Whether mpmath computes a row by series whose length depends on the arguments."""
    return row.portable is not None or row.name.endswith("_remainder")

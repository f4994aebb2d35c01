"""Progress of a long check: how often the function was evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from difflab.core.progress import ProgressLine

Callee = Callable[..., Any]


@contextmanager
def evaluations_shown(f: Callee, components: int, name: str = "check_gradient") -> Iterator[Callee]:
    """Give a function that counts its calls, which a terminal or a notebook shows.

    Elsewhere `f` itself is given, so that nothing is added to a check.
    """
    with ProgressLine() as progress:
        if not progress.live:
            yield f
            return
        count = 0

        @wraps(f, updated=())
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            progress.count(f"{name}: {components:,} components, {count:,} evaluations")
            return f(*args, **kwargs)

        yield counted

"""Lists of names as people read them: in natural order, and short. Imports nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["natural_order", "shortened"]


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that puts ``x2`` before ``x10``.

    Examples
    --------
    >>> sorted(["x10", "x2", "a"], key=natural_order)
    ['a', 'x2', 'x10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple(
        (0, int(part), part) if part.isascii() and part.isdecimal() else (1, 0, part)
        for part in parts
    )


def shortened(names: Sequence[str], limit: int = 6) -> str:
    """Return a list of names that stays readable when it is long.

    Examples
    --------
    >>> shortened([f"x{i}" for i in range(100)])
    'x0, x1, x2, x3, x4, …, x99 (100 in all)'
    """
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[: limit - 1])}, …, {names[-1]} ({len(names)} in all)"

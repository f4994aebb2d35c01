"""How messages and reports put a number of things. Imports nothing."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return ``1 input``, ``2,048 inputs``.

    Examples
    --------
    >>> counted(1, "input"), counted(2048, "input")
    ('1 input', '2,048 inputs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""A fixed piece of work, timed in turns with every call, by which times of two runs are compared.

The speed of a machine changes from one run to the next: its frequency, its other load. That of the
yardstick changes with it, so the ratio of the two says what the code under test costs. The work
consists of Python's own floats and must never change: ratios to another yardstick are other ratios.
"""

from __future__ import annotations

from typing import Any

__all__ = ["yardstick"]

_STEPS = 400


def yardstick(x: Any) -> float:
    """Take 400 steps of the logistic map; `x` is ignored.

    Examples
    --------
    >>> 0 < yardstick(None) < 1
    True
    """
    y = 0.3
    for _ in range(_STEPS):
        y = 3.9 * y * (1.0 - y)
    return y

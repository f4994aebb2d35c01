"""How much the rounding of the inputs alone changes the value of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

LOST = 1e-3
"""The relative change of the value above which the inputs' rounding is not negligible."""
BENT = 0.1
"""The second difference over the first ones above which the changes are not those of a slope."""


def lost_value(values: Callable[[NDArray[Any]], NDArray[Any]], x: NDArray[float64]) -> str:
    """Return why no slope describes the function between adjacent float64, or an empty text.

    It is so if one unit in the last place of every input changes the value far, and not by as
    much on both sides of the point: after many turns of a chaotic recurrence.

    Parameters
    ----------
    values : callable
        Maps packed points ``(N, n)`` to values ``(N, m)``.
    x : ndarray, shape (n,)
        The point.

    Examples
    --------
    >>> import difflab as dl
    >>> lost_value(dl.parse("iterate(y = x; 100 times; 4*y*(1 - y))").values, np.array([0.3]))
    'one unit in the last place of the inputs changes the value by 26 %, not along a slope'
    >>> lost_value(dl.parse("sin(x)").values, np.array([np.pi]))
    ''
    """
    points = np.stack([np.nextafter(x, -np.inf), x, np.nextafter(x, np.inf)])
    with np.errstate(all="ignore"):
        before, here, after = values(points)
        left, right = here - before, after - here
        size = np.maximum(np.abs(left), np.abs(right))
        relative = np.max(size) / np.max(np.abs(here))
        bent = np.max(np.abs(right - left)) > BENT * np.max(size)
    if not (relative > LOST and bent):
        return ""
    change = f"changes the value by {100 * relative:.2g} %, not along a slope"
    return f"one unit in the last place of the inputs {change}"

"""The checked mode of machine code, in which no access is made outside of the arrays.

Sizes and places are compared when code is written, always. With ``DIFFLAB_CHECK=bounds`` in the
environment the code also compares every place with the bounds of its array when it runs, which
takes several times as long: for the tests, and for looking for a fault.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError

__all__ = ["check_rows", "checked"]


def checked() -> bool:
    """Whether code is compiled that checks its accesses when it runs."""
    return os.environ.get("DIFFLAB_CHECK") == "bounds"


def check_rows(starts: NDArray[np.int64], points: int, arrays: Sequence[NDArray[Any]]) -> None:
    """Raise `ConsistencyError` where the numbers of a row of points lie in none of the arrays.

    Parameters
    ----------
    starts : array of int
        The address of each row.
    points : int
        How many numbers side by side are read or written there.
    arrays : sequence of array
        The memory that is held.

    Examples
    --------
    >>> held = np.zeros(8)
    >>> check_rows(np.array([held.ctypes.data]), 8, [held])
    >>> check_rows(np.array([held.ctypes.data]), 9, [held])
    Traceback (most recent call last):
        ...
    difflab.errors.ConsistencyError: row 0 of a batch: 9 points lie outside of the arrays
    """
    spans = [(*np.lib.array_utils.byte_bounds(array), array.itemsize) for array in arrays]
    for row, start in enumerate(starts.tolist()):
        if not any(low <= start and start + points * size <= high for low, high, size in spans):
            raise ConsistencyError(
                f"row {row} of a batch: {points} points lie outside of the arrays"
            )

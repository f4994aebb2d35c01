"""The checked mode of machine code, which checks every access against the bounds of its array.

Sizes and indices are always checked when code is generated. With ``DIFFLAB_CHECK=bounds`` in the
environment the code also checks every index at run time, which is several times slower, and memory
that nothing has written holds nan. This mode is for tests and debugging.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError


def checked() -> bool:
    """Return whether compiled code checks its accesses at run time."""
    return os.environ.get("DIFFLAB_CHECK") == "bounds"


def check_rows(starts: NDArray[np.int64], points: int, arrays: Sequence[NDArray[Any]]) -> None:
    """Raise `ConsistencyError` if a row of points is not inside one of the arrays.

    Parameters
    ----------
    starts : array of int
        The address of each row.
    points : int
        The number of contiguous elements read or written in each row.
    arrays : sequence of array
        The arrays that may be accessed.

    Examples
    --------
    >>> held = np.zeros(8)
    >>> check_rows(np.array([held.ctypes.data]), 8, [held])
    >>> check_rows(np.array([held.ctypes.data]), 9, [held])
    Traceback (most recent call last):
        ...
    difflab.errors.ConsistencyError: row 0 of a batch: 9 points are outside of the arrays
    """
    spans = [(*np.lib.array_utils.byte_bounds(array), array.itemsize) for array in arrays]
    for row, start in enumerate(starts.tolist()):
        if not any(low <= start and start + points * size <= high for low, high, size in spans):
            raise ConsistencyError(
                f"row {row} of a batch: {points} points are outside of the arrays"
            )

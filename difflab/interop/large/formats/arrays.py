"""Points in an array of NumPy's, in memory or mapped to a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.interop.large.formats.protocol import check_points, real_points

__all__ = ["ArrayPoints"]


class ArrayPoints:
    """The rows of an array.

    Examples
    --------
    >>> points = ArrayPoints(np.arange(6).reshape(3, 2), 2)
    >>> points.count, *points.read(1, 2, np.empty((1, 2)))
    (3, array([[2., 3.]]))
    """

    grain = 1

    def __init__(self, array: NDArray[Any], n: int) -> None:
        check_points(array.shape, array.dtype, n, "the array of points")
        self.array = array
        self.count = len(array)

    def read(
        self, start: int, stop: int, room: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield some of the rows, without a copy if they are float64."""
        yield real_points(self.array[start:stop])

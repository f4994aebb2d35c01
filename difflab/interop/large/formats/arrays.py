"""Points in arrays: of NumPy, in memory or mapped to a file, and of Dask, read in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import require
from difflab.errors import PointError
from difflab.interop.large.formats.protocol import check_points, real_points, result_shape

if TYPE_CHECKING:
    from difflab.execute import Compiled

__all__ = ["ArrayPoints", "DaskPoints", "lazy_result"]


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


class DaskPoints:
    """The rows of a Dask array, whose chunks are computed when they are read."""

    def __init__(self, array: Any, n: int) -> None:
        require("dask.array", "large", "dask")
        if any(math.isnan(size) for size in array.shape):
            raise PointError(
                "the Dask array of points does not know its shape",
                hint="call its method compute_chunk_sizes() first",
            )
        check_points(array.shape, array.dtype, n, "the Dask array of points")
        self.array = array
        self.count = int(array.shape[0])
        self.grain = max([*array.chunks[0], 1])

    def read(
        self, start: int, stop: int, room: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Compute some of the rows, on this thread."""
        yield real_points(self.array[start:stop].compute(scheduler="synchronous"))


def lazy_result(compiled: Compiled, points: DaskPoints, chunk: int | None) -> Any:
    """Return the Dask array of the results; its chunks are those of the points where they fit.

    They fit if they consist of whole blocks of the target.
    """
    dask_array = require("dask.array", "large", "dask")
    block = compiled.block(points.count)
    array, sizes = points.array, points.array.chunks[0]
    if chunk is None and any(size % block for size in sizes[:-1]):
        chunk = points.grain
    rows = sizes if chunk is None else -(-chunk // block) * block
    tail = result_shape(compiled)
    axes = [f"m{place}" for place in range(len(tail))]
    return dask_array.apply_gufunc(
        partial(_block_result, compiled, points.count, tail),
        f"(n)->({','.join(axes)})",
        array.rechunk({0: rows, 1: -1}),
        output_sizes=dict(zip(axes, tail, strict=True)),
        meta=np.empty((0, *(0 for _ in tail))),
    )


def _block_result(
    compiled: Compiled, whole: int, tail: tuple[int, ...], block: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the results at the points of one chunk."""
    rows = np.empty((len(block), compiled.function.m))
    compiled.rows(real_points(block), whole, rows)
    return rows.reshape(len(block), *tail)

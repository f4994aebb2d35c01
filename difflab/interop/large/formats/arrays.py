"""Points and results in arrays: of NumPy, Dask and Zarr, in memory or in files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from difflab.core.npy_header import read_header
from difflab.core.optional import require
from difflab.core.system import open_regular
from difflab.errors import InputError, PointError, described
from difflab.execute import Compiled
from difflab.interop.large.formats.protocol import (
    ResultLayout,
    check_points,
    real_points,
    result_shape,
)


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
        self, start: int, stop: int, buffer: NDArray[np.float64]
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
        self, start: int, stop: int, buffer: NDArray[np.float64]
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
    axes = [f"m{axis}" for axis in range(len(tail))]
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


class NpyPoints:
    """The rows of an array in a file.

    They are read by position: mapped pages would count as this process's memory, and a file that
    another process makes shorter would end this one.
    """

    grain = 1

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        shape, self._columns_first, self._dtype, self._offset = _header(path)
        check_points(shape, self._dtype, len(names), str(path))
        self.count, self._width = shape

    def read(
        self, start: int, stop: int, buffer: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield some of the rows, in the order of the file: by rows, or by columns."""
        # No buffer between the file, open once for all parts, and the buffer.
        with FileIO(self.path) as file:
            for first in range(start, stop, len(buffer)):
                yield self._part(file, first, buffer[: stop - first])

    def _part(self, file: FileIO, start: int, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Read rows from `start` on into a buffer and return them."""
        if not self._columns_first:
            self._elements(file, start * self._width, rows.reshape(-1))
            return rows
        columns = rows.reshape(self._width, len(rows))
        for position, column in enumerate(columns):
            self._elements(file, position * self.count + start, column)
        return columns.T

    def _elements(self, file: FileIO, first: int, buffer: NDArray[np.float64]) -> None:
        """Read elements into `buffer`, without a copy if they have its dtype."""
        raw = buffer if self._dtype == buffer.dtype else np.empty(len(buffer), self._dtype)
        file.seek(self._offset + first * raw.itemsize)
        left = raw.view(np.uint8).data
        while left:
            read = file.readinto(left)
            if not read:
                raise InputError(f"{str(self.path)!r} became shorter while it was read")
            left = left[read:]
        if raw is not buffer:
            buffer[:] = raw


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, Fortran order, dtype and the position of the first element.

    Raises
    ------
    InputError
        It cannot be read, or is not a file of this format.
    """
    try:
        with open_regular(path) as file:
            return *read_header(file), file.tell()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read {str(path)!r}: {why}") from error
    except (ValueError, SyntaxError, TypeError, OverflowError, EOFError) as error:
        raise PointError(
            f"{str(path)!r} is not a NumPy array file: {error}",
            hint="write one with numpy.save('x.npy', array)",
        ) from error


class NpyResults:
    """A file of the whole result, in which rows are filled in."""

    in_parts = True

    def __init__(self, folder: Path, layout: ResultLayout) -> None:
        self.path = folder / "result.npy"
        self._row = 8 * math.prod(layout.shape[1:])
        header = {"descr": "<f8", "fortran_order": False, "shape": layout.shape}
        size = self._row * layout.shape[0]
        if self.path.exists():
            self._offset = self.path.stat().st_size - size
            return
        beside = folder / "begun.npy"
        with beside.open("wb") as file:
            npy.write_array_header_1_0(file, header)
            self._offset = file.tell()
            file.truncate(self._offset + size)
        beside.replace(self.path)

    def write(self, start: int, parts: Iterable[NDArray[np.float64]]) -> None:
        """Write rows at their position."""
        with FileIO(self.path, "r+") as file:
            file.seek(self._offset + start * self._row)
            for rows in parts:
                left = np.ascontiguousarray(rows, "<f8").reshape(-1).view(np.uint8).data
                while left:
                    left = left[file.write(left) :]

    def finish(self) -> Path:
        """Return the file."""
        return self.path


class ZarrPoints:
    """The rows of a Zarr array."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        zarr = require("zarr", "large")
        try:
            self._array: Any = zarr.open_array(str(path), mode="r")
        except Exception as error:  # the codecs of a store may raise anything
            raise InputError(
                f"cannot read {str(path)!r} as a Zarr array: {described(error)}"
            ) from error
        check_points(self._array.shape, np.dtype(self._array.dtype), len(names), str(path))
        self.count = int(self._array.shape[0])
        self.grain = int((self._array.shards or self._array.chunks)[0])

    def read(
        self, start: int, stop: int, buffer: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield some of the rows."""
        try:
            rows = self._array[start:stop]
        except Exception as error:  # the codecs of a store may raise anything
            raise InputError(
                f"cannot read the rows {start} to {stop} of {str(self.path)!r}: {described(error)}"
            ) from error
        yield real_points(rows)


class ZarrResults:
    """A Zarr array; a chunk of its points is written at a time."""

    in_parts = False

    def __init__(self, folder: Path, layout: ResultLayout) -> None:
        zarr = require("zarr", "large")
        self.path = folder / "result.zarr"
        self._tail = layout.shape[1:]
        if not (self.path / "zarr.json").exists():
            chunks = (min(layout.chunk, max(layout.shape[0], 1)), *self._tail)
            zarr.create_array(str(self.path), shape=layout.shape, chunks=chunks, dtype="float64")
        self._array: Any = zarr.open_array(str(self.path), mode="r+")

    def write(self, start: int, parts: Iterable[NDArray[np.float64]]) -> None:
        """Write rows, which are a chunk of the array."""
        (rows,) = parts
        self._array[start : start + len(rows)] = rows.reshape(-1, *self._tail)

    def finish(self) -> Path:
        """Return the folder."""
        return self.path

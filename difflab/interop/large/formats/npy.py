"""Points and results in NumPy's files ``.npy``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from difflab.core.files import open_regular
from difflab.core.npy_header import read_header
from difflab.errors import InputError, PointError
from difflab.interop.large.formats.protocol import (
    ResultLayout,
    check_points,
)


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
        self, start: int, stop: int, room: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield some of the rows, in the order of the file: by rows, or by columns."""
        # No buffer between the file, open once for all parts, and the room.
        with FileIO(self.path) as file:
            for first in range(start, stop, len(room)):
                yield self._part(file, first, room[: stop - first])

    def _part(self, file: FileIO, start: int, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Read rows from `start` on into a buffer and return them."""
        if not self._columns_first:
            self._elements(file, start * self._width, rows.reshape(-1))
            return rows
        columns = rows.reshape(self._width, len(rows))
        for place, column in enumerate(columns):
            self._elements(file, place * self.count + start, column)
        return columns.T

    def _elements(self, file: FileIO, first: int, room: NDArray[np.float64]) -> None:
        """Read elements to fill `room`, without a copy if they have its dtype."""
        raw = room if self._dtype == room.dtype else np.empty(len(room), self._dtype)
        file.seek(self._offset + first * raw.itemsize)
        left = raw.view(np.uint8).data
        while left:
            read = file.readinto(left)
            if not read:
                raise InputError(f"{str(self.path)!r} became shorter while it was read")
            left = left[read:]
        if raw is not room:
            room[:] = raw


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

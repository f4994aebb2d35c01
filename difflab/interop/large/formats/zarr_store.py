"""Points and results in Zarr arrays, as folders of chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import require
from difflab.errors import InputError, described
from difflab.interop.large.formats.protocol import (
    ResultLayout,
    check_points,
    real_points,
)


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
        self, start: int, stop: int, room: NDArray[np.float64]
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

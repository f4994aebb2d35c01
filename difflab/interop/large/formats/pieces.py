"""Results in formats that are written from the first row to the last: a file per chunk first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from difflab.interop.large.formats.protocol import ResultLayout

__all__ = ["PieceFormat", "PieceResults"]


class PieceFormat(Protocol):
    """A format whose files can be joined."""

    def write(self, path: Path, rows: NDArray[np.float64], names: list[str]) -> None:
        """Write one piece."""

    def join(self, pieces: Iterable[Path], path: Path, names: list[str]) -> None:
        """Write one file of all pieces."""


class PieceResults:
    """A file per chunk, joined at the end."""

    in_parts = False

    def __init__(self, folder: Path, layout: ResultLayout, form: PieceFormat) -> None:
        self._folder = folder
        self._layout = layout
        self._form = form
        self._names = list(layout.names)

    def _piece(self, start: int) -> Path:
        return self._folder / f"piece-{start}"

    def write(self, start: int, parts: Iterable[NDArray[np.float64]]) -> None:
        """Write rows to a file of their own."""
        (rows,) = parts
        self._form.write(self._piece(start), rows, self._names)

    def finish(self) -> Path:
        """Return the file that joins all pieces."""
        path = self._folder / "joined"
        starts = range(0, self._layout.shape[0], self._layout.chunk)
        self._form.join(map(self._piece, starts), path, self._names)
        return path

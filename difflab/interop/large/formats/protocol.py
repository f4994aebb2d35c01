"""The interface of formats of points and results, and code that formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_reals
from difflab.core.wording import counted, did_you_mean, shape_text
from difflab.errors import PointError
from difflab.execute import Compiled
from difflab.graph.names import shortened

Array = NDArray[Any]


class Points(Protocol):
    """Packed points that are read in chunks.

    Attributes
    ----------
    count : int
        The number of points.
    grain : int
        The number of consecutive points that are stored together.
    """

    count: int
    grain: int

    def read(
        self, start: int, stop: int, buffer: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the points from `start` to `stop`, as one or more arrays ``(k, n)``.

        An array of at most ``len(buffer)`` points may lie in `buffer`.
        """


@dataclass(frozen=True)
class ResultLayout:
    """Shape and names of a result.

    Attributes
    ----------
    shape : tuple of int
        The number of points, and the shape of the result at a point.
    names : sequence of str
        A name for each element of the result at a point.
    chunk : int
        The number of points that are written at a time.
    """

    shape: tuple[int, ...]
    names: Sequence[str]
    chunk: int


class Results(Protocol):
    """An unfinished result, written in chunks to a folder of its own.

    Attributes
    ----------
    in_parts : bool
        Whether the rows of a chunk may come in parts; else they are one array.
    """

    in_parts: bool

    def write(self, start: int, parts: Iterable[NDArray[np.float64]]) -> None:
        """Write a chunk: rows ``(k, m)`` of the points from `start` on.

        The parts share their memory.
        """

    def finish(self) -> Path:
        """Return the file or folder of the whole result, after all rows have been written."""


def check_points(shape: Sequence[int], dtype: np.dtype[Any], n: int, name: str) -> None:
    """Raise `PointError` unless an array consists of packed points: real, ``(N, n)``.

    Examples
    --------
    >>> check_points((10, 3), np.dtype(float), 2, "points.npy")
    Traceback (most recent call last):
        ...
    difflab.errors.PointError: points.npy has the shape 10×3, but the function has 2 ...
    hint: one point per row, its inputs in order: the shape is [N, 2]
    """
    if len(shape) != 2 or shape[1] != n:
        if len(shape) == 1 and n == 1:
            hint = "reshape it: array.reshape(-1, 1)"
        else:
            hint = f"one point per row, its inputs in order: the shape is [N, {n}]"
        raise PointError(
            f"{name} has the shape {shape_text(shape)}, "
            f"but the function has {counted(n, 'flattened input')}",
            hint=hint,
        )
    if dtype.kind not in "fiub":
        raise PointError(f"{name} holds {dtype} values, not real numbers")


def real_points(values: Array) -> NDArray[np.float64]:
    """Convert real values to float64, without a copy if they are that already."""
    return host_reals(values, "the array of points", PointError)


def chosen_columns(columns: Sequence[str], wanted: Sequence[str], table: str) -> list[int]:
    """Return the position of each wanted column; a table may have others.

    Raises
    ------
    PointError
        A column is missing, or there are two of its name.

    Examples
    --------
    >>> chosen_columns(["t", "y", "x"], ["x", "y"], "points.csv")
    [2, 1]
    >>> chosen_columns(["x", "angel"], ["x", "angle"], "points.csv")
    Traceback (most recent call last):
        ...
    difflab.errors.PointError: points.csv has no column 'angle'; did you mean 'angel'?
    hint: its columns are x, angel; each input needs one
    """
    for name in wanted:
        if name not in columns:
            guess = did_you_mean(name, [other for other in columns if other not in wanted])
            raise PointError(
                f"{table} has no column {name!r}" + (f"; {guess}" if guess else ""),
                hint=f"its columns are {shortened(columns)}; each input needs one",
            )
        if columns.count(name) > 1:
            raise PointError(f"{table} has several columns {name!r}")
    return [columns.index(name) for name in wanted]


class PieceResults(ABC):
    """A file per chunk, joined at the end."""

    in_parts = False

    def __init__(self, folder: Path, layout: ResultLayout) -> None:
        self._folder = folder
        self._layout = layout
        self._names = list(layout.names)

    def _piece(self, start: int) -> Path:
        return self._folder / f"piece-{start}"

    @abstractmethod
    def _write(self, path: Path, rows: NDArray[np.float64]) -> None: ...

    @abstractmethod
    def _join(self, pieces: Iterable[Path], path: Path) -> None: ...

    def write(self, start: int, parts: Iterable[NDArray[np.float64]]) -> None:
        """Write rows to a file of their own."""
        (rows,) = parts
        self._write(self._piece(start), rows)

    def finish(self) -> Path:
        """Return the file that joins all pieces."""
        path = self._folder / "joined"
        starts = range(0, self._layout.shape[0], self._layout.chunk)
        self._join(map(self._piece, starts), path)
        return path


def result_shape(compiled: Compiled) -> tuple[int, ...]:
    """Return the shape of the result at a point: several outputs are flattened side by side.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*y")
    >>> result_shape(dl.compile(dl.hessian(f))), result_shape(dl.compile(dl.value_and_gradient(f)))
    ((2, 2), (3,))
    """
    shapes = compiled.function.output_shapes
    return shapes[0] if len(shapes) == 1 else (compiled.function.m,)

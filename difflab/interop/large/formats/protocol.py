"""What a format of points or of results provides, and the checks that formats share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_reals
from difflab.core.quantities import shape_text
from difflab.core.wording import counted
from difflab.errors import PointError

__all__ = ["Points", "ResultLayout", "Results", "check_points", "real_points"]

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
        self, start: int, stop: int, room: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the points from `start` to `stop`, as one or more arrays ``(k, n)``.

        An array of at most ``len(room)`` points may lie in `room`.
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
    """Return real numbers as float64, without a copy if they are that already."""
    return host_reals(values, "the array of points", PointError)

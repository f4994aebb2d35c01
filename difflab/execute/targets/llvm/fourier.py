"""Fourier transforms called by machine code: the rows' kernels, on arrays in its memory.

SciPy's transforms are no C functions, so that machine code calls Python for them. A call costs a
few microseconds, less than the passes over memory that fusing the neighbours of a transform saves.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.graph.ir import Shape
from difflab.primitives import fft, irfft, rfft

__all__ = ["FOURIER", "SYMBOL", "Transform", "address"]

SYMBOL = "difflab_fourier"
"""The name of the function in machine code, ``int (row, transposed, before, size, after, …)``."""
FOURIER = {row.name: place for place, row in enumerate((fft, rfft, irfft))}
"""The number of each row in calls."""
_ROWS = (fft, rfft, irfft)
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 5, *[ctypes.c_void_p] * 3)


class Transform(NamedTuple):
    """A transform of contiguous values along one axis.

    Attributes
    ----------
    row : int
        The row, as in `FOURIER`.
    transposed : int
        Whether it is the transposed map: 0 or 1.
    before, size, after : int
        The elements before the axis, of the real values along it, and after it.
    """

    row: int
    transposed: int
    before: int
    size: int
    after: int

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """The shapes of the operand and of the result."""
        after = () if self.after == 1 else (self.after,)
        whole = (self.before, self.size, *after)
        half = (self.before, self.size // 2 + 1, *after, 2)
        return [((*whole, 2), (*whole, 2)), (whole, half), (half, whole)][self.row]

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of the result and of the operand."""
        source, target = self.shapes
        return math.prod(target), math.prod(source)

    @property
    def work(self) -> int:
        """The scalar operations, up to a factor."""
        return max(self.counts)

    def apply(self, x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the transform of an array to another one."""
        row = _ROWS[self.row]
        params: dict[str, Any] = {"size": self.size} if row is irfft else {}
        axes = (1 - x.ndim,) if row is rfft else (1 - x.ndim, -1)
        place = out if row is irfft else out.view(np.complex128)[..., 0]
        transposed = bool(self.transposed)
        row.computer(np)(x, axes=axes, rank=x.ndim, transposed=transposed, out=place, **params)


def _run(row: int, transposed: int, before: int, size: int, after: int, *places: int) -> int:
    """Write a transform of the numbers at one place to another.

    Return 1 if it raised an exception, whose parts then lie at the third place.
    """
    source, target, raised = places
    transform = Transform(row, transposed, before, size, after)
    try:
        shapes = transform.shapes
        with np.errstate(all="ignore"):
            transform.apply(_array(source, shapes[0]), _array(target, shapes[1]))
    except BaseException as error:
        kept = (ctypes.c_void_p * 3).from_address(raised)
        for place, part in enumerate((type(error), error, error.__traceback__)):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))
            kept[place] = id(part)
        return 1
    return 0


def _array(start: int, shape: Shape) -> NDArray[np.float64]:
    """Return the numbers at an address as an array."""
    numbers: Any = (ctypes.c_double * math.prod(shape)).from_address(start)
    found: NDArray[np.float64] = np.frombuffer(numbers, np.float64).reshape(shape)
    return found


@cache
def _callback() -> Any:
    return _SIGNATURE(_run)


def address() -> int:
    """Return the address of the function, which takes the GIL while it runs."""
    return ctypes.cast(_callback(), ctypes.c_void_p).value or 0

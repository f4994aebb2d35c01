"""Value and gradient on a GPU, compared with a copy on the device of the same number of bytes.

A fused kernel reads every input and writes every output once, so its speed is bounded by the
memory bandwidth, which is measured by a copy that reads half of the bytes and writes the other
half. Times are measured between two events on the device's stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from difflab.autodiff import value_and_gradient
from difflab.errors import DifflabError, MissingDependencyError, UnsupportedError
from difflab.execute import compile
from difflab.language import parse

__all__ = ["EXPRESSION", "GpuSpeed", "measure"]

EXPRESSION = "ln(x1) + x1*x2 - sin(x2)"
INPUTS, OUTPUTS = 2, 3  # elements read and written per point
POINT_BYTES = 8 * (INPUTS + OUTPUTS)
CHECKED = 1000  # points whose results are compared with the host's before timing
ROUNDS = 10
REPEATS = 10  # per round, so that the device waits for Python only at its start


@dataclass(frozen=True)
class GpuSpeed:
    """The measured times; each round times the copy and the call.

    Attributes
    ----------
    device : str
        The name of the GPU.
    points : int
        The number of points of a call.
    copies, calls : tuple of float
        Seconds of one copy or call, the mean of each round.
    """

    device: str
    points: int
    copies: tuple[float, ...]
    calls: tuple[float, ...]

    @property
    def bytes(self) -> int:
        """Bytes read and written by a copy, and by a call."""
        return POINT_BYTES * self.points

    @property
    def ratio(self) -> float:
        """The bandwidth of the call over that of the copy, each at its best.

        Examples
        --------
        >>> GpuSpeed("a GPU", 10, copies=(4.0, 5.0), calls=(6.0, 5.0)).ratio
        0.8
        """
        return min(self.copies) / min(self.calls)


def measure(points: int) -> GpuSpeed:
    """Measure value and gradient of the introductory expression at `points` points.

    Raises
    ------
    MissingDependencyError
        CuPy is not installed.
    UnsupportedError
        No GPU is usable, or its memory is too small.
    DifflabError
        The values differ from those of the host.
    """
    if find_spec("cupy") is None:
        raise MissingDependencyError("cupy", extra="gpu")
    cupy = import_module("cupy")
    device = _device(cupy, points)
    call = _call(cupy, points)
    copy = _copy(cupy, points)
    for warm in (call, copy):
        _seconds(cupy, warm)
    pairs = [(_seconds(cupy, copy), _seconds(cupy, call)) for _ in range(ROUNDS)]
    copies, calls = zip(*pairs, strict=True)
    return GpuSpeed(device, points, copies, calls)


def _device(cupy: Any, points: int) -> str:
    """Return the name of the GPU; raise without one or with too little memory."""
    runtime = cupy.cuda.runtime
    try:
        number = runtime.getDevice()
        free, _ = runtime.memGetInfo()
        name: bytes = runtime.getDeviceProperties(number)["name"]
    except Exception as error:  # CuPy has an exception for each library that may be missing
        raise UnsupportedError(f"there is no GPU that CuPy can use: {error}") from error
    needed = 2 * POINT_BYTES * points
    if needed > free:
        raise UnsupportedError(
            f"{points:,} points need {needed / 1e9:.1f} GB of the GPU's memory, of which "
            f"{free / 1e9:.1f} GB are free: try --points {int(0.9 * free) // (2 * POINT_BYTES)}"
        )
    return name.decode(errors="replace")


def _call(cupy: Any, points: int) -> Callable[[], Any]:
    """Return the call to time, after its values have been checked."""
    function = value_and_gradient(parse(EXPRESSION))
    fast = compile(function, target="cupy")
    x1 = 1.0 + cupy.arange(points, dtype=np.float64) / points
    x2 = 5.0 - x1
    few = slice(0, CHECKED)
    expected = function(x1[few].get(), x2[few].get())
    for found, wanted in zip(fast(x1[few], x2[few]), expected, strict=True):
        if not np.allclose(found.get(), wanted, rtol=1e-14, atol=1e-14):
            raise DifflabError("the GPU's values differ from the host's: nothing was measured")
    return lambda: fast(x1, x2)


def _copy(cupy: Any, points: int) -> Callable[[], Any]:
    """Return a copy that reads half of the bytes and writes the other half."""
    size = POINT_BYTES * points // 2
    source, target = cupy.zeros(size, np.uint8), cupy.empty(size, np.uint8)
    return lambda: target.data.copy_from_device_async(source.data, size)


def _seconds(cupy: Any, work: Callable[[], Any]) -> float:
    """Return the device time of one of `REPEATS` consecutive calls."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(REPEATS):
        work()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3 / REPEATS

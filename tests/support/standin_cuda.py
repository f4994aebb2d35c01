"""CuPy's kernels on the strict stand-in: CUDA's source compiled as C++, and run thread by thread.

`RawKernel` takes what CuPy's does. A launch is noted; where there is a C++ compiler it is also
carried out, by a loop over the threads of the grid in which the names that CUDA gives a thread
are ordinary variables.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support import standin

__all__ = ["COMPILER", "LAUNCHES", "Launch", "RawKernel", "compile_together", "installed", "warm"]

COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
_SHIM = """\
#include <cmath>
#include <cstring>
#define __global__
#define __device__
#define __forceinline__ inline
struct Place { unsigned x; };
static Place threadIdx, blockIdx, blockDim, gridDim;
inline double __longlong_as_double(const long long bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
#define fabs std::fabs
using std::acosh; using std::asinh; using std::atanh; using std::cbrt; using std::copysign;
"""
_SIGNATURE = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\)', re.DOTALL)
_FLAGS = ("-O1", "-std=c++17", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC")
_TYPES = {"double": ctypes.c_double, "long long": ctypes.c_longlong}

LAUNCHES: list[Launch] = []
"""What was launched since the stand-in was installed."""
_LOADED: dict[str, Any] = {}
_SEEN: list[list[str]] = []


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]
    stream: str
    device: int


@dataclass
class RawKernel:
    """A kernel from its source."""

    code: str
    name: str
    options: tuple[str, ...] = ()
    kinds: list[str] = field(default_factory=list)
    written: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert "--fmad=false" in self.options
        found = _SIGNATURE.search(self.code)
        assert found is not None
        assert found[1] == self.name
        parts = found[2].split(",")
        self.written = ["*" in part and "const" not in part for part in parts]
        self.kinds = [" ".join(part.split()[:-1]).removeprefix("const ") for part in parts]

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Any) -> None:
        assert 0 < grid[0] < 2**31
        assert 0 < block[0] <= 1024
        assert len(args) == len(self.kinds)
        passed = [_passed(value, kind) for value, kind in zip(args, self.kinds, strict=True)]
        assert sum(8 for _ in passed) <= 4096, "more parameters than every device takes"
        LAUNCHES.append(
            Launch(self.name, grid, block, tuple(args), _streams[-1], standin.Device.current)
        )
        if _SEEN:
            _SEEN[-1].append(self.code)
            for value, written in zip(args, self.written, strict=True):
                if written:
                    value._held[...] = 1
        elif COMPILER:
            if self.code not in _LOADED:
                compile_together([self.code])
            _LOADED[self.code](grid[0], block[0], *passed)


def _passed(value: Any, kind: str) -> Any:
    """Return an argument as C takes it; its type has to be the parameter's."""
    if "*" in kind:
        assert isinstance(value, standin.ndarray), "a pointer to memory of the host"
        wanted = bool if kind.startswith("bool") else np.float64
        assert value.dtype == np.dtype(wanted)
        return ctypes.c_void_p(value._held.ctypes.data)
    assert type(value) is {"double": np.float64, "long long": np.int64}[kind]
    return _TYPES[kind](value.item())


def compile_together(sources: Iterable[str]) -> None:
    """Compile the sources of several kernels at once, which takes little more than one does."""
    codes = [code for code in dict.fromkeys(sources) if code not in _LOADED]
    if not codes or not COMPILER:
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
        source.write_text(_SHIM + "\n".join(_hosted(*pair) for pair in enumerate(codes)))
        command = [COMPILER, *_FLAGS, str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        loaded = ctypes.CDLL(str(library))
    for number, code in enumerate(codes):
        _LOADED[code] = getattr(loaded, f"launch{number}")


def warm(calls: Iterable[Callable[[], Any]]) -> None:
    """Compile the kernels that some calls launch at once, by making the calls without running any.

    A kernel that does not run leaves ones, so what the calls return means nothing.
    """
    _SEEN.append([])
    try:
        with np.errstate(all="ignore"):
            for call in calls:
                call()
    finally:
        compile_together(_SEEN.pop())
    LAUNCHES.clear()


def _hosted(number: int, code: str) -> str:
    """Return a kernel in a namespace of its own, and what launches it."""
    found = _SIGNATURE.search(code)
    assert found is not None
    name, parameters = found[1], found[2]
    names = ", ".join(part.split()[-1] for part in parameters.split(","))
    own = code.replace(f"void {name}(", f"void kernel{number}(")
    return f"""namespace n{number} {{
{own}
extern "C" void launch{number}(unsigned grid, unsigned block, {parameters})
{{
    gridDim.x = grid;
    blockDim.x = block;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x)
            kernel{number}({names});
}}
}}"""


_streams = ["null"]


@contextmanager
def stream(name: str) -> Iterator[None]:
    """Make a stream current, as ``with cupy.cuda.Stream():`` does."""
    _streams.append(name)
    try:
        yield
    finally:
        _streams.pop()


class Event:
    """A moment of the device: what it has done so far, 1 ms for a copy and 2 for a launch."""

    at = 0.0

    def record(self) -> None:
        self.at = standin.Memory.copies + 2.0 * len(LAUNCHES)

    def synchronize(self) -> None:
        pass


_RUNTIME = SimpleNamespace(
    getDevice=lambda: 0,
    memGetInfo=lambda: (10**9, 2 * 10**9),
    getDeviceProperties=lambda number: {"name": b"a stand-in"},
)


def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put the stand-in in CuPy's place, and return it."""
    monkeypatch.setattr(standin, "RawKernel", RawKernel, raising=False)
    cuda = SimpleNamespace(
        Event=Event, get_elapsed_time=lambda start, end: end.at - start.at, runtime=_RUNTIME
    )
    monkeypatch.setattr(standin, "cuda", cuda, raising=False)
    monkeypatch.setitem(sys.modules, "cupy", standin)
    LAUNCHES.clear()
    return standin

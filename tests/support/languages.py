"""Printed code in compiled and interpreted languages: many functions in one file, run together."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.graph.function import Function
from difflab.language import printers

__all__ = ["LANGUAGES", "Language", "Printer", "command"]

Array = NDArray[np.float64]
Printer = Callable[[Function, str], str]
Runner = Callable[[Sequence[str], Sequence[Function], Sequence[Array], Path], list[Array]]


@dataclass(frozen=True)
class Language:
    """A printer, the program and version that its code needs, and how call0, call1, … are called.

    ``run(sources, functions, points, folder)`` returns the values of each function at its points
    (N, n), as an array (N, m).
    """

    name: str
    printer: Printer
    program: str
    run: Runner
    since: tuple[int, int] = (0, 0)

    @property
    def there(self) -> bool:
        """Whether the program is installed, in a version that is new enough."""
        if shutil.which(self.program) is None:
            return False
        if self.since == (0, 0):
            return True
        said = subprocess.run(
            [self.program, "--version"], capture_output=True, text=True, check=False
        )
        found = re.search(r"(\d+)\.(\d+)", said.stdout)
        return found is not None and tuple(map(int, found.groups())) >= self.since

    def values(
        self, functions: Sequence[Function], points: Sequence[Any], folder: Path
    ) -> list[Array]:
        """Return the values of functions at packed points, by printed code."""
        sources = [self.printer(function, f"call{k}") for k, function in enumerate(functions)]
        at = [np.atleast_2d(np.asarray(each, dtype=float)) for each in points]
        return self.run(sources, functions, at, folder)


def command(text: str, folder: Path) -> str:
    """Run a compiler or an interpreter; its messages are the failure."""
    done = subprocess.run(text.split(), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stderr + done.stdout)[-4000:]
    assert "warning" not in done.stderr.lower(), done.stderr[-4000:]
    return done.stdout


def called(
    library: Path, symbol: str, functions: Sequence[Function], points: Sequence[Array]
) -> list[Array]:
    """Call functions ``(const double *x, double *y)`` of a library, by a pattern of names."""
    loaded = ctypes.CDLL(str(library))
    results = []
    for k, (function, at) in enumerate(zip(functions, points, strict=True)):
        call = getattr(loaded, symbol.format(k))
        found = np.empty((len(at), function.m))
        result = (ctypes.c_double * function.m)()
        for place, point in enumerate(at.tolist()):
            call((ctypes.c_double * function.n)(*point), result)
            found[place] = result
        results.append(found)
    return results


def in_fortran(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Compile modules call0_module, call1_module, … into one library."""
    (folder / "f.f90").write_text("\n".join(sources) + "\n", encoding="utf-8")
    command(
        "gfortran -std=f2008 -Wall -Wno-compare-reals -Wno-maybe-uninitialized "
        "-Wno-unused-dummy-argument -Werror -O1 -ffp-contract=off -fPIC -shared -o f.so f.f90 -lm",
        folder,
    )
    return called(folder / "f.so", "__call{0}_module_MOD_call{0}", functions, points)


def in_rust(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Compile modules of one function each into one library, behind functions of C's types."""
    lines = []
    for k, (source, function) in enumerate(zip(sources, functions, strict=True)):
        view = "std::slice::from_raw_parts"
        lines += [
            f"mod m{k} {{ {source}\n}}",
            f'#[no_mangle] pub unsafe extern "C" fn c{k}(x: *const f64, y: *mut f64) {{',
            f"m{k}::call{k}({view}(x, {function.n}), {view}_mut(y, {function.m})) }}",
        ]
    (folder / "f.rs").write_text("\n".join(lines), encoding="utf-8")
    command("rustc --edition 2021 --crate-type cdylib -D warnings -O -o libf.so f.rs", folder)
    return called(folder / "libf.so", "c{0}", functions, points)


_NO_DEVICE = """
#define __host__
#define __device__
#define __global__
static struct { long x; } blockIdx, blockDim, threadIdx;
"""
"""What makes CUDA's words C++, for a compiler without CUDA."""


def in_cuda(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Compile the functions for the host."""
    lines = ["#include <math.h>"]
    for k, source in enumerate(sources):
        body = source.removeprefix("#include <math.h>\n")
        lines += [
            f"namespace n{k} {{ {body}\n}}",
            f'extern "C" void c{k}(const double *x, double *y) {{ n{k}::call{k}(x, y); }}',
        ]
    (folder / "f.cpp").write_text("\n".join([_NO_DEVICE, *lines]), encoding="utf-8")
    command(
        "g++ -Wall -Wno-unused -Werror -O1 -ffp-contract=off -fPIC -shared -o f.so f.cpp", folder
    )
    return called(folder / "f.so", "c{0}", functions, points)


def in_octave(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Run a script that defines the functions and prints their values."""
    lines = ["1;", *sources]
    for k, (function, at) in enumerate(zip(functions, points, strict=True)):
        np.savetxt(folder / f"x{k}", np.reshape(at, (len(at), function.n)), fmt="%.17g")
        lines += [
            f'x = reshape(load("-ascii", "x{k}"), {len(at)}, {function.n});',
            f'for k = 1:rows(x), printf("%.17g ", call{k}(x(k, :))); end, printf("\\n");',
        ]
    (folder / "s.m").write_text("\n".join(lines), encoding="utf-8")
    printed = command("octave-cli --no-init-file --quiet s.m", folder).splitlines()
    return [
        np.array(line.split(), dtype=float).reshape(len(at), function.m)
        for line, function, at in zip(printed, functions, points, strict=True)
    ]


def in_julia(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Run a script with a module for each function."""
    lines = []
    for k, (source, function, at) in enumerate(zip(sources, functions, points, strict=True)):
        np.savetxt(folder / f"x{k}", np.reshape(at, (len(at), function.n)), fmt="%.17g")
        lines += [
            f"module M{k}\n{source}\nend",
            f'for line in eachline("x{k}") print(join(M{k}.call{k}(',
            'parse.(Float64, split(line))), " "), " ") end; println()',
        ]
    (folder / "s.jl").write_text("\n".join(lines), encoding="utf-8")
    printed = command("julia --startup-file=no s.jl", folder).splitlines()
    return [
        np.array(line.split(), dtype=float).reshape(len(at), function.m)
        for line, function, at in zip(printed, functions, points, strict=True)
    ]


LANGUAGES = [
    Language("Fortran", printers.fortran, "gfortran", in_fortran),
    Language("Rust", printers.rust, "rustc", in_rust, since=(1, 77)),  # round_ties_even
    Language("CUDA", printers.cuda, "g++", in_cuda),
    Language("MATLAB", printers.matlab, "octave-cli", in_octave),
    Language("Julia", printers.julia, "julia", in_julia),
]

"""Printed code in compiled and interpreted languages: many functions in one file, run together."""

from __future__ import annotations

import ctypes
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

__all__ = ["LANGUAGES", "Language"]

Array = NDArray[np.float64]
Printer = Callable[[Function, str], str]
Runner = Callable[[Sequence[str], Sequence[Function], Sequence[Array], Path], list[Array]]


@dataclass(frozen=True)
class Language:
    """A printer, the program that its code needs, and how functions f0, f1, … are called.

    ``run(sources, functions, points, folder)`` returns the values of each function at its points
    (N, n), as an array (N, m).
    """

    name: str
    printer: Printer
    program: str
    run: Runner

    @property
    def there(self) -> bool:
        """Whether the program is installed."""
        return shutil.which(self.program) is not None

    def values(
        self, functions: Sequence[Function], points: Sequence[Any], folder: Path
    ) -> list[Array]:
        """Return the values of functions at packed points, by printed code."""
        sources = [self.printer(function, f"f{k}") for k, function in enumerate(functions)]
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
    """Call functions ``(const double *x, double *y)`` of a library, by the pattern of their names."""
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
    """Compile modules f0_module, f1_module, … into one library."""
    (folder / "f.f90").write_text("\n".join(sources) + "\n", encoding="utf-8")
    command(
        "gfortran -std=f2008 -Wall -Wno-compare-reals -Wno-maybe-uninitialized -Wno-unused-dummy-argument -Werror -O1 "
        "-ffp-contract=off -fPIC -shared -o f.so f.f90 -lm",
        folder,
    )
    return called(folder / "f.so", "__f{0}_module_MOD_f{0}", functions, points)


LANGUAGES = [Language("Fortran", printers.fortran, "gfortran", in_fortran)]

"""Printed code in every language: many functions in one file, run together."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.language import printers
from difflab.methods.peers.array_code import jax_code, numpy_code, torch_code
from difflab.methods.peers.jax import double
from tests.support import node

__all__ = [
    "JAVASCRIPT",
    "LANGUAGES",
    "LIBRARIES",
    "STAN",
    "C",
    "Language",
    "OnDevice",
    "Printer",
    "command",
    "once",
]

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

    @property
    def needed(self) -> str:
        """What its code needs."""
        version = f" {'.'.join(map(str, self.since))} or newer" if any(self.since) else ""
        return f"{self.program}{version}"

    def prints(self, function: Function) -> bool:
        """Whether the language has all operations of a function."""
        try:
            self.printer(function, "f")
        except UnsupportedError:
            return False
        return True

    def values(
        self, functions: Sequence[Function], points: Sequence[Any], folder: Path
    ) -> list[Array]:
        """Return the values of functions at packed points, by printed code."""
        sources = [self.printer(function, f"call{k}") for k, function in enumerate(functions)]
        at = [np.atleast_2d(np.asarray(each, dtype=float)) for each in points]
        return self.run(sources, functions, at, folder)


@dataclass(frozen=True)
class OnDevice(Language):
    """A language whose code runs on an NVIDIA GPU."""

    @property
    def there(self) -> bool:
        """Whether the compiler is installed, and there is a GPU."""
        return super().there and any(Path("/dev").glob("nvidia[0-9]*"))

    @property
    def needed(self) -> str:
        """What its code needs."""
        return f"{super().needed} and an NVIDIA GPU"


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


_FUNCTION = re.compile(r"^(?:static double \w+\(.*\)\n\{\n(?:.*\n)*?\}|double [jy]n\(.*)$", re.M)
"""What printed C defines before its function."""


def once(sources: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what C sources define or include, each once, and the sources without it."""
    shared = {text: None for source in sources for text in _FUNCTION.findall(source)}
    return ["#include <math.h>", *shared], [_FUNCTION.sub("", source) for source in sources]


def in_c(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Compile the functions into one library; what several of them define is defined once."""
    shared, own = once(sources)
    lines = [*shared, *own]
    (folder / "f.c").write_text("\n".join(lines), encoding="utf-8")
    command(
        "gcc -std=c99 -Wall -Werror -O1 -ffp-contract=off -fPIC -shared -o f.so f.c -lm", folder
    )
    return called(folder / "f.so", "call{0}", functions, points)


def in_javascript(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Run the functions in one process of Node.js."""
    scripts = [
        node.Script(f"{source}\nconst f = call{k};", function.input_shapes, at)
        for k, (source, function, at) in enumerate(zip(sources, functions, points, strict=True))
    ]
    return node.run(scripts)


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


_ON_DEVICE = """
template <typename Kernel>
static void launched(Kernel kernel, const double *x, long n, double *y, long m)
{
    double *there;
    for (long k = 0; k < m; k++) y[k] = NAN;  // what a launch that fails leaves
    cudaMalloc(&there, (n + m) * sizeof(double));
    cudaMemcpy(there, x, n * sizeof(double), cudaMemcpyHostToDevice);
    kernel<<<1, 32>>>(there, there + n, 1);
    if (cudaGetLastError() == cudaSuccess)
        cudaMemcpy(y, there + n, m * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(there);
}
"""
"""One point by a kernel of many."""


def in_cuda_on_device(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Compile the functions for the GPU, and launch their kernels."""
    lines = ["#include <math.h>", _ON_DEVICE]
    for k, (source, f) in enumerate(zip(sources, functions, strict=True)):
        body = source.removeprefix("#include <math.h>\n")
        lines += [
            f"namespace n{k} {{ {body}\n}}",
            f'extern "C" void c{k}(const double *x, double *y)',
            f"{{ launched(n{k}::call{k}_points, x, {f.n}, y, {f.m}); }}",
        ]
    (folder / "f.cu").write_text("\n".join(lines), encoding="utf-8")
    command("nvcc -O1 -w -fmad=false -arch=native -Xcompiler -fPIC -shared -o f.so f.cu", folder)
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


def in_r(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Run a script that defines the functions and prints their values, all digits as bits."""
    lines = ["options(warn = -1)"]  # outside of domains, which tests call as well
    for k, (source, function, at) in enumerate(zip(sources, functions, points, strict=True)):
        numbers = [float(number).hex() for number in np.ravel(at)]
        (folder / f"x{k}").write_text("\n".join(numbers).replace("nan", "NaN"), encoding="utf-8")
        lines += [
            f"x <- as.numeric(readLines('x{k}', warn = FALSE))",
            source,
            f"for (k in seq_len({len(at)})) cat(",
            f"sprintf('%a', call{k}(x[seq_len({function.n}) + {function.n} * (k - 1)])), '')",
            "cat('\\n')",
        ]
    (folder / "s.R").write_text("\n".join(lines), encoding="utf-8")
    printed = command("Rscript --vanilla s.R", folder).splitlines()
    return [
        np.array([float.fromhex(value) for value in line.split()]).reshape(len(at), function.m)
        for line, function, at in zip(printed, functions, points, strict=True)
    ]


def in_stan(
    sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], folder: Path
) -> list[Array]:
    """Translate blocks of functions to C++, and compile them with the headers beside `stanc`."""
    found = shutil.which("stanc")
    headers = Path(str(found)).resolve().parent / "include"
    lines = [_STAN]
    for k, (source, function) in enumerate(zip(sources, functions, strict=True)):
        (folder / f"f{k}.stan").write_text(source + "\n", encoding="utf-8")
        command(f"stanc --standalone-functions --o f{k}.hpp f{k}.stan", folder)
        translated = (folder / f"f{k}.hpp").read_text(encoding="utf-8").splitlines()
        lines += [
            f"namespace n{k} {{",
            *[line for line in translated if not _MODEL.search(line)],
            f'}}\nextern "C" void c{k}(const double *x, double *y) {{',
            f"Eigen::VectorXd point = Eigen::Map<const Eigen::VectorXd>(x, {function.n});",
            f"Eigen::Map<Eigen::VectorXd>(y, {function.m}) = n{k}::call{k}(point); }}",
        ]
    (folder / "f.cpp").write_text("\n".join(lines), encoding="utf-8")
    command(
        "g++ -std=c++17 -w -O0 -ffp-contract=off -fPIC -shared -DSTAN_THREADS -D_REENTRANT "
        f"-I{headers} -o f.so f.cpp -L{headers.parent}/lib -ltbb -Wl,-rpath,{headers.parent}/lib",
        folder,
    )
    return called(folder / "f.so", "c{0}", functions, points)


_STAN = """
#include <stan/math/prim.hpp>
#include <stan/model/indexing.hpp>
#include <stan/lang/rethrow_located.hpp>
"""
"""What functions need of Stan, without its models.

The package httpstan has `stanc`, which a link on the path leads to, and the headers beside it.
"""
_MODEL = re.compile("model_header|model_base_crtp")

STAN = Language("Stan", printers.stan, "stanc", in_stan)
C = Language("C", printers.c, "gcc", in_c)
JAVASCRIPT = Language("JavaScript", printers.javascript, "node", in_javascript)
LANGUAGES = [
    Language("Fortran", printers.fortran, "gfortran", in_fortran),
    Language("Rust", printers.rust, "rustc", in_rust, since=(1, 77)),  # round_ties_even
    Language("CUDA", printers.cuda, "g++", in_cuda),
    OnDevice("CUDA on a GPU", printers.cuda, "nvcc", in_cuda_on_device),
    Language("MATLAB", printers.matlab, "octave-cli", in_octave),
    Language("Julia", printers.julia, "julia", in_julia),
    Language("R", printers.r, "Rscript", in_r),
]


@dataclass(frozen=True)
class Library(Language):
    """Python code over an array library, which `program` names, run in this process."""

    @property
    def there(self) -> bool:
        """Whether the library is installed."""
        return find_spec(self.program) is not None


def in_library(library: str) -> Runner:
    """Return what runs Python code on the arrays of a library, in float64."""

    def run(
        sources: Sequence[str], functions: Sequence[Function], points: Sequence[Array], _: Path
    ) -> list[Array]:
        module = import_module(library)
        lift = getattr(module, "as_tensor", None) or module.asarray
        results = []
        with np.errstate(all="ignore"), double() if library == "jax.numpy" else nullcontext():
            for k, (source, function, at) in enumerate(
                zip(sources, functions, points, strict=True)
            ):
                names: dict[str, Any] = {}
                exec(compile(source, "<printed>", "exec"), names)
                found = [names[f"call{k}"](*map(lift, _parts(function, point))) for point in at]
                results.append(np.array([_flat(each) for each in found]))
        return results

    return run


def _parts(function: Function, point: Array) -> list[Array]:
    """Return the arguments of a function, from a packed point."""
    found, start = [], 0
    for shape in function.input_shapes:
        found.append(np.array(point[start : start + math.prod(shape)]).reshape(shape))
        start += math.prod(shape)
    return found


def _flat(result: Any) -> Array:
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])


LIBRARIES = [
    Library("NumPy", numpy_code, "numpy", in_library("numpy")),
    Library("JAX", jax_code, "jax", in_library("jax.numpy")),
    Library("PyTorch", torch_code, "torch", in_library("torch")),
]

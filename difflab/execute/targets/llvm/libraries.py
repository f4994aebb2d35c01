"""The mathematical functions of machine code: glibc's vector functions, libm, and SciPy.

glibc's libmvec computes whole vectors with errors of at most 4 ULP. Functions that it lacks are
libm's, called lane by lane. Functions that SciPy defines, such as the logarithm of the gamma
function, are SciPy's own code. Code that must give NumPy's bits calls NumPy's own inner loops.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

import numpy as np

from difflab.core.optional import installed, require
from difflab.errors import MissingDependencyError, described
from difflab.execute.lower.scalar import LIBRARY
from difflab.execute.targets.llvm import fourier, matrix_loops
from difflab.execute.targets.llvm.matrix_loops import LOOP, loop_of

SCIPY = {
    "beta": "beta",
    "betainc": "__pyx_fuse_0betainc",
    "betaln": "betaln",
    "dawsn": "__pyx_fuse_1dawsn",
    "entr": "entr",
    "erfc": "__pyx_fuse_1erfc",
    "erfcinv": "erfcinv",
    "erfcx": "__pyx_fuse_1erfcx",
    "erfi": "__pyx_fuse_1erfi",
    "erfinv": "__pyx_fuse_0erfinv",
    "exp1": "__pyx_fuse_1exp1",
    "expi": "__pyx_fuse_1expi",
    "gamma": "__pyx_fuse_1gamma",
    "gammainc": "gammainc",
    "gammaincc": "gammaincc",
    "gammaln": "gammaln",
    "iv": "__pyx_fuse_1iv",
    "jv": "__pyx_fuse_1jv",
    "kve": "__pyx_fuse_1kve",
    "logit": "__pyx_fuse_0logit",
    "ndtri": "ndtri",
    "psi": "__pyx_fuse_1psi",
    "rgamma": "__pyx_fuse_1rgamma",
    "xlog1py": "__pyx_fuse_1xlog1py",
    "xlogy": "__pyx_fuse_1xlogy",
    "yv": "__pyx_fuse_1yv",
}
"""The names in ``scipy.special.cython_special.__pyx_capi__`` of SciPy's universal functions."""

NUMPY = {name: ufunc for name, ufunc in LIBRARY.items() if ufunc.nin == 1}
"""The universal functions of one argument that are functions of the C library, by its names."""

# For each instruction set: its letter in the names of the vector functions, the required processor
# features, and the number of float64 lanes of a register.
_SETS = (("e", ("avx512f", "avx512dq"), 8), ("d", ("avx2", "fma"), 4), ("b", ("sse2",), 2))
_LIBM = {"linux": "libm.so.6", "darwin": "libSystem.dylib", "win32": "ucrtbase.dll"}


_TRIAL = "define i64 @trial(i64 %x) {\n  ret i64 %x\n}\n"


@cache
def llvm() -> ModuleType:
    """Return llvmlite's binding, ready to compile for this machine.

    Raises
    ------
    MissingDependencyError
        llvmlite is missing or broken: it cannot be imported, or does not compile.
    """
    # It prints nothing, but `require` would redirect what other threads print meanwhile.
    with suppress(Exception, SystemExit):
        import_module("llvmlite.binding")
    require("llvmlite")
    binding = require("llvmlite.binding")
    try:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(opt=0, jit=True)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(_TRIAL), machine)
        engine.finalize_object()
    except Exception as error:  # for example llvmlite built for another processor
        broken = f"broken: {described(error)}"
        raise MissingDependencyError("llvmlite", extra="native", fault=broken) from error
    return binding


@cache
def fault() -> str:
    """Return why llvmlite does not work, tested by compiling; empty if it works."""
    try:
        llvm()
    except MissingDependencyError as error:
        return str(error)
    return ""


@cache
def works() -> bool:
    """Return whether machine code can be compiled; if not, warn once with the reason."""
    reason = fault()
    if reason:
        warnings.warn(f"{reason}; computing without machine code", RuntimeWarning, stacklevel=2)
    return not reason


def available() -> bool:
    """Return whether llvmlite is installed and not known to be broken, without importing it."""
    tried = fault.cache_info().currsize > 0
    return _installed() and not (tried and fault())


def _installed() -> bool:
    """Return whether llvmlite is installed; what was found once is not sought again on disk."""
    if "llvmlite" in sys.modules or not _FOUND:
        found = installed("llvmlite")
        _FOUND.update(["llvmlite"] * found)
        return found
    return True


_FOUND: set[str] = set()


@dataclass(frozen=True)
class Host:
    """The processor that code is compiled for.

    Attributes
    ----------
    cpu, features : str
        LLVM's names of the processor and its features.
    width : int
        The number of points computed at once.
    letter : str
        The instruction set in the names of libmvec's functions; empty without libmvec.
    of_numpy : bool
        Whether the functions of `NUMPY` are NumPy's own inner loops, one number at a time.
    """

    cpu: str
    features: str
    width: int
    letter: str
    of_numpy: bool = False

    def vector(self, function: str, arity: int, width: int, *, single: bool = False) -> str:
        """Return the name of libmvec's `function` on vectors of `width`, empty if it has none.

        A register has twice as many lanes of float32, and names of its functions end with "f".
        """
        if self.of_numpy:
            return ""
        doubles = width // 2 if single else width
        letter = next((letter for letter, _, lanes in _SETS if lanes == doubles), "")
        name = f"_ZGV{letter}N{width}{'v' * arity}_{function}{'f' * single}"
        known = self.letter and letter and function not in SCIPY and _symbol("libmvec.so.1", name)
        return name if known else ""


@cache
def host() -> Host:
    """Return this machine."""
    features = llvm().get_host_cpu_features()
    names = llvm().get_host_cpu_name(), features.flatten()
    for letter, needed, width in _SETS:
        if all(features.get(feature) for feature in needed):
            return Host(*names, width, letter if _library("libmvec.so.1") else "")
    return Host(*names, 2, "")


def address(name: str) -> int:
    """Return the address of a function, 0 if there is none.

    It is one of libmvec, libm, Python, SciPy (``scipy.gammaln``) or ours, or an inner loop of
    NumPy's (``numpy.exp``, ``numpy.linalg.solve``).
    """
    if name == fourier.SYMBOL:
        return fourier.address()
    if name.startswith("Py"):
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    if name.startswith(matrix_loops.PREFIX):
        return matrix_loops.address(name.removeprefix(matrix_loops.PREFIX))
    if name.startswith("numpy."):
        return inner_loop(name.removeprefix("numpy."))
    if name.startswith("scipy."):
        return _scipy_address(SCIPY[name.removeprefix("scipy.")])
    return _symbol("libmvec.so.1" if name.startswith("_ZGV") else _libm(), name)


@cache
def inner_loop(name: str) -> int:
    """Return the address of NumPy's inner loop over float64, for a function of `NUMPY`.

    It is 0 unless the loop, called for one number at a time, gives the bits of the universal
    function on arrays: no documented interface names the loop, so it is tried first.

    Examples
    --------
    >>> inner_loop("exp") > 0
    True
    """
    ufunc = NUMPY[name]
    found = loop_of(ufunc, "d->d")
    if not found:
        return 0
    x = np.concatenate([np.linspace(1.0, 2.0, 67), np.linspace(-1.0, 1.0, 134), [-800.0, 1e9]])
    y = np.empty_like(x)
    with np.errstate(all="ignore"):
        wanted = ufunc(x)
        for place in range(len(x)):
            at = (ctypes.c_void_p * 2)(x.ctypes.data + 8 * place, y.ctypes.data + 8 * place)
            LOOP(found)(at, (ctypes.c_ssize_t * 1)(1), (ctypes.c_ssize_t * 2)(8, 8), None)
    return found if y.tobytes() == wanted.tobytes() else 0


def _libm() -> str:
    return _LIBM.get(sys.platform, "libm.so")


@cache
def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


@cache
def _symbol(library: str, name: str) -> int:
    found = getattr(_library(library), name, None)
    return ctypes.cast(found, ctypes.c_void_p).value or 0 if found else 0


@cache
def _scipy_address(name: str) -> int:
    """Return the address of a function of SciPy, ``double (double, …, int)``."""
    capsule = import_module("scipy.special.cython_special").__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))

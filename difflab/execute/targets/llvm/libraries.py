"""The mathematical functions of machine code: glibc's vector functions, libm, and SciPy.

glibc's libmvec computes whole vectors with errors of at most 4 ULP. Functions that it lacks are
libm's, called lane by lane. Functions that SciPy defines, such as the logarithm of the gamma
function, are SciPy's own code. Code that must give NumPy's bits calls NumPy's own inner loops, as
do the functions of matrices; Fourier transforms call back into Python.
"""

from __future__ import annotations

import ctypes
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import installed, require
from difflab.errors import MissingDependencyError, described
from difflab.execute.lower.scalar import LIBRARY
from difflab.graph.ir import Shape
from difflab.primitives import fft, irfft, rfft

# --- NumPy's inner loops: of universal functions, and LAPACK's of matrices -----------------------
# A loop fills a result with nan where LAPACK finds none, as for a singular matrix; so do the rows'
# kernels, which call the same loops.

LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
"""A loop takes pointers to operands and results, the sizes, the steps in bytes, and nothing."""


class _UniversalFunction(ctypes.Structure):
    """The public head of NumPy's ``PyUFuncObject``, behind the head of every object."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


def loop_of(ufunc: Any, types: str) -> int:
    """Return the address of a universal function's loop over types such as ``"d->d"``; 0 if none.

    Examples
    --------
    >>> loop_of(np.exp, "d->d") > 0, loop_of(np.exp, "d->q")
    (True, 0)
    """
    if sys.implementation.name != "cpython" or type(ufunc) is not np.ufunc:
        return 0
    head = _UniversalFunction.from_address(id(ufunc) + object.__basicsize__)
    counts = (ufunc.nin, ufunc.nout, ufunc.ntypes)
    if (head.nin, head.nout, head.ntypes) != counts or types not in ufunc.types:
        return 0
    position = ufunc.types.index(types)
    loop, data = head.functions[position], head.data[position] if head.data else None
    return 0 if data else loop or 0


PREFIX = "numpy.linalg."
"""What names of the loops begin with."""


class _Form(NamedTuple):
    """A generalised universal function: its name in NumPy, its axes, and the public function."""

    ufunc: str
    axes: tuple[str, ...]
    public: Callable[..., Any]


MATRICES = {
    "cholesky": _Form("cholesky_lo", ("mm", "mm"), np.linalg.cholesky),
    "det": _Form("det", ("mm", ""), np.linalg.det),
    "inv": _Form("inv", ("mm", "mm"), np.linalg.inv),
    "solve": _Form("solve", ("mm", "mn", "mn"), np.linalg.solve),
}
"""The rows that are computed so; the last axes are those of the result."""


class MatrixLoop(NamedTuple):
    """A function of contiguous matrices, or of stacks of them.

    Attributes
    ----------
    row : str
        The name of the row, as in `MATRICES`.
    size : int
        The rows of a matrix.
    columns : int
        The columns of a right side, if there is one.
    stacks : tuple of int
        How many matrices each operand has: 1, or as many as the result.
    """

    row: str
    size: int
    columns: int
    stacks: tuple[int, ...]

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of one matrix of each operand, and of the result."""
        sizes = {"m": self.size, "n": self.columns}
        return [tuple([sizes[axis] for axis in axes]) for axes in MATRICES[self.row].axes]

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of elements of the result and of each operand."""
        *operands, result = map(math.prod, self.shapes)
        stacks = zip(self.stacks, operands, strict=True)
        return (max(self.stacks) * result, *(count * size for count, size in stacks))

    @property
    def work(self) -> int:
        """The scalar operations, up to a factor."""
        return max(self.stacks) * self.size**3

    @property
    def arguments(self) -> tuple[list[int], list[int]]:
        """The sizes that are passed to the loop, and the strides in bytes."""
        letters = dict.fromkeys("".join(MATRICES[self.row].axes))
        sizes = [{"m": self.size, "n": self.columns}[letter] for letter in letters]
        matrices = [np.empty(shape) for shape in self.shapes]
        counts = zip(matrices, (*self.stacks, max(self.stacks)), strict=True)
        between = [matrix.nbytes * (count > 1) for matrix, count in counts]
        within = [step for matrix in matrices for step in matrix.strides]
        return [max(self.stacks), *sizes], [*between, *within]

    def code(self, name: str) -> Iterator[str]:
        """Yield a function of LLVM that calls the loop with pointers to operands and result."""
        for part, integers in zip(("sizes", "steps"), self.arguments, strict=True):
            listed = ", ".join(f"i64 {number}" for number in integers)
            yield f"@{name}.{part} = private constant [{len(integers)} x i64] [{listed}]"
        pointers = [f"ptr %p{k}" for k in range(len(self.shapes))]
        yield f"define internal void @{name}({', '.join(pointers)}) {{"
        yield f"%all = alloca [{len(pointers)} x ptr], align 8"
        for k, pointer in enumerate(pointers):
            yield f"%at{k} = getelementptr ptr, ptr %all, i64 {k}"
            yield f"store {pointer}, ptr %at{k}, align 8"
        loop = f"@{PREFIX}{self.row}"
        yield f"call void {loop}(ptr %all, ptr @{name}.sizes, ptr @{name}.steps, ptr null)"
        yield from ("ret void", "}")


@cache
def matrix_loop(row: str) -> int:
    """Return the address of NumPy's loop for a row of `MATRICES`, on float64.

    It is 0 unless the loop has the bits of the public function, and nan for singular matrices.

    Examples
    --------
    >>> matrix_loop("solve") > 0
    True
    """
    form = MATRICES[row]
    loops: Any = getattr(np.linalg, "_umath_linalg", None)
    loop = loop_of(getattr(loops, form.ufunc, None), "d" * (len(form.axes) - 1) + "->d")
    return loop if loop and _has_its_bits(LOOP(loop), row) else 0


def _has_its_bits(loop: Any, row: str) -> bool:
    count = len(MATRICES[row].axes) - 1
    call = MatrixLoop(row, 3, 2, (2, 1)[:count])
    regular = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
    right = np.array([[1.0, 2.0], [0.1, -3.0], [7.0, 1e-3]])
    inputs = [np.stack([regular, np.zeros((3, 3))]), right][:count]
    result = np.empty((2, *call.shapes[-1]))
    addresses = [array.ctypes.data for array in (*inputs, result)]
    sizes, steps = ((ctypes.c_ssize_t * len(integers))(*integers) for integers in call.arguments)
    loop((ctypes.c_void_p * len(addresses))(*addresses), sizes, steps, None)
    equal = np.array_equal(result[0], MATRICES[row].public(regular, *inputs[1:]))
    return equal and bool((np.isnan(result[1]) if row != "det" else result[1] == 0).all())


# --- Fourier transforms: the rows' kernels, on arrays in the memory of machine code --------------
# SciPy's transforms are no C functions, so that machine code calls Python for them. A call costs a
# few microseconds, less than the passes over memory that fusing the neighbours of a transform
# saves.

FOURIER_SYMBOL = "difflab_fourier"
"""The name of the function in machine code, ``int (row, transposed, before, size, after, …)``."""
_ROWS = (fft, rfft, irfft)
FOURIER = {row.name: number for number, row in enumerate(_ROWS)}
"""The number of each row in calls."""
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
        """The number of elements of the result and of the operand."""
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
        target = out if row is irfft else out.view(np.complex128)[..., 0]
        transposed = bool(self.transposed)
        row.computer(np)(x, axes=axes, rank=x.ndim, transposed=transposed, out=target, **params)


def _run(row: int, transposed: int, before: int, size: int, after: int, *addresses: int) -> int:
    """Transform the array at one address and write the result to another.

    Return 1 if it raised an exception, whose parts are then stored at the third address.
    """
    source, target, raised = addresses
    transform = Transform(row, transposed, before, size, after)
    try:
        shapes = transform.shapes
        with np.errstate(all="ignore"):
            transform.apply(_array(source, shapes[0]), _array(target, shapes[1]))
    except BaseException as error:
        kept = (ctypes.c_void_p * 3).from_address(raised)
        for index, part in enumerate((type(error), error, error.__traceback__)):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))
            kept[index] = id(part)
        return 1
    return 0


def _array(start: int, shape: Shape) -> NDArray[np.float64]:
    """Return a view of the memory at an address as an array."""
    memory: Any = (ctypes.c_double * math.prod(shape)).from_address(start)
    array: NDArray[np.float64] = np.frombuffer(memory, np.float64).reshape(shape)
    return array


@cache
def _fourier_callback() -> Any:
    """Return the function as one of C, which takes the GIL while it runs."""
    return _SIGNATURE(_run)


# --- functions by name ---------------------------------------------------------------------------

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
_LIBM = {"linux": "libm.so.6", "darwin": "libSystem.dylib", "win32": "ucrtbase.dll"}.get(
    sys.platform, "libm.so"
)


# --- llvmlite ------------------------------------------------------------------------------------

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
    # A library that was found is not searched on disk again.
    if ("llvmlite" in sys.modules or not _FOUND) and not installed("llvmlite"):
        return False
    _FOUND.add("llvmlite")
    tried = fault.cache_info().currsize > 0
    return not (tried and fault())


_FOUND: set[str] = set()


# --- the processor, and addresses of functions ---------------------------------------------------


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
        exists = self.letter and letter and function not in SCIPY and _symbol("libmvec.so.1", name)
        return name if exists else ""


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
    if name == FOURIER_SYMBOL:
        return _start_of(_fourier_callback())
    if name.startswith("Py"):
        return _start_of(getattr(ctypes.pythonapi, name))
    if name.startswith(PREFIX):
        return matrix_loop(name.removeprefix(PREFIX))
    if name.startswith("numpy."):
        return inner_loop(name.removeprefix("numpy."))
    if name.startswith("scipy."):
        return _scipy_address(SCIPY[name.removeprefix("scipy.")])
    return _symbol("libmvec.so.1" if name.startswith("_ZGV") else _LIBM, name)


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
    loop = loop_of(ufunc, "d->d")
    if not loop:
        return 0
    x = np.concatenate([np.linspace(1.0, 2.0, 67), np.linspace(-1.0, 1.0, 134), [-800.0, 1e9]])
    y = np.empty_like(x)
    with np.errstate(all="ignore"):
        wanted = ufunc(x)
        for index in range(len(x)):
            at = (ctypes.c_void_p * 2)(x.ctypes.data + 8 * index, y.ctypes.data + 8 * index)
            LOOP(loop)(at, (ctypes.c_ssize_t * 1)(1), (ctypes.c_ssize_t * 2)(8, 8), None)
    return loop if y.tobytes() == wanted.tobytes() else 0


def _start_of(function: Any) -> int:
    """Return the address of a function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


@cache
def _symbol(library: str, name: str) -> int:
    function = getattr(_library(library), name, None)
    return _start_of(function) if function else 0


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

"""NumPy's inner loops, which machine code calls: of universal functions, and LAPACK's of matrices.

A loop fills a result with nan where LAPACK finds none, as for a singular matrix; so do the rows'
kernels, which call the same loops.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from difflab.graph.ir import Shape

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
    known = (ufunc.nin, ufunc.nout, ufunc.ntypes)
    if (head.nin, head.nout, head.ntypes) != known or types not in ufunc.types:
        return 0
    position = ufunc.types.index(types)
    found, data = head.functions[position], head.data[position] if head.data else None
    return 0 if data else found or 0


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
        """The numbers of the result and of the operands."""
        *operands, result = map(math.prod, self.shapes)
        stacks = zip(self.stacks, operands, strict=True)
        return (max(self.stacks) * result, *(count * size for count, size in stacks))

    @property
    def work(self) -> int:
        """The scalar operations, up to a factor."""
        return max(self.stacks) * self.size**3

    @property
    def arguments(self) -> tuple[list[int], list[int]]:
        """The sizes that the loop takes, and the steps in bytes."""
        letters = dict.fromkeys("".join(MATRICES[self.row].axes))
        sizes = [{"m": self.size, "n": self.columns}[letter] for letter in letters]
        matrices = [np.empty(shape) for shape in self.shapes]
        counts = zip(matrices, (*self.stacks, max(self.stacks)), strict=True)
        between = [matrix.nbytes * (count > 1) for matrix, count in counts]
        within = [step for matrix in matrices for step in matrix.strides]
        return [max(self.stacks), *sizes], [*between, *within]

    def code(self, name: str) -> Iterator[str]:
        """Yield a function of LLVM that calls the loop with pointers to operands and result."""
        for part, numbers in zip(("sizes", "steps"), self.arguments, strict=True):
            listed = ", ".join(f"i64 {number}" for number in numbers)
            yield f"@{name}.{part} = private constant [{len(numbers)} x i64] [{listed}]"
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
def address(row: str) -> int:
    """Return the address of NumPy's loop for a row of `MATRICES`, on float64.

    It is 0 unless the loop has the bits of the public function, and nan for singular matrices.

    Examples
    --------
    >>> address("solve") > 0
    True
    """
    form = MATRICES[row]
    loops: Any = getattr(np.linalg, "_umath_linalg", None)
    found = loop_of(getattr(loops, form.ufunc, None), "d" * (len(form.axes) - 1) + "->d")
    return found if found and _has_its_bits(LOOP(found), row) else 0


def _has_its_bits(loop: Any, row: str) -> bool:
    count = len(MATRICES[row].axes) - 1
    call = MatrixLoop(row, 3, 2, (2, 1)[:count])
    regular = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
    right = np.array([[1.0, 2.0], [0.1, -3.0], [7.0, 1e-3]])
    given = [np.stack([regular, np.zeros((3, 3))]), right][:count]
    result = np.empty((2, *call.shapes[-1]))
    places = [array.ctypes.data for array in (*given, result)]
    sizes, steps = ((ctypes.c_ssize_t * len(numbers))(*numbers) for numbers in call.arguments)
    loop((ctypes.c_void_p * len(places))(*places), sizes, steps, None)
    known = np.array_equal(result[0], MATRICES[row].public(regular, *given[1:]))
    return known and bool((np.isnan(result[1]) if row != "det" else result[1] == 0).all())

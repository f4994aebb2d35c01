"""The CUDA source of one kernel for a group of operations.

Each thread runs a grid-stride loop over elements, so that memory accesses are coalesced. How an
operand is read is decided at each call: a scalar is passed by value, and an array is read by one
stride, or by two if it is a part of a matrix or is broadcast to one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from difflab.execute.lower.ops import NumpyProgram, Op
from difflab.primitives.c99 import C99

# --- the expression of each universal function, over names and literals --------------------------
# Operands may appear several times, since they are never expressions themselves. The mathematical
# functions are those of CUDA's math library in double precision. Kernels are compiled without
# contraction, so every operation rounds as IEEE 754 requires, as in NumPy.


class CudaSpelling(NamedTuple):
    """The CUDA expression of an operation.

    Attributes
    ----------
    template : str
        The expression, over ``{0}``, ``{1}``, ….
    truths : tuple of int
        The indices of operands that are truth values; the others are floats.
    helper : str
        The function in `HELPERS` that it calls.
    """

    template: str
    truths: tuple[int, ...] = ()
    helper: str = ""


HELPERS = {
    # The remainder of truncated division, shifted to the divisor's sign.
    "floored_remainder": """\
static __device__ __forceinline__ double floored_remainder(const double a, const double b)
{
    const double r = fmod(a, b);
    if (r == 0.0) return copysign(0.0, b);
    return (b < 0.0) != (r < 0.0) ? r + b : r;
}""",
    # The difference of equal infinities is nan, so equal operands use 0.
    "log_add_exp": """\
static __device__ __forceinline__ double log_add_exp(const double a, const double b)
{
    const double apart = a == b ? 0.0 : a - b;
    return (a > b ? a : b) + log1p(exp(-fabs(apart)));
}""",
}
"""Device functions that a kernel defines if it calls them."""

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_SIGNS |= {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_SIGNS |= {"equal": "==", "not_equal": "!="}
SPELLINGS: dict[str, CudaSpelling] = {
    **{name: CudaSpelling(f"{c}({{0}})") for name, c in C99.items()},
    **{name: CudaSpelling(f"{C99[name]}({{0}}, {{1}})") for name in ("arctan2", "hypot", "power")},
    **{name: CudaSpelling(f"{{0}} {sign} {{1}}") for name, sign in _SIGNS.items()},
    "logical_and": CudaSpelling("{0} && {1}", truths=(0, 1)),
    "logical_or": CudaSpelling("{0} || {1}", truths=(0, 1)),
    "logical_not": CudaSpelling("!{0}", truths=(0,)),
    "negative": CudaSpelling("-{0}"),
    # These propagate nan.
    "maximum": CudaSpelling("{0} > {1} || {0} != {0} ? {0} : {1}"),
    "minimum": CudaSpelling("{0} < {1} || {0} != {0} ? {0} : {1}"),
    # The sum with 0 turns -0 into 0.
    "sign": CudaSpelling("{0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0} + 0.0"),
    "heaviside": CudaSpelling("{0} > 0.0 ? 1.0 : {0} < 0.0 ? 0.0 : {0} == 0.0 ? {1} : {0}"),
    "remainder": CudaSpelling("floored_remainder({0}, {1})", helper="floored_remainder"),
    # SciPy continues the function to -∞ where C does not.
    "gammaln": CudaSpelling(
        "{0} == __longlong_as_double(0xfff0000000000000ll) ? {0} : lgamma({0})"
    ),
    # CUDA's is -∞ at negative subnormal numbers.
    "log": CudaSpelling("{0} < 0.0 ? __longlong_as_double(0x7ff8000000000000ll) : log({0})"),
    "float32": CudaSpelling("(double)(float)({0})"),
    "logaddexp": CudaSpelling("log_add_exp({0}, {1})", helper="log_add_exp"),
    "isfinite": CudaSpelling("{0} - {0} == 0.0"),
    "where": CudaSpelling("{0} ? {1} : {2}", truths=(0,)),
}
"""The operations that kernels compute; CuPy computes the others."""


# --- kernels -------------------------------------------------------------------------------------


class Reading(Enum):
    """How an operand is read: its parameters, and the expression of an element."""

    NUMBER = ("const double {x}", "{x}")
    LINE = ("const {type}* __restrict__ {x}, const long long {x}_step", "{x}[i * {x}_step]")
    GRID = (
        "const {type}* __restrict__ {x}, const long long {x}_row, const long long {x}_across,"
        " const long long {x}_down",
        "{x}[i / {x}_row * {x}_down + i % {x}_row * {x}_across]",
    )

    def parameters(self, name: str, kind: str) -> str:
        """Return the parameters of an operand."""
        template: str = self.value[0]
        return template.format(x=name, type=kind)

    def element(self, name: str) -> str:
        """Return the expression of its element i."""
        template: str = self.value[1]
        return template.format(x=name)


class KernelOperand(NamedTuple):
    """An operand of a kernel: an array of floats or of truth values, or a scalar.

    Attributes
    ----------
    reading : Reading
        How it is read.
    truth : bool
        Whether its elements are truth values.
    """

    reading: Reading
    truth: bool = False


def kernel_source(
    name: str, code: NumpyProgram, operands: Sequence[KernelOperand], truths: Sequence[bool]
) -> str:
    """Return the source of a kernel.

    Parameters
    ----------
    name : str
        The name of the kernel.
    code : NumpyProgram
        The operations.
    operands : sequence of KernelOperand
        The parameters x0, x1, ….
    truths : sequence of bool
        For each output y0, y1, … whether it is stored as truth values.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.record import as_ufuncs
    >>> from difflab.execute.lower.schedule import ScalarProgram, Schedule
    >>> code = as_ufuncs(ScalarProgram.of(dl.parse("x*sin(y)")), SPELLINGS)
    >>> print(kernel_source("f", code, [KernelOperand(Reading.LINE)] * 2, [False]))
    extern "C" __global__ void f(
        const double* __restrict__ x0, const long long x0_step,
        const double* __restrict__ x1, const long long x1_step,
        double* __restrict__ y0,
        const long long n)
    {
        const long long width = (long long)gridDim.x * blockDim.x;
        for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += width) {
            const double v0 = x0[i * x0_step];
            const double v1 = x1[i * x1_step];
            const double v2 = sin(v1);
            const double v3 = v0 * v2;
            y0[i] = v3;
        }
    }
    """
    parameters = [
        operand.reading.parameters(f"x{index}", _type(operand.truth))
        for index, operand in enumerate(operands)
    ]
    parameters += [f"{_type(truth)}* __restrict__ y{index}" for index, truth in enumerate(truths)]
    body = _Body(code, operands, truths).lines()
    helpers = dict.fromkeys(SPELLINGS[op.name].helper for op in code.ops)
    return "\n".join(
        [
            *(HELPERS[helper] for helper in helpers if helper),
            f'extern "C" __global__ void {name}(',
            *(f"    {parameter}," for parameter in parameters),
            "    const long long n)",
            "{",
            "    const long long width = (long long)gridDim.x * blockDim.x;",
            "    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;"
            " i += width) {",
            *(f"        {line}" for line in body),
            "    }",
            "}",
        ]
    )


def _type(truth: bool) -> str:
    return "bool" if truth else "double"


class _Body:
    """Writes the statements that compute element i."""

    def __init__(
        self, code: NumpyProgram, operands: Sequence[KernelOperand], truths: Sequence[bool]
    ) -> None:
        self.code = code
        self.truths = truths
        self.written: list[str] = []
        for index, operand in enumerate(operands):
            element = operand.reading.element(f"x{index}")
            self.written.append(f"const {_type(operand.truth)} v{index} = {element};")
        self.places: dict[int, list[int]] = {}
        for index, value in enumerate(code.outputs):
            self.places.setdefault(value, []).append(index)
        sines, cosines = _results(code, "sin"), _results(code, "cos")
        both = sines.keys() & cosines.keys()
        self.together = {args: (sines[args], cosines[args]) for args in both}
        self.angles: set[tuple[int, ...]] = set()

    def lines(self) -> list[str]:
        """Return the statements; each result is stored as soon as it is computed."""
        for value in self.places:
            if value < self.code.inputs or value in self.code.known:
                self._store(value)
        for op in self.code.ops:
            if op.name in ("sin", "cos") and op.reads in self.together:
                self._angle(op)
            else:
                self._operation(op)
            self._store(op.number)
        return self.written

    def _angle(self, op: Op) -> None:
        """Write sine and cosine of one angle as one call, which reduces the argument once."""
        args = op.reads
        if args not in self.angles:
            self.angles.add(args)
            sine, cosine = self.together[args]
            self.written.append(f"double v{sine}, v{cosine};")
            self.written.append(f"sincos({self._number(args[0])}, &v{sine}, &v{cosine});")

    def _operation(self, op: Op) -> None:
        spelling = SPELLINGS[op.name]
        operands = [
            self._truth(arg) if index in spelling.truths else self._number(arg)
            for index, arg in enumerate(op.reads)
        ]
        kind = _type(op.number in self.code.truths)
        expression = spelling.template.format(*operands)
        self.written.append(f"const {kind} v{op.number} = {expression};")

    def _number(self, value: int) -> str:
        if value in self.code.known:
            return _literal(float(self.code.known[value]))
        return f"(double)v{value}" if value in self.code.truths else f"v{value}"

    def _truth(self, value: int) -> str:
        """Return a value as a truth value; every float except 0 is true, nan included."""
        if value in self.code.known:
            return "true" if self.code.known[value] else "false"
        return f"v{value}" if value in self.code.truths else f"(v{value} != 0.0)"

    def _store(self, value: int) -> None:
        for index in self.places.get(value, ()):
            expression = self._truth(value) if self.truths[index] else self._number(value)
            self.written.append(f"y{index}[i] = {expression};")


def _results(code: NumpyProgram, name: str) -> dict[tuple[int, ...], int]:
    """Return the results of the operations with that name, by their operands."""
    return {op.reads: op.number for op in code.ops if op.name == name}


def _literal(number: float) -> str:
    """Return a literal that is read back to the same bits."""
    if math.isnan(number):
        return "__longlong_as_double(0x7ff8000000000000ll)"
    if math.isinf(number):
        return f"__longlong_as_double(0x{'7f' if number > 0 else 'ff'}f0000000000000ll)"
    return f"({number!r})" if math.copysign(1.0, number) < 0 else repr(number)

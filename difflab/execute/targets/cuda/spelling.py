"""The CUDA expression of each universal function, over names and literals.

Operands may appear several times, since they are never expressions themselves. The mathematical
functions are those of CUDA's math library in double precision. Kernels are compiled without
contraction, so every operation rounds as IEEE 754 requires, as in NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

from difflab.primitives.c99 import C99


class CudaSpelling(NamedTuple):
    """The CUDA expression of an operation.

    Attributes
    ----------
    template : str
        The expression, over ``{0}``, ``{1}``, ….
    truths : tuple of int
        The indices of operands that are truth values; the others are numbers.
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

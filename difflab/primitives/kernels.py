"""Kernels that array modules lack, written for any of them.

Each takes the array module first. Those of analytic primitives also take complex arguments,
on which they continue the real function to the complex plane near the real axis.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import TAKE_SCALARS, special_functions

Array = Any


def cbrt(xp: ModuleType, x: Array) -> Array:
    """Real cube root; near the negative real axis it continues the negative root."""
    if not xp.iscomplexobj(x):
        return xp.cbrt(x)
    side = xp.where(xp.real(x) < 0, -1.0, 1.0)
    return side * (side * x) ** (1 / 3)


def cbrt_derivative(xp: ModuleType, x: Array) -> Array:
    """1/(3 ∛x²)."""
    root = cbrt(xp, x)
    return 1.0 / (3.0 * (root * root))


def hypot(xp: ModuleType, x: Array, y: Array) -> Array:
    """√(x² + y²) without overflow or underflow of the squares."""
    if not (xp.iscomplexobj(x) or xp.iscomplexobj(y)):
        return xp.hypot(x, y)
    scale = xp.maximum(xp.abs(xp.real(x)), xp.abs(xp.real(y)))
    scale = xp.where(scale == 0, 1.0, scale)
    return scale * xp.sqrt((x / scale) ** 2 + (y / scale) ** 2)


def atan2(xp: ModuleType, y: Array, x: Array) -> Array:
    """The angle of (x, y); complex arguments take the branch of their real parts."""
    if not (xp.iscomplexobj(x) or xp.iscomplexobj(y)):
        return xp.arctan2(y, x)
    steep = xp.abs(xp.real(y)) > xp.abs(xp.real(x))
    ratio = xp.where(steep, -x / y, y / x)
    angle = xp.arctan(ratio)
    turn = xp.arctan2(xp.real(y), xp.real(x)) - xp.arctan(xp.real(ratio))
    return angle + turn


def sigmoid(xp: ModuleType, x: Array) -> Array:
    """1/(1 + e⁻ˣ), accurate in both tails down to the subnormal numbers."""
    falling = xp.real(x) < 0
    decay = xp.exp(xp.where(falling, x, -x))
    return xp.where(falling, decay, 1.0) / (1.0 + decay)


def softplus(xp: ModuleType, x: Array) -> Array:
    """log(1 + eˣ) without overflow."""
    if not xp.iscomplexobj(x):
        return xp.logaddexp(0.0, x)
    positive = xp.real(x) > 0
    return xp.where(positive, x, 0.0) + xp.log1p(xp.exp(xp.where(positive, -x, x)))


def logaddexp(xp: ModuleType, a: Array, b: Array) -> Array:
    """log(eᵃ + eᵇ) without overflow."""
    if not (xp.iscomplexobj(a) or xp.iscomplexobj(b)):
        return xp.logaddexp(a, b)
    falling = xp.real(a) > xp.real(b)
    return xp.where(falling, a, b) + xp.log1p(xp.exp(xp.where(falling, b - a, a - b)))


def log1mexp(xp: ModuleType, x: Array) -> Array:
    """log(1 − eˣ), accurate where eˣ is near 1 and where it is tiny."""
    near = xp.real(x) > -math.log(2)
    return xp.where(near, xp.log(-xp.expm1(x)), xp.log1p(-xp.exp(x)))


def log1mexp_derivative(xp: ModuleType, x: Array) -> Array:
    """−eˣ/(1 − eˣ), and nan where log(1 − eˣ) is undefined."""
    return -log_derivative(xp, xp.expm1(0.0 - x))  # at 0 not of -0, from the other side


def logcosh(xp: ModuleType, x: Array) -> Array:
    """Log cosh x without overflow, and without cancellation near 0."""
    size = xp.where(xp.real(x) < 0, -x, x)
    near = xp.real(size) < 1
    far = size + xp.log1p(xp.exp(-2.0 * size)) - math.log(2)
    return xp.where(near, xp.log1p(_cosh_minus_1(xp.where(near, size, 0.0))), far)


def _cosh_minus_1(x: Array) -> Array:
    """Cosh x - 1 for |x| < 1, by its series.

    As 2 sinh²(x/2) it would have twice the error of a sinh, which is 4 ULP in vector libraries.
    """
    square = x * x
    rest = 0.0
    for product in (17 * 18, 15 * 16, 13 * 14, 11 * 12, 9 * 10, 7 * 8, 5 * 6, 3 * 4):
        rest = square * (1.0 / product) * (1.0 + rest)
    first = 0.5 * square
    return first + first * rest


def versine(xp: ModuleType, x: Array) -> Array:
    """1 − cos x, which cancels where the cosine is positive: there 2 sin²(x/2)."""
    cosine, half = xp.cos(x), xp.sin(0.5 * x)
    return xp.where(xp.real(cosine) < 0, 1.0 - cosine, 2.0 * (half * half))


def square_difference(xp: ModuleType, a: Array, b: Array) -> Array:
    """a² − b², as (a − b)(a + b); in that of complex numbers the imaginary parts would cancel."""
    if xp.iscomplexobj(a) or xp.iscomplexobj(b):
        (p, h), (q, k) = ((xp.real(number), xp.imag(number)) for number in (a, b))
        return (p - q) * (p + q) - (h - k) * (h + k) + 2j * (p * h - q * k)
    return (a - b) * (a + b)


def loggamma(xp: ModuleType, x: Array) -> Array:
    """log|Γ(x)| on the reals; its analytic continuation near the positive axis.

    SciPy's is infinite for subnormal x, where Γ(x) is 1/x, and -∞ at -∞, where C's is ∞.
    """
    special = special_functions(xp)
    if xp.iscomplexobj(x):
        return special.loggamma(x)
    size = xp.abs(x)
    regular = special.gammaln(xp.where(x == -math.inf, math.inf, x))
    return xp.where(size < 1e-300, -xp.log(size), regular)


FAR = -50.0
"""Below it, `polygamma` uses that ψ⁽ⁿ⁾(x) − (−1)ⁿ ψ⁽ⁿ⁾(1 − x) has the period 1 (the derivatives of
DLMF 5.5.4): SciPy's takes as many steps as x is below 0."""


def polygamma(xp: ModuleType, order: Array, x: Array) -> Array:
    """The derivative of digamma of that order."""
    if isinstance(order, float) and order.is_integer():  # PyTorch and JAX take no other, CuPy none
        order = int(order) if xp.__name__ in TAKE_SCALARS else xp.asarray(order)
    compute = special_functions(xp).polygamma
    if xp is not np or not np.any(below := (x < FAR) & np.isfinite(x)):
        return compute(order, x)
    far, sign = np.where(below, x, FAR), 1.0 - 2.0 * (order % 2)
    near = far - np.floor(far) - 1.0
    reflected = sign * (compute(order, 1.0 - far) - compute(order, 1.0 - near))
    beyond = compute(order, near) + reflected
    return np.where(below, beyond, compute(order, np.where(below, 1.0, x)))[()]


def sech(xp: ModuleType, x: Array) -> Array:
    """1/cosh x, which falls to zero where cosh overflows."""
    return 1.0 / xp.cosh(x)


def heaviside(xp: ModuleType, x: Array) -> Array:
    """The unit step, ½ at the step."""
    return xp.heaviside(x, 0.5)


def logical_value(xp: ModuleType, condition: Array) -> Array:
    """A truth value as 0.0 or 1.0."""
    return xp.where(condition, 1.0, 0.0)


def log_derivative(xp: ModuleType, x: Array) -> Array:
    """1/x on the domain of log; nan where log is undefined."""
    return xp.where(x < 0, xp.nan, 1.0 / x)


def sigmoid_derivative(xp: ModuleType, x: Array) -> Array:
    """e⁻ˣ/(1 + e⁻ˣ)², finite and accurate in both tails."""
    return sigmoid(xp, x) * sigmoid(xp, -x)


def erf_derivative(xp: ModuleType, x: Array) -> Array:
    """2/√π · e^(-x²)."""
    return (2 / math.sqrt(math.pi)) * xp.exp(-(x * x))


def atanh_derivative(xp: ModuleType, x: Array) -> Array:
    """1/(1 − x²) on the domain of atanh, without cancellation near ±1; nan outside."""
    return log_derivative(xp, (1.0 - x) * (1.0 + x))


def asin_derivative(xp: ModuleType, x: Array) -> Array:
    """1/√(1 − x²), without the cancellation of 1 − x² near ±1."""
    return 1.0 / xp.sqrt((1.0 - x) * (1.0 + x))


def acosh_derivative(xp: ModuleType, x: Array) -> Array:
    """1/√(x² − 1) on the domain of acosh; nan below 1."""
    return 1.0 / (xp.sqrt(x - 1.0) * xp.sqrt(x + 1.0))


def atan2_derivative(xp: ModuleType, x: Array, y: Array) -> Array:
    """x/(x² + y²), without overflow or underflow of the squares."""
    radius = hypot(xp, x, y)
    return x / radius / radius


def hypot_derivative(xp: ModuleType, x: Array, y: Array) -> Array:
    """x/√(x² + y²), and 0 at the origin by convention."""
    radius = hypot(xp, x, y)
    return xp.where(radius == 0, 0.0, x / xp.where(radius == 0, 1.0, radius))


PYTHON_NUMBERS = (int, float)


def power(xp: ModuleType, x: Array, p: Array) -> Array:
    """xᵖ as IEEE 754 defines it, whatever the shapes of base and exponent are.

    NumPy takes the square root where the exponent ½ is one number for a whole array. That is
    nan at -∞ and -0 at -0, where the power is ∞ and 0.
    """
    known = isinstance(p, PYTHON_NUMBERS)
    if known and p == 2:
        return xp.multiply(x, x)  # NumPy before 2.3 errs by a unit where it writes into an array
    if known and p != 0.5:
        return xp.power(x, p)
    if not (xp.iscomplexobj(x) or xp.iscomplexobj(p)):
        edge = (x == 0) | (x == -math.inf)
        x = xp.where(edge if known else (p == 0.5) & edge, xp.abs(x), x)
    return xp.power(x, p)


def power_derivative(xp: ModuleType, x: Array, p: Array) -> Array:
    """p·xᵖ⁻¹, and 0 for p = 0 also at x = 0."""
    return xp.where(p == 0, 0.0, p * power(xp, x, p - 1.0))


def exponent_derivative(xp: ModuleType, x: Array, p: Array) -> Array:
    """xᵖ·log x with its limit 0 at x = 0 for p > 0."""
    return xp.where(xp.logical_and(x == 0, p > 0), 0.0, power(xp, x, p) * xp.log(x))

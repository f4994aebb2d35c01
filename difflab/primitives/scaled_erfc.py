r"""The scaled complementary error function, erfcx(x) = e^(x²) erfc(x), and its derivatives.

They are :math:`(-2)^n 2/\sqrt\pi \int_0^\infty t^n e^{-t^2 - 2xt} dt`, of one sign each (DLMF
7.18.2 and 7.18.10). By y′ = 2xy - 2/√π each of them cancels another x² times for large x; the
row ``(n, x)`` does not, and its derivative is that of n + 1.
"""

from __future__ import annotations

import math
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_normal
from difflab.primitives.portable import by_orders, exp_square, special, special_function
from difflab.primitives.special import SLOPE

__all__ = ["erfcx", "erfcx_derivative"]

CENTRE, NEAR = 1.0, 1.5
"""The function is its Taylor series at `CENTRE` for 0 ≤ x < `NEAR`, and a fraction beyond."""
TERMS, LEVELS = 40, 80
"""Of that series and of that fraction, beside the order."""
MOST = 20
"""The highest order; beyond it the values are nan."""


def _quotients(xp: ModuleType, order: int, x: Any, levels: int) -> list[Any]:
    """Return -y⁽ᵏ⁾/y⁽ᵏ⁻¹⁾ for k = 0 … order, by a continued fraction of positive terms.

    The one for k = 0 is y·√π/2. Of 2kr the recurrence 1/r = 2x + 2(k + 1)r′ is DLMF 7.18.7.
    """
    last = order + levels
    ratio = 1.0 / (x + xp.sqrt(x * x + 2.0 * last))
    quotients = []
    for k in range(last, -1, -1):
        ratio = 1.0 / (2.0 * x + 2.0 * (k + 1) * ratio)
        if k <= order:
            quotients.append((2.0 * k if k else 1.0) * ratio)
    return quotients[::-1]


@cache
def _coefficients(order: int) -> list[float]:
    """Return those of the Taylor series of a derivative at `CENTRE`."""
    coefficients, size = [], SLOPE
    quotients = _quotients(np, order + TERMS + order, np.float64(CENTRE), 4000)
    for k, quotient in enumerate(quotients):
        size *= float(quotient) * (-1 if k else 1)
        if k >= order:
            coefficients.append(size / math.factorial(k - order))
    return coefficients


def _series(order: int, x: Any) -> Any:
    """Return a derivative for 0 ≤ x < `NEAR`."""
    total: Any = 0.0
    for coefficient in reversed(_coefficients(order)):
        total = total * (x - CENTRE) + coefficient
    return total


def erfcx_moments(xp: ModuleType, order: int, x: Any) -> list[Any]:
    """Return the sizes of the derivatives of erfcx relative to itself, up to `order`, for x ≥ 0."""
    near, far = xp.minimum(x, NEAR), xp.maximum(x, NEAR)
    value, product = _series(0, near), 1.0
    moments: list[Any] = [1.0]
    for k, quotient in enumerate(_quotients(xp, order, far, LEVELS)[1:], 1):
        product = product * quotient
        series = (-1) ** k * _series(k, near) / value
        moments.append(xp.where(x < NEAR, series, product))
    return moments


def _derivative(xp: ModuleType, order: int, x: Any) -> Any:
    below = xp.minimum(x, 0.0)
    before, size = SLOPE, exp_square(xp, below, 1.0) * special_function(xp, "erfc")(below)
    for k in range(1, order + 1):  # by the recurrence, all of whose terms have one sign there
        before, size = size, (1.0 if k == 1 else 2.0 * (k - 1)) * before - 2.0 * below * size
    away = SLOPE
    for quotient in _quotients(xp, order, xp.maximum(x, NEAR), LEVELS):
        away = away * quotient
    sign = (-1) ** order
    middle = _series(order, xp.minimum(xp.maximum(x, 0.0), NEAR))
    return xp.where(x < 0, sign * size, xp.where(x < NEAR, middle, sign * away))


_kernel = by_orders(_derivative, lambda n: 0 <= n <= MOST)


def _exact(library: Any, order: Any, x: Any) -> Any:
    """Return a derivative by the recurrence, for libraries of many digits."""
    one = x**0
    before = 2 * one / library.sqrt(library.pi * one)
    value = library.exp(x * x) * library.erfc(x)
    for k in range(1, int(order) + 1):
        before, value = value, 2 * x * value + (2 * (k - 1) if k > 1 else -1) * before
    return value


erfcx: Primitive = special(
    name="erfcx",
    kernel="special.erfcx",
    portable=portable_normal.erfcx,
    rule=elementwise(lambda t, y, x: t * erfcx_derivative(1, x)),
    sympy=lambda sympy, x: sympy.exp(x**2) * sympy.erfc(x),
    mpmath=lambda mp, x: mp.exp(x * x) * mp.erfc(x),
    samples=((-2.0, 2.0),),
)
erfcx_derivative: Primitive = special(
    name="erfcx_derivative",
    kernel=_kernel,
    rule=elementwise(None, lambda t, y, n, x: t * erfcx_derivative(n + 1, x)),
    sympy=_exact,
    latex="\\operatorname{{erfcx}}^{{({0})}}\\left({1}\\right)",
    glyph="erfcx⁽ⁿ⁾",
    samples=((1.0, 1.0), (-2.0, 2.0)),
    defined=f"an order 0, 1, … {MOST}",
)

r"""Dawson's integral, F(x) = e^(-x²) ∫ e^(t²) dt from 0 to x, and its derivatives.

F′ = 1 - 2xF, and F⁽ⁿ⁺¹⁾ = -2xF⁽ⁿ⁾ - 2nF⁽ⁿ⁻¹⁾ (DLMF 7.10): for large x each of these cancels another
2x² times. The row ``(n, x)`` of the derivatives does not, and its derivative is that of n + 1.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_normal
from difflab.primitives.portable import by_orders, horner, special, special_function

__all__ = ["dawsn", "dawsn_derivative"]

NEAR, FAR = 0.5, 30.0
"""Between them, the contour integral; below, the Taylor series; above, the asymptotic one. The
function itself is SciPy's from `NEAR` on; SciPy's is off by 80 ULP near 0.01."""
REACH = 6.9
"""e^(-t²) beyond it changes no digit of the first derivatives."""
TERMS, FEW_TERMS = 40, 14
"""Ratios of coefficients in the Taylor series: of derivatives, and of the function itself."""
MOST = 20
"""The highest order; beyond it the values are nan."""


def _taylor(order: int, x: Any) -> Any:
    """Return the sum of (-4)ᵏk!/(2k + 1 - n)!·x²ᵏ⁺¹⁻ⁿ, for |x| ≤ `NEAR`."""
    half, odd = divmod(order, 2)
    above, below = half + 1, 0.5 if odd else 1.5
    terms = TERMS if order else FEW_TERMS
    ratios = (-(above + s) / ((below + s) * (s + 1)) for s in range(terms))
    return (-4.0) ** half * math.factorial(half) * horner(ratios, x * x) * (1.0 if odd else x)


def _contour(order: int, x: Any) -> Any:
    """Return n!(-1)ⁿ/(2√π) times the real part of ∫ e^(-z²)/(x - z)ⁿ⁺¹ dz along z = t - ia.

    The derivative of Faddeeva's function, by the trapezoidal rule, whose error falls as e^(-2πa/h)
    by a step h, because the pole is at a distance of a.
    """
    depth = math.sqrt(max(1.0, order / 6))
    step = math.floor(128 * 2 * math.pi * depth / (45 + 4 * order)) / 128  # so that t is exact
    scale = step * (-1) ** order * math.factorial(order) / (2 * math.sqrt(math.pi))
    last = math.ceil((REACH + 0.1 * order) / step)
    total = 0.0
    for k in range(-last, last + 1):
        t = k * step
        weight = scale * math.exp(depth * depth - t * t)
        distance = x - t
        inverse = 1.0 / (distance * distance + depth * depth)
        real, imaginary = distance * inverse, -depth * inverse
        power, turned = real, imaginary
        for _ in range(order):
            power, turned = (
                power * real - turned * imaginary,
                power * imaginary + turned * real,
            )
        first, second = weight * math.cos(2 * depth * t), weight * math.sin(2 * depth * t)
        total = total + (first * power - second * turned)
    return total


def _asymptotic(order: int, x: Any) -> Any:
    """Return the sum of (2k - 1)!!(2k + n)!/(2k)!·(-1)ⁿ/(2ᵏ⁺¹x²ᵏ⁺ⁿ⁺¹), for x ≥ `FAR`."""
    inverse = 1.0 / x
    ratios = ((2 * k + 1 + order) * (2 * k + 2 + order) / (4 * (k + 1)) for k in range(TERMS))
    total = horner(ratios, inverse * inverse)
    for k in range(order, 0, -1):
        total = total * (-k * inverse)
    return total * (0.5 * inverse)


def _derivative(xp: ModuleType, order: int, x: Any) -> Any:
    size, near = xp.abs(x), xp.minimum(xp.maximum(x, -NEAR), NEAR)
    away = _away(xp, order, x, size) if order else special_function(xp, "dawsn")(x)
    return xp.where(size < NEAR, _taylor(order, near), away)


def _away(xp: ModuleType, order: int, x: Any, size: Any) -> Any:
    """Return a derivative where |x| ≥ `NEAR`."""
    middle = _contour(order, xp.minimum(xp.maximum(size, NEAR), FAR))
    value = xp.where(size < FAR, middle, _asymptotic(order, xp.maximum(size, FAR)))
    return xp.where(x < 0, -value, value) if order % 2 == 0 else value


def _confluent(order: int) -> tuple[int, bool, int]:
    """Return a, whether b is ½ and not 3/2, and the factor of 1F1(a; b; -x²)."""
    half, odd = divmod(order, 2)
    return half + 1, bool(odd), (-4) ** half * math.factorial(half)


def _in_sympy(sympy: Any, n: Any, x: Any) -> Any:
    above, odd, factor = _confluent(int(n))
    below = sympy.Rational(1 if odd else 3, 2)
    return factor * (1 if odd else x) * sympy.hyper([above], [below], -(x**2))


def _in_mpmath(mp: Any, n: Any, x: Any) -> Any:
    above, odd, factor = _confluent(int(n))
    return factor * (1 if odd else x) * mp.hyp1f1(above, mp.mpf(1 if odd else 3) / 2, -x * x)


dawsn: Primitive = special(
    name="dawsn",
    kernel=lambda xp, x: _derivative(xp, 0, x),
    ufunc="dawsn",
    portable=lambda xp, x: portable_normal.dawsn_derivative(xp, 0.0, x),
    rule=elementwise(lambda t, y, x: t * dawsn_derivative(1, x)),
    sympy=lambda sympy, x: sympy.sqrt(sympy.pi) / 2 * sympy.exp(-(x**2)) * sympy.erfi(x),
    mpmath=lambda mp, x: _in_mpmath(mp, 0, x),
    latex="F\\left({0}\\right)",
    glyph="dawsn",
    samples=((0.1, 0.8),),
)
dawsn_derivative: Primitive = special(
    name="dawsn_derivative",
    kernel=by_orders(_derivative, lambda n: 0 <= n <= MOST),
    portable=portable_normal.dawsn_derivative,
    rule=elementwise(None, lambda t, y, n, x: t * dawsn_derivative(n + 1, x)),
    sympy=_in_sympy,
    mpmath=_in_mpmath,
    latex="F^{{({0})}}\\left({1}\\right)",
    glyph="F⁽ⁿ⁾",
    samples=((1.0, 1.0), (2.2, 8.0)),
    defined=f"an order 0, 1, … {MOST}",
)

"""The normal distribution and erfi, with SciPy's names.

SciPy's ``ndtr`` squares a rounded x/√2, which costs about x² ULP in the tail; here e^(-x²/2) is
accurate, and the other factor is ``erfcx``, which does not decay so.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_normal
from difflab.primitives.exponential import exp
from difflab.primitives.portable import (
    FARTHEST,
    by_orders,
    exp_square,
    horner,
    special,
    special_function,
)
from difflab.primitives.scaled_erfc import MOST, erfcx_moments
from difflab.primitives.special import SLOPE, derf

__all__ = [
    "derfi",
    "dndtr",
    "dndtri",
    "erfi",
    "log_ndtr",
    "log_ndtr_derivative",
    "ndtr",
    "ndtri",
]

ROOT = math.sqrt(0.5)
MIDDLE, TERMS_OF_LOG = 0.75, 36
"""The derivatives of ln Φ are Taylor series at 0 for |x| < `MIDDLE`, and below it cumulants."""
SCALE = 1 / math.sqrt(2 * math.pi)
DENSITY_RATIO = (
    "0.7978845608028653558798921198687637369517172623298693153318"
    "5165934131585179860367700250466781461"
)
"""√(2/π), which is φ(0)/Φ(0)."""

NEAR, TERMS = 0.5, 13
"""erfi is its Taylor series for |x| < `NEAR`, by the ratios of its coefficients: SciPy's function
is off by 80 ULP near 0.01."""


def _bell(xp: ModuleType, x: Any) -> Any:
    return SCALE * exp_square(xp, x, -0.5)


def _ndtr(xp: ModuleType, x: Any) -> Any:
    tail = x < -1.0
    far = xp.where(tail, -x, 1.0)
    lower = 0.5 * special_function(xp, "erfcx")(ROOT * far) * exp_square(xp, far, -0.5)
    return xp.where(tail, lower, 0.5 * special_function(xp, "erfc")(-ROOT * x))


def _log_ndtr(xp: ModuleType, x: Any) -> Any:
    tail = x < -1.0
    far = xp.where(tail, -x, 1.0)
    lower = xp.log(0.5 * special_function(xp, "erfcx")(ROOT * far)) - 0.5 * (far * far)
    return xp.where(tail, lower, xp.log1p(-_ndtr(xp, xp.where(tail, 1.0, -x))))


def _log_ndtr_derivative(xp: ModuleType, order: int, x: Any) -> Any:
    """Return the derivative of that order of ln Φ, in the lower tail by cumulants.

    There ln Φ(x) is -x²/2 + ln erfcx(-x/√2) - ln 2, and erfcx is the Laplace transform of a half
    normal density: the derivatives of its logarithm are cumulants, from moments of one sign.
    """
    far = xp.minimum(x, -MIDDLE)
    moments = erfcx_moments(xp, order, -ROOT * far)
    cumulants: list[Any] = [0.0]
    for k in range(1, order + 1):
        rest = (math.comb(k - 1, j - 1) * cumulants[j] * moments[k - j] for j in range(1, k))
        cumulants.append(moments[k] - sum(rest))
    below = math.sqrt(0.5**order) * cumulants[order]
    if order < 3:
        below = below - (1.0 if order == 2 else far)
    near, series = xp.minimum(xp.maximum(x, -MIDDLE), MIDDLE), 0.0
    for k in range(TERMS_OF_LOG - 1, -1, -1):
        series = series * near + _slopes_at_0(order + k)[-1] / math.factorial(k)
    above = _mills(xp, order, xp.maximum(x, MIDDLE))
    return xp.where(x < -MIDDLE, below, xp.where(x < MIDDLE, series, above))


@cache
def _slopes_at_0(count: int) -> list[float]:
    """Return so many derivatives of ln Φ at 0, by the recurrence of `_mills` in more digits."""
    with localcontext() as context:
        context.prec = 100
        slopes: list[Decimal] = []
        hermite = [Decimal(1), Decimal(0)]
        for k in range(count):
            hermite.append(-(k + 1) * hermite[-2])
            total = (-1) ** k * hermite[k]
            for j in range(1, k + 1):
                total += math.comb(k, j) * (-1) ** j * hermite[j - 1] * slopes[k - j]
            slopes.append(total * Decimal(DENSITY_RATIO))
        return list(map(float, slopes))


_slope_kernel = by_orders(_log_ndtr_derivative, lambda n: 1 <= n <= MOST)


def _mills(xp: ModuleType, order: int, x: Any) -> Any:
    """Return the derivative of order - 1 of φ/Φ, by Leibniz's rule for that times Φ; for x > 0."""
    x = xp.minimum(x, FARTHEST)
    ratio = _bell(xp, x) / (0.5 * special_function(xp, "erfc")(-ROOT * x))
    hermite: list[Any] = [1.0, x]
    derivatives: list[Any] = []
    for k in range(order):
        hermite.append(x * hermite[-1] - (k + 1) * hermite[-2])
        total = (-1) ** k * hermite[k]
        for j in range(1, k + 1):
            total = total + math.comb(k, j) * (-1) ** j * hermite[j - 1] * derivatives[k - j]
        derivatives.append(ratio * total)
    return derivatives[-1]


def _ratio_derivative(library: Any, order: Any, x: Any) -> Any:
    """Return the derivative of order - 1 of φ/Φ in exact arithmetic."""
    if order < 1:
        return library.nan
    one = x**0
    bell = library.exp(-(x * x) / 2) * library.sqrt(2 * one / library.pi)
    ratio = bell / library.erfc(-x / library.sqrt(2 * one))
    hermite, derivatives = [one, x], [ratio]
    for k in range(1, int(order)):
        hermite.append(x * hermite[-1] - k * hermite[-2])
        rest = (
            math.comb(k, j) * (-1) ** j * hermite[j - 1] * derivatives[k - j]
            for j in range(1, k + 1)
        )
        derivatives.append(ratio * ((-1) ** k * hermite[k] + sum(rest)))
    return derivatives[-1]


def _erfi(xp: ModuleType, x: Any) -> Any:
    """Return erfi(x), near 0 by the sum of 2/√π·x²ᵏ⁺¹/(k!(2k + 1))."""
    ratios = ((2 * k + 1) / ((k + 1) * (2 * k + 3)) for k in range(TERMS))
    near = xp.minimum(xp.maximum(x, -NEAR), NEAR)
    series = SLOPE * near * horner(ratios, near * near)
    return xp.where(xp.abs(x) < NEAR, series, special_function(xp, "erfi")(x))


erfi: Primitive = special(
    name="erfi",
    kernel=_erfi,
    ufunc="erfi",
    portable=portable_normal.erfi,
    rule=elementwise(lambda t, y, x: t * derfi(x)),
    samples=((-2.5, 2.5),),
)
derfi: Primitive = Primitive(
    name="derfi",
    kernel=lambda xp, x: SLOPE * exp_square(xp, x, 1.0),
    rule=elementwise(lambda t, y, x: t * (y * (2 * x))),
    sympy=lambda library, x: 2 * library.exp(x**2) / library.sqrt(library.pi),
    samples=((-2.5, 2.5),),
    expansion=lambda x: SLOPE * exp(x * x),
    analytic=False,
)
ndtr: Primitive = special(
    name="ndtr",
    kernel=_ndtr,
    ufunc="ndtr",
    rule=elementwise(lambda t, y, x: t * dndtr(x)),
    sympy=lambda sympy, x: sympy.erfc(-x / sympy.sqrt(2)) / 2,
    mpmath=lambda mp, x: mp.erfc(-x / mp.sqrt(mp.mpf(2))) / 2,
    latex="\\Phi\\left({0}\\right)",
    glyph="Φ",
    samples=((-3.0, 3.0),),
)
dndtr: Primitive = Primitive(
    name="dndtr",
    kernel=_bell,
    rule=elementwise(lambda t, y, x: -(t * (x * y))),
    sympy=lambda sympy, x: sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi),
    mpmath=lambda mp, x: mp.exp(-(x * x) / 2) / mp.sqrt(2 * mp.pi),
    samples=((-3.0, 3.0),),
    expansion=lambda x: (0.5 * ROOT) * derf(ROOT * x),
    analytic=False,
)
ndtri: Primitive = special(
    name="ndtri",
    kernel="special.ndtri",
    portable=lambda xp, x: -math.sqrt(2) * xp.special.erfcinv(2.0 * x),
    rule=elementwise(lambda t, y, x: t * dndtri(x)),
    sympy=lambda sympy, x: sympy.sqrt(2) * sympy.erfinv(2 * x - 1),
    latex="\\Phi^{{-1}}\\left({0}\\right)",
    glyph="Φ⁻¹",
    samples=((0.1, 0.9),),
    defined="0 < x < 1",
)  # The derivative of 1/φ(y) is y/φ(y)², products, which are infinite at the edges.
dndtri: Primitive = Primitive(
    name="dndtri",
    kernel=lambda xp, x: exp_square(xp, special_function(xp, "ndtri")(x), 0.5) / SCALE,
    rule=elementwise(lambda t, y, x: t * (ndtri(x) * (y * y))),
    samples=((0.1, 0.9),),
    expansion=lambda x: 1 / dndtr(ndtri(x)),
    analytic=False,
)
log_ndtr: Primitive = special(
    name="log_ndtr",
    kernel=_log_ndtr,
    ufunc="log_ndtr",
    rule=elementwise(lambda t, y, x: t * log_ndtr_derivative(1, x)),
    sympy=lambda sympy, x: sympy.log(sympy.erfc(-x / sympy.sqrt(2)) / 2),
    mpmath=lambda mp, x: (
        mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
    ),
    latex="\\ln\\Phi\\left({0}\\right)",
    glyph="ln Φ",
    samples=((-3.0, 3.0),),
)
log_ndtr_derivative: Primitive = special(
    name="log_ndtr_derivative",
    ulps=8.0,
    kernel=_slope_kernel,
    rule=elementwise(None, lambda t, y, n, x: t * log_ndtr_derivative(n + 1, x)),
    sympy=_ratio_derivative,
    latex="\\left(\\ln\\Phi\\right)^{{({0})}}\\left({1}\\right)",
    glyph="(ln Φ)⁽ⁿ⁾",
    samples=((1.0, 1.0), (-3.0, 3.0)),
    defined=f"an order 1, 2, … {MOST}",
)

"""The normal distribution and the scaled complementary error function, with SciPy's names.

SciPy's ``ndtr`` squares a rounded x/√2, which costs about x² ULP in the tail; here e^(-x²/2) is
accurate, and the other factor is ``erfcx``, which does not decay so.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives.exponential import exp
from difflab.primitives.special import SLOPE, derf
from difflab.primitives.special_kernels import horner, special_function

__all__ = [
    "derfcx",
    "derfi",
    "dlog_ndtr",
    "dndtr",
    "dndtri",
    "erfcx",
    "erfi",
    "log_ndtr",
    "ndtr",
    "ndtri",
]

ROOT = math.sqrt(0.5)
SCALE = 1 / math.sqrt(2 * math.pi)
FARTHEST = 40.0
"""Beyond it e^(-x²/2) is 0, and e^(x²) infinite."""
LEVELS = 190
"""Of the continued fraction of erfcx′/erfcx, for 16 digits at x = 1."""

NEAR, TERMS = 0.5, 13
"""erfi is its Taylor series for |x| < `NEAR`, by the ratios of its coefficients: SciPy's function
is off by 80 ULP near 0.01."""


def _exp_square(xp: ModuleType, x: Any, factor: float) -> Any:
    """Return e^(factor·x²), for a factor that is a power of two, without rounding x².

    With z, the nearest sixteenth to x, z² is exact, and (x - z)·(x + z) is small.
    """
    x = xp.minimum(xp.maximum(x, -FARTHEST), FARTHEST)
    z = xp.floor(16.0 * x + 0.5) * 0.0625
    return xp.exp(factor * (z * z)) * xp.exp(factor * ((x - z) * (x + z)))


def _bell(xp: ModuleType, x: Any) -> Any:
    return SCALE * _exp_square(xp, x, -0.5)


def _ndtr(xp: ModuleType, x: Any) -> Any:
    tail = x < -1.0
    far = xp.where(tail, -x, 1.0)
    lower = 0.5 * special_function(xp, "erfcx")(ROOT * far) * _exp_square(xp, far, -0.5)
    return xp.where(tail, lower, 0.5 * special_function(xp, "erfc")(-ROOT * x))


def _log_ndtr(xp: ModuleType, x: Any) -> Any:
    tail = x < -1.0
    far = xp.where(tail, -x, 1.0)
    lower = xp.log(0.5 * special_function(xp, "erfcx")(ROOT * far)) - 0.5 * (far * far)
    return xp.where(tail, lower, xp.log1p(-_ndtr(xp, xp.where(tail, 1.0, -x))))


def _dlog_ndtr(xp: ModuleType, x: Any) -> Any:
    """Return the quotient of density and distribution function, in the lower tail by erfcx."""
    tail = x < 0.0
    lower = 2.0 * SCALE / special_function(xp, "erfcx")(-ROOT * xp.where(tail, x, 0.0))
    upper = xp.where(tail, 0.0, x)
    return xp.where(tail, lower, _bell(xp, upper) / _ndtr(xp, upper))


def _derfcx(xp: ModuleType, x: Any) -> Any:
    """Return 2x·erfcx(x) - 2/√π, which cancels for x > 1.

    There it is -2r·erfcx(x), where r is the quotient of the first two repeated integrals of erfc,
    a continued fraction of positive terms (DLMF 7.18.7).
    """
    value = special_function(xp, "erfcx")(x)
    far = xp.maximum(x, 1.0)
    ratio = xp.minimum(far, 0.0)  # 0, also at infinity
    for level in range(LEVELS, 1, -1):
        ratio = 1.0 / (2.0 * far + 2.0 * level * ratio)
    return xp.where(x > 1.0, -2.0 * ratio * value, 2.0 * xp.minimum(x, 1.0) * value - SLOPE)


def _erfi(xp: ModuleType, x: Any) -> Any:
    """Return erfi(x), near 0 by the sum of 2/√π·x²ᵏ⁺¹/(k!(2k + 1))."""
    ratios = ((2 * k + 1) / ((k + 1) * (2 * k + 3)) for k in range(TERMS))
    near = xp.minimum(xp.maximum(x, -NEAR), NEAR)
    series = SLOPE * near * horner(ratios, near * near)
    return xp.where(xp.abs(x) < NEAR, series, special_function(xp, "erfi")(x))


erfcx: Primitive = Primitive(
    name="erfcx",
    reserved=False,
    kernel="special.erfcx",
    rule=elementwise(lambda t, y, x: t * derfcx(x)),
    sympy=lambda sympy, x: sympy.exp(x**2) * sympy.erfc(x),
    mpmath=lambda mp, x: mp.exp(x * x) * mp.erfc(x),
    c="",
    javascript="erfcx({0})",
    samples=((-2.0, 2.0),),
    analytic=False,
)
derfcx: Primitive = Primitive(
    name="derfcx",
    kernel=_derfcx,
    rule=elementwise(lambda t, y, x: t * (2 * (erfcx(x) + x * y))),
    sympy=lambda library, x: (
        2 * x * library.exp(x**2) * library.erfc(x) - 2 / library.sqrt(library.pi)
    ),
    flint="derfcx",
    c="",
    javascript="derfcx({0})",
    samples=((-2.0, 2.0),),
    expansion=lambda x: 2 * x * erfcx(x) - SLOPE,
    analytic=False,
)
erfi: Primitive = Primitive(
    name="erfi",
    reserved=False,
    kernel=_erfi,
    ufunc="erfi",
    rule=elementwise(lambda t, y, x: t * derfi(x)),
    c="",
    javascript="erfi({0})",
    samples=((-2.5, 2.5),),
    analytic=False,
)
derfi: Primitive = Primitive(
    name="derfi",
    kernel=lambda xp, x: SLOPE * _exp_square(xp, x, 1.0),
    rule=elementwise(lambda t, y, x: t * (y * (2 * x))),
    sympy=lambda library, x: 2 * library.exp(x**2) / library.sqrt(library.pi),
    flint="derfi",
    c="",
    javascript="derfi({0})",
    samples=((-2.5, 2.5),),
    expansion=lambda x: SLOPE * exp(x * x),
    analytic=False,
)
ndtr: Primitive = Primitive(
    name="ndtr",
    reserved=False,
    kernel=_ndtr,
    ufunc="ndtr",
    rule=elementwise(lambda t, y, x: t * dndtr(x)),
    sympy=lambda sympy, x: sympy.erfc(-x / sympy.sqrt(2)) / 2,
    mpmath=lambda mp, x: mp.erfc(-x / mp.sqrt(mp.mpf(2))) / 2,
    c="",
    javascript="ndtr({0})",
    latex="\\Phi\\left({0}\\right)",
    glyph="Φ",
    notation="ndtr",
    samples=((-3.0, 3.0),),
    analytic=False,
)
dndtr: Primitive = Primitive(
    name="dndtr",
    kernel=_bell,
    rule=elementwise(lambda t, y, x: -(t * (x * y))),
    sympy=lambda sympy, x: sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi),
    mpmath=lambda mp, x: mp.exp(-(x * x) / 2) / mp.sqrt(2 * mp.pi),
    flint="dndtr",
    c="",
    javascript="dndtr({0})",
    samples=((-3.0, 3.0),),
    expansion=lambda x: (0.5 * ROOT) * derf(ROOT * x),
    analytic=False,
)
ndtri: Primitive = Primitive(
    name="ndtri",
    reserved=False,
    kernel="special.ndtri",
    rule=elementwise(lambda t, y, x: t * dndtri(x)),
    sympy=lambda sympy, x: sympy.sqrt(2) * sympy.erfinv(2 * x - 1),
    mpmath=lambda mp, x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
    flint="ndtri",
    c="",
    javascript="ndtri({0})",
    latex="\\Phi^{{-1}}\\left({0}\\right)",
    glyph="Φ⁻¹",
    notation="ndtri",
    samples=((0.1, 0.9),),
    defined="0 < x < 1",
    analytic=False,
)  # The derivative of 1/φ(y) is y/φ(y)², products, which are infinite at the edges.
dndtri: Primitive = Primitive(
    name="dndtri",
    kernel=lambda xp, x: _exp_square(xp, special_function(xp, "ndtri")(x), 0.5) / SCALE,
    rule=elementwise(lambda t, y, x: t * (ndtri(x) * (y * y))),
    c="",
    javascript="dndtri({0})",
    samples=((0.1, 0.9),),
    expansion=lambda x: 1 / dndtr(ndtri(x)),
    analytic=False,
)
log_ndtr: Primitive = Primitive(
    name="log_ndtr",
    reserved=False,
    kernel=_log_ndtr,
    ufunc="log_ndtr",
    rule=elementwise(lambda t, y, x: t * dlog_ndtr(x)),
    sympy=lambda sympy, x: sympy.log(sympy.erfc(-x / sympy.sqrt(2)) / 2),
    mpmath=lambda mp, x: (
        mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
    ),
    flint="log_ndtr",
    c="",
    javascript="log_ndtr({0})",
    latex="\\ln\\Phi\\left({0}\\right)",
    glyph="ln Φ",
    notation="log_ndtr",
    samples=((-3.0, 3.0),),
    analytic=False,
)
# The derivative of the inverse of erfcx, times √½: no difference of nearly equal numbers.
dlog_ndtr: Primitive = Primitive(
    name="dlog_ndtr",
    kernel=_dlog_ndtr,
    rule=elementwise(lambda t, y, x: t * (y * (y * (derfcx(-ROOT * x) * (1 / SLOPE))))),
    sympy=lambda sympy, x: (
        sympy.sqrt(2 / sympy.pi) * sympy.exp(-(x**2) / 2) / sympy.erfc(-x / sympy.sqrt(2))
    ),
    mpmath=lambda mp, x: (
        mp.sqrt(2 / mp.pi) * mp.exp(-(x * x) / 2) / mp.erfc(-x / mp.sqrt(mp.mpf(2)))
    ),
    flint="dlog_ndtr",
    c="",
    javascript="dlog_ndtr({0})",
    samples=((-3.0, 3.0),),
    expansion=lambda x: 2 * SCALE / erfcx(-ROOT * x),
    analytic=False,
)

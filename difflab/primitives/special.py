"""The error and gamma functions."""

from __future__ import annotations

import math
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import kernels, portable_gamma, portable_normal
from difflab.primitives.exponential import exp

__all__ = ["derf", "digamma", "erf", "erfc", "gamma", "loggamma", "polygamma"]

REAL = (-2.5, 2.5)
POSITIVE = (0.4, 4.0)
SLOPE = 2 / math.sqrt(math.pi)


def _polygamma(mp: Any, k: Any, x: Any) -> Any:
    """The derivative of digamma of that order; far below zero as its kernel computes it."""
    order = int(k)
    if not mp.ninf < x < kernels.FAR:
        return mp.polygamma(order, x)
    near = x - mp.floor(x) - 1
    reflected = mp.polygamma(order, 1 - x) - mp.polygamma(order, 1 - near)
    return mp.polygamma(order, near) + (-1) ** order * reflected


erf: Primitive = Primitive(
    name="erf",
    kernel="special.erf",
    portable=portable_normal.erf,
    rule=elementwise(lambda t, y, x: t * derf(x)),
    samples=(REAL,),
)
derf: Primitive = Primitive(
    name="derf",
    kernel=kernels.erf_derivative,
    rule=elementwise(lambda t, y, x: t * (y * (-2 * x))),
    sympy=lambda library, x: 2 * library.exp(-(x**2)) / library.sqrt(library.pi),
    samples=(REAL,),
    expansion=lambda x: SLOPE * exp(-(x * x)),
)
erfc: Primitive = Primitive(
    name="erfc",
    kernel="special.erfc",
    portable=portable_normal.erfc,
    rule=elementwise(lambda t, y, x: -(t * derf(x))),
    samples=(REAL,),
)
gamma: Primitive = Primitive(
    name="gamma",
    ulps=12.0,
    kernel="special.gamma",
    portable=portable_gamma.gamma,
    rule=elementwise(lambda t, y, x: t * (y * digamma(x))),
    latex="\\Gamma\\left({0}\\right)",
    glyph="Γ",
    samples=(POSITIVE,),
    defined="x not 0, -1, -2, …",
)
loggamma: Primitive = Primitive(
    name="loggamma",
    kernel=kernels.loggamma,
    portable=portable_gamma.loggamma,
    rule=elementwise(lambda t, y, x: t * digamma(x)),
    names=("loggamma", "lgamma"),
    mpmath=lambda mp, x: mp.log(abs(mp.gamma(x))) if x < 0 else mp.loggamma(x),
    latex="\\ln\\Gamma\\left({0}\\right)",
    ufunc="gammaln",
    glyph="ln Γ",
    samples=(POSITIVE,),
    defined="x not 0, -1, -2, …",
)
digamma: Primitive = Primitive(
    name="digamma",
    kernel="special.digamma",
    portable=portable_gamma.digamma,
    rule=elementwise(lambda t, y, x: t * polygamma(1, x)),
    latex="\\psi\\left({0}\\right)",
    ufunc="psi",
    glyph="ψ",
    samples=(POSITIVE,),
    defined="x not 0, -1, -2, …",
)
polygamma: Primitive = Primitive(
    name="polygamma",
    ulps=12.0,
    kernel=kernels.polygamma,
    portable=portable_gamma.polygamma,
    rule=elementwise(None, lambda t, y, k, x: t * polygamma(k + 1, x)),
    mpmath=_polygamma,
    latex="\\psi^{{({0})}}\\left({1}\\right)",
    glyph="ψ⁽ⁿ⁾",
    notation="polygamma",
    samples=((1.0, 1.0), POSITIVE),
    defined="an order 0, 1, 2, … and x not 0, -1, -2, …",
    analytic=False,
)

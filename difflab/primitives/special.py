"""The error and gamma functions."""

from __future__ import annotations

import math
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import javascript, kernels
from difflab.primitives.exponential import exp
from difflab.primitives.printed_integrals import DIGAMMA, DIGAMMA_PYTHON

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
    javascript_function=javascript.ERF,
    rule=elementwise(lambda t, y, x: t * derf(x)),
    samples=(REAL,),
)
derf: Primitive = Primitive(
    name="derf",
    kernel=kernels.erf_derivative,
    rule=elementwise(lambda t, y, x: t * (y * (-2 * x))),
    sympy=lambda library, x: 2 * library.exp(-(x**2)) / library.sqrt(library.pi),
    flint="derf",
    c=f"({SLOPE!r} * exp(-({{0}} * {{0}})))",
    samples=(REAL,),
    expansion=lambda x: SLOPE * exp(-(x * x)),
)
erfc: Primitive = Primitive(
    name="erfc",
    kernel="special.erfc",
    javascript_function=javascript.ERFC,
    rule=elementwise(lambda t, y, x: -(t * derf(x))),
    inexact=True,
    samples=(REAL,),
)
gamma: Primitive = Primitive(
    name="gamma",
    kernel="special.gamma",
    javascript_function=javascript.TGAMMA,
    rule=elementwise(lambda t, y, x: t * (y * digamma(x))),
    c="tgamma({0})",
    python="gamma({0})",
    latex="\\Gamma\\left({0}\\right)",
    glyph="Γ",
    inexact=True,
    samples=(POSITIVE,),
    defined="x not 0, -1, -2, …",
)
loggamma: Primitive = Primitive(
    name="loggamma",
    kernel=kernels.loggamma,
    javascript_function=javascript.LGAMMA,
    rule=elementwise(lambda t, y, x: t * digamma(x)),
    names=("loggamma", "lgamma"),
    mpmath=lambda mp, x: mp.log(abs(mp.gamma(x))) if x < 0 else mp.loggamma(x),
    flint="loggamma",
    c="lgamma({0})",
    latex="\\ln\\Gamma\\left({0}\\right)",
    ufunc="gammaln",
    glyph="ln Γ",
    inexact=True,
    samples=(POSITIVE,),
    defined="x not 0, -1, -2, …",
)
digamma: Primitive = Primitive(
    name="digamma",
    kernel="special.digamma",
    rule=elementwise(lambda t, y, x: t * polygamma(1, x)),
    latex="\\psi\\left({0}\\right)",
    ufunc="psi",
    glyph="ψ",
    c_function=DIGAMMA,
    python_function=DIGAMMA_PYTHON,
    inexact=True,
    samples=(POSITIVE,),
    defined="x not 0, -1, -2, …",
)
polygamma: Primitive = Primitive(
    name="polygamma",
    kernel=kernels.polygamma,
    rule=elementwise(None, lambda t, y, k, x: t * polygamma(k + 1, x)),
    mpmath=_polygamma,
    flint="polygamma",
    latex="\\psi^{{({0})}}\\left({1}\\right)",
    glyph="ψ⁽ⁿ⁾",
    notation="polygamma",
    c="",
    javascript="polygamma({0}, {1})",
    samples=((1.0, 1.0), POSITIVE),
    defined="an order 0, 1, 2, … and x not 0, -1, -2, …",
    analytic=False,
)

"""Inverse functions of special functions: of erf and erfc, and of x·eˣ."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives.exponential import exp
from difflab.primitives.special import derf
from difflab.primitives.special_kernels import special_function

__all__ = ["erfcinv", "erfinv", "lambertw"]


def _lambertw(xp: ModuleType, x: Any) -> Any:
    """Return the principal branch of Lambert's W function, nan below -1/e where it is complex."""
    found = special_function(xp, "lambertw")(x)
    if xp.iscomplexobj(x):
        return found
    return xp.where(x == math.inf, x, xp.where(found.imag == 0, found.real, xp.nan))


erfinv: Primitive = Primitive(
    name="erfinv",
    reserved=False,
    kernel="special.erfinv",
    rule=elementwise(lambda t, y, x: t / derf(y)),
    c="",
    latex="\\operatorname{{erf}}^{{-1}}\\left({0}\\right)",
    samples=((-0.8, 0.8),),
    defined="-1 < x < 1",
    analytic=False,  # SciPy's function of real numbers only
)
erfcinv: Primitive = Primitive(
    name="erfcinv",
    reserved=False,
    kernel="special.erfcinv",
    rule=elementwise(lambda t, y, x: -(t / derf(y))),
    sympy=lambda library, x: library.erfinv(1 - x),
    mpmath=lambda mp, x: mp.erfinv(1 - x),
    flint="erfcinv",
    c="",
    latex="\\operatorname{{erfc}}^{{-1}}\\left({0}\\right)",
    samples=((0.2, 1.8),),
    defined="0 < x < 2",
    analytic=False,
)
# dW/dx = 1/(x + exp(W)): W·exp(W) = x, and where W is large the error of exp(W) has a weight 1/W.
lambertw: Primitive = Primitive(
    name="lambertw",
    reserved=False,
    kernel=_lambertw,
    rule=elementwise(lambda t, y, x: t / (x + exp(y))),
    sympy="LambertW",
    mpmath=lambda mp, x: mp.lambertw(x) if x >= -mp.exp(-1) else mp.nan,
    flint="lambertw",
    c="",
    latex="W\\left({0}\\right)",
    glyph="W",
    notation="lambertw",
    samples=((-0.2, 4.0),),
    defined="x ≥ -1/e",
)

"""Integrals of elementary functions: the exponential integrals and the incomplete gamma functions.

The derivative of an incomplete gamma function by its first argument is no function of the table:
it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError
from difflab.primitives.exponential import exp
from difflab.primitives.printed_integrals import E1, E1_PYTHON, EI, EI_PYTHON
from difflab.primitives.printed_orders import incomplete_gamma
from difflab.primitives.special import gamma
from difflab.primitives.special_kernels import special_function

__all__ = ["de1", "dei", "dgammainc", "e1", "ei", "gammainc", "gammaincc"]

LARGE, VANISHED = 100.0, 750.0
"""Above them, of a and x, Γ(a) and powers are taken by their logarithms."""


def _density(xp: ModuleType, a: Any, x: Any) -> Any:
    """Return xᵃ⁻¹ e⁻ˣ/Γ(a), the density of the gamma distribution; 0 at the poles of Γ."""
    x = xp.where(x < 0, xp.nan, x)
    inverse = special_function(xp, "rgamma")(a)
    with np.errstate(all="ignore"):
        small = xp.where(inverse == 0, 0.0 * x, x ** (a - 1.0) * xp.exp(-x) * inverse)
        power = special_function(xp, "xlogy")(a - 1.0, x)
        large = xp.exp(power - x - special_function(xp, "gammaln")(a))
    return xp.where((a < LARGE) & (x < VANISHED), small, large)


def _density_of_order(a: float) -> Callable[[Any], Any]:
    """Return the density of one a, without the branches that a decides."""

    def density(x: Any) -> Any:
        if a <= 0 and a % 1 == 0:
            return np.where(x >= 0, 0.0, np.nan)
        x = np.where(x < 0, np.nan, x)
        power = (a - 1.0) * np.log(x) if a != 1 else 0.0 * x
        large = np.exp(power - x - math.lgamma(a))  # math's is ln |Γ|, as SciPy's
        if a >= LARGE:
            return large
        small = x ** (a - 1.0) * np.exp(-x) / math.gamma(a)
        return np.where(x < VANISHED, small, large)

    return density


def _de1(xp: ModuleType, x: Any) -> Any:
    """Return -e⁻ˣ/x, and nan where e1 is undefined."""
    return xp.where(xp.real(x) < 0, xp.nan, -xp.exp(-x) / x)


def _refused(t: Any, y: Any, a: Any, x: Any) -> NoReturn:
    raise UnsupportedError(
        "the derivative of an incomplete gamma function by its first argument has no closed form;"
        " give it a number, or differentiate by finite differences"
    )


e1: Primitive = Primitive(
    name="e1",
    names=("e1", "exp1"),
    reserved=False,
    kernel="special.exp1",
    rule=elementwise(lambda t, y, x: t * de1(x)),
    sympy=lambda library, x: library.expint(1, x),
    mpmath="e1",
    c_function=E1,
    python_function=E1_PYTHON,
    inexact=True,
    latex="E_1\\left({0}\\right)",
    glyph="E₁",
    samples=((0.4, 4.0),),
    defined="x > 0",
)
de1: Primitive = Primitive(
    name="de1",
    kernel=_de1,
    rule=elementwise(lambda t, y, x: -(t * (y + y / x))),
    c="({0} < 0.0 ? NAN : -exp(-{0}) / {0})",
    python="(nan if {0} < 0.0 else -exp(-{0}) / {0})",
    samples=((0.4, 4.0),),
    expansion=lambda x: -(exp(-x) / x),
)
ei: Primitive = Primitive(
    name="ei",
    names=("ei", "expi"),
    reserved=False,
    kernel="special.expi",
    rule=elementwise(lambda t, y, x: t * dei(x)),
    sympy="Ei",
    mpmath="ei",
    c_function=EI,
    python_function=EI_PYTHON,
    inexact=True,
    latex="\\operatorname{{Ei}}\\left({0}\\right)",
    glyph="Ei",
    samples=((0.6, 3.0),),
    defined="x not 0",
    analytic=False,  # SciPy's loses small imaginary parts
)
# Its derivative is one quotient, so that at 0 no infinities of both signs meet.
dei: Primitive = Primitive(
    name="dei",
    kernel=lambda xp, x: xp.exp(x) / x,
    rule=elementwise(lambda t, y, x: t * (y * ((x - 1) / x))),
    c="(exp({0}) / {0})",
    samples=((0.6, 3.0),),
    expansion=lambda x: exp(x) / x,
)
gammainc: Primitive = Primitive(
    name="gammainc",
    reserved=False,
    kernel="special.gammainc",
    rule=elementwise(_refused, lambda t, y, a, x: t * dgammainc(a, x)),
    sympy=lambda library, a, x: library.lowergamma(a, x) / library.gamma(a),
    mpmath=lambda mp, a, x: mp.gammainc(a, 0, x, regularized=True),
    flint="gammainc",
    c="",
    javascript="gammainc({0}, {1})",
    of_order=incomplete_gamma(upper=False),
    latex="P\\left({0}, {1}\\right)",
    glyph="P",
    notation="gammainc",
    samples=((2.0, 2.0), (0.5, 4.0)),
    defined="a number a > 0 and x ≥ 0",
    analytic=False,
)
gammaincc: Primitive = Primitive(
    name="gammaincc",
    reserved=False,
    kernel="special.gammaincc",
    rule=elementwise(_refused, lambda t, y, a, x: -(t * dgammainc(a, x))),
    sympy=lambda library, a, x: library.uppergamma(a, x) / library.gamma(a),
    mpmath=lambda mp, a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    flint="gammaincc",
    c="",
    javascript="gammaincc({0}, {1})",
    of_order=incomplete_gamma(upper=True),
    latex="Q\\left({0}, {1}\\right)",
    glyph="Q",
    notation="gammaincc",
    samples=((2.0, 2.0), (0.5, 4.0)),
    defined="a number a > 0 and x ≥ 0",
    analytic=False,
)
# The difference of two densities, since the derivative by x of xᵃ⁻¹/Γ(a) is xᵃ⁻²/Γ(a - 1).
dgammainc: Primitive = Primitive(
    name="dgammainc",
    kernel=_density,
    mpmath=lambda mp, a, x: x ** (a - 1) * mp.exp(-x) * mp.rgamma(a),
    flint="dgammainc",
    rule=elementwise(_refused, lambda t, y, a, x: t * (dgammainc(a - 1, x) - y)),
    c="",
    javascript="dgammainc({0}, {1})",
    of_order=_density_of_order,
    samples=((2.0, 2.0), (0.5, 4.0)),
    expansion=lambda a, x: x ** (a - 1) * exp(-x) / gamma(a),
    analytic=False,
)

"""Integrals of elementary functions: exponential, sine and cosine, incomplete gamma functions.

The derivative of an incomplete gamma function by its first argument is no function of the table:
it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_gamma
from difflab.primitives.densities import gammainc_derivative, refused
from difflab.primitives.exponential import exp
from difflab.primitives.portable import by_numbers, special, special_function
from difflab.primitives.portable_bessel import incomplete_gamma
from difflab.primitives.remainders import cos_remainder
from difflab.primitives.trigonometric import cos

__all__ = ["ci", "de1", "dei", "e1", "ei", "gammainc", "gammaincc", "si"]


def _de1(xp: ModuleType, x: Any) -> Any:
    """Return -e⁻ˣ/x, and nan where e1 is undefined."""
    return xp.where(xp.real(x) < 0, xp.nan, -xp.exp(-x) / x)


def _of_positive(name: str) -> Callable[..., Any]:
    """Return SciPy's function where a > 0, else nan: SciPy's has values at a = 0."""

    def kernel(xp: ModuleType, a: Any, x: Any) -> Any:
        return xp.where(a > 0, special_function(xp, name)(a, x), xp.nan)

    return kernel


_refused = refused("gamma", "argument")

e1: Primitive = Primitive(
    name="e1",
    ulps=12.0,
    names=("e1", "exp1"),
    reserved=False,
    kernel="special.exp1",
    portable=portable_gamma.e1,
    rule=elementwise(lambda t, y, x: t * de1(x)),
    sympy=lambda library, x: library.expint(1, x),
    mpmath="e1",
    latex="E_1\\left({0}\\right)",
    glyph="E₁",
    notation="E₁",
    samples=((0.4, 4.0),),
    defined="x > 0",
)
de1: Primitive = Primitive(
    name="de1",
    kernel=_de1,
    rule=elementwise(lambda t, y, x: -(t * (y + y / x))),
    samples=((0.4, 4.0),),
    expansion=lambda x: -(exp(-x) / x),
)
ei: Primitive = special(
    name="ei",
    ulps=12.0,
    names=("ei", "expi"),
    kernel="special.expi",
    portable=portable_gamma.ei,
    rule=elementwise(lambda t, y, x: t * dei(x)),
    sympy="Ei",
    mpmath="ei",
    latex="\\operatorname{{Ei}}\\left({0}\\right)",
    glyph="Ei",
    notation="Ei",
    samples=((0.6, 3.0),),
    defined="x not 0",
    # Not by complex steps: SciPy's loses small imaginary parts.
)
# Its derivative is one quotient, so that at 0 no infinities of both signs meet.
dei: Primitive = Primitive(
    name="dei",
    kernel=lambda xp, x: xp.exp(x) / x,
    rule=elementwise(lambda t, y, x: t * (y * ((x - 1) / x))),
    samples=((0.6, 3.0),),
    expansion=lambda x: exp(x) / x,
)
si: Primitive = special(
    name="si",
    ulps=4.0,
    kernel=lambda xp, x: special_function(xp, "sici")(x)[0],
    portable=portable_gamma.si,
    rule=elementwise(lambda t, y, x: t * cos_remainder(1, 0, x)),  # sin(x)/x
    sympy="Si",
    mpmath="si",
    latex="\\operatorname{{Si}}\\left({0}\\right)",
    glyph="Si",
    notation="Si",
    samples=((-3.0, 3.0),),
)
ci: Primitive = special(
    name="ci",
    ulps=8.0,
    kernel=lambda xp, x: xp.where(x < 0, xp.nan, special_function(xp, "sici")(x)[1]),
    portable=portable_gamma.ci,
    rule=elementwise(lambda t, y, x: t * (cos(x) / x)),
    sympy="Ci",
    mpmath="ci",
    latex="\\operatorname{{Ci}}\\left({0}\\right)",
    glyph="Ci",
    notation="Ci",
    samples=((0.8, 3.0),),
    defined="x > 0",
)
gammainc: Primitive = special(
    name="gammainc",
    ulps=12.0,
    kernel=_of_positive("gammainc"),
    ufunc="gammainc",
    portable=by_numbers(incomplete_gamma(upper=False), portable_gamma.gammainc),
    rule=elementwise(_refused, lambda t, y, a, x: t * gammainc_derivative(1, a, x)),
    sympy=lambda library, a, x: library.lowergamma(a, x) / library.gamma(a),
    mpmath=lambda mp, a, x: mp.gammainc(a, 0, x, regularized=True) if a > 0 and x >= 0 else mp.nan,
    latex="P\\left({0}, {1}\\right)",
    glyph="P",
    samples=((2.0, 2.0), (0.5, 4.0)),
    defined="a number a > 0 and x ≥ 0",
)
gammaincc: Primitive = special(
    name="gammaincc",
    ulps=16.0,
    kernel=_of_positive("gammaincc"),
    ufunc="gammaincc",
    portable=by_numbers(incomplete_gamma(upper=True), portable_gamma.gammaincc),
    rule=elementwise(_refused, lambda t, y, a, x: -(t * gammainc_derivative(1, a, x))),
    sympy=lambda library, a, x: library.uppergamma(a, x) / library.gamma(a),
    mpmath=lambda mp, a, x: (
        mp.gammainc(a, x, mp.inf, regularized=True) if a > 0 and x >= 0 else mp.nan
    ),
    latex="Q\\left({0}, {1}\\right)",
    glyph="Q",
    samples=((2.0, 2.0), (0.5, 4.0)),
    defined="a number a > 0 and x ≥ 0",
)

"""Integrals of elementary functions: the exponential integrals and the incomplete gamma functions.

The derivative of an incomplete gamma function by its first argument is no function of the table:
it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives.densities import gammainc_derivative, refused
from difflab.primitives.exponential import exp
from difflab.primitives.printed_integrals import E1, E1_PYTHON, EI, EI_PYTHON
from difflab.primitives.printed_orders import incomplete_gamma
from difflab.primitives.special_kernels import special_function

__all__ = ["de1", "dei", "e1", "ei", "gammainc", "gammaincc"]


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
    kernel=_of_positive("gammainc"),
    ufunc="gammainc",
    rule=elementwise(_refused, lambda t, y, a, x: t * gammainc_derivative(1, a, x)),
    sympy=lambda library, a, x: library.lowergamma(a, x) / library.gamma(a),
    mpmath=lambda mp, a, x: mp.gammainc(a, 0, x, regularized=True) if a > 0 and x >= 0 else mp.nan,
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
    kernel=_of_positive("gammaincc"),
    ufunc="gammaincc",
    rule=elementwise(_refused, lambda t, y, a, x: -(t * gammainc_derivative(1, a, x))),
    sympy=lambda library, a, x: library.uppergamma(a, x) / library.gamma(a),
    mpmath=lambda mp, a, x: (
        mp.gammainc(a, x, mp.inf, regularized=True) if a > 0 and x >= 0 else mp.nan
    ),
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

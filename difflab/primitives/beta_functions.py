"""The beta function, its logarithm, and the regularised incomplete beta function.

The derivative of the incomplete function by a or b is no function of the table: it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError
from difflab.primitives.special import digamma
from difflab.primitives.special_kernels import special_function

__all__ = ["beta", "betainc", "betaln", "dbetainc"]

LARGE = 100.0
"""Above it, of a + b, the density is taken by its logarithm."""
POSITIVE = ((0.6, 4.0), (0.6, 4.0))


def _of_positive(name: str) -> Callable[..., Any]:
    """Return SciPy's function where a, b > 0, else nan: SciPy continues it otherwise."""

    def kernel(xp: ModuleType, a: Any, b: Any) -> Any:
        return xp.where((a > 0) & (b > 0), special_function(xp, name)(a, b), xp.nan)

    return kernel


def _density(xp: ModuleType, a: Any, b: Any, x: Any) -> Any:
    """Return xᵃ⁻¹(1 - x)ᵇ⁻¹/B(a, b), the density of the beta distribution; 0 for a = 0 or b = 0."""
    x = xp.where((x < 0) | (x > 1), xp.nan, x)
    rgamma = special_function(xp, "rgamma")
    inverse = rgamma(a) * rgamma(b)
    with np.errstate(all="ignore"):
        powers = x ** (a - 1.0) * (1.0 - x) ** (b - 1.0)
        small = xp.where(inverse == 0, 0.0 * x, powers * (inverse / rgamma(a + b)))
        logarithm = special_function(xp, "xlogy")(a - 1.0, x)
        logarithm = logarithm + special_function(xp, "xlog1py")(b - 1.0, -x)
        large = xp.exp(logarithm - special_function(xp, "betaln")(a, b))
    return xp.where(a + b < LARGE, small, large)


def _refused(t: Any, y: Any, a: Any, b: Any, x: Any) -> NoReturn:
    raise UnsupportedError(
        "the derivative of an incomplete beta function by its first two arguments has no closed"
        " form; give them numbers, or differentiate by finite differences"
    )


beta: Primitive = Primitive(
    name="beta",
    reserved=False,
    kernel=_of_positive("beta"),
    ufunc="beta",
    rule=elementwise(
        lambda t, y, a, b: t * (y * (digamma(a) - digamma(a + b))),
        lambda t, y, a, b: t * (y * (digamma(b) - digamma(a + b))),
    ),
    mpmath=lambda mp, a, b: mp.gamma(a) * mp.gamma(b) / mp.gamma(a + b),
    flint="beta",
    c="",
    javascript="beta({0}, {1})",
    latex="\\operatorname{{B}}\\left({0}, {1}\\right)",
    glyph="B",
    notation="beta",
    samples=POSITIVE,
    defined="a > 0 and b > 0",
    analytic=False,
    commutative=True,
)
betaln: Primitive = Primitive(
    name="betaln",
    reserved=False,
    kernel=_of_positive("betaln"),
    ufunc="betaln",
    rule=elementwise(
        lambda t, y, a, b: t * (digamma(a) - digamma(a + b)),
        lambda t, y, a, b: t * (digamma(b) - digamma(a + b)),
    ),
    sympy=lambda sympy, a, b: sympy.loggamma(a) + sympy.loggamma(b) - sympy.loggamma(a + b),
    mpmath=lambda mp, a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
    flint="betaln",
    c="",
    javascript="betaln({0}, {1})",
    latex="\\ln\\operatorname{{B}}\\left({0}, {1}\\right)",
    glyph="ln B",
    notation="betaln",
    samples=POSITIVE,
    defined="a > 0 and b > 0",
    analytic=False,
    commutative=True,
)
betainc: Primitive = Primitive(
    name="betainc",
    reserved=False,
    kernel="special.betainc",
    rule=elementwise(_refused, _refused, lambda t, y, a, b, x: t * dbetainc(a, b, x)),
    sympy=lambda sympy, a, b, x: sympy.betainc_regularized(a, b, 0, x),
    mpmath=lambda mp, a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    flint="betainc",
    c="",
    javascript="betainc({0}, {1}, {2})",
    latex="I_{{{2}}}\\left({0}, {1}\\right)",
    glyph="I",
    notation="betainc",
    samples=((2.0, 2.0), (3.0, 3.0), (0.1, 0.9)),
    defined="numbers a, b > 0 and 0 ≤ x ≤ 1",
    analytic=False,
)
# The difference of two densities, since B(a - 1, b) is B(a, b)·(a + b - 1)/(a - 1).
dbetainc: Primitive = Primitive(
    name="dbetainc",
    kernel=_density,
    rule=elementwise(
        _refused,
        _refused,
        lambda t, y, a, b, x: t * ((a + b - 1) * (dbetainc(a - 1, b, x) - dbetainc(a, b - 1, x))),
    ),
    mpmath=lambda mp, a, b, x: (
        x ** (a - 1) * (1 - x) ** (b - 1) * mp.rgamma(a) * mp.rgamma(b) * mp.gamma(a + b)
    ),
    flint="dbetainc",
    c="",
    javascript="dbetainc({0}, {1}, {2})",
    samples=((2.0, 2.0), (3.0, 3.0), (0.1, 0.9)),
    expansion=lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / beta(a, b),
    analytic=False,
)

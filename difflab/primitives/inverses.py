"""Inverse functions of special functions: of erf and erfc, and of x·eˣ."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_normal
from difflab.primitives.exponential import exp
from difflab.primitives.portable import exp_square, special, special_function
from difflab.primitives.special import derf

__all__ = ["derfcinv", "derfinv", "dlambertw", "erfcinv", "erfinv", "lambertw"]


BRANCH, REST = 0.36787944117144233, -1.2428753672788363e-17
"""1/e as a sum, from which x + 1/e has all its digits."""
NEAR = 0.5
"""Below this p, W is the series in p = √(2(ex + 1)), which converges for p < √2."""
RECIPROCAL = math.sqrt(math.pi) / 2
"""1/erf′(0)."""
TINY = 1e-300
"""Up to here W(x) is x; some libraries take the logarithms of subnormal numbers to be 0."""


def _branch_series(terms: int) -> list[float]:
    """Return the coefficients of W in p, by the recurrence (4.23) of Corless et al., 1996."""
    coefficients, products = [Fraction(-1), Fraction(1)], [Fraction(2), Fraction(-1)]
    for k in range(2, terms):
        product = sum((coefficients[j] * coefficients[k + 1 - j] for j in range(2, k)), Fraction(0))
        whole = Fraction(k - 1, k + 1) * (coefficients[k - 2] / 2 + products[k - 2] / 4)
        coefficients.append(whole - product / 2 - coefficients[k - 1] / (k + 1))
        products.append(product)
    return [float(coefficient) for coefficient in coefficients]


SERIES = _branch_series(40)


def _distance(xp: ModuleType, x: Any) -> Any:
    """Return p, by which W has a power series at its branch point."""
    return xp.sqrt((2 * math.e) * ((x + BRANCH) + REST))


def _polynomial(coefficients: list[float], x: Any) -> Any:
    total: Any = 0.0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _lambertw(xp: ModuleType, x: Any) -> Any:
    """Return the principal branch of Lambert's W function, nan below -1/e where it is complex.

    Two iterations of Fritsch, Shafer and Crowley (1973), each with the fourth power of the error.
    """
    if xp.iscomplexobj(x):
        return special_function(xp, "lambertw")(x)
    p = _distance(xp, x)
    series = _polynomial(SERIES, xp.minimum(p, NEAR))
    regular = (p >= NEAR) & (xp.abs(x) > TINY) & (x < math.inf)
    at = xp.where(regular, x, 1.0)
    logarithm = xp.log1p(at)
    w = logarithm * (1.0 - xp.log1p(logarithm) / (2.0 + logarithm))
    for _ in range(2):
        residual, slope = xp.log(at / w) - w, 1.0 + w
        weight = 2.0 * slope * (slope + (2 / 3) * residual)
        step = residual / slope * ((weight - residual) / (weight - 2.0 * residual))
        w = w * (1.0 + step)
    return xp.where(p < NEAR, series, xp.where(regular, w, xp.where(p >= NEAR, x, xp.nan)))


def _dlambertw(xp: ModuleType, x: Any) -> Any:
    w = _lambertw(xp, x)
    return 1.0 / (x + xp.exp(w)) if xp.iscomplexobj(x) else _slope_of_w(xp, x, w)


def _slope_of_w(xp: ModuleType, x: Any, w: Any) -> Any:
    """Return 1/(x + eᵂ), which near -1/e is e⁻ᵂ/(1 + W), where 1 + W is the series without -1.

    Where W is large the error of eᵂ has a weight of 1/W in the sum, and its own in the product.
    """
    p = _distance(xp, x)
    near = xp.minimum(p, NEAR)
    above = near * _polynomial(SERIES[1:], near)
    return xp.where(p < NEAR, xp.exp(1.0 - above) / above, 1.0 / (x + xp.exp(w)))


def _reciprocal_slope(inverse: str) -> Callable[..., Any]:
    """Return 1/erf′(y), where y is an inverse function of SciPy's."""

    def kernel(xp: ModuleType, x: Any) -> Any:
        y = special_function(xp, inverse)(x)
        return RECIPROCAL * xp.exp(y * y)

    return kernel


erfinv: Primitive = special(
    name="erfinv",
    kernel="special.erfinv",
    portable=portable_normal.erfinv,
    rule=elementwise(lambda t, y, x: t * derfinv(x)),
    latex="\\operatorname{{erf}}^{{-1}}\\left({0}\\right)",
    samples=((-0.8, 0.8),),
    defined="-1 < x < 1",
    # Not by complex steps: SciPy's function of real numbers only.
)
# Of g = 1/erf′(y), where y is the inverse, the derivative 2y·g² is infinite at the edges, not 0·∞.
derfinv: Primitive = Primitive(
    name="derfinv",
    kernel=_reciprocal_slope("erfinv"),
    rule=elementwise(lambda t, y, x: t * (2 * (erfinv(x) * (y * y)))),
    samples=((-0.8, 0.8),),
    expansion=lambda x: 1 / derf(erfinv(x)),
    analytic=False,
)
erfcinv: Primitive = special(
    name="erfcinv",
    kernel="special.erfcinv",
    portable=portable_normal.erfcinv,
    rule=elementwise(lambda t, y, x: -(t * derfcinv(x))),
    sympy=lambda library, x: library.erfinv(1 - x),
    latex="\\operatorname{{erfc}}^{{-1}}\\left({0}\\right)",
    samples=((0.2, 1.8),),
    defined="0 < x < 2",
)
derfcinv: Primitive = Primitive(
    name="derfcinv",
    kernel=_reciprocal_slope("erfcinv"),
    portable=lambda xp, x: RECIPROCAL * exp_square(xp, erfcinv(x), 1.0),
    rule=elementwise(lambda t, y, x: -(t * (2 * (erfcinv(x) * (y * y))))),
    samples=((0.2, 1.8),),
    expansion=lambda x: 1 / derf(erfcinv(x)),
    analytic=False,
)
lambertw: Primitive = Primitive(
    name="lambertw",
    reserved=False,
    kernel=_lambertw,
    rule=elementwise(lambda t, y, x: t * dlambertw(x)),
    sympy="LambertW",
    mpmath=lambda mp, x: mp.lambertw(x) if x >= -mp.exp(-1) else mp.nan,
    latex="W\\left({0}\\right)",
    glyph="W",
    samples=((-0.2, 4.0),),
    defined="x ≥ -1/e",
)
# Of y = 1/(eᵂ(1 + W)) the derivative -y²(1 + 1/(1 + W)) has terms of one sign.
dlambertw: Primitive = Primitive(
    name="dlambertw",
    kernel=_dlambertw,
    rule=elementwise(lambda t, y, x: -(t * (y * (y * (1 + y * exp(lambertw(x))))))),
    samples=((-0.2, 4.0),),
    expansion=lambda x: 1 / (x + exp(lambertw(x))),
)

"""The beta function, its logarithm, and the regularised incomplete beta function.

The derivative of the incomplete function by a or b is no function of the table: it is refused.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_gamma
from difflab.primitives.densities import (
    MOST,
    STIRLING,
    betainc_derivative,
    excess,
    refused,
    stirling_error,
)
from difflab.primitives.portable import by_orders, special, special_function
from difflab.primitives.special import polygamma

__all__ = ["beta", "betainc", "betaln", "polygamma_difference"]

POSITIVE = ((0.6, 4.0), (0.6, 4.0))


def _betaln(xp: ModuleType, a: Any, b: Any) -> Any:
    """Return SciPy's function where a, b > 0, else nan: SciPy continues it otherwise."""
    return xp.where((a > 0) & (b > 0), special_function(xp, "betaln")(a, b), xp.nan)


def _beta(xp: ModuleType, a: Any, b: Any) -> Any:
    """Return SciPy's function of parameters up to `STIRLING`; beyond, it loses digits.

    There the gamma functions of large arguments are combined, by Stirling's formula.
    """
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    far = xp.maximum(high, STIRLING)
    near, large = xp.minimum(low, STIRLING), xp.maximum(low, STIRLING)
    one = 0.5 * xp.log1p(near / far) + far * excess(xp, near / far)
    one = one + stirling_error(xp, far) - stirling_error(xp, near + far)
    one = special_function(xp, "gamma")(near) * (near + far) ** -near * xp.exp(one)
    two = stirling_error(xp, large) + stirling_error(xp, far) - stirling_error(xp, large + far)
    two = xp.exp(two - (large * xp.log1p(far / large) + far * xp.log1p(large / far)))
    two = two * xp.sqrt(2 * math.pi * (1.0 / large + 1.0 / far))
    value = xp.where(low < STIRLING, one, two)
    value = xp.where(high < STIRLING, special_function(xp, "beta")(a, b), value)
    return xp.where((a > 0) & (b > 0), value, xp.nan)


def _betainc(xp: ModuleType, a: Any, b: Any, x: Any) -> Any:
    """Return SciPy's function where a, b > 0, else nan: SciPy's has values at 0."""
    return xp.where((a > 0) & (b > 0), special_function(xp, "betainc")(a, b, x), xp.nan)


_refused = refused("beta", "two arguments")

BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330),
)
STEPS = 16
"""By which arguments are raised to where the asymptotic series of polygamma is accurate."""


def _difference(xp: ModuleType, order: int, a: Any, b: Any) -> Any:
    """Return ψ⁽ⁿ⁾(a) - ψ⁽ⁿ⁾(a + b) for a, b > 0, all of whose terms have one sign.

    They are differences of powers, from ψ⁽ⁿ⁾(a) = ψ⁽ⁿ⁾(a + 1) ± n!/aⁿ⁺¹ (DLMF 5.15.5) and the
    asymptotic series (5.15.8).
    """

    def powers(m: int, c: Any) -> Any:
        """Return c⁻ᵐ - (c + b)⁻ᵐ."""
        return -xp.expm1(-m * xp.log1p(b / c)) / c**m

    far: Any = a + STEPS
    total: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        weight = BERNOULLI[k - 1] * math.factorial(2 * k + order - 1) / math.factorial(2 * k)
        total = total + weight * powers(2 * k + order, far)
    total = total + 0.5 * math.factorial(order) * powers(order + 1, far)
    leading = math.factorial(order - 1) * powers(order, far) if order else xp.log1p(b / far)
    total = total + leading
    for k in range(STEPS - 1, -1, -1):
        total = total + math.factorial(order) * powers(order + 1, a + float(k))
    return xp.where((a > 0) & (b > 0), (-1.0) ** (order + 1) * total, xp.nan)


beta: Primitive = special(
    name="beta",
    ulps=16.0,
    kernel=_beta,
    ufunc="beta",
    portable=portable_gamma.beta,
    rule=elementwise(
        lambda t, y, a, b: t * (y * polygamma_difference(0, a, b)),
        lambda t, y, a, b: t * (y * polygamma_difference(0, b, a)),
    ),
    mpmath=lambda mp, a, b: mp.beta(a, b) if a > 0 and b > 0 else mp.nan,
    latex="\\operatorname{{B}}\\left({0}, {1}\\right)",
    glyph="B",
    samples=POSITIVE,
    defined="a > 0 and b > 0",
    commutative=True,
)
betaln: Primitive = special(
    name="betaln",
    kernel=_betaln,
    ufunc="betaln",
    portable=portable_gamma.betaln,
    rule=elementwise(
        lambda t, y, a, b: t * polygamma_difference(0, a, b),
        lambda t, y, a, b: t * polygamma_difference(0, b, a),
    ),
    sympy=lambda sympy, a, b: sympy.loggamma(a) + sympy.loggamma(b) - sympy.loggamma(a + b),
    mpmath=lambda mp, a, b: (
        mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b) if a > 0 and b > 0 else mp.nan
    ),
    latex="\\ln\\operatorname{{B}}\\left({0}, {1}\\right)",
    glyph="ln B",
    samples=POSITIVE,
    defined="a > 0 and b > 0",
    commutative=True,
)
betainc: Primitive = special(
    name="betainc",
    kernel=_betainc,
    ufunc="betainc",
    portable=portable_gamma.betainc,
    rule=elementwise(_refused, _refused, lambda t, y, a, b, x: t * betainc_derivative(1, a, b, x)),
    sympy=lambda sympy, a, b, x: sympy.betainc_regularized(a, b, 0, x),
    mpmath=lambda mp, a, b, x: (
        mp.betainc(a, b, 0, x, regularized=True) if a > 0 and b > 0 and 0 <= x <= 1 else mp.nan
    ),
    latex="I_{{{2}}}\\left({0}, {1}\\right)",
    glyph="I",
    samples=((2.0, 2.0), (3.0, 3.0), (0.1, 0.9)),
    defined="numbers a, b > 0 and 0 ≤ x ≤ 1",
)
polygamma_difference: Primitive = special(
    name="polygamma_difference",
    kernel=by_orders(_difference, lambda n: 0 <= n <= MOST, count=1),
    portable=portable_gamma.polygamma_difference,
    rule=elementwise(
        None,
        lambda t, y, n, a, b: t * polygamma_difference(n + 1, a, b),
        lambda t, y, n, a, b: -(t * polygamma(n + 1, a + b)),
    ),
    sympy=lambda sympy, n, a, b: sympy.polygamma(n, a) - sympy.polygamma(n, a + b),
    mpmath=lambda mp, n, a, b: mp.polygamma(int(n), a) - mp.polygamma(int(n), a + b),
    flint=lambda fl, n, a, b: fl.polygamma(n, a) - fl.polygamma(n, a + b),
    latex="\\left(\\psi^{{({0})}}\\left({1}\\right)"
    " - \\psi^{{({0})}}\\left({1} + {2}\\right)\\right)",
    glyph="Δψ⁽ⁿ⁾",
    samples=((0.0, 0.0), *POSITIVE),
    defined=f"an order 0, 1, … {MOST}, and a > 0 and b > 0",
)

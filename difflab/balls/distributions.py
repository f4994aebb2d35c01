"""Airy, beta, zeta and normal distribution functions of expansions, from FLINT's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflab.balls.elementary import (
    analytic,
    erfc,
    exp,
    gamma,
    log,
    log1p,
    loggamma,
    of_derivatives,
    within,
)
from difflab.balls.jets import TERMS, Jet, jet
from difflab.balls.library import Ball, arb, arb_series
from difflab.balls.series import hull
from difflab.balls.special import erfcinv, with_order, with_orders

__all__ = [
    "airyai",
    "airyaiprime",
    "airybi",
    "airybiprime",
    "beta",
    "betainc",
    "betaln",
    "derfi",
    "dndtr",
    "erfi",
    "log_ndtr",
    "ndtri",
    "zeta",
]


def _airy(name: str, prime: str) -> tuple[Callable[[Any], Jet], Callable[[Any], Jet]]:
    """Return an Airy function and its derivative."""
    value = getattr(arb, name)
    function = analytic(getattr(arb_series, name), value, name)
    slope = analytic(
        getattr(arb_series, f"{name}_prime"), lambda v: value(v, derivative=1), f"{name}prime"
    )
    return function, slope


airyai, airyaiprime = _airy("airy_ai", "airy_ai_prime")
airybi, airybiprime = _airy("airy_bi", "airy_bi_prime")
erfi = analytic(arb_series.erfi, arb.erfi, "erfi")


def derfi(x: Any) -> Jet:
    """Return the derivative of erfi."""
    return exp(jet(x) * jet(x)) * Jet(2 / arb.pi().sqrt())


def dndtr(x: Any) -> Jet:
    """Return the density of the normal distribution."""
    return exp(jet(x) * jet(x) * -0.5) * Jet((2 * arb.pi()).rsqrt())


def log_ndtr(argument: Any) -> Jet:
    """Return the logarithm of the normal distribution function."""
    x, root = jet(argument), Jet(arb(2).rsqrt())
    if arb(x.value).mid() > 0:
        return log1p(erfc(x * root) * -0.5)
    return log(erfc(-x * root) * 0.5)


def ndtri(x: Any) -> Jet:
    """Return the inverse of the normal distribution function."""
    return erfcinv(2 * jet(x)) * Jet(-arb(2).sqrt())


def _zeta(s: Ball) -> Callable[[Any], Jet]:
    """Return ζ(s, q), of which the Taylor coefficients are those of Σ (n + q)⁻ˢ.

    Each is monotonic for s > 1 and q > 0, where FLINT takes minutes for a wide ball.
    """

    def at(k: int, q: Ball) -> Ball:
        order = s + k
        if s > 1 and q > 0 and not q.is_exact():
            return hull([order.zeta(q.lower()), order.zeta(q.upper())])
        return order.zeta(q)

    return of_derivatives(lambda q, k: (-1) ** k * s.rising(k) * at(k, q), "zeta", "q > 0")


zeta = within(with_order("zeta", _zeta), lambda s, q: s <= 1 or q <= 0, "zeta", "s > 1 and q > 0")


def _betainc(a: Ball, b: Ball) -> Callable[[Any], Jet]:
    """Return the regularised incomplete beta function, whose slope is the density.

    It increases, so that the values at both ends bound it on a ball. Above the mean it is 1 less
    the value at 1 - x: FLINT takes minutes on the other side.
    """

    def at(x: Ball) -> Ball:
        if x * (a + b) > a:
            return 1 - (1 - x).beta_lower(b, a, regularized=1)
        return x.beta_lower(a, b, regularized=1)

    def inside(x: Ball) -> bool:
        return bool(x > 0 and x < 1 and a > 0 and b > 0)

    def value(x: Ball) -> Ball:
        if not inside(x):
            return x.beta_lower(a, b, regularized=1)
        return at(x) if x.is_exact() else hull([at(x.lower()), at(x.upper())])

    def series(s: Any) -> Any:
        if not inside(s[0]):
            return arb_series.beta_lower(a, b, s, regularized=1)
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
        density = (s.log() * (a - 1) + (1 - s).log() * (b - 1) + constant).exp()
        slopes = density.integral()
        return arb_series([value(s[0]), *(slopes[k] for k in range(1, TERMS))], TERMS)

    return analytic(series, value, "betainc", "edge", "0 < x < 1")


def _beta(one: Any, two: Any) -> Jet:
    a, b = jet(one), jet(two)
    return gamma(a) * gamma(b) / gamma(a + b)


def _betaln(one: Any, two: Any) -> Jet:
    a, b = jet(one), jet(two)
    return loggamma(a) + loggamma(b) - loggamma(a + b)


def _not_positive(a: Ball, b: Ball) -> bool:
    return bool(a <= 0 or b <= 0)


beta = within(_beta, _not_positive, "beta", "a > 0 and b > 0")
betaln = within(_betaln, _not_positive, "betaln", "a > 0 and b > 0")
betainc = within(
    with_orders("betainc", 2, _betainc),
    lambda a, b, x: _not_positive(a, b) or x < 0 or x > 1,
    "betainc",
    "a, b > 0 and 0 ≤ x ≤ 1",
)

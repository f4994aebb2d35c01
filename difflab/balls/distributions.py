"""Airy, beta, zeta and normal distribution functions of expansions, and densities, from FLINT's."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
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
from difflab.balls.library import Ball, arb, arb_series, hull, whole
from difflab.balls.special import erfcinv, of_orders, with_order, with_orders


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


def _of_powers(x: Ball, a: Ball, b: Ball | None, order: int) -> Ball:
    """Return a derivative of xᵃ⁻¹ times (1 - x)ᵇ⁻¹, or e⁻ˣ without b, by Leibniz's rule."""
    total = arb(0)
    for j in range(order + 1):
        weight = comb(order, j) * (-1) ** (order - j) * _falling(a - 1, j)
        other = arb(1) if b is None else _falling(b - 1, order - j)
        if weight == 0 or other == 0:
            continue
        term = weight * other * _power(x, a - 1 - j)
        total += term if b is None else term * _power(1 - x, b - 1 - (order - j))
    return total if b is not None else total * (-x).exp()


def _power(x: Ball, exponent: Ball) -> Ball:
    number = whole(exponent)
    return x**exponent if number is None else x**number


def _falling(a: Ball, count: int) -> Ball:
    product = arb(1)
    for k in range(count):
        product *= a - k
    return product


def _density(name: str, domain: str, constants: int) -> Any:
    """Return the row of the derivatives of an incomplete function of 1 or 2 constants."""

    def make(order: Ball, a: Ball, b: Ball | None = None) -> Callable[[Any], Jet]:
        n = whole(order)
        if n is None or n < 1:
            return lambda x: Jet(arb.nan())
        lowered = n - 1
        scale = -a.lgamma() if b is None else (a + b).lgamma() - a.lgamma() - b.lgamma()

        def derivative(x: Ball, more: int) -> Ball:
            return _of_powers(x, a, b, lowered + more) * scale.exp()

        return of_derivatives(derivative, name, domain)

    return with_orders(name, constants + 1, make)


gammainc_derivative = within(
    _density("gammainc_derivative", "x > 0", 1),
    lambda n, a, x: a <= 0 or x < 0,
    "gammainc_derivative",
    "a > 0 and x ≥ 0",
)
betainc_derivative = within(
    _density("betainc_derivative", "0 < x < 1", 2),
    lambda n, a, b, x: a <= 0 or b <= 0 or x < 0 or x > 1,
    "betainc_derivative",
    "a, b > 0 and 0 ≤ x ≤ 1",
)


def _erfcx(order: int, x: Ball) -> Ball:
    """Return a derivative of e^(x²)·erfc(x): Kummer's U for x > 0, else by the recurrence."""
    if x > 0:
        kummer = (x * x).hypgeom_u(arb(order + 1) / 2, arb(1) / 2)
        return (-1) ** order * factorial(order) * kummer / arb.pi().sqrt()
    before, derivative = 2 / arb.pi().sqrt(), (x * x).exp() * x.erfc()
    for k in range(1, order + 1):
        rest = -before if k == 1 else 2 * (k - 1) * before
        before, derivative = derivative, 2 * x * derivative + rest
    return derivative


def _log_ndtr(order: int, x: Ball) -> Ball:
    """Return a derivative of ln Φ, as one of φ/Φ; for x < 0 as one of -x²/2 + ln erfcx(-x/√2)."""
    if order < 1:
        return arb.nan()
    root = arb(2).rsqrt()
    if x < 0:
        terms = [_erfcx(k, -x * root) / factorial(k) for k in range(order + 1)]
        value = arb_series(terms, order + 1)
        slope = value.derivative()
        slope = arb_series([(-root) ** (k + 1) * slope[k] for k in range(order)], order)
        value = arb_series([(-root) ** k * terms[k] for k in range(order)], order)
        extra = arb_series([-x, -1], order)
    else:
        s = arb_series([x, 1], order)
        slope = (s * s * -0.5).exp() * (2 * (2 * arb.pi()).rsqrt())
        value, extra = (s * -root).erfc(), arb_series([0], order)
    if not value[0] > 0:
        return arb.nan()
    return (slope / value + extra)[order - 1] * factorial(order - 1)


erfcx_derivative = of_orders("erfcx_derivative", _erfcx)
log_ndtr_derivative = of_orders("log_ndtr_derivative", _log_ndtr)

"""Derivatives of incomplete gamma and beta functions, of erfcx and of ln Φ, on expansions."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import Any

from difflab.balls.elementary import of_derivatives, within
from difflab.balls.hypergeometric import of_orders
from difflab.balls.jets import Jet
from difflab.balls.library import Ball, arb, arb_series, whole
from difflab.balls.special import with_orders

__all__ = [
    "betainc_derivative",
    "erfcx_derivative",
    "gammainc_derivative",
    "log_ndtr_derivative",
]


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
    found = arb(1)
    for k in range(count):
        found *= a - k
    return found


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
    before, found = 2 / arb.pi().sqrt(), (x * x).exp() * x.erfc()
    for k in range(1, order + 1):
        rest = -before if k == 1 else 2 * (k - 1) * before
        before, found = found, 2 * x * found + rest
    return found


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

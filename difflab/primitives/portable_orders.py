"""Portable kernels of constant orders, by series of a known length.

Modified Bessel functions are power series (DLMF 10.25.2, 10.31) and asymptotic ones (10.40), and K
between them the trapezoidal rule for its integral (10.32.9), whose error falls exponentially with
the step; the incomplete gamma functions are a power series (8.7.1) and a continued fraction
(8.9.2). Other orders are left to the kernels of any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from difflab.primitives.special_kernels import horner

__all__ = ["besseli_of_order", "besselk_of_order", "incomplete_gamma"]

MOST, MOST_MODIFIED = 100, 10
"""Highest orders: the series grow."""
EULER = 0.5772156649015329
SMALL = 2.0**-56
"""Of a sum of 1, what is left out."""
LEAST_OF_Q, VANISHED = 0.4, 1200.0
"""Below that a, 1 − P loses digits; above that x, Q is 0, and x¹⁰⁰ is finite."""


def besseli_of_order(xp: Any, n: float, x: Any) -> Any:
    """Return I of one whole order; None for others."""
    if n % 1 != 0 or abs(n) > MOST_MODIFIED:
        return None
    order = int(abs(n))
    far = 20.0 + 0.5 * order**2
    ratios = _needed(lambda k: 1 / ((k + 1) * (k + 1 + order)), far**2 / 4)
    falling = [-(4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1)) for k in range(40)]

    size = xp.abs(x)
    half = 0.5 * xp.minimum(size, far)
    near = half**order / math.factorial(order) * horner(ratios, half * half)
    large = xp.clip(size, far, VANISHED)  # where it is infinite
    grown = xp.exp(0.5 * large)  # twice, where the quotient is finite and eˣ is not
    beyond = grown / xp.sqrt(2 * math.pi * large) * horner(falling, 1.0 / large) * grown
    found = xp.where(size < far, near, beyond)
    return xp.where(x < 0, -found, found) if order % 2 else found


def besselk_of_order(xp: Any, n: float, x: Any) -> Any:
    """Return K of one whole order; None for others."""
    if n % 1 != 0 or abs(n) > MOST_MODIFIED:
        return None
    order = int(abs(n))
    far = 20.0 + 0.5 * order**2
    nodes = _nodes(order, far)
    rising = [(4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1)) for k in range(40)]

    near, middle, large = (xp.clip(x, *ends) for ends in ((0.0, 1.0), (1.0, far), (far, VANISHED)))
    below, found = _first_modified(xp, near)
    for m in range(1, order):
        below, found = found, below + 2.0 * m / near * found
    total: Any = 0.0
    for weight, rate in nodes:
        total = total + weight * xp.exp(-rate * middle)
    beyond = xp.sqrt(0.5 * math.pi / large) * horner(rising, 1.0 / large)
    rest = xp.where(x < far, total * xp.exp(-middle), beyond * xp.exp(-large))
    rest = xp.where(x < 1.0, found if order else below, rest)
    return xp.where(x < 0, xp.nan, xp.where(x == 0, xp.inf, rest))


def _first_modified(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return K of the orders 0 and 1 for x up to 1, by their power series."""
    square, logarithm = 0.25 * x * x, xp.log(x) - math.log(2)
    zero: Any = 0.0
    one: Any = 0.0
    psi = [-EULER]
    for k in range(1, 14):
        psi.append(psi[-1] + 1 / k)
    for k in range(12, -1, -1):
        size = math.factorial(k) ** 2
        zero = zero * square + (psi[k] - logarithm) / size
        one = one * square + (logarithm - 0.5 * (psi[k] + psi[k + 1])) / (size * (k + 1))
    return zero, 1.0 / x + 0.5 * x * one


def _nodes(order: int, far: float) -> list[tuple[float, float]]:
    """Return weights and rates of the trapezoidal rule for eˣK, the smallest terms first."""
    step = min(0.25, math.pi * math.sqrt(2 / (37 * far)))
    found, total = [(0.5 * step, 0.0)], 0.5 * step
    while True:
        t = step * len(found)
        weight, rate = step * math.cosh(order * t), 2.0 * math.sinh(0.5 * t) ** 2
        found.append((weight, rate))
        total += weight * math.exp(-rate)
        if weight * math.exp(-rate) < SMALL * total:
            return found[::-1]


def incomplete_gamma(*, upper: bool) -> Callable[..., Any]:
    """Return the kernel of P, or Q, of one a: the smaller one is computed, and 1 less it."""

    def of_order(xp: Any, a: float, x: Any) -> Any:
        if not (LEAST_OF_Q if upper else 0.0) < a <= MOST:
            return None
        switch, levels = max(a, 1.0), 8
        while abs(_fraction(a, switch, levels) / _fraction(a, switch, 2 * levels) - 1) > SMALL:
            levels += 4
        ratios = _needed(lambda k: 1 / (a + 1 + k), switch)

        decay = xp.exp(-0.5 * xp.minimum(x, VANISHED))  # twice: e⁻ˣ is subnormal before Q is
        low, high = xp.minimum(x, switch), xp.clip(x, switch, VANISHED)
        power = xp.where(x < 0, xp.nan, xp.maximum(xp.minimum(x, VANISHED), 0.0)) ** a
        weight = power * decay * decay / math.gamma(a)
        p, q = weight * horner(ratios, low) / a, weight * _fraction(a, high, levels)
        return xp.where(x < switch, 1.0 - p, q) if upper else xp.where(x < switch, p, 1.0 - q)

    return of_order


def _fraction(a: float, x: Any, levels: int) -> Any:
    below = x + (2 * levels + 1 - a)
    for k in range(levels, 0, -1):
        below = x + (2 * k - 1 - a) - k * (k - a) / below
    return 1.0 / below


def _needed(ratio: Callable[[int], float], most: float) -> list[float]:
    """Return the ratios of the terms that are not small for an argument up to `most`."""
    found: list[float] = []
    term = total = 1.0
    while term > SMALL * total:
        found.append(ratio(len(found)))
        term *= found[-1] * most
        total += term
    return found

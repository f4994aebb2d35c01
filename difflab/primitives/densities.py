r"""Derivatives of the incomplete gamma and beta functions: densities, and their derivatives.

A row ``(n, a, x)`` or ``(n, a, b, x)`` is the derivative of order n by x, and its own derivative is
the row of n + 1. A density with large parameters is taken relative to the point where
:math:`x^a e^{-x}` is largest, by Stirling's error and :math:`u - \ln(1 + u)` (C. Loader, *Fast and
Accurate Computation of Binomial Probabilities*, 2000); a power and a gamma function of such a size
would lose :math:`a \ln a` units. Its derivatives are sums of one of two forms, whichever has the
smaller terms: of the derivatives of the factors, or by :math:`y' = g y`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError
from difflab.primitives import portable_gamma
from difflab.primitives.portable import by_numbers, by_orders, special, special_function

__all__ = ["betainc_derivative", "gammainc_derivative"]

Array = Any

MOST = 20
"""The highest order; beyond it the values are nan."""
LARGE, VANISHED = 100.0, 750.0
"""Above them, of a (or a + b) and x, gamma functions and powers may overflow."""
LEAST = 1e-20
"""Below this x, the power of x in a beta density is taken by itself: it might underflow."""
CLOSE = 0.25
"""Below it, u - ln(1 + u) is a series in u/(2 + u)."""
STIRLING = 16.0
"""Above it, Stirling's error is its asymptotic series."""
ERROR = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _either(xp: ModuleType, condition: Array, one: Callable[[], Array], other: Any) -> Array:
    """Select; only one is computed where a constant parameter decides."""
    if isinstance(condition, (bool, np.bool_)):
        return one() if condition else other()
    return xp.where(condition, one(), other())


def excess(xp: ModuleType, u: Array) -> Array:
    """Return u - ln(1 + u), which is about u²/2 near 0."""
    near = xp.minimum(xp.maximum(u, -CLOSE), CLOSE)
    r = near / (2.0 + near)
    square, series = r * r, 0.0
    for k in range(21, 1, -2):
        series = series * square + 1.0 / k
    close = r * near - 2.0 * (r * square) * series
    return xp.where(xp.abs(u) <= CLOSE, close, u - xp.log1p(u))


def stirling_error(xp: ModuleType, a: Array) -> Array:
    """Return ln Γ(a) - ((a - ½) ln a - a + ½ ln 2π)."""

    def series() -> Array:
        inverse = 1.0 / a
        total = 0.0
        for coefficient in reversed(ERROR):
            total = total * (inverse * inverse) + coefficient
        return total * inverse

    def small() -> Array:
        half = 0.5 * math.log(2 * math.pi)
        return special_function(xp, "gammaln")(a) - ((a - 0.5) * xp.log(a) - a + half)

    return _either(xp, a >= STIRLING, series, small)


def _falling(a: Array, count: int) -> Array:
    """Return a(a - 1)… of so many factors."""
    product: Array = 1.0
    for k in range(count):
        product = product * (a - k)
    return product


def _by_factors(xp: ModuleType, weights: Sequence[Array], powers: Sequence[Array]) -> Array:
    """Return the sum of the derivatives of the factors; one whose weight is 0 may be infinite."""
    total: Array = 0.0
    for weight, power in zip(weights, powers, strict=True):
        if isinstance(weight, float):
            total = total + weight * power if weight else total
        else:
            total = total + xp.where(weight == 0, 0.0, weight * xp.where(weight == 0, 0.0, power))
    return total


def _by_logarithm(slopes: Sequence[Array]) -> Array:
    """Return y⁽ᵐ⁾/y from the derivatives of g = y′/y, by Leibniz's rule for y′ = gy."""
    quotients: list[Array] = [1.0]
    for k in range(len(slopes)):
        parts = (math.comb(k, i) * slopes[i] * quotients[k - i] for i in range(k + 1))
        quotients.append(sum(parts))
    return quotients[-1]


def _derivative(
    xp: ModuleType,
    weights: Sequence[Array],
    powers: Sequence[Array],
    density: Callable[[], Array],
    poles: Sequence[Sequence[Array]],
) -> Array:
    """Return the form of a derivative with the smaller terms, which cancels less.

    `poles` are the terms of g and of its derivatives; g itself is one term.
    """
    by_factors = _by_factors(xp, weights, powers)
    if not poles:
        return by_factors
    large = _by_factors(xp, [xp.abs(weight) for weight in weights], powers)
    sizes = [sum(xp.abs(term) for term in terms) for terms in poles]
    value = density()
    by_logarithm = value * _by_logarithm([sum(terms) for terms in poles])
    return xp.where(value * _by_logarithm(sizes) < large, by_logarithm, by_factors)


def _poles(c: Array, y: Array, count: int) -> list[Array]:
    """Return the derivatives by y of c/y, from the first one on."""
    return [(-1) ** i * math.factorial(i) * c / y ** (i + 1.0) for i in range(1, count)]


def _number(a: Array) -> Array:
    """Return a parameter that is one number as a float, for which branches are decided."""
    return float(a) if isinstance(a, (int, float, np.number)) else a


def _gamma(xp: ModuleType, order: int, a: Array, x: Array) -> Array:
    a, last = _number(a), order - 1
    at = xp.where(x < 0, xp.nan, x)

    def power(j: int) -> Array:
        """Return xᵃ⁻¹⁻ʲ e⁻ˣ/Γ(a)."""

        def large() -> Array:
            tail = xp.exp(-(a * excess(xp, (at - a) / a) + stirling_error(xp, a)))
            return xp.where(at == 0, 0.0, tail * xp.sqrt(a / (2 * math.pi)) / at ** (1.0 + j))

        def small() -> Array:
            near = at ** (a - (1.0 + j)) * xp.exp(-at) * special_function(xp, "rgamma")(a)
            power = (a - (1.0 + j)) * xp.log(xp.maximum(at, VANISHED))
            far = xp.exp(power - at - special_function(xp, "gammaln")(a))
            return xp.where(at < VANISHED, near, far)

        return _either(xp, a >= LARGE, large, small)

    powers = [power(j) for j in range(order)]
    weights = [
        math.comb(last, j) * (-1.0) ** (last - j) * _falling(a - 1.0, j) for j in range(order)
    ]
    poles = [[term] for term in (((a - 1.0) - at) / at, *_poles(a - 1.0, at, last))][:last]
    density = _derivative(xp, weights, powers, lambda: powers[0], poles)
    density = xp.where(at == xp.inf, 0.0, density)
    return _either(xp, a > 0, lambda: density, lambda: x * xp.nan)


def _beta(xp: ModuleType, order: int, a: Array, b: Array, x: Array) -> Array:
    a, b, last = _number(a), _number(b), order - 1
    at = xp.where((x < 0) | (x > 1), xp.nan, x)
    rest = 1.0 - at

    def product(p: float, q: float) -> Array:
        """Return xᵃ⁻ᵖ (1 - x)ᵇ⁻q/B(a, b)."""

        def direct(constant: Array) -> Array:
            return at ** (a - p) * rest ** (b - q) * constant

        def large() -> Array:
            away = b * at - a * rest
            exponent = a * excess(xp, away / a) + b * excess(xp, -away / b)
            error = stirling_error(xp, a + b) - stirling_error(xp, a) - stirling_error(xp, b)
            scale = xp.sqrt(a / (2 * math.pi) * (b / (a + b)))
            inside = scale * xp.exp(error - exponent) / (at**p * rest**q)
            edge = direct(xp.exp(-special_function(xp, "betaln")(a, b)))
            return xp.where((at < LEAST) | (at == 1), edge, inside)

        def small() -> Array:
            rgamma = special_function(xp, "rgamma")
            return direct(rgamma(a) * (rgamma(b) / rgamma(a + b)))

        return _either(xp, a + b >= LARGE, large, small)

    powers = [product(1.0 + j, 1.0 + last - j) for j in range(order)]
    weights = [
        (-1.0) ** (last - j)
        * (math.comb(last, j) * _falling(a - 1.0, j))
        * _falling(b - 1.0, last - j)
        for j in range(order)
    ]
    slope = ((a - 1.0) * rest - (b - 1.0) * at) / (at * rest)
    right = [(-1) ** i * term for i, term in enumerate(_poles(1.0 - b, rest, last), 1)]
    poles = [[slope], *map(list, zip(_poles(a - 1.0, at, last), right, strict=True))][:last]
    density = _derivative(xp, weights, powers, lambda: product(1.0, 1.0), poles)
    positive = (a > 0) & (b > 0)
    return _either(xp, positive, lambda: density, lambda: x * xp.nan)


_gamma_kernel = by_orders(_gamma, lambda n: 1 <= n <= MOST, count=1)
_beta_kernel = by_orders(_beta, lambda n: 1 <= n <= MOST, count=1)


def refused(function: str, arguments: str) -> Callable[..., NoReturn]:
    """Return the rule of arguments by which there is no derivative in the table."""

    def rule(*_: Any) -> NoReturn:
        raise UnsupportedError(
            f"the derivative of an incomplete {function} function by its first {arguments} has no"
            " closed form; give a number, or differentiate by finite differences"
        )

    return rule


def _of_factors(
    library: Any, order: int, exponents: Sequence[Any], constant: Any, x: Any, tail: Any
) -> Any:
    """Return a derivative in exact arithmetic: of xᵃ⁻¹ times (1 - x)ᵇ⁻¹ or e⁻ˣ."""
    last, total = order - 1, 0
    for j in range(order):
        weight = math.comb(last, j) * (-1) ** (last - j) * _falling(exponents[0], j)
        if len(exponents) == 2:
            weight = weight * _falling(exponents[1], last - j)
        if weight == 0:
            continue
        term = weight * x ** (exponents[0] - j)
        if len(exponents) == 2:
            term = term * (1 - x) ** (exponents[1] - (last - j))
        total = total + term
    return total * tail * constant


def _gamma_form(library: Any, n: Any, a: Any, x: Any) -> Any:
    constant = 1 / library.gamma(a)
    return _of_factors(library, int(n), [a - 1], constant, x, library.exp(-x))


def _beta_form(library: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    constant = library.gamma(a + b) / library.gamma(a) / library.gamma(b)
    return _of_factors(library, int(n), [a - 1, b - 1], constant, x, 1)


_no_gamma = refused("gamma", "argument")
_no_beta = refused("beta", "two arguments")

gammainc_derivative: Primitive = special(
    name="gammainc_derivative",
    kernel=_gamma_kernel,
    portable=by_numbers(_gamma_kernel, portable_gamma.gammainc_derivative),
    rule=elementwise(None, _no_gamma, lambda t, y, n, a, x: t * gammainc_derivative(n + 1, a, x)),
    sympy=_gamma_form,
    mpmath=lambda mp, n, a, x: _gamma_form(mp, n, a, x) if a > 0 and x >= 0 else mp.nan,
    latex="P^{{({0})}}\\left({1}, {2}\\right)",
    glyph="P⁽ⁿ⁾",
    samples=((1.0, 1.0), (2.0, 2.0), (0.5, 4.0)),
    defined=f"an order 1, 2, … {MOST}, a number a > 0 and x ≥ 0",
)
betainc_derivative: Primitive = special(
    name="betainc_derivative",
    kernel=_beta_kernel,
    portable=by_numbers(_beta_kernel, portable_gamma.betainc_derivative),
    rule=elementwise(
        None,
        _no_beta,
        _no_beta,
        lambda t, y, n, a, b, x: t * betainc_derivative(n + 1, a, b, x),
    ),
    sympy=_beta_form,
    mpmath=lambda mp, n, a, b, x: (
        _beta_form(mp, n, a, b, x) if a > 0 and b > 0 and 0 <= x <= 1 else mp.nan
    ),
    latex="I^{{({0})}}_{{{3}}}\\left({1}, {2}\\right)",
    glyph="I⁽ⁿ⁾",
    samples=((1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (0.1, 0.9)),
    defined=f"an order 1, 2, … {MOST}, numbers a, b > 0 and 0 ≤ x ≤ 1",
)

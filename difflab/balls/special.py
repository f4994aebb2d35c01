"""Special functions of expansions, from FLINT's values and series, and random numbers.

FLINT has no series of Bessel functions: their derivatives are values at other orders, DLMF 10.6.7
and 10.29.5. The Taylor coefficients of a hypergeometric series, such as Dawson's integral and
quotients of Taylor remainders, are hypergeometric: those of the derivative of order j at a number
are the derivatives of order j, j + 1, … there. Random numbers are those of a key that is known
exactly, with derivative 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.elementary import analytic, by_inverse, of_derivatives, within
from difflab.balls.jets import TERMS, Fault, Jet, jet
from difflab.balls.library import FEW, Ball, arb, arb_series, hull, shown, whole
from difflab.errors import UnsupportedError
from difflab.primitives import random

Array = NDArray[Any]
Function = Callable[[Any, Any], Jet]


def with_order(name: str, make: Callable[[Ball], Callable[[Any], Jet]]) -> Function:
    """Return a function of a constant order and an expansion."""

    def function(order: Any, x: Any) -> Jet:
        constant = jet(order)
        if constant.varies:
            reason = f"the first argument of {name} is no constant: {shown(constant.value)}"
            return Jet(arb.nan(), fault=Fault("undecided", reason))
        return make(arb(constant.value))(x)

    return function


def with_orders(name: str, count: int, make: Callable[..., Callable[[Any], Jet]]) -> Any:
    """Return a function of so many constants and an expansion."""
    if count == 1:
        return with_order(name, make)

    def function(first: Any, *rest: Any) -> Jet:
        def of_first(constant: Ball) -> Callable[[Any], Jet]:
            inner = with_orders(name, count - 1, partial(make, constant))
            return partial(inner, *rest[:-1])

        return with_order(name, of_first)(first, rest[-1])

    return function


def _bessel(name: str, other: int, sign: int = 1, domain: str = "") -> Function:
    """Return a Bessel function, of which 2f'ₙ is `sign` (fₙ₋₁ + `other` fₙ₊₁)."""
    exact = getattr(arb, f"bessel_{name}")

    def value(v: Ball, order: Ball) -> Ball:
        if v.rel_accuracy_bits() > FEW:
            return exact(v, order)
        if domain and not v > 0:
            return arb.nan()
        ends = _extremes(name, v, order)
        return hull([exact(end, order) for end in ends]) if ends else exact(v, order)

    def make(order: Ball) -> Callable[[Any], Jet]:
        def derivative(at: Ball, k: int) -> Ball:
            parts = [comb(k, i) * other**i * value(at, order - k + 2 * i) for i in range(k + 1)]
            return sign**k * sum(parts, arb(0)) / 2**k

        return of_derivatives(derivative, f"bessel{name}", domain)

    return with_order(f"bessel{name}", make)


def _extremes(name: str, v: Ball, order: Ball) -> list[Ball]:
    """Return points at which a Bessel function has its extreme values on a ball, if they are known.

    I and K are monotonic for x > 0, I for order 0 or more. That of a whole order is even or odd.
    FLINT takes minutes for these on wide balls.
    """
    if name in ("j", "y") or not v.is_finite():
        return []
    ends = [v.lower(), v.upper()]
    if v > 0:
        return ends if name == "k" or whole(order) is not None or order >= 0 else []
    if name == "i" and whole(order) is not None:
        return [*ends, arb(0)] if v.contains(0) else ends
    return []


def _incomplete(name: str, part: str, sign: int) -> Function:
    """Return a regularised incomplete gamma function, `sign` that of its derivative.

    For a, x > 0 it is monotonic, so that the values at both ends bound it on a ball, and its slope
    is the density. Where P is not small it is 1 - Q: FLINT's series of P loses all digits for a
    large `a`, or takes minutes.
    """

    def make(a: Ball) -> Callable[[Any], Jet]:
        on_series, on_number = getattr(arb_series, part), getattr(arb, part)

        def at(v: Ball) -> Ball:
            upper = v.gamma_upper(a, regularized=1)
            if sign == -1:
                return upper
            if 2 * v > a:
                return 1 - upper
            lower = on_number(v, a, regularized=1)
            return lower.intersection(1 - upper) if lower.is_finite() else 1 - upper

        def value(v: Ball) -> Ball:
            if not (v > 0 and a > 0):
                return on_number(v, a, regularized=1)
            return at(v) if v.is_exact() else hull([at(v.lower()), at(v.upper())])

        def series(s: Any) -> Any:
            if not (s[0] > 0 and a > 0):
                return on_series(a, s, regularized=1)
            slopes = ((s.log() * (a - 1) - s - a.lgamma()).exp() * sign).integral()
            return arb_series([value(s[0]), *(slopes[k] for k in range(1, TERMS))], TERMS)

        return analytic(series, value, name, "edge", "x > 0")

    return within(with_order(name, make), lambda a, x: a <= 0 or x < 0, name, "a > 0 and x ≥ 0")


erfinv = analytic(
    by_inverse(arb_series.erf, arb.erfinv), lambda v: v.erfinv(), "erfinv", "edge", "-1 < x < 1"
)
erfcinv = analytic(
    by_inverse(arb_series.erfc, arb.erfcinv), lambda v: v.erfcinv(), "erfcinv", "edge", "0 < x < 2"
)
lambertw = analytic(lambda s: s.lambertw(), lambda v: v.lambertw(), "lambertw", "edge", "x > -1/e")
ei = analytic(lambda s: s.ei(), lambda v: v.ei(), "ei", "pole", "x not 0")
si = analytic(lambda s: s.si(), lambda v: v.si(), "si")
ci = analytic(lambda s: s.ci(), lambda v: v.ci(), "ci", "edge", "x > 0")
_e1 = analytic(lambda s: -(-s).ei(), lambda v: -(-v).ei(), "e1", "edge", "x > 0")


def e1(argument: Any) -> Jet:
    """Return the exponential integral E₁, which is -Ei(-x) for x > 0."""
    x = jet(argument)
    if arb(x.value) > 0 or not arb(x.value).is_finite():
        return _e1(x)
    fault = Fault("edge", f"e1 is analytic for x > 0; its argument is {shown(x.value)}", True)
    return Jet(arb.nan(), fault=fault)


besselj = _bessel("j", -1)
bessely = _bessel("y", -1, domain="x > 0")
besseli = _bessel("i", 1)
besselk = _bessel("k", 1, -1, "x > 0")
gammainc = _incomplete("gammainc", "gamma_lower", 1)
gammaincc = _incomplete("gammaincc", "gamma_upper", -1)


# --- hypergeometric functions, of which derivatives have an order -----------------------------

MOST = 40
"""The highest order."""


def _dawson(order: int, x: Ball) -> Ball:
    """Return a derivative of Dawson's integral, a confluent hypergeometric function of -x²."""
    half, odd = divmod(order, 2)
    below = arb(1 if odd else 3) / 2
    return (
        (-4) ** half * factorial(half) * (1 if odd else x) * (-x * x).hypgeom_1f1(half + 1, below)
    )


def of_orders(
    name: str, value: Callable[..., Ball], least: Sequence[int] = (0,), domain: str = ""
) -> Callable[..., Jet]:
    """Return a row whose arguments before the last are orders; that of a derivative is the last.

    Parameters
    ----------
    name : str
        For messages.
    value : callable
        The function of the orders and of a number.
    least : sequence of int
        The lowest order of each kind.
    domain : str
        Where the function is analytic.
    """

    def row(*args: Any) -> Jet:
        given = [jet(order) for order in args[:-1]]
        orders: list[int] = []
        for order, low in zip(given, least, strict=True):
            number = None if order.varies else whole(order.value)
            if number is None or not low <= number <= MOST:
                orders_are = "order of {} is" if len(given) == 1 else "orders of {} are"
                values = ", ".join(shown(each.value) for each in given)
                reason = f"the {orders_are.format(name)} {values}"
                return Jet(arb.nan(), fault=Fault("undecided", reason))
            orders.append(number)
        *others, n = orders
        return of_derivatives(lambda x, k: value(*others, n + k, x), name, domain)(args[-1])

    return row


dawsn_derivative = of_orders("dawsn_derivative", _dawson)


def dawsn(x: Any) -> Jet:
    """Return Dawson's integral."""
    return dawsn_derivative(0, x)


def _exp_remainder(k: int, j: int, x: Ball) -> Ball:
    return x.hypgeom([j + 1], [j + k + 1]) * factorial(j) / factorial(j + k)


def _log_remainder(k: int, j: int, x: Ball) -> Ball:
    return (-1) ** (k + 1 + j) * (-x).hypgeom([j + 1, j + k], [j + k + 1]) * factorial(j) / (j + k)


def _even_remainder(sign: int) -> Callable[[int, int, Ball], Ball]:
    """Return the derivatives of Σ (sign·x²)ⁿ/(2n + k)!."""

    def value(k: int, j: int, x: Ball) -> Ball:
        m = (j + 1) // 2
        odd = 2 * m - j
        above = [arb(2 * m + 1) / 2, m + 1]
        below = [arb(1 + 2 * odd) / 2, arb(2 * m + k + 1) / 2, arb(2 * m + k + 2) / 2]
        first = sign**m * x**odd * factorial(2 * m) / factorial(2 * m + k)
        return first * (sign * x * x / 4).hypgeom(above, below)

    return value


exp_remainder = of_orders("exp_remainder", _exp_remainder, (1, 0))
cos_remainder = of_orders("cos_remainder", _even_remainder(-1), (1, 0))
cosh_remainder = of_orders("cosh_remainder", _even_remainder(1), (1, 0))
log_remainder = of_orders("log_remainder", _log_remainder, (1, 0), "x > -1")


# --- random numbers ---------------------------------------------------------------------------


def _words(key: Array) -> NDArray[np.float64]:
    """Return the words of keys."""
    words = [whole(jet(entry).value) for entry in np.asarray(key, dtype=object).ravel().tolist()]
    if None in words:
        raise UnsupportedError("random numbers need a key that is a point, not an interval")
    return np.array(words, dtype=np.float64).reshape(np.shape(key))


def _drawn(name: str, finish: Any = lambda number: number) -> Any:
    kernel = getattr(random, name).computer(np)

    def row(key: Array, **params: Any) -> Any:
        return np.frompyfunc(lambda number: Jet(finish(arb(number))), 1, 1)(
            kernel(_words(key), **params)
        )

    return row


def _quantile(u: Any) -> Any:
    """Return the standard normal number that belongs to a uniform one, as its kernel does."""
    return arb(2).sqrt() * (2 * u - (1 - arb(2) ** -53)).erfinv()


random_keys = _drawn("random_keys")
random_uniform = _drawn("random_uniform")
random_normal = _drawn("random_uniform", _quantile)

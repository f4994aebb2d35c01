"""Dawson's integral and quotients of Taylor remainders, as FLINT's hypergeometric functions.

The Taylor coefficients of a hypergeometric series are hypergeometric: those of the derivative of
order j at a number are the derivatives of order j, j + 1, … there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from difflab.balls.elementary import of_derivatives
from difflab.balls.jets import Fault, Jet, jet
from difflab.balls.library import Ball, arb, shown, whole

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

"""Dawson's integral of expansions, by FLINT's hypergeometric functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from difflab.balls.elementary import of_derivatives
from difflab.balls.jets import Fault, Jet, jet
from difflab.balls.library import Ball, arb, shown, whole

__all__ = ["dawsn", "dawsn_derivative", "of_orders"]

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

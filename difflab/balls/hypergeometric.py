"""Dawson's integral of expansions, by FLINT's hypergeometric functions."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

from difflab.balls.elementary import analytic
from difflab.balls.jets import Fault, Jet, ObstacleKind, jet
from difflab.balls.library import Ball, arb, arb_series, shown, whole

__all__ = ["dawsn", "dawsn_derivative", "of_derivatives"]

MOST = 40
"""The highest order."""


def _dawson(order: int, x: Ball) -> Ball:
    """Return a derivative of Dawson's integral, a confluent hypergeometric function of -x²."""
    half, odd = divmod(order, 2)
    below = arb(1 if odd else 3) / 2
    return (
        (-4) ** half * factorial(half) * (1 if odd else x) * (-x * x).hypgeom_1f1(half + 1, below)
    )


def of_derivatives(
    name: str, value: Callable[[int, Ball], Ball], domain: str = ""
) -> Callable[[Any, Any], Jet]:
    """Return a row whose first argument is the order of a derivative."""

    def row(order: Any, x: Any) -> Jet:
        given = jet(order)
        n = None if given.varies else whole(given.value)
        if n is None or not 0 <= n <= MOST:
            reason = f"the order of {name} is {shown(given.value)}"
            return Jet(arb.nan(), fault=Fault("undecided", reason))

        def series(s: Any) -> Any:
            return arb_series([value(n + i, s[0]) / factorial(i) for i in range(s.prec)], s.prec)

        kind: ObstacleKind = "edge" if domain else "undecided"
        return analytic(series, lambda v: value(n, v), name, kind, domain)(x)

    return row


dawsn_derivative = of_derivatives("dawsn_derivative", _dawson)


def dawsn(x: Any) -> Jet:
    """Return Dawson's integral."""
    return dawsn_derivative(0, x)

"""Quotients of Taylor remainders in ball arithmetic, as FLINT's hypergeometric functions.

The Taylor coefficients of a hypergeometric series are hypergeometric: those of the derivative of
order j at a number are the derivatives of order j, j + 1, … there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

from difflab.balls.elementary import analytic
from difflab.balls.jets import Fault, Jet, ObstacleKind, jet
from difflab.balls.library import Ball, arb, arb_series, shown, whole

__all__ = ["cos_remainder", "cosh_remainder", "exp_remainder", "log_remainder"]

Value = Callable[[int, int, Ball], Ball]
MOST = 40
"""The highest order."""


def _exp(k: int, j: int, x: Ball) -> Ball:
    return x.hypgeom([j + 1], [j + k + 1]) * factorial(j) / factorial(j + k)


def _log(k: int, j: int, x: Ball) -> Ball:
    return (-1) ** (k + 1 + j) * (-x).hypgeom([j + 1, j + k], [j + k + 1]) * factorial(j) / (j + k)


def _even(sign: int) -> Value:
    """Return the derivatives of Σ (sign·x²)ⁿ/(2n + k)!."""

    def value(k: int, j: int, x: Ball) -> Ball:
        m = (j + 1) // 2
        odd = 2 * m - j
        above = [arb(2 * m + 1) / 2, m + 1]
        below = [arb(1 + 2 * odd) / 2, arb(2 * m + k + 1) / 2, arb(2 * m + k + 2) / 2]
        first = sign**m * x**odd * factorial(2 * m) / factorial(2 * m + k)
        return first * (sign * x * x / 4).hypgeom(above, below)

    return value


def _row(name: str, value: Value, domain: str = "") -> Callable[[Any, Any, Any], Jet]:
    def row(order: Any, derivative: Any, x: Any) -> Jet:
        given = [jet(order), jet(derivative)]
        k, j = (None if entry.varies else whole(entry.value) for entry in given)
        if k is None or j is None or not (1 <= k <= MOST and 0 <= j <= MOST):
            orders = ", ".join(shown(entry.value) for entry in given)
            return Jet(arb.nan(), fault=Fault("undecided", f"the orders of {name} are {orders}"))

        def series(s: Any) -> Any:
            found = [value(k, j + i, s[0]) / factorial(i) for i in range(s.prec)]
            return arb_series(found, s.prec)

        kind: ObstacleKind = "edge" if domain else "undecided"
        return analytic(series, lambda v: value(k, j, v), name, kind, domain)(x)

    return row


exp_remainder = _row("exp_remainder", _exp)
cos_remainder = _row("cos_remainder", _even(-1))
cosh_remainder = _row("cosh_remainder", _even(1))
log_remainder = _row("log_remainder", _log, "x > -1")

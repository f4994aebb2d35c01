"""Quotients of Taylor remainders in ball arithmetic, as FLINT's hypergeometric functions.

The Taylor coefficients of a hypergeometric series are hypergeometric: those of the derivative of
order j at a number are the derivatives of order j, j + 1, … there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

from difflab.balls.hypergeometric import of_orders
from difflab.balls.library import Ball, arb

__all__ = ["cos_remainder", "cosh_remainder", "exp_remainder", "log_remainder"]

Value = Callable[[int, int, Ball], Ball]


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


exp_remainder = of_orders("exp_remainder", _exp, (1, 0))
cos_remainder = of_orders("cos_remainder", _even(-1), (1, 0))
cosh_remainder = of_orders("cosh_remainder", _even(1), (1, 0))
log_remainder = of_orders("log_remainder", _log, (1, 0), "x > -1")

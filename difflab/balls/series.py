"""Taylor coefficients of a function on all numbers of a ball, from FLINT's power series."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from difflab.balls.library import Ball, arb, arb_series

Series = Callable[[Any], Any]
"""Maps ``arb_series([x, 1])`` to the series of a function at x."""

FEW, NARROW = 12, 2.0**-12
"""A ball of no more correct bits than `FEW` and a radius from `NARROW` counts as wide."""
PARTS = 16
"""Balls into which a wide one is divided."""


def expanded(series: Series, value: Ball, count: int, more: int = 0) -> list[Ball]:
    """Return `count` Taylor coefficients that hold at every number of a ball.

    Parameters
    ----------
    series : callable
        The function, on power series.
    value : arb
        The ball. A wide one is divided, because a function of all of it is bounded poorly.
    count : int
        The number of coefficients.
    more : int
        How many terms `series` loses by taking derivatives.

    Examples
    --------
    >>> expanded(lambda s: s * s, arb(3), 2)
    [9.00000000000000, 6.00000000000000]
    """
    whole = _coefficients(series, value, count, more)
    if value.rel_accuracy_bits() > FEW or not value.is_finite() or value.rad() < NARROW:
        return whole
    found = []
    for part in _parts(value):
        found.append(_coefficients(series, part, count, more))
        if not all(entry.is_finite() for entry in found[-1]):
            found += [_coefficients(series, smaller, count, more) for smaller in _parts(part)]
            del found[-PARTS - 1]
    return [_both(one, hull([part[k] for part in found])) for k, one in enumerate(whole)]


def on_ball(function: Callable[[Ball], Ball], value: Ball) -> Ball:
    """Return a function on a ball, in parts where it cannot be bounded on all of it."""
    found = function(value)
    if found.is_finite() or value.is_exact() or not value.is_finite():
        return found
    return hull([function(part) for part in _parts(value)])


def _parts(value: Ball) -> list[Ball]:
    """Return balls that cover a ball."""
    low, step = value.lower(), 2 * value.rad() / PARTS
    ends = [low, *(low + step * k for k in range(1, PARTS)), value.upper()]
    return [a.union(b) for a, b in pairwise(ends)]


def _coefficients(series: Series, value: Ball, count: int, more: int) -> list[Ball]:
    found = series(arb_series([value, 1], count + more))
    return [arb(found[k]) for k in range(count)]


def product(a: Ball, b: Ball) -> Ball:
    """Return the product of two balls; that of wide ones from their ends, which is sharper."""
    found = a * b
    if a.rel_accuracy_bits() > FEW or b.rel_accuracy_bits() > FEW or not found.is_finite():
        return found
    ends = [p * q for p in (a.lower(), a.upper()) for q in (b.lower(), b.upper())]
    return found.intersection(hull(ends))


def hull(balls: list[Ball]) -> Ball:
    """Return a ball with all numbers of some balls."""
    found = balls[0]
    for ball in balls[1:]:
        found = found.union(ball)
    return found


def _both(one: Ball, two: Ball) -> Ball:
    """Return a ball with all numbers that are in both; the finite one if one is not."""
    if not one.is_finite() or not two.is_finite():
        return one if one.is_finite() else two
    return one.intersection(two)

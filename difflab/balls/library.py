"""FLINT by python-flint: its working precision, balls from and to float64, and power series.

Importing this module raises `MissingDependencyError` if python-flint is missing or broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from difflab.core.optional import require

_flint: Any = require("flint")
acb: Any = _flint.acb
arb: Any = _flint.arb
arb_mat: Any = _flint.arb_mat
arb_series: Any = _flint.arb_series
fmpq: Any = _flint.fmpq
fmpq_series: Any = _flint.fmpq_series
PYTHON_FLINT_VERSION: str = _flint.__version__
FLINT_VERSION: str = _flint.__FLINT_VERSION__
Ball = Any
"""An `arb`, or an exact `fmpq`."""

LONGEST = 200
"""Terms of a series that FLINT may return, which bounds the order of `polygamma`."""

Series = Callable[[Any], Any]
"""Maps ``arb_series([x, 1])`` to the series of a function at x."""

FEW, NARROW = 12, 2.0**-12
"""A ball of no more correct bits than `FEW` and a radius from `NARROW` counts as wide."""
PARTS = 16
"""Balls into which a wide one is divided."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with so many bits.

    The precision is FLINT's global state: it affects the radius of a result, never its proof.
    """
    context = _flint.ctx
    before = context.prec, context.cap
    context.prec, context.cap = bits, LONGEST
    try:
        yield
    finally:
        context.prec, context.cap = before


def working_bits() -> int:
    """Return the working precision."""
    return int(_flint.ctx.prec)


def between(low: float, high: float) -> Ball:
    """Return a ball that contains an interval."""
    return arb(low) if low == high else arb(low).union(arb(high))


def below(ball: Ball) -> float:
    """Return a float64 that is no more than any number of a ball: the largest, if it is normal.

    Examples
    --------
    >>> with precision(80):
    ...     third = arb(1) / 3
    >>> below(third) == 1 / 3 < upward(third), below(arb(2)), upward(arb(2))
    (True, 2.0, 2.0)
    """
    low = arb(ball).lower()
    if low.is_nan() or not low.is_finite():
        return math.nan if low.is_nan() else -math.inf
    rounded = float(low)
    if math.isinf(rounded):
        return -math.inf if rounded < 0 else math.nextafter(rounded, 0.0)
    return rounded if arb(rounded) <= low else math.nextafter(rounded, -math.inf)


def upward(ball: Ball) -> float:
    """Return a float64 that is no less than any number of a ball."""
    return 0.0 - below(-ball)


def nearest(ball: Ball) -> float | None:
    """Return the float64 to which every number of a ball rounds, ties to even; else None.

    Examples
    --------
    >>> nearest(arb(1) / 3) is None  # at 53 bits
    True
    >>> with precision(100):
    ...     nearest(arb(1) / 3) == 1 / 3
    True
    """
    if type(ball) is fmpq:
        return _quotient(int(ball.numer()), int(ball.denom()))
    if ball.is_exact():
        return float(ball)  # FLINT rounds to nearest, and so do the ends below
    low, high = float(ball.lower()), float(ball.upper())
    if low == high:
        return low + 0.0
    return math.nan if ball.is_nan() else None


def _quotient(numerator: int, denominator: int) -> float:
    """Return a fraction, correctly rounded as Python divides integers."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def exactly(ball: Ball) -> Any:
    """Return a ball of radius zero as a fraction; anything else unchanged."""
    if type(ball) is fmpq or not ball.is_exact() or not ball.is_finite():
        return ball
    digits, exponent = ball.man_exp()
    shift = int(exponent)
    if abs(shift) > 10_000:
        return ball
    return fmpq(digits) * 2**shift if shift >= 0 else fmpq(digits, 2**-shift)


def whole(ball: Ball) -> int | None:
    """Return the integer that an exact number is; None if it is none.

    Examples
    --------
    >>> whole(arb(3)), whole(arb(3.5)), whole(arb(3, 0.1)), whole(fmpq(6, 2))
    (3, None, None, 3)
    """
    if type(ball) is fmpq:
        return int(ball.numer()) if ball.denom() == 1 else None
    if not ball.is_exact() or not ball.is_integer():
        return None
    return int(ball.unique_fmpz()) if abs(ball) < 2.0**64 else None


def shown(ball: Ball) -> str:
    """Return a ball for a message: its number, or its ends."""
    low, high = below(ball) + 0.0, upward(ball) + 0.0
    return f"{low:.6g}" if f"{low:.6g}" == f"{high:.6g}" else f"in [{low:.6g}, {high:.6g}]"


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
    expansions = []
    for part in _parts(value):
        expansions.append(_coefficients(series, part, count, more))
        if not all(entry.is_finite() for entry in expansions[-1]):
            expansions += [_coefficients(series, smaller, count, more) for smaller in _parts(part)]
            del expansions[-PARTS - 1]
    return [_both(one, hull([part[k] for part in expansions])) for k, one in enumerate(whole)]


def on_ball(function: Callable[[Ball], Ball], value: Ball) -> Ball:
    """Return a function on a ball, in parts where it cannot be bounded on all of it."""
    image = function(value)
    if image.is_finite() or value.is_exact() or not value.is_finite():
        return image
    return hull([function(part) for part in _parts(value)])


def _parts(value: Ball) -> list[Ball]:
    """Return balls that cover a ball."""
    low, step = value.lower(), 2 * value.rad() / PARTS
    ends = [low, *(low + step * k for k in range(1, PARTS)), value.upper()]
    return [a.union(b) for a, b in pairwise(ends)]


def _coefficients(series: Series, value: Ball, count: int, more: int) -> list[Ball]:
    coefficients = series(arb_series([value, 1], count + more))
    return [arb(coefficients[k]) for k in range(count)]


def product(a: Ball, b: Ball) -> Ball:
    """Return the product of two balls; that of wide ones from their ends, which is sharper."""
    ball = a * b
    if a.rel_accuracy_bits() > FEW or b.rel_accuracy_bits() > FEW or not ball.is_finite():
        return ball
    ends = [p * q for p in (a.lower(), a.upper()) for q in (b.lower(), b.upper())]
    return ball.intersection(hull(ends))


def hull(balls: list[Ball]) -> Ball:
    """Return a ball that contains the given balls."""
    union = balls[0]
    for ball in balls[1:]:
        union = union.union(ball)
    return union


def _both(one: Ball, two: Ball) -> Ball:
    """Return a ball that contains the intersection of two; the finite one if one is not."""
    if not one.is_finite() or not two.is_finite():
        return one if one.is_finite() else two
    return one.intersection(two)

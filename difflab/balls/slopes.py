"""Derivatives by the inputs: a ball for each, or a record of how they follow from earlier ones.

With a ball for each input, an operation costs as much as its operands have inputs. A record costs
the same for any number of inputs: the linear combination is written down, and one reverse sweep
over all of them gives the derivatives of an output. Both are the chain rule on FLINT's
coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from difflab.balls.library import Ball

_numbers = count()


class Recorded:
    """A linear combination of recorded slopes.

    Attributes
    ----------
    parts : tuple of (ball, Recorded or int)
        The factors and their operands: recorded slopes, or those of one input, which are 1.
    number : int
        Larger than the number of every part.
    """

    __slots__ = ("number", "parts")

    def __init__(self, *parts: tuple[Ball, Recorded | int]) -> None:
        self.parts = parts
        self.number = next(_numbers)


Slopes = dict[int, Ball] | Recorded


def times(slopes: Slopes, factor: Ball) -> Slopes:
    """Return slopes multiplied by a number."""
    if isinstance(slopes, Recorded):
        return Recorded((factor, slopes))
    return {place: slope * factor for place, slope in slopes.items()}


def plus(one: Slopes, two: Slopes, sign: int = 1) -> Slopes:
    """Return the sum of slopes that are not empty, or their difference for the sign -1."""
    if isinstance(one, dict) and isinstance(two, dict):
        total = dict(one)
        add_into(total, two, sign)
        return total
    assert isinstance(one, Recorded)
    assert isinstance(two, Recorded)
    return Recorded((1, one), (sign, two))


def summed(terms: Iterable[Slopes]) -> Slopes:
    """Return the sum of slopes, in time linear in their number."""
    total: dict[int, Ball] = {}
    recorded = []
    for term in terms:
        if isinstance(term, Recorded):
            recorded.append((1, term))
        else:
            add_into(total, term)
    return Recorded(*recorded) if recorded else total


def swept(slopes: Slopes) -> dict[int, Ball]:
    """Return the ball of each input.

    Examples
    --------
    >>> x, y = Recorded((1, 0)), Recorded((1, 1))
    >>> swept(plus(times(x, 3), plus(x, y), sign=-1))
    {0: 2, 1: -1}
    """
    if isinstance(slopes, dict):
        return slopes
    weights: dict[int, Any] = {slopes.number: 1}
    balls: dict[int, Ball] = {}
    for node in _reached(slopes):
        weight = weights.pop(node.number)
        for factor, part in node.parts:
            if isinstance(part, Recorded):
                add_into(weights, {part.number: weight * factor})
            else:
                add_into(balls, {part: weight * factor})
    return dict(sorted(balls.items()))


def _reached(slopes: Recorded) -> list[Recorded]:
    """Return all recorded slopes on which some depend, the last first."""
    reached, waiting = {slopes.number: slopes}, [slopes]
    while waiting:
        for _, part in waiting.pop().parts:
            if isinstance(part, Recorded) and part.number not in reached:
                reached[part.number] = part
                waiting.append(part)
    return [reached[number] for number in sorted(reached, reverse=True)]


def add_into(sums: dict[Any, Ball], terms: dict[Any, Ball], sign: int = 1) -> None:
    """Add terms to the sums of their keys, or subtract them for the sign -1."""
    for key, term in terms.items():
        if key not in sums:
            sums[key] = term if sign == 1 else -term
        else:
            sums[key] = sums[key] + term if sign == 1 else sums[key] - term

"""Powers whose exponent is a difference that float64 would round, as ``x^(0.1 - 1)``.

An error of the exponent costs ln x times as much: 146 ULP at x = 1e300.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.algebra import signs
from difflab.graph.builder import Builder
from difflab.graph.ir import FIRST_ROW, Graph, Params
from difflab.graph.rewrite import Args
from difflab.primitives import absolute, add, divide, equal, power, subtract, where

MOST_QUOTIENTS = 4
"""The most divisions by x that replace a rounded exponent."""


def has_rounded_exponents(graph: Graph) -> bool:
    """Whether the exponent of a power is a difference.

    Examples
    --------
    >>> import difflab as dl
    >>> has_rounded_exponents(dl.parse("x^(0.1 - 1)").graph)
    True
    """
    if subtract not in graph.primitives:
        return False
    exponents = graph.args[graph.starts[:-1][graph.applies(power)] + 1]
    return graph.primitives.index(subtract) + FIRST_ROW in graph.opcode[exponents].tolist()


def quotient(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
    """Write x^(c - k) as x^c/|x|^k where c - k is negative and no float64; a rule of `rewrite`.

    At 0 and at infinity, where that is nan, it is 1/|x|^k.
    """
    if row is not power or signs(builder, args[1]) != (1, -1):
        return None
    parts = _parts(*map(builder.number, builder.arguments(args[1])))
    if parts is None:
        return None
    (base, _), (exponent, count) = args, parts
    # x = 2·x at 0 and infinity only.
    edge = builder.emit(equal, (base, builder.emit(add, (base, base))))
    powered = builder.emit(power, (base, builder.constant(exponent)))
    result = builder.emit(where, (edge, builder.constant(1), powered))
    for _ in range(count):
        result = builder.emit(divide, (result, builder.emit(absolute, (base,))))
    return result


def _parts(minuend: float | None, subtrahend: float | None) -> tuple[float, int] | None:
    """Return p and a count n with p - n = c - k, exactly; None where c - k needs no quotients."""
    if minuend is None or subtrahend is None:
        return None
    if not np.isfinite(minuend) or not float(subtrahend).is_integer():
        return None
    exact = Fraction(minuend) - int(subtrahend)
    if exact >= 0 or float(exact) == exact:
        return None
    for count in range(1, MOST_QUOTIENTS + 1):
        if float(exact + count) == exact + count:
            return float(exact + count), count
    return None

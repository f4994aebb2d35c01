"""FPCore's rounding contexts, and the multiplication and addition that are rounded once.

A graph computes in float64, so a context of binary32 rounds every result to float32: for ``+``,
``-``, ``*``, ``/`` and ``sqrt`` that is the result of float32 arithmetic (S. A. Figueroa, When is
double rounding innocuous?, SIGNUM Newsletter 30, 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab import primitives as rows

CONTEXTS: Mapping[str, Callable[[Any], Any]] = {
    "binary64": lambda x: x,
    "binary32": rows.float32,
    "real": lambda x: x,
}
"""How a result is rounded, by the name of the precision; real numbers are computed in float64."""
NEUTRAL: Mapping[str, str] = {":round": "nearestEven", ":overflow": "infinity"}
"""The only values of further properties of a context that difflab computes with."""

_SPLIT = float(2**27 + 1)
_HALF = 2.0**-53


def fused(x: Any, y: Any, z: Any, precision: str) -> Any:
    """Return ``x*y + z``, rounded once.

    The product and the sum are computed as a value and its rounding error, and the last addition
    but one is rounded to odd, after which rounding to nearest gives what one rounding of the exact
    number gives (S. Boldo and G. Melquiond, IEEE Transactions on Computers 57, 2008). Where a part
    overflows, the value is that of the two operations.

    Parameters
    ----------
    x, y, z : Node
        Numbers of the precision.
    precision : str
        A name of `CONTEXTS`.
    """
    plain = x * y + z
    if precision == "binary32":  # the product of two float32 is a float64
        rounded = rows.float32(_to_odd(*_sum(x * y, z)))
    else:
        high, low = _product(x, y)
        near, error = _sum(z, low)
        large, small = _sum(high, near)
        rounded = large + _to_odd(*_sum(error, small))
    return rows.where(np.isfinite(rounded), rounded, plain)


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the rounded product and its error (T. J. Dekker, 1971)."""
    product = x * y
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    return product, x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2)


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def _sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded sum and its error (D. E. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _to_odd(total: Any, error: Any) -> Any:
    """Return a sum that, with an error, has moved off an even last bit, towards the exact number.

    So no later rounding takes it for a tie. The last bit is 0 if adding half of a unit in the last
    place, which is a tie, changes nothing.
    """
    size = rows.absolute(total)
    scaled = (2.0**52 + 1) * size
    leading = scaled - (1 - _HALF) * scaled  # the leading bit: S. M. Rump, 2008
    half = rows.stop_gradient(_HALF * leading)
    even = rows.logical_and(rows.not_equal(error, 0), rows.equal(size + half, size))
    return rows.where(even, total + rows.sign(error) * (2 * half), total)

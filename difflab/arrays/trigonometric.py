"""The reciprocal trigonometric and hyperbolic functions, and their inverses.

Compositions of rows, with SymPy's branches: ``acot`` lies in (-π/2, π/2] and jumps at 0, ``asec``
in [0, π], ``acsc`` in [-π/2, π/2]. An inverse is not computed as that of 1/x, where x is near 1 and
rounding 1/x loses the digits of x - 1: it is written in x - 1 and x + 1, and is right up to the
edge of its domain.
"""

from __future__ import annotations

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array

__all__ = [
    "acot",
    "acoth",
    "acsc",
    "acsch",
    "asec",
    "asech",
    "cot",
    "coth",
    "csc",
    "csch",
    "sec",
]


def _sign(x: Array) -> Array:
    """Return -1 where x is negative and 1 elsewhere, also at 0."""
    return rows.where(rows.less(x, 0.0), -1.0, 1.0)


def _leg(x: Array) -> Array:
    """Return √(x² - 1), where x² may overflow."""
    size = rows.absolute(x)
    return rows.multiply(rows.sqrt(rows.subtract(size, 1.0)), rows.sqrt(rows.add(size, 1.0)))


def sec(x: Array) -> Array:
    """Return the secant 1/cos x.

    Examples
    --------
    >>> float(sec(0.0))
    1.0
    """
    return rows.divide(1.0, rows.cos(as_array(x)))


def csc(x: Array) -> Array:
    """Return the cosecant 1/sin x.

    Examples
    --------
    >>> round(float(csc(0.5)), 12)
    2.085829642933
    """
    return rows.divide(1.0, rows.sin(as_array(x)))


def cot(x: Array) -> Array:
    """Return the cotangent cos x/sin x.

    Examples
    --------
    >>> round(float(cot(0.5)), 12)
    1.830487721712
    """
    x = as_array(x)
    return rows.divide(rows.cos(x), rows.sin(x))


def coth(x: Array) -> Array:
    """Return the hyperbolic cotangent 1/tanh x.

    Examples
    --------
    >>> round(float(coth(0.5)), 12)
    2.163953413739
    """
    return rows.divide(1.0, rows.tanh(as_array(x)))


def csch(x: Array) -> Array:
    """Return the hyperbolic cosecant 1/sinh x, as sech x/tanh x: sinh² would overflow.

    Examples
    --------
    >>> round(float(csch(0.5)), 12)
    1.919034751335
    """
    x = as_array(x)
    return rows.divide(rows.sech(x), rows.tanh(x))


def acot(x: Array) -> Array:
    """Return the inverse cotangent, in (-π/2, π/2]: ``acot(-1)`` is -π/4, ``acot(0)`` is π/2.

    Examples
    --------
    >>> round(float(acot(-1.0)), 12)
    -0.785398163397
    """
    x = as_array(x)
    sign = _sign(x)
    return rows.atan2(sign, rows.multiply(sign, x))


def asec(x: Array) -> Array:
    """Return the inverse secant for ``|x| ≥ 1``, in [0, π].

    Examples
    --------
    >>> round(float(asec(-2.0)), 12)
    2.094395102393
    """
    x = as_array(x)
    return rows.atan2(_leg(x), _sign(x))


def acsc(x: Array) -> Array:
    """Return the inverse cosecant for ``|x| ≥ 1``, in [-π/2, π/2].

    Examples
    --------
    >>> round(float(acsc(-2.0)), 12)
    -0.523598775598
    """
    x = as_array(x)
    return rows.atan2(_sign(x), _leg(x))


def acoth(x: Array) -> Array:
    """Return the inverse hyperbolic cotangent for ``|x| > 1``.

    Examples
    --------
    >>> round(float(acoth(2.0)), 12)
    0.549306144334
    """
    x = as_array(x)
    rest = rows.subtract(rows.absolute(x), 1.0)
    return rows.multiply(rows.multiply(0.5, _sign(x)), rows.log1p(rows.divide(2.0, rest)))


def asech(x: Array) -> Array:
    """Return the inverse hyperbolic secant for 0 < x ≤ 1.

    Examples
    --------
    >>> round(float(asech(0.5)), 12)
    1.316957896925
    """
    x = as_array(x)
    leg = rows.sqrt(rows.multiply(rows.subtract(1.0, x), rows.add(1.0, x)))
    return rows.subtract(rows.log1p(leg), rows.log(x))  # both terms are positive


def acsch(x: Array) -> Array:
    """Return the inverse hyperbolic cosecant.

    Examples
    --------
    >>> round(float(acsch(0.5)), 12)
    1.443635475179
    """
    x = as_array(x)
    size = rows.absolute(x)
    # Below 1 the derivative of 1/x may overflow, above it the logarithms cancel.
    small = rows.subtract(rows.log1p(rows.hypot(1.0, x)), rows.log(size))
    large = rows.asinh(rows.divide(1.0, x))
    return rows.where(rows.less(size, 1.0), rows.multiply(_sign(x), small), large)

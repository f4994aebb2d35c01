"""Arithmetic, powers and roots."""

from __future__ import annotations

import operator
from functools import reduce

from difflab.core.apply import constant
from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import kernels
from difflab.primitives.exponential import log
from difflab.primitives.piecewise import (
    equal,
    less,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from difflab.primitives.recurrences import (
    Term,
    Terms,
    exponentials,
    leibniz,
    powers,
    product,
    products,
    quotient,
    root,
)

__all__ = [
    "add",
    "cbrt",
    "dcbrt",
    "dhypot",
    "divide",
    "dpower",
    "dpower_exponent",
    "hypot",
    "multiply",
    "negative",
    "power",
    "sqrt",
    "square_difference",
    "subtract",
    "sum_of_squares",
]

REAL = (-3.0, 3.0)
POSITIVE = (0.2, 4.0)
LOWERED = 4
"""Order of derivatives of a power up to which they are powers; above, a recurrence is cheaper."""


def _logarithms(k: int, x: Terms, like: Term) -> list[Term]:
    """Return the derivatives of ln x up to order k, recorded as operations on `like` are."""
    assert log.taylor is not None
    logarithms = [log(constant(x[0], like) if isinstance(x[0], int | float) else x[0])]
    for i in range(1, k + 1):
        logarithms.append(log.taylor(i, logarithms, x))
    return logarithms


def _powers(k: int, x: Terms, p: Terms) -> list[Term]:
    """Return the derivatives of xᵖ up to order k."""
    first, number = power(x[0], p[0]), isinstance(p[0], int | float)
    if any(c is not None for c in p[1 : k + 1]):
        return _moving_powers(k, first, x, p)
    if not number or (k <= LOWERED and p[0] > 1 and not float(p[0]).is_integer()):
        return _lowered_powers(k, first, x, p[0])
    derivatives = powers(k, first, x, p[0])
    if float(p[0]).is_integer():
        return derivatives
    return [term if i >= p[0] else _unless_zero(x[0], term) for i, term in enumerate(derivatives)]


def _unless_zero(x: Term, term: Term) -> Term:
    """Return a derivative at x ≠ 0, and 0 at x = 0."""
    return None if term is None else where(equal(x, 0), 0, term)


def _moving_powers(k: int, first: Term, x: Terms, p: Terms) -> list[Term]:
    """Return the derivatives of xᵖ = exp(p ln x) up to order k.

    Where p has no derivatives, they are those for a constant p, at any x; so they are at x = 0
    up to order p, since all terms with a derivative of p have a factor xᵖ⁻ⁱ ln x there.
    """
    derivatives = exponentials(k, first, products(k, p, _logarithms(k, x, p[0])))
    if isinstance(x[0], int | float) and x[0] > 0:
        return derivatives
    constant_p, moving = _lowered_powers(k, first, x, p[0]), []
    for i in range(1, k + 1):
        moving += [] if p[i] is None else [equal(p[i], 0)]
        at_zero = logical_and(equal(x[0], 0), logical_not(less(p[0], i)))
        simple = logical_or(reduce(logical_and, moving), at_zero) if moving else at_zero
        terms = [0 if term is None else term for term in (constant_p[i], derivatives[i])]
        derivatives[i] = where(simple, *terms)
    return derivatives


def _lowered_powers(k: int, first: Term, x: Terms, p: Term) -> list[Term]:
    """Return the derivatives of xᵖ for a constant p from xᵖ⁻¹, xᵖ⁻², …, which may be 0 at x = 0.

    The recurrence of `powers` divides by x.
    """
    factor, slopes = 1, []
    for j in range(1, k + 1):  # p⋯(p − j + 1)·xᵖ⁻ʲ
        slope = dpower(x[0], p - (j - 1))
        if j > 1 and not isinstance(p, int | float):
            slopes.append(where(logical_and(equal(x[0], 0), equal(factor, 0)), 0, factor * slope))
        else:
            slopes.append(slope if j == 1 else factor * slope)
        factor = factor * (p - (j - 1))
    derivatives: list[Term] = []
    for j in range(k, -1, -1):
        steps = [leibniz(i, x[1:], derivatives) for i in range(k - j)]
        derivatives = [slopes[j - 1] if j else first, *steps]
    return derivatives


def _dpower_series(k: int, y: Terms, x: Terms, p: Terms) -> Term:
    """Return the derivative of p·xᵖ⁻¹, which is 0 for p = 0."""
    if isinstance(p[0], int | float) and p[0] == 0:
        return None
    derivative = leibniz(k, p, _powers(k, x, [p[0] - 1, *p[1:]]))
    if derivative is None or isinstance(p[0], int | float):
        return derivative
    return where(
        reduce(logical_and, (equal(c, 0) for c in p[: k + 1] if c is not None)), 0, derivative
    )


def _exponent_series(k: int, y: Terms, x: Terms, p: Terms) -> Term:
    """Return the derivative of xᵖ ln x, which is 0 at x = 0 below order p."""
    derivative = leibniz(k, _powers(k, x, p), _logarithms(k, x, p[0]))
    if derivative is None or (isinstance(x[0], int | float) and x[0] > 0):
        return derivative
    return where(logical_and(equal(x[0], 0), less(k, p[0])), 0, derivative)


def _lowered(x: Term, p: Term) -> Term:
    """Return the derivative of pxᵖ⁻¹ by x, 0 at x = 0 for p = 0, where xᵖ⁻² is infinite."""
    return where(logical_and(equal(x, 0), equal(p, 0)), 0, p * dpower(x, p - 1))


add: Primitive = Primitive(
    name="add",
    ulps=0.5,
    rule=elementwise(lambda t, y, a, b: t, lambda t, y, a, b: t),
    infix="+",
    sympy=lambda sympy, a, b: a + b,
    latex="{0} + {1}",
    glyph="+",
    samples=(REAL, REAL),
    commutative=True,
    signs=(1, 1),
    unbatched=lambda xp: operator.add,
)
subtract: Primitive = Primitive(
    name="subtract",
    ulps=0.5,
    rule=elementwise(lambda t, y, a, b: t, lambda t, y, a, b: -t),
    infix="-",
    sympy=lambda sympy, a, b: a - b,
    latex="{0} - {1}",
    glyph="−",
    samples=(REAL, REAL),
    signs=(1, -1),
    unbatched=lambda xp: operator.sub,
)
multiply: Primitive = Primitive(
    name="multiply",
    ulps=0.5,
    rule=elementwise(lambda t, y, a, b: t * b, lambda t, y, a, b: t * a),
    infix="*",
    sympy=lambda sympy, a, b: a * b,
    latex="{0} \\cdot {1}",
    glyph="×",
    zero_slope="a factor is {other}",
    taylor=product,
    samples=(REAL, REAL),
    commutative=True,
    degrees=(1, 1),
    unbatched=lambda xp: operator.mul,
)
divide: Primitive = Primitive(
    name="divide",
    ulps=0.5,
    rule=elementwise(lambda t, y, a, b: t / b, lambda t, y, a, b: -((t / b) * y)),
    infix="/",
    sympy=lambda sympy, a, b: a / b,
    latex="\\frac{{{0}}}{{{1}}}",
    glyph="÷",
    notation="{0} / {1}",
    taylor=quotient,
    samples=(REAL, POSITIVE),
    defined="a divisor other than 0",
    degrees=(1, -1),
    unbatched=lambda xp: operator.truediv,
)
# Where a and b are close the squares cancel; the product of difference and sum does not.
square_difference: Primitive = Primitive(
    name="square_difference",
    kernel=kernels.square_difference,
    rule=elementwise(lambda t, y, a, b: t * (2 * a), lambda t, y, a, b: -(t * (2 * b))),
    sympy=lambda sympy, a, b: a**2 - b**2,
    mpmath=lambda mp, a, b: (a - b) * (a + b),
    latex="\\left({{{0}}}^2 - {{{1}}}^2\\right)",
    samples=(REAL, REAL),
)
# The square of `hypot`, which unlike its factors has no kink.
sum_of_squares: Primitive = Primitive(
    name="sum_of_squares",
    kernel=lambda xp, a, b: a * a + b * b,
    rule=elementwise(lambda t, y, a, b: t * (2 * a), lambda t, y, a, b: t * (2 * b)),
    samples=(REAL, REAL),
    expansion=lambda a, b: a * a + b * b,
    commutative=True,
)
negative: Primitive = Primitive(
    name="negative",
    ulps=0.0,
    rule=elementwise(lambda t, y, a: -t),
    infix="-",
    sympy=lambda sympy, a: -a,
    latex="-{0}",
    glyph="neg",
    notation="−{0}",
    samples=(REAL,),
    signs=(-1,),
    unbatched=lambda xp: operator.neg,
)
power: Primitive = Primitive(
    name="power",
    kernel=kernels.power,
    rule=elementwise(
        lambda t, y, x, p: t * dpower(x, p),
        lambda t, y, x, p: t * dpower_exponent(x, p),
        of_exponent=True,
    ),
    infix="^",
    sympy=lambda sympy, x, p: x**p,
    mpmath="power",
    # In JavaScript 1**nan and (-1)**inf are nan.
    latex="{0}^{{{1}}}",
    glyph="xʸ",
    ufunc="power",
    taylor=lambda k, y, x, p: _powers(k, x, p)[k],
    samples=(POSITIVE, REAL),
    defined="a base above 0, or an integer exponent",
    polynomial=True,
    convention="x^0 has derivative 0 at x = 0; 0^p has derivative 0 in p for p > 0",
)
dpower: Primitive = Primitive(
    name="dpower",
    kernel=kernels.power_derivative,
    rule=elementwise(
        lambda t, y, x, p: t * _lowered(x, p),
        lambda t, y, x, p: t * (power(x, p - 1) + p * dpower_exponent(x, p - 1)),
    ),
    glyph="∂xʸ/∂x",
    taylor=_dpower_series,
    samples=(POSITIVE, REAL),
    expansion=lambda x, p: p * power(x, p - 1),
    polynomial=True,
)
dpower_exponent: Primitive = Primitive(
    name="dpower_exponent",
    kernel=kernels.exponent_derivative,
    rule=elementwise(
        lambda t, y, x, p: t * (power(x, p - 1) + p * dpower_exponent(x, p - 1)),
        lambda t, y, x, p: t * where(equal(x, 0), y, y * log(x)),
    ),
    glyph="∂xʸ/∂y",
    taylor=_exponent_series,
    samples=(POSITIVE, REAL),
    expansion=lambda x, p: power(x, p) * log(x),
)
sqrt: Primitive = Primitive(
    name="sqrt",
    ulps=0.5,
    rule=elementwise(lambda t, y, x: t * (0.5 / y)),
    latex="\\sqrt{{{0}}}",
    glyph="√",
    notation="√{0}",
    taylor=root,
    samples=(POSITIVE,),
    defined="x ≥ 0",
    convention="infinite slope at 0",
)
cbrt: Primitive = Primitive(
    name="cbrt",
    kernel=kernels.cbrt,
    rule=elementwise(lambda t, y, x: t * dcbrt(x)),
    sympy=lambda sympy, x: sympy.sign(x) * sympy.cbrt(sympy.Abs(x)),
    mpmath=lambda mp, x: mp.sign(x) * mp.cbrt(abs(x)),
    latex="\\sqrt[3]{{{0}}}",
    glyph="∛",
    notation="cbrt",
    ufunc="cbrt",
    samples=(POSITIVE,),
    convention="infinite slope at 0",
)
# Its derivative is divided by x, so that those at 0 are the limits from the right, without 0·∞.
dcbrt: Primitive = Primitive(
    name="dcbrt",
    kernel=kernels.cbrt_derivative,
    rule=elementwise(lambda t, y, x: t * (y * (constant(-2, x) / 3) / x)),
    glyph="cbrt′",
    samples=(POSITIVE,),
    expansion=lambda x: 1 / (3 * (cbrt(x) * cbrt(x))),
)
hypot: Primitive = Primitive(
    name="hypot",
    kernel=kernels.hypot,
    rule=elementwise(
        lambda t, y, a, b: t * dhypot(a, b),
        lambda t, y, a, b: t * dhypot(b, a),
    ),
    sympy=lambda sympy, a, b: sympy.sqrt(a**2 + b**2),
    mpmath="hypot",
    latex="\\sqrt{{{0}^2 + {1}^2}}",
    ufunc="hypot",
    samples=(REAL, POSITIVE),
    kinks=lambda a, b: hypot(a, b),
    convention="derivative 0 at the origin",
    commutative=True,
)
dhypot: Primitive = Primitive(
    name="dhypot",
    kernel=kernels.hypot_derivative,
    rule=elementwise(
        lambda t, y, a, b: t * (dhypot(b, a) * dhypot(b, a) / hypot(a, b)),
        lambda t, y, a, b: -(t * (y * dhypot(b, a) / hypot(a, b))),
    ),
    glyph="hypot′",
    samples=(REAL, POSITIVE),
    expansion=lambda a, b: a / hypot(a, b),
)

r"""Quotients of Taylor remainders, such as (eˣ − 1)/x and (1 − cos x)/x², and their derivatives.

A row ``(k, j, x)`` is the derivative of order j of :math:`(f(x) - p(x))/x^k`, where p consists of
the terms of f's Taylor series at 0 below the degree k. Written out, numerators cancel near 0, and
more so in each derivative; these rows do not, and the derivative of a row is the row with j + 1.

===================== =========================================================
``exp_remainder``     (eˣ − 1)/x for k = 1, (eˣ − 1 − x)/x² for k = 2
``cos_remainder``     sin(x)/x, (1 − cos x)/x², (x − sin x)/x³ for k = 1, 2, 3
``cosh_remainder``    sinh(x)/x, (cosh x − 1)/x², (sinh x − x)/x³ for k = 1, 2, 3
``log_remainder``     ln(1 + x)/x for k = 1, (ln(1 + x) − x)/x² for k = 2
===================== =========================================================

The one of the cosine has the sign that makes it 1/k! at 0, as the others but the logarithm's.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, comb, factorial, inf, perm, sqrt
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives.portable import by_orders, horner

__all__ = ["cos_remainder", "cosh_remainder", "exp_remainder", "log_remainder"]

Array = Any
Branch = Callable[[ModuleType, int, int, Array], Array]

MOST = 40
"""Highest k and j; beyond them the values are nan."""


def _clip(xp: ModuleType, x: Array, low: float, high: float) -> Array:
    return xp.minimum(xp.maximum(x, low), high)


def _leibniz(k: int, j: int, x: Array, numerators: list[Array]) -> Array:
    """Return the derivative of order j of n(x)/xᵏ, from the derivatives of n."""
    total: Array = 0.0
    for i, numerator in enumerate(numerators):
        lower = j - i
        weight = (-1) ** lower * comb(j, i) * perm(k + lower - 1, lower)
        total = total + weight * (numerator / x ** (k + lower))
    return total


def _polynomial(x: Array, coefficients: list[float]) -> Array:
    total: Array = 0.0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _exp(xp: ModuleType, k: int, j: int, x: Array) -> Array:
    """Kummer's function M(j + 1, j + k + 1, x), whose terms have one sign after its transform."""
    first, bound, terms = factorial(j) / factorial(j + k), 20.0 + k + j, range(110)
    right, left = _clip(xp, x, 0.0, bound), _clip(xp, -x, 0.0, bound)
    rising = horner(((j + 1 + n) / ((j + k + 1 + n) * (n + 1)) for n in terms), right)
    falling = horner(((k + n) / ((j + k + 1 + n) * (n + 1)) for n in terms), left)
    near = first * xp.where(x < 0, xp.exp(-left) * falling, rising)
    far = xp.where(xp.abs(x) < bound, bound, x)
    # In units of e^(x/2), twice, where the quotient is finite and eˣ is not.
    positive, decay = far > 0, xp.exp(-xp.abs(far))
    unit = xp.exp(xp.where(positive, 0.5 * far, 0.0))
    main, rest = xp.where(positive, 1.0, decay), xp.where(positive, decay, 1.0)
    below = [[1 / factorial(n) for n in range(k - i)] for i in range(j + 1)]
    parts = [main - rest * _polynomial(far, terms) for terms in below]
    return xp.where(xp.abs(x) < bound, near, unit * (_leibniz(k, j, far, parts) * unit))


def _even(xp: ModuleType, k: int, j: int, x: Array, sign: float, bound: float) -> Array:
    """Return the series in x² of the rows of cos and cosh, for |x| < bound."""
    m = (j + 1) // 2
    odd = 2 * m - j
    near = _clip(xp, x, -bound, bound)
    ratios = (
        sign
        * (2 * n + 1)
        * (2 * n + 2)
        / ((2 * n + 1 - j) * (2 * n + 2 - j))
        / ((2 * n + 1 + k) * (2 * n + 2 + k))
        for n in range(m, m + 40)
    )
    first = sign**m * factorial(2 * m) / factorial(2 * m + k)
    return first * horner(ratios, near * near) * (near if odd else 1.0)


def _cos(xp: ModuleType, k: int, j: int, x: Array) -> Array:
    bound = 2.0 + 0.5 * (k + j)
    far = xp.where(xp.abs(x) < bound, bound, x)
    parts = []
    for i in range(j + 1):
        # (−1)^⌊k/2⌋ makes the leading term positive; k odd takes the sine.
        turn = (k % 2) * 3 + i  # the derivative of order i of cos or sin is cos(x + turn·π/2)
        wave = (xp.cos(far), -xp.sin(far), -xp.cos(far), xp.sin(far))[turn % 4]
        terms = [0.0] * max(k - i, 0)
        for n in range(k % 2, k, 2):
            if n >= i:
                terms[n - i] = (-1) ** (n // 2) / factorial(n - i)
        parts.append((-1) ** (k // 2) * (wave - _polynomial(far, terms)))
    if k == 2:
        parts[0] = 2.0 * xp.sin(0.5 * far) ** 2
    value = _leibniz(k, j, far, parts)
    return xp.where(xp.abs(x) < bound, _even(xp, k, j, x, -1.0, bound), value)


def _cosh(xp: ModuleType, k: int, j: int, x: Array) -> Array:
    bound = 20.0 + k + j
    size = xp.where(xp.abs(x) < bound, bound, xp.abs(x))
    unit, scale = xp.exp(0.5 * size), xp.exp(-size)
    grown, fallen = 0.5, 0.5 * (scale * scale)
    parts = []
    for i in range(j + 1):
        wave = grown + fallen if (k + i) % 2 == 0 else grown - fallen
        terms = [0.0] * max(k - i, 0)
        for n in range(k % 2, k, 2):
            if n >= i:
                terms[n - i] = 1 / factorial(n - i)
        parts.append(wave - scale * _polynomial(size, terms))
    value = unit * (_leibniz(k, j, size, parts) * unit)
    far = xp.where(x < 0, (-1) ** j * value, value)
    return xp.where(xp.abs(x) < bound, _even(xp, k, j, x, 1.0, bound), far)


def _log(xp: ModuleType, k: int, j: int, x: Array) -> Array:
    """F(1, k; j + k + 1; −x)/(1 + x)ʲ by Gauss's continued fraction, and far away in closed form.

    The closed forms lose no digits beyond a bound, which rises with the orders.
    """
    bound = 24.0 + 2.0 * (k + j)
    near = (x > 1.0 / (1.0 + bound) - 1.0) & (x < bound)
    value = xp.where(x < 0, _log_below(xp, k, j, xp.where(near | (x > 0), -0.99, x)), 0.0)
    value = xp.where(x < bound, value, _log_above(xp, k, j, xp.where(x < bound, bound, x)))
    value = xp.where(near, _log_near(k, j, xp.where(near, x, 0.0), bound), value)
    sign = (-1.0) ** (k + 1 + j)
    return xp.where(x == -1, inf, value) * sign  # where infinities of both signs would meet


def _log_near(k: int, j: int, x: Array, bound: float) -> Array:
    """Return the fraction at x < bound and 1 + x > 1/(1 + bound), with positive sign.

    A level damps the errors of those below by (1 - √(1 + x))/(1 + √(1 + x)), which is also the
    fraction's rate of convergence.
    """
    total: Array = 1.0
    for n in reversed(range(ceil(11 * sqrt(1 + bound)))):
        odd = (k + n) * (j + k + n) / ((j + k + 2 * n) * (j + k + 2 * n + 1))
        even = (n + 1) * (j + n + 1) / ((j + k + 2 * n + 1) * (j + k + 2 * n + 2))
        total = 1.0 + odd * x / (1.0 + even * x / total)
    return factorial(j) / (j + k) / total * _falling(j, x)


def _falling(j: int, x: Array) -> Array:
    """Return (1 + x)⁻ʲ, corrected by the rounding error of 1 + x."""
    above = 1.0 + x
    part = above - 1.0
    lost = (1.0 - (above - part)) + (x - part)
    return (1.0 - j * (lost / above)) / above**j


def _log_above(xp: ModuleType, k: int, j: int, x: Array) -> Array:
    """Return the values with positive sign far above 0, by recurrence in k from k = 1."""
    inverse = 1.0 / (1.0 + x)
    share = 1.0 - inverse  # x/(1 + x), of which the rounding error is known
    lost = (1.0 - share) - inverse
    terms = _polynomial(share, [0.0, *(1 / i for i in range(1, j + 1))])
    terms = terms + lost * _polynomial(share, [1.0] * j)
    power, total = _falling(j, x) / x, (xp.log1p(x) - terms) / x ** (j + 1)
    for n in range(1, k):
        total = (power - (n + j) * (total / x)) / n
    return factorial(j) * total


def _log_below(xp: ModuleType, k: int, j: int, x: Array) -> Array:
    """Return the values with positive sign near -1, where the derivatives' last terms dominate."""
    return (-1) ** (k + 1 + j) * _leibniz(k, j, x, _log_numerators(xp.log1p(x), k, j, x))


def _log_numerators(logarithm: Array, k: int, j: int, x: Array) -> list[Array]:
    """Return the derivatives of ln(1 + x) without its terms below the degree k, up to order j."""
    lower = [0.0, *((-1) ** (n + 1) / n for n in range(1, k))]
    parts = [logarithm - _polynomial(x, lower)]
    for i in range(1, j + 1):
        slope = (-1) ** (i - 1) * factorial(i - 1) / (1 + x) ** i
        terms = [(-1) ** (n + 1) * perm(n, i) / n for n in range(i, k)]
        parts.append(slope - _polynomial(x, terms))
    return parts


def _kernel(branch: Branch, ends: tuple[float, float]) -> Callable[..., Array]:
    """Return the kernel of a row from its values for one k and one j, and those at −∞ and ∞."""

    def finite_or_edge(xp: ModuleType, k: int, j: int, x: Array) -> Array:
        value = branch(xp, k, j, xp.where(xp.isfinite(x), x, 0.0))
        edge = xp.where(x == inf, ends[1], xp.where(x == -inf, ends[0], xp.nan))
        return xp.where(xp.isfinite(x), value, edge)

    return by_orders(finite_or_edge, lambda k, j: 1 <= k <= MOST and 0 <= j <= MOST)


def _kummer(library: Any, k: int, j: int, x: Any, hyper: Any) -> Any:
    return hyper([j + 1], [j + k + 1], x) * factorial(j) / factorial(j + k)


def _gauss(library: Any, k: int, j: int, x: Any, hyper: Any) -> Any:
    sign = (-1) ** (k + 1 + j)
    numeric = hasattr(library, "mpf")
    if numeric and x > 1:  # the series converges as slowly as x/(1 + x) is near 1
        return _logarithmic(library, k, j, x)
    if numeric and x > 0:  # converges faster
        share = hyper([j + 1, 1], [j + k + 1], x / (1 + x)) / (1 + x) ** (j + 1)
        return sign * share * factorial(j) / (j + k)
    return sign * hyper([j + 1, j + k], [j + k + 1], -x) * factorial(j) / (j + k)


def _logarithmic(mp: Any, k: int, j: int, x: Any) -> Any:
    """Return the derivative of order j of (ln(1 + x) − p(x))/xᵏ in closed form, for x > 1."""
    with mp.extraprec(4 * (k + j) + 20):  # the digits that cancel where x is near 1
        total = (-1) ** j * perm(k + j - 1, j) * mp.log1p(x) / x ** (k + j)
        for i in range(1, j + 1):  # those of the logarithm, and those of x⁻ᵏ
            slope = (-1) ** (i - 1) * factorial(i - 1) / (1 + x) ** i
            power = (-1) ** (j - i) * perm(k + j - i - 1, j - i) / x ** (k + j - i)
            total += comb(j, i) * slope * power
        for n in range(1, k):
            slope = (-1) ** j * perm(k - n + j - 1, j) / x ** (k - n + j)
            total -= (-1) ** (n + 1) * slope / n
    return +total


def _quadratic(sign: int) -> Callable[..., Any]:
    def form(library: Any, k: int, j: int, x: Any, hyper: Any) -> Any:
        m = (j + 1) // 2
        odd, half = 2 * m - j, library.mpf(1) / 2 if hasattr(library, "mpf") else library.S.Half
        above = [m + half, m + 1]
        below = [half + odd, m + (k + 1) * half, m + (k + 2) * half]
        first = sign**m * x**odd * factorial(2 * m) / factorial(2 * m + k)
        return first * hyper(above, below, sign * x**2 / 4)

    return form


def _row(
    name: str,
    branch: Branch,
    form: Callable[..., Any],
    ends: tuple[float, float],
    samples: tuple[float, float],
    defined: str = "",
) -> Primitive:
    """Return a row from its kernel, and its form in hypergeometric functions."""
    kernel = _kernel(branch, ends)
    row: Primitive = Primitive(
        name=name,
        kernel=kernel,
        ulps=8.0,
        rule=elementwise(None, None, lambda t, y, k, j, x: t * row(k, j + 1, x)),
        sympy=lambda sympy, k, j, x: form(sympy, int(k), int(j), x, sympy.hyper),
        mpmath=lambda mp, k, j, x: form(mp, int(k), int(j), x, mp.hyper),
        samples=((2.0, 2.0), (1.0, 1.0), samples),
        defined=defined,
        analytic=False,
    )
    return row


ORDERS = "orders k = 1, 2, 3, … and j = 0, 1, 2, …"
exp_remainder: Primitive = _row("exp_remainder", _exp, _kummer, (0.0, inf), (-3.0, 3.0), ORDERS)
cos_remainder: Primitive = _row(
    "cos_remainder", _cos, _quadratic(-1), (0.0, 0.0), (0.3, 1.8), ORDERS
)
cosh_remainder: Primitive = _row(
    "cosh_remainder", _cosh, _quadratic(1), (inf, inf), (0.5, 3.0), ORDERS
)
log_remainder: Primitive = _row(
    "log_remainder", _log, _gauss, (np.nan, 0.0), (-0.7, 3.0), f"{ORDERS}, and x > -1"
)

"""Portable kernels of the error functions and of the normal distribution, and of Dawson's integral.

The rational approximations of erfc are those of fdlibm's ``s_erf.c`` (Sun Microsystems, 1993).
`erfinv` takes two steps of Halley's method from S. Winitzki's approximation (2008).
"""

from __future__ import annotations

import math
from typing import Any

from difflab.primitives.portable import exp_square, helper, is_odd, polynomial

__all__ = ["dawsn_derivative", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv"]

ROOT = math.sqrt(math.pi) / 2
WINITZKI = 0.147
NEAR_ABOVE = (
    *(0.12837916709551256, -0.3250421072470015, -0.02848174957559851, -0.005770270296489442),
    -2.3763016656650163e-05,
)
NEAR_BELOW = (
    *(1.0, 0.39791722395915535, 0.0650222499887673, 0.005081306281875766),
    *(0.00013249473800432164, -3.960228278775368e-06),
)
MIDDLE_ABOVE = (
    *(-0.0023621185607526594, 0.41485611868374833, -0.3722078760357013, 0.31834661990116175),
    *(-0.11089469428239668, 0.035478304325618236, -0.002166375594868791),
)
MIDDLE_BELOW = (
    *(1.0, 0.10642088040084423, 0.540397917702171, 0.07182865441419627, 0.12617121980876164),
    *(0.01363708391202905, 0.011984499846799107),
)
TAIL_ABOVE = (
    *(-0.009864944034847148, -0.6938585727071818, -10.558626225323291, -62.375332450326006),
    *(-162.39666946257347, -184.60509290671104, -81.2874355063066, -9.814329344169145),
)
TAIL_BELOW = (
    *(1.0, 19.651271667439257, 137.65775414351904, 434.56587747522923, 645.3872717332679),
    *(429.00814002756783, 108.63500554177944, 6.570249770319282, -0.0604244152148581),
)
FAR_ABOVE = (
    *(-0.0098649429247001, -0.799283237680523, -17.757954917754752, -160.63638485582192),
    *(-637.5664433683896, -1025.0951316110772, -483.5191916086514),
)
FAR_BELOW = (
    *(1.0, 30.33806074348246, 325.7925129965739, 1536.729586084437, 3199.8582195085955),
    *(2553.0504064331644, 474.52854120695537, -22.44095244658582),
)


@helper
def _tail(xp: Any, x: Any) -> Any:
    """Return ln(x·erfcx(x)) + 0.5625 for x ≥ 1.25."""
    return xp.cond(
        x < 1 / 0.35,
        lambda s: polynomial(s, TAIL_ABOVE) / polynomial(s, TAIL_BELOW),
        lambda s: polynomial(s, FAR_ABOVE) / polynomial(s, FAR_BELOW),
        1.0 / (x * x),
    )


@helper
def _erf_near(xp: Any, x: Any) -> Any:
    z = x * x
    return x + x * (polynomial(z, NEAR_ABOVE) / polynomial(z, NEAR_BELOW))


@helper
def _erfc_far(xp: Any, x: Any) -> Any:
    """Return erfc(x) for x ≥ 0.84375."""

    def middle(x: Any) -> Any:
        quotient = polynomial(x - 1.0, MIDDLE_ABOVE) / polynomial(x - 1.0, MIDDLE_BELOW)
        return 0.15493708848953247 - quotient

    def far(x: Any) -> Any:
        z = xp.floor(16.0 * x) * 0.0625  # z² is exact
        return xp.exp(-z * z - 0.5625) * xp.exp((z - x) * (z + x) + _tail(xp, x)) / x

    return xp.cond(
        x < 1.25, middle, lambda x: xp.cond(x < 28, far, lambda x: xp.where(x == x, 0.0, x), x), x
    )


def erf(xp: Any, x: Any) -> Any:
    """Return the error function."""

    def far(x: Any) -> Any:
        size = 1.0 - _erfc_far(xp, xp.abs(x))
        return xp.where(x < 0, -size, size)

    return xp.cond(xp.abs(x) < 0.84375, lambda x: _erf_near(xp, x), far, x)


def erfc(xp: Any, x: Any) -> Any:
    """Return 1 - erf(x), in all its digits."""

    def far(x: Any) -> Any:
        tail = _erfc_far(xp, xp.abs(x))
        return xp.where(x < 0, 2.0 - tail, tail)

    return xp.cond(xp.abs(x) < 0.84375, lambda x: 1.0 - _erf_near(xp, x), far, x)


def erfcx(xp: Any, x: Any) -> Any:
    """Return e^(x²) erfc(x)."""
    return xp.cond(
        x < 1.25,
        lambda x: exp_square(xp, x, 1.0) * xp.special.erfc(x),
        lambda x: xp.exp(_tail(xp, x) - 0.5625) / x,
        x,
    )


def erfi(xp: Any, x: Any) -> Any:
    """Return erfi(x): its power series, and Dawson's integral times an exponential beyond."""

    def step(k: Any, term: Any, total: Any, x: Any) -> Any:
        term = term * (x * x / k)
        return k + 1.0, term, total + term / (2.0 * k + 1.0)

    def near(x: Any) -> Any:
        def test(k: Any, term: Any, total: Any, x: Any) -> Any:
            return xp.abs(term) > 1e-17 * xp.abs(total)

        return 1 / ROOT * xp.while_loop(test, step, (1.0, x, x), x)[2]

    def far(x: Any) -> Any:
        value = 1 / ROOT * exp_square(xp, x, 1.0) * xp.special.dawsn(x)
        return xp.where(xp.abs(x) > 27, xp.where(x > 0, xp.inf, -xp.inf), value)

    return xp.cond(xp.abs(x) > 2, far, near, x)


def erfinv(xp: Any, x: Any) -> Any:
    """Return the inverse of erf."""

    def regular(x: Any) -> Any:
        size = xp.abs(x)
        q = 1.0 - size
        logarithm = xp.log(q * (1.0 + size))
        t = 2 / (math.pi * WINITZKI) + 0.5 * logarithm
        y = xp.sqrt(xp.sqrt(t * t - logarithm / WINITZKI) - t)
        y = xp.where(size < 0.1, ROOT * size, y)
        for _ in range(2):
            gap = xp.where(size < 0.5, xp.special.erf(y) - size, q - xp.special.erfc(y))
            u = gap * (ROOT * xp.exp(y * y))
            y = y - u / (1.0 + y * u)
        return xp.where(x < 0, -y, y)

    def edge(x: Any) -> Any:
        return xp.where(x == 1, xp.inf, xp.where(x == -1, -xp.inf, xp.nan))

    return xp.cond(xp.abs(x) < 1, regular, edge, x)


@helper
def _erfcinv_small(xp: Any, x: Any) -> Any:
    """Return the inverse of erfc for 0 < x < ½; where slopes overflow by the asymptotic series."""
    logarithm = xp.log(x * (2.0 - x))
    t = 2 / (math.pi * WINITZKI) + 0.5 * logarithm
    start = xp.sqrt(xp.sqrt(t * t - logarithm / WINITZKI) - t)

    def least(x: Any, y: Any) -> Any:
        for _ in range(4):
            q = 0.5 / (y * y)
            tail = 15.0 - q * (105.0 - 945.0 * q)
            series = 1.0 - q * (1.0 - q * (3.0 - q * tail))
            y = xp.sqrt(-xp.log(x) - xp.log(2 * ROOT * y / series))
        return y

    def regular(x: Any, y: Any) -> Any:
        for _ in range(3):
            u = (x - xp.special.erfc(y)) * ROOT * exp_square(xp, y, 1.0)
            y = y - u / (1.0 + y * u)
        return y

    return xp.cond(x < 1e-290, least, regular, x, start)


def erfcinv(xp: Any, x: Any) -> Any:
    """Return the inverse of erfc."""

    def outer(x: Any) -> Any:
        tail = _erfcinv_small(xp, xp.minimum(x, 2.0 - x))
        return xp.where(x < 1, tail, -tail)

    def edge(x: Any) -> Any:
        return xp.where(x == 0, xp.inf, xp.where(x == 2, -xp.inf, xp.nan))

    def inner(x: Any) -> Any:
        return xp.cond((x >= 0.5) & (x <= 1.5), lambda x: xp.special.erfinv(1.0 - x), outer, x)

    return xp.cond((x > 0) & (x < 2), inner, edge, x)


@helper
def _dawsn_taylor(xp: Any, n: Any, x: Any) -> Any:
    half, odd = xp.floor(0.5 * n), is_odd(xp, n)
    below = xp.where(odd, 0.5, 1.5)

    def step(k: Any, total: Any, half: Any, below: Any, square: Any) -> Any:
        ratio = (half + 1.0 + k) / ((below + k) * (k + 1.0))
        return k - 1.0, 1.0 - ratio * square * total

    def test(k: Any, total: Any, half: Any, below: Any, square: Any) -> Any:
        return k >= 0

    total = xp.while_loop(test, step, (39.0, 1.0), half, below, x * x)[1]
    scale = xp.where(is_odd(xp, half), -1.0, 1.0) * 4.0**half * xp.special.gamma(half + 1.0)
    return scale * total * xp.where(odd, 1.0, x)


@helper
def _dawsn_contour(xp: Any, n: Any, x: Any) -> Any:
    """Return a derivative by the contour integral of `difflab.primitives.dawson`."""
    depth = xp.sqrt(xp.maximum(n / 6.0, 1.0))
    h = xp.floor(256.0 * math.pi * depth / (45.0 + 4.0 * n)) / 128.0
    last = xp.ceil((6.9 + 0.1 * n) / h)

    def power(m: Any, p: Any, q: Any, a: Any, b: Any, n: Any) -> Any:
        return m + 1.0, p * a - q * b, p * b + q * a

    def step(k: Any, total: Any, n: Any, x: Any, h: Any, depth: Any, last: Any) -> Any:
        t = k * h
        u = x - t
        r = 1.0 / (u * u + depth * depth)
        a, b = u * r, -depth * r
        _, p, q = xp.while_loop(lambda m, p, q, a, b, n: m < n, power, (0.0, a, b), a, b, n)
        wave = xp.cos(2.0 * depth * t) * p - xp.sin(2.0 * depth * t) * q
        return k + 1.0, total + xp.exp(depth * depth - t * t) * wave

    def test(k: Any, total: Any, n: Any, x: Any, h: Any, depth: Any, last: Any) -> Any:
        return k <= last

    total = xp.while_loop(test, step, (-last, 0.0), n, x, h, depth, last)[1]
    sign = xp.where(is_odd(xp, n), -1.0, 1.0)
    return 0.5 / math.sqrt(math.pi) * h * sign * xp.special.gamma(n + 1.0) * total


@helper
def _dawsn_asymptotic(xp: Any, n: Any, x: Any) -> Any:
    def step(k: Any, total: Any, n: Any, x: Any) -> Any:
        ratio = (2.0 * k + 1.0 + n) * (2.0 * k + 2.0 + n) / (4.0 * (k + 1.0))
        return k - 1.0, 1.0 + ratio / x / x * total

    def slope(k: Any, total: Any, x: Any) -> Any:
        return k - 1.0, total * (-k / x)

    total = xp.while_loop(lambda k, total, n, x: k >= 0, step, (39.0, 1.0), n, x)[1]
    return 0.5 / x * xp.while_loop(lambda k, total, x: k > 0, slope, (n, total), x)[1]


def dawsn_derivative(xp: Any, n: Any, x: Any) -> Any:
    """Return the derivative of order n of Dawson's integral."""

    def away(n: Any, x: Any) -> Any:
        value = xp.cond(
            xp.abs(x) < 30,
            lambda n, x: _dawsn_contour(xp, n, x),
            lambda n, x: _dawsn_asymptotic(xp, n, x),
            n,
            xp.abs(x),
        )
        return xp.where((x < 0) & ~is_odd(xp, n), -value, value)

    def regular(n: Any, x: Any) -> Any:
        return xp.cond(xp.abs(x) < 0.5, lambda n, x: _dawsn_taylor(xp, n, x), away, n, x)

    valid = (n >= 0) & (n <= 20) & (n == xp.floor(n))
    return xp.cond(valid, regular, lambda n, x: x * xp.nan, n, x)

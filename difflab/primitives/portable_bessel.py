"""Portable kernels of Bessel and Airy functions of real order.

H = J + iY is an integral along its path of steepest descent (DLMF 10.9.18), and K one of a positive
integrand (10.32.9), both by the trapezoidal rule, which converges exponentially. I is its power
series, and so is J where that does not cancel. The recurrence leads from two orders below 2 to all
others, for J beyond the argument downwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from difflab.primitives.portable import helper, is_odd, sinpi

__all__ = ["airy", "besseli", "besselj", "besselk", "bessely"]

THIRD = 0.5773502691896258
"""√⅓."""


def _cospi(xp: Any, x: Any) -> Any:
    return sinpi(xp, xp.abs(x) + 0.5)


def _alternating(xp: Any, n: Any) -> Any:
    return xp.where(is_odd(xp, n), -1.0, 1.0)


@helper
def _hankel(xp: Any, n: Any, x: Any, second: Any) -> Any:
    """Return J, or Y if `second`, for orders from 0 to 2."""
    h = 1.0 / xp.where(x > 16, 2.5 * xp.sqrt(x), 10.0)

    def side(sign: float, first: float) -> Any:
        def test(k: Any, real: Any, imaginary: Any, n: Any, x: Any, h: Any) -> Any:
            u = k * h
            return x * xp.sinh(u) * xp.tanh(u) - n * u < 60

        def step(k: Any, real: Any, imaginary: Any, n: Any, x: Any, h: Any) -> Any:
            u = (sign * k) * h
            fall = x * xp.sinh(u) * xp.tanh(u)
            turn, slope = -2.0 * n * xp.arctan(xp.tanh(0.5 * u)), 1.0 / xp.cosh(u)
            weight = h * xp.exp(-fall - n * u)
            c, s = weight * xp.cos(turn), weight * xp.sin(turn)
            return k + 1.0, real + (c - s * slope), imaginary + (s + c * slope)

        return xp.while_loop(test, step, (first, 0.0, 0.0), n, x, h)[1:]

    right, left = side(1.0, 0.0), side(-1.0, 1.0)
    real, imaginary = right[0] + left[0], right[1] + left[1]
    phase = 0.5 * math.pi * n
    c, s = xp.cos(phase), xp.sin(phase)
    a = (xp.cos(x) * c + xp.sin(x) * s) / math.pi
    b = (xp.sin(x) * c - xp.cos(x) * s) / math.pi
    return xp.where(second > 0, b * imaginary - a * real, a * imaginary + b * real)


@helper
def _bessel_series(xp: Any, n: Any, x: Any, sign: Any) -> Any:
    square = sign * 0.25 * x * x

    def step(k: Any, term: Any, total: Any, n: Any, square: Any) -> Any:
        term = term * (square / (k * (n + k)))
        return k + 1.0, term, total + term

    def test(k: Any, term: Any, total: Any, n: Any, square: Any) -> Any:
        return xp.abs(term) > 1e-17 * xp.abs(total)

    total = xp.while_loop(test, step, (1.0, 1.0, 1.0), n, square)[2]
    first = xp.cond(
        n < 100,
        lambda n, half: half**n / xp.special.gamma(n + 1.0),
        lambda n, half: xp.exp(n * xp.log(half) - xp.special.gammaln(n + 1.0)),
        n,
        0.5 * x,
    )
    return first * total


def _upwards(xp: Any, n: Any, x: Any, second: float) -> Any:
    """Return the function of order n from those of its fraction and one more, by recurrence."""

    def step(m: Any, low: Any, high: Any, n: Any, x: Any) -> Any:
        return m + 1.0, high, 2.0 * m / x * high - low

    fraction = n - xp.floor(n)
    low, high = _hankel(xp, fraction, x, second), _hankel(xp, fraction + 1.0, x, second)
    start = (fraction + 1.0, low, high)
    return xp.while_loop(lambda m, low, high, n, x: m < n + 0.5, step, start, n, x)[1]


@helper
def _miller(xp: Any, n: Any, x: Any) -> Any:
    """Return J for n > x, by the recurrence downwards."""
    fraction = n - xp.floor(n)
    j, after = _hankel(xp, fraction, x, 0.0), _hankel(xp, fraction + 1.0, x, 0.0)
    last = xp.ceil(n + 40.0 + 2.0 * xp.sqrt(40.0 * n)) + fraction

    def step(m: Any, here: Any, above: Any, found: Any, n: Any, x: Any, fraction: Any) -> Any:
        below = 2.0 * m / x * here - above
        found = xp.where(xp.abs(m - 1.0 - n) < 0.5, below, found)
        scale = xp.where(xp.abs(below) > 1e250, 1e-250, 1.0)
        return m - 1.0, below * scale, here * scale, found * scale

    def test(m: Any, here: Any, above: Any, found: Any, n: Any, x: Any, fraction: Any) -> Any:
        return m > fraction + 0.5

    start = (last, 1e-250, 0.0, 0.0)
    _, here, above, found = xp.while_loop(test, step, start, n, x, fraction)
    return found * xp.where(xp.abs(j) > xp.abs(after), j / here, after / above)


@helper
def _besselj_right(xp: Any, n: Any, x: Any) -> Any:
    """Return J for n ≥ 0 and x ≥ 0."""

    def large(n: Any, x: Any) -> Any:
        upwards = lambda n, x: _upwards(xp, n, x, 0.0)  # noqa: E731
        return xp.cond(n > x, lambda n, x: _miller(xp, n, x), upwards, n, x)

    def finite(n: Any, x: Any) -> Any:
        small = x * x < 4.0 * (n + 1.0)
        return xp.cond(small, lambda n, x: _bessel_series(xp, n, x, -1.0), large, n, x)

    return xp.cond(x < xp.inf, finite, lambda n, x: xp.where(x == x, 0.0, x) + 0.0 * n, n, x)


@helper
def _bessely_right(xp: Any, n: Any, x: Any) -> Any:
    """Return Y for n ≥ 0."""

    def edge(n: Any, x: Any) -> Any:
        return xp.where(x == 0, -xp.inf, xp.where(x > 0, 0.0, xp.nan)) + 0.0 * n

    return xp.cond((x > 0) & (x < xp.inf), lambda n, x: _upwards(xp, n, x, 1.0), edge, n, x)


def besselj(xp: Any, n: Any, x: Any) -> Any:
    """Return J of a real order."""

    def whole(n: Any, x: Any) -> Any:
        flipped = xp.where(((x < 0) & (n < 0)) | ((x >= 0) & (n >= 0)), 1.0, _alternating(xp, n))
        return flipped * _besselj_right(xp, xp.abs(n), xp.abs(x))

    def below(n: Any, x: Any) -> Any:
        j, y = _besselj_right(xp, -n, x), _bessely_right(xp, -n, x)
        return _cospi(xp, n) * j + sinpi(xp, n) * y

    def right(n: Any, x: Any) -> Any:
        return xp.cond(n < 0, below, lambda n, x: _besselj_right(xp, n, x), n, x)

    def broken(n: Any, x: Any) -> Any:
        return xp.cond(x >= 0, right, lambda n, x: xp.nan * (n + x), n, x)

    return xp.cond(n == xp.floor(n), whole, broken, n, x)


def bessely(xp: Any, n: Any, x: Any) -> Any:
    """Return Y of a real order."""

    def below(n: Any, x: Any) -> Any:
        j, y = _besselj_right(xp, -n, xp.abs(x)), _bessely_right(xp, -n, x)
        return _cospi(xp, n) * y - sinpi(xp, n) * j

    def whole(n: Any, x: Any) -> Any:
        sign = xp.where(n < 0, _alternating(xp, n), 1.0)
        return sign * _bessely_right(xp, xp.abs(n), x)

    return xp.cond((n >= 0) | (n == xp.floor(n)), whole, below, n, x)


@helper
def _besseli_right(xp: Any, n: Any, x: Any) -> Any:
    """Return I for x ≥ 0."""
    return xp.cond(
        x < xp.inf, lambda n, x: _bessel_series(xp, n, x, 1.0), lambda n, x: x + 0.0 * n, n, x
    )


def besseli(xp: Any, n: Any, x: Any) -> Any:
    """Return I of a real order."""

    def whole(n: Any, x: Any) -> Any:
        sign = xp.where(x < 0, _alternating(xp, n), 1.0)
        return sign * _besseli_right(xp, xp.abs(n), xp.abs(x))

    def below(n: Any, x: Any) -> Any:
        rest = 2 / math.pi * sinpi(xp, n) * xp.special.kv(n, x)
        return _besseli_right(xp, -n, x) - rest

    def broken(n: Any, x: Any) -> Any:
        found = xp.cond(n < 0, below, lambda n, x: _besseli_right(xp, n, x), n, xp.abs(x))
        return xp.where(x >= 0, found, xp.nan)

    return xp.cond(n == xp.floor(n), whole, broken, n, x)


def besselk(xp: Any, n: Any, x: Any) -> Any:
    """Return K of a real order."""

    def finite(n: Any, x: Any) -> Any:
        n = xp.abs(n)
        size = xp.sqrt(n * n + x * x)
        h = 1.0 / xp.where(size > 16, 2.0 * xp.sqrt(size), 8.0)

        def fall(t: Any, x: Any) -> Any:
            s = xp.sinh(0.5 * t)
            return 2.0 * x * s * s

        def step(k: Any, total: Any, n: Any, x: Any, h: Any) -> Any:
            t = k * h
            down = fall(t, x)
            return k + 1.0, total + 0.5 * (xp.exp(n * t - down) + xp.exp(-n * t - down))

        def test(k: Any, total: Any, n: Any, x: Any, h: Any) -> Any:
            return fall(k * h, x) - n * (k * h) < 60

        total = xp.while_loop(test, step, (1.0, 0.5), n, x, h)[1]
        return xp.exp(-x) * h * total

    def edge(n: Any, x: Any) -> Any:
        return xp.where(x > 0, 0.0, xp.where(x == 0, xp.inf, xp.nan)) + 0.0 * n

    return xp.cond((x > 0) & (x <= 750), finite, edge, n, x)


def _airy_series(xp: Any, x: Any, prime: bool) -> tuple[Any, Any]:
    """Return the even and the odd solution, or their derivatives, for |x| < 1."""
    a, b = 1.0, x
    even, odd = (0.0, 1.0) if prime else (1.0, x)
    for k in range(3, 40, 3):
        if prime:
            even, odd = even + x * x * a / (k - 1.0), odd + x * b / float(k) * x
        a, b = a * (x * x * x / ((k - 1.0) * k)), b * (x * x * x / (k * (k + 1.0)))
        if not prime:
            even, odd = even + a, odd + b
    return even, odd


def airy(*, second: bool, prime: bool) -> Callable[..., Any]:
    """Return the kernel of Ai or Bi, or of its derivative."""
    order = 2 / 3 if prime else 1 / 3

    def near(xp: Any, x: Any) -> Any:
        even, odd = _airy_series(xp, x, prime)
        scale, sign = (math.sqrt(3), 1.0) if second else (1.0, -1.0)
        return scale * (0.3550280538878172 * even + (sign * 0.2588194037928068) * odd)

    def right(xp: Any, x: Any) -> Any:
        part = x if prime else xp.sqrt(x)
        z = x * xp.sqrt(x) / 1.5
        if not second:
            sign = -1.0 if prime else 1.0
            found = sign * part * (THIRD / math.pi) * xp.special.kv(order, z)
            return xp.where(x > 110, 0.0, found)
        found = part * THIRD * (xp.special.iv(order, z) + xp.special.iv(-order, z))
        return xp.where(z > 720, xp.inf, found)

    def left(xp: Any, x: Any) -> Any:
        size = -x
        part, z = size if prime else xp.sqrt(size), size * xp.sqrt(size) / 1.5
        j, y = _hankel(xp, order, z, 0.0), _hankel(xp, order, z, 1.0)
        if prime:
            wave = THIRD * j - y if second else j + THIRD * y
        else:
            wave = -(THIRD * j + y) if second else j - THIRD * y
        return 0.5 * part * wave

    def kernel(xp: Any, x: Any) -> Any:
        return xp.cond(
            xp.abs(x) < 1,
            lambda x: near(xp, x),
            lambda x: xp.cond(x < 0, lambda x: left(xp, x), lambda x: right(xp, x), x),
            x,
        )

    return kernel

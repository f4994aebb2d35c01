"""Portable kernels of Bessel and Airy functions, and of incomplete gamma functions of one order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from difflab.primitives.portable import helper, horner, is_odd, sinpi

# --- constant orders, by series of a known length ------------------------------------------------
# Modified Bessel functions are power series (DLMF 10.25.2, 10.31) and asymptotic ones (10.40), and
# K between them the trapezoidal rule for its integral (10.32.9), whose error falls exponentially
# with the step; the incomplete gamma functions are a power series (8.7.1) and a continued fraction
# (8.9.2). Other orders are left to the kernels of any order.

MOST, MOST_MODIFIED = 100, 10
"""Highest orders: the series grow."""
EULER = 0.5772156649015329
SMALL = 2.0**-56
"""Of a sum of 1, what is left out."""
LEAST_OF_Q, VANISHED = 0.4, 1200.0
"""Below that a, 1 − P loses digits; above that x, Q is 0, and x¹⁰⁰ is finite."""


def besseli_of_order(xp: Any, n: float, x: Any) -> Any:
    """Return I of one whole order; None for others."""
    if n % 1 != 0 or abs(n) > MOST_MODIFIED:
        return None
    order = int(abs(n))
    far = 20.0 + 0.5 * order**2
    ratios = _needed(lambda k: 1 / ((k + 1) * (k + 1 + order)), far**2 / 4)
    falling = [-(4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1)) for k in range(40)]

    size = xp.abs(x)
    half = 0.5 * xp.minimum(size, far)
    near = half**order / math.factorial(order) * horner(ratios, half * half)
    large = xp.clip(size, far, VANISHED)  # where it is infinite
    grown = xp.exp(0.5 * large)  # twice, where the quotient is finite and eˣ is not
    beyond = grown / xp.sqrt(2 * math.pi * large) * horner(falling, 1.0 / large) * grown
    value = xp.where(size < far, near, beyond)
    return xp.where(x < 0, -value, value) if order % 2 else value


def besselk_of_order(xp: Any, n: float, x: Any) -> Any:
    """Return K of one whole order; None for others."""
    if n % 1 != 0 or abs(n) > MOST_MODIFIED:
        return None
    order = int(abs(n))
    far = 20.0 + 0.5 * order**2
    nodes = _nodes(order, far)
    rising = [(4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1)) for k in range(40)]

    near, middle, large = (xp.clip(x, *ends) for ends in ((0.0, 1.0), (1.0, far), (far, VANISHED)))
    below, here = _first_modified(xp, near)
    for m in range(1, order):
        below, here = here, below + 2.0 * m / near * here
    total: Any = 0.0
    for weight, rate in nodes:
        total = total + weight * xp.exp(-rate * middle)
    beyond = xp.sqrt(0.5 * math.pi / large) * horner(rising, 1.0 / large)
    rest = xp.where(x < far, total * xp.exp(-middle), beyond * xp.exp(-large))
    rest = xp.where(x < 1.0, here if order else below, rest)
    return xp.where(x < 0, xp.nan, xp.where(x == 0, xp.inf, rest))


def _first_modified(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return K of the orders 0 and 1 for x up to 1, by their power series."""
    square, logarithm = 0.25 * x * x, xp.log(x) - math.log(2)
    zero: Any = 0.0
    one: Any = 0.0
    psi = [-EULER]
    for k in range(1, 14):
        psi.append(psi[-1] + 1 / k)
    for k in range(12, -1, -1):
        size = math.factorial(k) ** 2
        zero = zero * square + (psi[k] - logarithm) / size
        one = one * square + (logarithm - 0.5 * (psi[k] + psi[k + 1])) / (size * (k + 1))
    return zero, 1.0 / x + 0.5 * x * one


def _nodes(order: int, far: float) -> list[tuple[float, float]]:
    """Return weights and rates of the trapezoidal rule for eˣK, the smallest terms first."""
    step = min(0.25, math.pi * math.sqrt(2 / (37 * far)))
    nodes, total = [(0.5 * step, 0.0)], 0.5 * step
    while True:
        t = step * len(nodes)
        weight, rate = step * math.cosh(order * t), 2.0 * math.sinh(0.5 * t) ** 2
        nodes.append((weight, rate))
        total += weight * math.exp(-rate)
        if weight * math.exp(-rate) < SMALL * total:
            return nodes[::-1]


def incomplete_gamma(*, upper: bool) -> Callable[..., Any]:
    """Return the kernel of P(a, x), or Q(a, x), of one a: the smaller one, or its complement."""

    def of_order(xp: Any, a: float, x: Any) -> Any:
        if not (LEAST_OF_Q if upper else 0.0) < a <= MOST:
            return None
        switch, levels = max(a, 1.0), 8
        while abs(_fraction(a, switch, levels) / _fraction(a, switch, 2 * levels) - 1) > SMALL:
            levels += 4
        ratios = _needed(lambda k: 1 / (a + 1 + k), switch)

        decay = xp.exp(-0.5 * xp.minimum(x, VANISHED))  # twice: e⁻ˣ is subnormal before Q is
        low, high = xp.minimum(x, switch), xp.clip(x, switch, VANISHED)
        power = xp.where(x < 0, xp.nan, xp.maximum(xp.minimum(x, VANISHED), 0.0)) ** a
        weight = power * decay * decay / math.gamma(a)
        p, q = weight * horner(ratios, low) / a, weight * _fraction(a, high, levels)
        return xp.where(x < switch, 1.0 - p, q) if upper else xp.where(x < switch, p, 1.0 - q)

    return of_order


def _fraction(a: float, x: Any, levels: int) -> Any:
    below = x + (2 * levels + 1 - a)
    for k in range(levels, 0, -1):
        below = x + (2 * k - 1 - a) - k * (k - a) / below
    return 1.0 / below


def _needed(ratio: Callable[[int], float], most: float) -> list[float]:
    """Return the ratios of the terms that are not small for an argument up to `most`."""
    ratios: list[float] = []
    term = total = 1.0
    while term > SMALL * total:
        ratios.append(ratio(len(ratios)))
        term *= ratios[-1] * most
        total += term
    return ratios


# --- real orders ---------------------------------------------------------------------------------
# H = J + iY is an integral along its path of steepest descent (DLMF 10.9.18), and K one of a
# positive integrand (10.32.9), both by the trapezoidal rule, which converges exponentially. I is
# its power series, and so is J where that does not cancel. The recurrence leads from two orders
# below 2 to all others, for J beyond the argument downwards.

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
        def upwards(n: Any, x: Any) -> Any:
            return _upwards(xp, n, x, 0.0)

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
        value = xp.cond(n < 0, below, lambda n, x: _besseli_right(xp, n, x), n, xp.abs(x))
        return xp.where(x >= 0, value, xp.nan)

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
            value = sign * part * (THIRD / math.pi) * xp.special.kv(order, z)
            return xp.where(x > 110, 0.0, value)
        value = part * THIRD * (xp.special.iv(order, z) + xp.special.iv(-order, z))
        return xp.where(z > 720, xp.inf, value)

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

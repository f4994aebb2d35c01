"""Bessel functions of the first and second kind, and the modified ones, by SciPy.

The derivative by the argument is DLMF 10.6.1 and 10.29.1. That by the order is no function of the
table: it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError
from difflab.primitives import portable_bessel
from difflab.primitives.portable import by_numbers, special, special_function
from difflab.primitives.portable_bessel import besseli_of_order, besselk_of_order

__all__ = ["besseli", "besselj", "besselk", "bessely"]

TINY = 1e-8
"""Below it, the first term of the power series has all digits, and SciPy's functions have not."""
VANISHED = 1e9
"""Above it K of any order below some hundred millions is 0, and SciPy's is nan."""
MOST = 1e4
"""Largest order and argument of the recurrence at complex points."""
EULER = 0.5772156649015329


def _growing(name: str, odd: float, end: Callable[..., Any]) -> Callable[..., Any]:
    """Return J or I, whose series begins with (x/2)ⁿ/Γ(n + 1), and its limit at ±∞.

    `odd` is the quotient of the functions of the orders −n and n, for odd n.
    """

    def kernel(xp: ModuleType, n: Any, x: Any) -> Any:
        compute = special_function(xp, name)
        whole = n == xp.floor(n)
        order = xp.where(whole, xp.abs(n), n)
        sign = xp.where(whole & (n < 0) & (n % 2 == 1), odd, 1.0)
        tiny = (xp.abs(x) < TINY) & (order >= 0) & ((xp.real(x) >= 0) | whole)
        at = xp.where(tiny, 1.0, x)
        power = xp.where(tiny, 0.5 * x, 1.0) ** xp.where(tiny, order, 0.0)
        first = sign * power * special_function(xp, "rgamma")(order + 1.0)
        return xp.where(xp.abs(x) == xp.inf, end(xp, n, x), xp.where(tiny, first, compute(n, at)))

    return kernel


def _by_recurrence(xp: ModuleType, order: Any, z: Any) -> Any:
    """Return J of whole orders from 0 at complex points, by Miller's algorithm (DLMF 3.6(vi)).

    Its imaginary parts are not rounded beside the real ones, as those of SciPy's are.
    """
    largest = float(max(xp.max(order), xp.max(xp.abs(z)), 1.0))
    after, total, value = 0.0 * z, 0.0 * z, 0.0 * z
    here = after + 1.0
    for k in range(2 * int(largest / 2 + 5 * largest**0.5 + 30), 0, -1):
        after, here = here, 2.0 * k / z * here - after
        value = xp.where(order == k - 1, here, value)
        if k % 2 == 1:
            total = total + (here if k == 1 else 2.0 * here)
        scale = xp.where(xp.abs(here) > 1e100, 1e-100, 1.0)
        after, here, total, value = after * scale, here * scale, total * scale, value * scale
    return value / total


def _by_series(xp: ModuleType, order: Any, z: Any) -> Any:
    """Return J of whole orders from 0 where |z| is at most 1, by its power series (DLMF 10.2.2)."""
    term = (0.5 * z) ** order * special_function(xp, "rgamma")(order + 1.0)
    total = 0.0 * z
    for k in range(1, 13):
        total, term = total + term, term * (-0.25 * z * z) / (k * (k + order))
    return total + term


_real_j = _growing("jv", -1.0, lambda xp, n, x: 0.0)


def _besselj(xp: ModuleType, n: Any, x: Any) -> Any:
    value = _real_j(xp, n, x)
    if not xp.iscomplexobj(x):
        return value
    whole = (n == xp.floor(n)) & (xp.abs(n) < MOST)
    # The recurrence takes |x| steps, and cancels where the imaginary part is large.
    near = whole & (xp.abs(x) < MOST) & (xp.abs(xp.imag(x)) < 1)
    order = xp.where(near, xp.abs(n), 0.0)
    flipped = xp.where(xp.real(x) < 0, -1.0, 1.0)  # powers of complex numbers of angle 0 are exact
    sign = xp.where(n % 2 == 1, xp.where(n < 0, -flipped, flipped), 1.0)
    at = xp.where(near, flipped * x, 1.0)
    small = xp.abs(at) <= 1
    series = _by_series(xp, order, xp.where(small, at, 1.0))
    if not small.all():
        series = xp.where(small, series, _by_recurrence(xp, order, xp.where(small, 1.0, at)))
    return xp.where(near, sign * series, value)


def _end_of_i(xp: ModuleType, n: Any, x: Any) -> Any:
    """Return the limit of I at ±∞, where SciPy's is nan."""
    below = xp.where(n % 2 == 0, xp.inf, xp.where(n % 2 == 1, -xp.inf, xp.nan))
    return xp.where(xp.real(x) > 0, xp.inf, below)


def _bessely(xp: ModuleType, n: Any, x: Any) -> Any:
    tiny = (xp.abs(x) < TINY) & (xp.real(x) > 0) & (n == 0)
    logarithm = (2 / xp.pi) * (xp.log(xp.where(tiny, 0.5 * x, 1.0)) + EULER)
    regular = special_function(xp, "yv")(n, xp.where(tiny, 1.0, x))
    return xp.where(x == xp.inf, 0.0, xp.where(tiny, logarithm, regular))


def _besselk(xp: ModuleType, n: Any, x: Any) -> Any:
    """Return K, from the scaled function, since SciPy's is 0 from 700 on."""
    tiny = (xp.abs(x) < TINY) & (xp.real(x) > 0) & (n == 0)
    at = xp.where(tiny, 1.0, x)
    logarithm = -(xp.log(xp.where(tiny, 0.5 * x, 1.0)) + EULER)
    value = xp.where(tiny, logarithm, special_function(xp, "kve")(n, at) * xp.exp(-at))
    return xp.where(xp.real(x) > VANISHED, 0.0, value)


def _refused(t: Any, y: Any, n: Any, x: Any) -> NoReturn:
    raise UnsupportedError(
        "the derivative of a Bessel function by its order has no closed form; give the order as a"
        " number, or differentiate by finite differences"
    )


besselj: Primitive = special(
    name="besselj",
    ulps=8.0,
    kernel=_besselj,
    ufunc="jv",
    portable=portable_bessel.besselj,
    rule=elementwise(
        _refused, lambda t, y, n, x: t * (0.5 * (besselj(n - 1, x) - besselj(n + 1, x)))
    ),
    # Not by complex steps: the imaginary parts of SciPy's are rounded beside the real ones.
    whole_orders_analytic=True,
    latex="J_{{{0}}}\\left({1}\\right)",
    glyph="J",
    samples=((2.0, 2.0), (0.6, 2.4)),
)
bessely: Primitive = special(
    name="bessely",
    ulps=8.0,
    kernel=_bessely,
    ufunc="yv",
    portable=portable_bessel.bessely,
    rule=elementwise(
        _refused, lambda t, y, n, x: t * (0.5 * (bessely(n - 1, x) - bessely(n + 1, x)))
    ),
    # Not by complex steps: the imaginary parts of SciPy's are rounded beside the real ones.
    latex="Y_{{{0}}}\\left({1}\\right)",
    glyph="Y",
    samples=((2.0, 2.0), (0.6, 2.4)),
    defined="x > 0",
)
besseli: Primitive = special(
    name="besseli",
    ulps=16.0,
    kernel=_growing("iv", 1.0, _end_of_i),
    ufunc="iv",
    portable=by_numbers(besseli_of_order, portable_bessel.besseli),
    rule=elementwise(
        _refused, lambda t, y, n, x: t * (0.5 * (besseli(n - 1, x) + besseli(n + 1, x)))
    ),
    # Not by complex steps: the imaginary parts of SciPy's are rounded beside the real ones.
    latex="I_{{{0}}}\\left({1}\\right)",
    glyph="I",
    samples=((2.0, 2.0), (0.6, 2.4)),
)
besselk: Primitive = special(
    name="besselk",
    ulps=8.0,
    kernel=_besselk,
    ufunc="kv",
    portable=by_numbers(besselk_of_order, portable_bessel.besselk),
    rule=elementwise(
        _refused, lambda t, y, n, x: -(t * (0.5 * (besselk(n - 1, x) + besselk(n + 1, x))))
    ),
    # Not by complex steps: the imaginary parts of SciPy's are rounded beside the real ones.
    latex="K_{{{0}}}\\left({1}\\right)",
    glyph="K",
    samples=((2.0, 2.0), (0.6, 2.4)),
    defined="x > 0",
)

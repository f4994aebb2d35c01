"""What portable kernels share: functions of printed code, polynomials, continued fractions.

A portable kernel ``(xp, *args)`` is a row on real numbers, over universal functions of C99 and
other rows. Printed code in a language without the function defines what the kernel records:
``xp.cond`` is a branch of it, ``xp.while_loop`` a loop, and what `helper` decorates a function.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from difflab.core.primitive import Primitive, elementwise

__all__ = ["by_numbers", "helper", "is_odd", "lentz", "polynomial", "sinpi"]

Kernel = Callable[..., Any]


def helper(kernel: Kernel) -> Kernel:
    """Return a kernel that portable kernels call, recorded as a call of a function of its name."""
    count = len(inspect.signature(kernel).parameters) - 1
    row = Primitive(
        name=kernel.__name__.strip("_"),
        portable=kernel,
        kernel=kernel,
        rule=elementwise(*[None] * count),
    )

    @wraps(kernel)
    def call(xp: Any, *args: Any) -> Any:
        recorded = any(hasattr(arg, "__difflab_apply__") for arg in args)
        return row(*args) if recorded else kernel(xp, *args)

    return call


def by_numbers(known: Kernel, general: Kernel) -> Kernel:
    """Return a kernel that is another one where that is known: of numbers before the argument."""

    @wraps(general)
    def kernel(xp: Any, *args: Any) -> Any:
        numbers = all(isinstance(order, float) for order in args[:-1])
        found = known(xp, *args) if numbers else None
        return general(xp, *args) if found is None else found

    return kernel


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return c₀ + c₁x + c₂x² + …, by Horner's rule."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def is_odd(xp: Any, n: Any) -> Any:
    """Whether a whole number is odd."""
    return 2.0 * xp.floor(0.5 * n) != n


@helper
def sinpi(xp: Any, x: Any) -> Any:
    """Return sin(πx), exact at multiples of ½."""
    y = x - 2.0 * xp.floor(0.5 * x)
    n = xp.floor(2.0 * y + 0.5)
    whole = xp.sin(math.pi * xp.where(n == 2, 1.0 - y, xp.where(n == 4, y - 2.0, y)))
    half = xp.where(n == 1, xp.cos(math.pi * (y - 0.5)), -xp.cos(math.pi * (y - 1.5)))
    return xp.where((n == 1) | (n == 3), half, whole)


def lentz(xp: Any, first: Any, above: Kernel, below: Kernel, *args: Any) -> Any:
    """Return 1/(first + p₁/(q₁ + p₂/(q₂ + …))), by the modified algorithm of Lentz.

    ``above(k, *args)`` and ``below(k, *args)`` are pₖ and qₖ.
    """

    def test(k: Any, c: Any, d: Any, value: Any, change: Any, *args: Any) -> Any:
        return (k < 2000) & (xp.abs(change - 1.0) > 1e-16)

    def body(k: Any, c: Any, d: Any, value: Any, change: Any, *args: Any) -> Any:
        p, q = above(k, *args), below(k, *args)
        d, c = q + p * d, q + p / c
        d, c = 1.0 / xp.where(d == 0, 1e-300, d), xp.where(c == 0, 1e-300, c)
        return k + 1.0, c, d, value * (c * d), c * d

    start = 1.0 / first
    return xp.while_loop(test, body, (1.0, math.inf, start, start, 2.0), *args)[3]

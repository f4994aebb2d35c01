"""Helpers of the kernels of special functions, portable ones and those that call SciPy.

A portable kernel ``(xp, *args)`` is a row on real numbers, over universal functions of C99 and
other rows. Printed code in a language without the function defines the operations that the kernel
records: ``xp.cond`` is a branch of it, ``xp.while_loop`` a loop, and a function that `helper`
decorates is a function.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import library_name, on_host, special_functions
from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError

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
    """Return a kernel that uses `known` for constant orders if it has a form, else `general`."""

    @wraps(general)
    def kernel(xp: Any, *args: Any) -> Any:
        numbers = all(isinstance(order, float) for order in args[:-1])
        specialized = known(xp, *args) if numbers else None
        return general(xp, *args) if specialized is None else specialized

    return kernel


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return c₀ + c₁x + c₂x² + …, by Horner's rule."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def horner(ratios: Iterable[float], x: Any) -> Any:
    """Return 1 + r₀x(1 + r₁x(1 + …)), a series by the ratios of its coefficients."""
    total: Any = 1.0
    for ratio in reversed(list(ratios)):
        total = 1.0 + (ratio * x) * total
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


FARTHEST = 40.0
"""Beyond it e^(-x²/2) is 0, and e^(x²) infinite."""


def exp_square(xp: ModuleType, x: Any, factor: float) -> Any:
    """Return e^(factor·x²), for a factor that is a power of two, without rounding x².

    With z, the nearest sixteenth to x, z² is exact, and (x - z)·(x + z) is small.
    """
    x = xp.minimum(xp.maximum(x, -FARTHEST), FARTHEST)
    z = xp.floor(16.0 * x + 0.5) * 0.0625
    return xp.exp(factor * (z * z)) * xp.exp(factor * ((x - z) * (x + z)))


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


# --- kernels by SciPy's functions, and of whole orders -------------------------------------------

special = partial(Primitive, reserved=False, analytic=False)
"""Makes the row of a special function, of real numbers, whose name inputs can have too."""


def special_function(xp: ModuleType, name: str) -> Callable[..., Any]:
    """Return the function of SciPy's name that belongs to the array module `xp`.

    Raises
    ------
    UnsupportedError
        There is none.
    """
    home = special_functions(xp)
    function: Callable[..., Any] | None = getattr(home, name, None)
    if function is None:
        title = getattr(home, "__name__", library_name(xp))
        raise UnsupportedError(f"{title} has no function '{name}'")
    return function


def by_orders(
    branch: Callable[..., Any], valid: Callable[..., bool], count: int | None = None
) -> Callable[..., Any]:
    """Return the kernel of a row whose first arguments are integers.

    Parameters
    ----------
    branch : callable
        ``(xp, *orders, *rest)``, the values for orders of type int.
    valid : callable
        ``(*orders)``, whether the row has values for them; elsewhere they are nan.
    count : int, optional
        How many arguments are orders, by default all but the last one.
    """
    count = -1 if count is None else count

    def kernel(xp: ModuleType, *args: Any) -> Any:
        orders, rest = args[:count], args[count:]
        x = rest[-1]
        if any(getattr(order, "ndim", 0) for order in orders):
            combinations = np.broadcast_arrays(*map(on_host, orders))
            out = x * xp.nan
            for one in {*zip(*map(np.ravel, combinations), strict=True)}:
                chosen: Any = True
                for order, number in zip(orders, one, strict=True):
                    chosen = xp.logical_and(chosen, order == number)
                out = xp.where(chosen, kernel(xp, *map(float, one), *rest), out)
            return out
        numbers = [float(order) for order in orders]
        if not (all(number % 1 == 0 for number in numbers) and valid(*numbers)):
            return x * xp.nan
        with np.errstate(all="ignore"):  # powers of large arguments, in branches not selected
            return branch(xp, *map(int, numbers), *rest)

    return kernel

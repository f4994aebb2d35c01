"""What kernels of special functions share: SciPy's functions of any array module, whole orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.devices import library_name, on_host
from difflab.core.primitive import Primitive
from difflab.core.special_functions import special_functions
from difflab.errors import UnsupportedError

__all__ = ["FARTHEST", "by_orders", "exp_square", "horner", "special", "special_function"]

FARTHEST = 40.0
"""Beyond it e^(-x²/2) is 0, and e^(x²) infinite."""
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
    found: Callable[..., Any] | None = getattr(home, name, None)
    if found is None:
        title = getattr(home, "__name__", library_name(xp))
        raise UnsupportedError(f"{title} has no function '{name}'")
    return found


def horner(ratios: Iterable[float], x: Any) -> Any:
    """Return 1 + r₀x(1 + r₁x(1 + …)), a series by the ratios of its coefficients."""
    total: Any = 1.0
    for ratio in reversed(list(ratios)):
        total = 1.0 + (ratio * x) * total
    return total


def exp_square(xp: ModuleType, x: Any, factor: float) -> Any:
    """Return e^(factor·x²), for a factor that is a power of two, without rounding x².

    With z, the nearest sixteenth to x, z² is exact, and (x - z)·(x + z) is small.
    """
    x = xp.minimum(xp.maximum(x, -FARTHEST), FARTHEST)
    z = xp.floor(16.0 * x + 0.5) * 0.0625
    return xp.exp(factor * (z * z)) * xp.exp(factor * ((x - z) * (x + z)))


def by_orders(
    branch: Callable[..., Any], valid: Callable[..., bool], count: int | None = None
) -> Callable[..., Any]:
    """Return the kernel of a row whose first arguments are whole numbers.

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
            found = x * xp.nan
            for one in {*zip(*map(np.ravel, combinations), strict=True)}:
                chosen: Any = True
                for order, number in zip(orders, one, strict=True):
                    chosen = xp.logical_and(chosen, order == number)
                found = xp.where(chosen, kernel(xp, *map(float, one), *rest), found)
            return found
        numbers = [float(order) for order in orders]
        if not (all(number % 1 == 0 for number in numbers) and valid(*numbers)):
            return x * xp.nan
        with np.errstate(all="ignore"):  # powers of large arguments, in branches not taken
            return branch(xp, *map(int, numbers), *rest)

    return kernel

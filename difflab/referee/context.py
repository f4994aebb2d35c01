"""Contexts of mpmath that belong to one referee, whose precision nobody else sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType
from typing import Any

STIRLING = 1000
"""Bits from which Stirling's series computes the gamma function in these contexts.

mpmath's default, a table of Taylor coefficients up to 5000 bits, costs seconds for every precision.
"""
_GAMMA = {
    "gamma": "gamma",
    "rgamma": "rgamma",
    "loggamma": "loggamma",
    "fac": "factorial",
    "factorial": "factorial",
    "digamma": "psi0",
    "harmonic": "harmonic",
    "_zeta": "zeta",
    "_altzeta": "altzeta",
}
"""Functions of a context, and what mpmath calls those that compute them."""


def own_context() -> Any:
    """Return a context of mpmath with a precision of its own.

    Examples
    --------
    >>> import mpmath
    >>> mp = own_context()
    >>> with mp.workdps(40):
    ...     print(mp.sqrt(2), mpmath.sqrt(2))
    1.41421356237309504880168872420969807857 1.4142135623731
    """
    from mpmath.ctx_mp import MPContext

    mp = MPContext()
    functions = _by_stirling()
    for name, computed in _GAMMA.items():
        real, complex_ = functions[f"mpf_{computed}"], functions[f"mpc_{computed}"]
        setattr(mp, name, mp._wrap_libmp_function(real, complex_))
    return mp


class _Tables(dict[int, Any]):
    """A cache that one thread may extend while another one iterates over it, as mpmath does."""

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self.keys()))


@cache
def _by_stirling() -> dict[str, Callable[..., Any]]:
    """Return copies of mpmath's functions around gamma, which take its series from `STIRLING` on.

    They read the limit as a global variable of their module, which other threads read too.
    """
    from mpmath.libmp import gammazeta

    module = vars(gammazeta)
    copies = {**module, "MAX_GAMMA_TAYLOR_PREC": STIRLING, "gamma_taylor_cache": _Tables()}
    for name, function in module.items():
        if isinstance(function, FunctionType) and function.__globals__ is module:
            code, defaults, cells = function.__code__, function.__defaults__, function.__closure__
            copies[name] = FunctionType(code, copies, name, defaults, cells)
    return copies


def shared(number: Any) -> Any:
    """Return a real number of any context as one of `mpmath.mp`, without rounding.

    Examples
    --------
    >>> import mpmath
    >>> isinstance(shared(own_context().mpf(2)), mpmath.mpf)
    True
    """
    import mpmath

    return mpmath.mp.make_mpf(number._mpf_)


def exact_number(value: float) -> Any:
    """Return a float64 as a number of `mpmath.mp`, without rounding to the precision in force."""
    import mpmath

    return mpmath.mp.make_mpf(mpmath.libmp.from_float(value))

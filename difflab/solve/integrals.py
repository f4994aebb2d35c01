"""`quad`: an integral over an interval, which may be infinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.autodiff.control.solutions import Rule
from difflab.autodiff.recording import Contents
from difflab.autodiff.solutions.quadrature import Quadrature
from difflab.core.conversions import as_float64
from difflab.errors import ConvergenceError, InputError, ShapeError
from difflab.graph.function import Function
from difflab.graph.pytree import flatten, unflatten
from difflab.solve.calls import (
    Derivative,
    Equation,
    known_values,
    require_count,
    require_tolerances,
    solved,
)

__all__ = ["quad"]

TOL = 1.49e-8
"""SciPy's `epsabs` and `epsrel`."""


def quad(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *params: Any,
    derivative: Derivative = "implicit",
    epsabs: float = TOL,
    epsrel: float = TOL,
    limit: int = 200,
) -> tuple[Any, Any]:
    r"""Return the integral of f(x, \*params) for x from a to b, and an estimate of its error.

    .. math:: \frac{d}{dp} \int_a^b f\,dx = \int_a^b f_p\,dx + f(b)\,b' - f(a)\,a'

    The interval with the largest error is halved until the sum of the errors, each from the rules
    of Gauss with 10 and of Kronrod with 21 points, is small enough (QUADPACK's QAG).

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` takes a number and returns a number, an array or a tree.
    a, b : float
        The bounds, by which the integral is differentiated, too. ``-np.inf`` and ``np.inf`` are
        allowed as constants; a traced bound that is infinite gives nan.
    *params : tree
        The parameters.
    derivative : {"implicit", "unrolled"}
        The integral of the derivative, with intervals of its own; or the derivative of the sum
        that approximates the integral, with the same intervals.
    epsabs, epsrel : float
        The error that is allowed, absolute or relative to the largest element.
    limit : int
        The largest number of intervals.

    Returns
    -------
    y : tree
        The integral, as `f` returns it.
    abserr : float
        The estimate of the largest error of an element.

    Raises
    ------
    ConvergenceError
        `limit` intervals are not enough, or `f` is not finite. In compiled code, and in a batch,
        the integral is nan instead.

    Notes
    -----
    Where `f` jumps at a point that depends on a parameter the derivative of the integral has a
    term that `f_p` lacks: integrate on both sides of the jump, which is a bound then. A kink
    is no problem. `f` is evaluated inside the interval, and at bounds that are differentiated by.

    `f` and `f_p` may be infinite at a bound as \|x - a\|^-1/2 is: in short intervals at a bound x
    moves with the square of the distance from it, which makes that smooth. Divide the interval
    where they are infinite inside. A peak that the 21 points of the first interval miss is not
    seen, on an infinite interval above all: divide there, too, or scale x.

    References
    ----------
    Piessens, de Doncker-Kapenga, Überhuber and Kahaner, *QUADPACK* (1983).

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> area = lambda b, k: dl.solve.quad(lambda x, k: np.exp(-k * x), 0.0, b, k)[0]
    >>> round(float(area(1.0, 2.0) - (1 - np.exp(-2)) / 2), 12)
    0.0
    >>> by_bound, by_parameter = dl.grad(area, argnums=(0, 1))(1.0, 2.0)
    >>> round(float(by_bound - np.exp(-2)), 12)
    0.0
    >>> round(float(by_parameter - (3 * np.exp(-2) - 1) / 4), 12)
    0.0
    >>> y, abserr = dl.solve.quad(lambda x: np.exp(-(x**2)), -np.inf, np.inf)
    >>> round(float(y**2 - np.pi), 9)
    0.0
    """
    require_tolerances("quad", epsabs=epsabs, epsrel=epsrel)
    require_count(limit, "limit", "quad", most=1_000_000)
    f, a, b, params = _finite(f, a, b, params)
    ends = [as_float64(end, "a bound of quad") for end in (a, b)]
    if any(end.shape for end in ends):
        raise ShapeError("the bounds of quad are numbers", hint="vmap integrates over several")
    if any(not np.isfinite(end).all() for end in known_values(ends) or []):
        raise InputError(
            "a bound of quad is nan, or infinite where it is traced or differentiated",
            hint="write an infinite bound as -np.inf or np.inf in the call of quad",
        )
    equation = Equation("quad", f, 0.5, params)
    if not equation.run.function.output_shapes:
        raise InputError("the function of quad returns no numbers")
    values = [*ends, *equation.values[1:]]
    limits = float(epsabs), float(epsrel), int(limit)
    integral = solved(equation, values, _quadrature, derivative, *limits)
    known = known_values(integral)
    if known is not None and not all(np.isfinite(leaf).all() for leaf in known[:-2]):
        error, count = float(known[-2]), int(known[-1])
        reason = f"the error is about {error:.2g}" if np.isfinite(error) else "f is not finite"
        raise ConvergenceError(
            f"quad does not converge with {count} intervals: {reason}",
            hint="divide the interval at singular points, or allow a larger error (epsabs, epsrel)"
            " or more intervals (limit)",
        )
    return equation.run.result(equation.run.typed(integral)), integral[-2]


def _quadrature(
    function: Function, epsabs: float, epsrel: float, limit: int
) -> tuple[Function, Rule]:
    """Return the quadrature of an integrand, which is its own rule."""
    rule = Quadrature(Contents(function), epsabs, epsrel, limit)
    return rule.function(), rule


def _finite(
    f: Callable[..., Any], a: Any, b: Any, params: tuple[Any, ...]
) -> tuple[Callable[..., Any], Any, Any, tuple[Any, ...]]:
    """Return the same integral over a finite interval: x = c + (1 - t)/t for infinite bounds."""
    low, high = _infinite(a), _infinite(b)
    if not low and not high:
        return f, a, b, params
    if not low or not high:
        sign = high or low
        return _unbounded(f, [sign]), 0.0, 1.0, ((a if high else b), float(high - low), params)
    if low == high:
        return f, 0.0, 0.0, params
    return _unbounded(f, [1, -1]), 0.0, 1.0, (0.0, float(high), params)


def _infinite(end: Any) -> int:
    """Return the sign of an infinite bound, 0 for others."""
    plain = isinstance(end, float | np.floating)
    plain = plain or (type(end) is np.ndarray and end.shape == () and end.dtype.kind == "f")
    return int(np.sign(end)) if plain and np.isinf(end) else 0


def _unbounded(f: Callable[..., Any], signs: list[int]) -> Callable[..., Any]:
    """Return the integrand in t of the integrals from c to infinities of the given signs."""

    def integrand(t: Any, c: Any, weight: Any, params: tuple[Any, ...]) -> Any:
        distance, total, structure = (1 - t) / t, None, None
        for sign in signs:
            leaves, structure = flatten(f(c + sign * distance, *params))
            total = leaves if total is None else [p + q for p, q in zip(total, leaves, strict=True)]
        assert total is not None
        assert structure is not None
        return unflatten(structure, [weight * leaf / t**2 for leaf in total])

    return integrand

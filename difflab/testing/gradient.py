"""`check_gradient`: a gradient that somebody wrote, against numeric differentiation.

May import every floor below `testing`: the numeric methods, tracing and the referee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from difflab.errors import DifflabError, DomainError, PointError
from difflab.testing.message import Component, describe, diagnose

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["GradientMismatch", "check_gradient"]

Array = NDArray[float64]
Callee = Callable[[Any], Any]

_NEIGHBOURS = 4
_REACH = 2  # ULPs of the input within which a right gradient may waver
_LARGEST = 20_000  # operations times inputs that the referee is asked to take on
_PATIENCE = 5.0  # seconds that it gets
_TRUSTED = 0.1  # a bar above this share of the value may be a kink, so wavering excuses nothing


class GradientMismatch(DifflabError, AssertionError):
    """The gradient disagrees with numeric differentiation; the message says where.

    Attributes
    ----------
    components : tuple of Component
        The wrong components, with both values and the numeric method's error bar.
    """

    def __init__(self, message: str, components: tuple[Component, ...] = ()) -> None:
        super().__init__(message)
        self.components = components


@dataclass(frozen=True)
class _Truth:
    """Numeric derivatives ``(m, n)`` with their error bars, and where they come from."""

    value: Array
    bar: Array
    left: Array
    right: Array
    source: str


def check_gradient(
    f: Callee,
    gradient: Callee | ArrayLike,
    x: ArrayLike,
    *,
    rtol: float = 1e-8,
    method: str = "richardson",
) -> None:
    r"""Raise `GradientMismatch` unless `gradient` is the derivative of `f` at `x`.

    Every component is judged on its own scale: it passes when

    .. math:: |g - d| \le \mathrm{rtol}\,|d| + \Delta,

    where :math:`d` is the numeric derivative and :math:`\Delta` its error bar, so a wrong
    component that is tiny beside the others fails, and a right one of an ill-conditioned
    function passes. Where the bar is too wide to tell and `f` can be traced, mpmath values of
    high precision decide, and :math:`\Delta` is then how far `gradient` itself wavers between
    neighbouring floating-point inputs. At a kink every value between the one-sided derivatives
    passes.

    Parameters
    ----------
    f : callable
        Takes an array of the shape of `x` (a number when `x` is one) and returns a number or
        an array.
    gradient : callable or array_like
        The derivative: its shape is that of the result of `f` followed by that of `x`; a
        flattened ``(m, n)`` Jacobian or ``(n,)`` gradient will do.
    x : array_like
        The point.
    rtol : float
        The relative error that is allowed beside the error bar.
    method : str
        The numeric method, one of `difflab.methods`.

    Raises
    ------
    GradientMismatch
        A component is wrong, not a number, or the shape does not fit. It is an
        `AssertionError`, so tests fail with its message.
    difflab.errors.DomainError
        `f` is not finite at `x`.

    Examples
    --------
    >>> import numpy as np
    >>> check_gradient(lambda x: np.sum(x**2), lambda x: 2 * x, [1.0, 2.0])
    >>> check_gradient(lambda x: np.sum(x**2), lambda x: -2 * x, [1.0, 2.0])
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientMismatch: the gradient is wrong in 2 of 2 components
    ...
    """
    __tracebackhide__ = True  # pytest then shows the message and the test, not this function
    point = _point(x)
    values = _value(f, point)
    with np.errstate(all="ignore"):
        yours = _jacobian(gradient, point, values)
        truth = _estimate(f, point, values, method)
        wrong = _outside(yours, truth, rtol, np.zeros_like(yours))
        doubtful = wrong | ~(truth.bar <= rtol * np.abs(truth.value))
        if doubtful.any():
            function = _traced(f, point, values)
            truth, steady = _refereed(function, point, truth)
            noise = _wavering(gradient, function, point, values)
            wrong = _outside(yours, truth, rtol, np.where(steady, noise, 0.0))
    if wrong.any():
        raise _mismatch(yours, truth, wrong, rtol, point, values)


def _point(x: ArrayLike) -> Array:
    try:
        point = np.array(x, dtype=float64)
    except (TypeError, ValueError) as error:
        raise PointError(f"the point is not an array of real numbers: {error}") from error
    if not np.isfinite(point).all():
        raise PointError(f"the point holds a value that is not finite: {point.tolist()}")
    if point.size == 0:
        raise PointError("the point is empty, so there is nothing to differentiate by")
    return point


def _argument(point: Array) -> Any:
    """Return the point as `f` expects it: its own copy, a number where it is one."""
    return float(point) if point.ndim == 0 else point.copy()


def _value(f: Callee, point: Array) -> Array:
    with np.errstate(all="ignore"):
        result = f(_argument(point))
    try:
        values = np.asarray(result, dtype=float64)
    except (TypeError, ValueError) as error:
        raise PointError(f"f does not return real numbers: {error}") from error
    if not np.isfinite(values).all():
        raise DomainError(f"f is not finite at {point.tolist()}: it returns {values.tolist()}")
    return values


def _jacobian(gradient: Callee | ArrayLike, point: Array, values: Array) -> Array:
    """Return the gradient under test as an ``(m, n)`` Jacobian."""
    result = gradient(_argument(point)) if callable(gradient) else gradient
    try:
        given = np.asarray(result, dtype=float64)
    except (TypeError, ValueError) as error:
        raise GradientMismatch(f"the gradient is not an array of real numbers: {error}") from error
    m, n = values.size, point.size
    allowed = {values.shape + point.shape, (m, n)}
    if m == 1:
        allowed |= {point.shape, (n,)}
    if n == 1:
        allowed |= {values.shape, (m,)}
    if given.shape not in allowed:
        raise GradientMismatch(
            f"the gradient has shape {given.shape}; f takes {point.shape} and returns "
            f"{values.shape}, so the shape must be {values.shape + point.shape}"
        )
    return given.reshape(m, n)


def _estimate(f: Callee, point: Array, values: Array, method: str) -> _Truth:
    from difflab.methods.differentiate import differentiate

    def isolated(x: Any) -> Any:
        return f(x.copy() if isinstance(x, np.ndarray) else x)

    found = differentiate(isolated, point, method=method)
    shape = (values.size, point.size)
    value = np.reshape(found.value, shape)
    bar = np.zeros(shape) if found.error is None else np.reshape(found.error, shape)
    return _Truth(value, bar, value, value, f"{method}, {found.evaluations} evaluations of f")


def _traced(f: Callee, point: Array, values: Array) -> Function | None:
    """Return the graph of `f`, or None where Python decides what it computes, or it is large."""
    from difflab.graph.counts import count
    from difflab.graph.trace import trace

    try:
        function = trace(f, _argument(point))
        small = count(function).operations * point.size <= _LARGEST
    except Exception:  # whatever the user's code does when it meets a value that is no number
        return None
    return function if small and function.m == values.size else None


def _refereed(
    function: Function | None, point: Array, truth: _Truth
) -> tuple[_Truth, NDArray[np.bool_]]:
    """Put the referee's derivative where it settled one; also return where there is no kink.

    Only there may wavering excuse an error: next to a kink a right gradient leaps.
    """
    if function is None:
        return truth, truth.bar <= _TRUSTED * np.abs(truth.value)
    from difflab.lab.referee import refer
    from difflab.lab.ulp import nearest

    found = refer(function, point.ravel().tolist(), timeout=_PATIENCE)
    settled = ~np.isin(found.regularity, ("undefined", "unsettled"))
    smooth = found.regularity == "smooth"
    value = np.where(settled, found.jacobian, truth.value)
    left, right = (
        np.where(settled & ~smooth, np.reshape([nearest(v) for v in side.flat], side.shape), value)
        for side in (found.left, found.right)
    )
    source = f"differences of mpmath values, {found.evaluations} evaluations"
    bar = np.where(settled, found.bounds, truth.bar)
    return _Truth(value, bar, left, right, source if settled.all() else truth.source), smooth


def _wavering(
    gradient: Callee | ArrayLike, function: Function | None, point: Array, values: Array
) -> Array:
    """Return how far the gradient moves when the inputs move by a few ULPs.

    That is what rounding may do to a right gradient: by the inputs' conditioning, and by
    cancellation in its own formula. An array wavers as the traced function's gradient does.
    """
    shape = (values.size, point.size)
    if callable(gradient):

        def judged(x: Array) -> Array:
            return _jacobian(gradient, x, values)

    elif function is not None:
        from difflab.autodiff import jacobian

        packed = jacobian(function)

        def judged(x: Array) -> Array:
            return packed.values(x.ravel()).reshape(shape)

    else:
        return np.zeros(shape)
    draw = np.random.default_rng(0)
    here, widest = judged(point), np.zeros(shape)
    step = np.where(point == 0, 0.0, _REACH * np.spacing(point))  # a zero is exact
    for _ in range(_NEIGHBOURS):
        moved = point + draw.choice((-1, 1), point.shape) * step
        widest = np.fmax(widest, np.abs(judged(moved) - here))
    return 2 * widest


def _outside(yours: Array, truth: _Truth, rtol: float, noise: Array) -> NDArray[np.bool_]:
    """Return which components lie outside what the truth allows; not-a-number always does."""
    room = truth.bar + noise
    low = np.fmin(truth.left, truth.right)  # at an edge of the domain one side is nan
    high = np.fmax(truth.left, truth.right)
    low = low - rtol * np.abs(low) - room
    high = high + rtol * np.abs(high) + room
    inside: NDArray[np.bool_] = (low <= yours) & (yours <= high)
    wrong: NDArray[np.bool_] = ~(inside | (yours == truth.value))
    return wrong


def _mismatch(
    yours: Array,
    truth: _Truth,
    wrong: NDArray[np.bool_],
    rtol: float,
    point: Array,
    values: Array,
) -> GradientMismatch:
    components = tuple(
        Component(
            name=_name(int(i), int(j), point, values),
            yours=float(yours[i, j]),
            numeric=float(truth.value[i, j]),
            bar=float(truth.bar[i, j]),
            left=float(truth.left[i, j]),
            right=float(truth.right[i, j]),
        )
        for i, j in np.argwhere(wrong)
    )
    hint = diagnose(yours, truth.value, wrong)
    message = describe(list(components), yours.size, truth.source, rtol, hint)
    return GradientMismatch(message, components)


def _name(row: int, column: int, point: Array, values: Array) -> str:
    """Return the component's name, such as ``x[1]`` or ``dy[0]/dx[1]``."""
    x = "x" + _subscript(column, point.shape)
    return x if values.ndim == 0 else f"dy{_subscript(row, values.shape)}/d{x}"


def _subscript(flat: int, shape: tuple[int, ...]) -> str:
    if not shape:
        return ""
    return "[" + ", ".join(str(int(k)) for k in np.unravel_index(flat, shape)) + "]"

"""`check_gradient`: compare a hand-written gradient with numeric differentiation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from difflab.errors import DifflabError, DomainError, InputError, PointError
from difflab.testing.message import Component, describe, diagnose
from difflab.testing.observed import observed
from difflab.testing.truth import Truth, argument, estimated, refereed, rounds, traced
from difflab.testing.verdict import Tolerance, Verdicts, doubt, judged

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["GradientMismatch", "GradientUnjudged", "check_gradient"]

Array = NDArray[float64]
Callee = Callable[[Any], Any]

_NEIGHBOURS = 4  # points at which the gradient's sensitivity to rounding is sampled
_REPORTED_NOISE = 1e-12  # noise above which the message reports it, relative to the value
_RADIUS = 2  # ULPs by which the inputs of those points are moved


class GradientMismatch(DifflabError, AssertionError):
    """The gradient disagrees with numeric differentiation; the message lists the components.

    Attributes
    ----------
    components : tuple of Component
        The wrong components: both values and the error bar of the numeric value.
    unjudged : tuple of Component
        The components that could not be judged.
    """

    def __init__(
        self,
        message: str,
        components: tuple[Component, ...] = (),
        unjudged: tuple[Component, ...] = (),
    ) -> None:
        super().__init__(message)
        self.components = components
        self.unjudged = unjudged


class GradientUnjudged(GradientMismatch):
    """No component is wrong, but some could not be judged; the message lists them."""


def check_gradient(
    f: Callee,
    gradient: Callee | ArrayLike,
    x: ArrayLike,
    *,
    rtol: float = 1e-8,
    atol: float = 0.0,
    unjudged: Literal["fail", "warn"] = "fail",
    method: str = "richardson",
) -> None:
    r"""Raise `GradientMismatch` unless `gradient` is the derivative of `f` at `x`.

    Every component is judged on its own scale: it passes when

    .. math:: |g - d| \le \mathrm{rtol}\,|d| + \mathrm{atol} + \Delta,

    where :math:`d` is the numeric derivative and :math:`\Delta` its error bar. A wrong component
    that is tiny compared with the others therefore fails, and a correct gradient of an
    ill-conditioned function passes. If the error bar is too wide to decide and `f` can be traced,
    :math:`d` is computed from high-precision mpmath values, and :math:`\Delta` is the change of
    `gradient` between neighbouring floating-point inputs. At a kink every value between the
    one-sided derivatives passes.

    If `f` cannot be traced, the noise of its values is estimated from points further away before
    a component is reported as wrong: code that rounds its result, iterates to a tolerance or
    chooses its own steps has errors far larger than one rounding, and :math:`\Delta` then
    includes them. A component whose :math:`\Delta` exceeds a tenth of the derivative cannot be
    judged, because a wrong value would pass as well; the check then fails.

    Parameters
    ----------
    f : callable
        Function of an array of the shape of `x` (a float if `x` is a scalar) that returns a
        scalar or an array.
    gradient : callable or array_like
        The derivative. Its shape is the shape of the result of `f` followed by that of `x`; a
        flattened ``(m, n)`` Jacobian or ``(n,)`` gradient is also accepted.
    x : array_like
        The point.
    rtol : float
        Relative tolerance, added to the error bar.
    atol : float
        Absolute tolerance. A component whose error bar is at most `atol` can be judged.
    unjudged : {"fail", "warn"}
        Whether components that could not be judged fail the check or emit a warning.
    method : str
        Name of a numeric method of `difflab.methods`.

    Raises
    ------
    GradientMismatch
        A component is wrong or nan, or the shape does not match. It is an `AssertionError`,
        so tests fail with its message.
    GradientUnjudged
        No component is wrong, but some could not be judged. It is a `GradientMismatch`.
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

    The second term is lost in the rounding of the first, and ``float`` prevents tracing:

    >>> f = lambda x: float(1e12 * x[0] ** 2 + 1e-6 * x[1])
    >>> check_gradient(f, lambda x: [2e12 * x[0], 5e-6], [1.0, 2.0])
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientUnjudged: could not judge component x[1]
    ...
    """
    __tracebackhide__ = True  # pytest then shows the message and the test, not this function
    if unjudged not in ("fail", "warn"):
        raise InputError(f"unjudged must be 'fail' or 'warn', not {unjudged!r}")
    allowed = Tolerance(rtol, atol)
    point = _point(x)
    values = _value(f, point)
    with np.errstate(all="ignore"):
        yours = _jacobian(gradient, point, values)
        truth, verdicts = _decided(f, gradient, yours, point, values, allowed, method)
    names = _Names(point.shape, values.shape)
    _report(yours, truth, verdicts, allowed, names, values.ravel(), unjudged)


def _decided(
    f: Callee,
    gradient: Callee | ArrayLike,
    yours: Array,
    point: Array,
    values: Array,
    allowed: Tolerance,
    method: str,
) -> tuple[Truth, Verdicts]:
    """Return the verdicts: by a numeric method, then the referee, then scans of the values."""
    truth = estimated(f, point, values, method)
    verdicts = judged(yours, truth, allowed, np.zeros_like(yours))
    coarse = ~(truth.bar <= allowed.rtol * np.abs(truth.value))
    if not (verdicts.wrong | verdicts.unjudged | coarse).any():
        return truth, verdicts
    function = traced(f, point, values)
    exact = None if function is None else refereed(function, f, point, truth)
    if function is None or exact is None:
        noise = _sensitivity(gradient, None, point, values)
        verdicts = judged(yours, truth, allowed, noise)
    else:
        noise = _sensitivity(gradient, function, point, values)
        verdicts = judged(yours, exact, allowed, noise)
        # The derivative of rounded values is 0; that of the unrounded function is also accepted.
        if rounds(function) and (verdicts.wrong.any() or verdicts.unjudged.any()):
            verdicts = judged(yours, truth, allowed, noise)
        else:
            truth = exact
    doubts = doubt(yours, truth, verdicts, allowed.atol)
    if not doubts.entries.any():
        return truth, verdicts
    truth = observed(f, point, values, truth, doubts)
    return truth, judged(yours, truth, allowed, noise)


def _point(x: ArrayLike) -> Array:
    try:
        point = np.array(x, dtype=float64)
    except (TypeError, ValueError) as error:
        raise PointError(f"the point is not an array of real numbers: {error}") from error
    if not np.isfinite(point).all():
        raise PointError(f"the point has an element that is not finite: {point.tolist()}")
    if point.size == 0:
        raise PointError("the point is empty: there is no input to differentiate with respect to")
    return point


def _value(f: Callee, point: Array) -> Array:
    with np.errstate(all="ignore"):
        result = f(argument(point))
    try:
        values = np.asarray(result, dtype=float64)
    except (TypeError, ValueError) as error:
        raise PointError(f"f does not return real numbers: {error}") from error
    if not np.isfinite(values).all():
        raise DomainError(f"f is not finite at {point.tolist()}: it returns {values.tolist()}")
    return values


def _jacobian(gradient: Callee | ArrayLike, point: Array, values: Array) -> Array:
    """Return the gradient under test as an ``(m, n)`` Jacobian."""
    result = gradient(argument(point)) if callable(gradient) else gradient
    try:
        array = np.asarray(result, dtype=float64)
    except (TypeError, ValueError) as error:
        raise GradientMismatch(f"the gradient is not an array of real numbers: {error}") from error
    m, n = values.size, point.size
    allowed = {values.shape + point.shape, (m, n)}
    if m == 1:
        allowed |= {point.shape, (n,)}
    if n == 1:
        allowed |= {values.shape, (m,)}
    if array.shape not in allowed:
        raise GradientMismatch(
            f"the gradient has shape {array.shape}; f takes {point.shape} and returns "
            f"{values.shape}, so the shape must be {values.shape + point.shape}"
        )
    return array.reshape(m, n)


def _sensitivity(
    gradient: Callee | ArrayLike, function: Function | None, point: Array, values: Array
) -> Array:
    """Return how far the gradient changes when the inputs change by a few ULPs.

    A correct gradient may be off by this much through rounding: by its conditioning, and by
    cancellation in its own formula. For a constant array the traced function's gradient is used.
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
    step = np.where(point == 0, 0.0, _RADIUS * np.spacing(point))  # a zero is exact
    for _ in range(_NEIGHBOURS):
        moved = point + draw.choice((-1, 1), point.shape) * step
        widest = np.fmax(widest, np.abs(judged(moved) - here))
    return 2 * widest


def _report(
    yours: Array,
    truth: Truth,
    verdicts: Verdicts,
    allowed: Tolerance,
    names: _Names,
    values: Array,
    unjudged: str,
) -> None:
    """Raise an error or emit a warning about the components that did not pass."""
    __tracebackhide__ = True
    if not (verdicts.wrong.any() or verdicts.unjudged.any()):
        return
    wrong, open_ = (_components(yours, truth, mask, names, values) for mask in verdicts)
    hint = ""
    if wrong:
        hint = diagnose(yours, truth.value, verdicts.wrong, fixed=truth.final)
    message = describe(wrong, open_, yours.size, source=truth.source, allowed=allowed, hint=hint)
    if wrong:
        raise GradientMismatch(message, wrong, open_)
    if unjudged == "fail":
        raise GradientUnjudged(message, wrong, open_)
    warnings.warn(message, stacklevel=3)


def _components(
    yours: Array, truth: Truth, chosen: NDArray[np.bool_], names: _Names, values: Array
) -> tuple[Component, ...]:
    return tuple(
        Component(
            name=names.of(int(i), int(j)),
            yours=float(yours[i, j]),
            numeric=float(truth.value[i, j]),
            bar=float(truth.bar[i, j]),
            left=float(truth.left[i, j]),
            right=float(truth.right[i, j]),
            noise=float(truth.noise[i])
            if truth.noise[i] > _REPORTED_NOISE * abs(values[i])
            else 0.0,
        )
        for i, j in np.argwhere(chosen)
    )


class _Names(NamedTuple):
    """Names of components, such as ``x[1]`` or ``dy[0]/dx[1]``."""

    into: tuple[int, ...]
    out: tuple[int, ...]

    def of(self, row: int, column: int) -> str:
        """Return the name of one element of the Jacobian."""
        x = "x" + _subscript(column, self.into)
        return f"dy{_subscript(row, self.out)}/d{x}" if self.out else x


def _subscript(flat: int, shape: tuple[int, ...]) -> str:
    if not shape:
        return ""
    return "[" + ", ".join(str(int(k)) for k in np.unravel_index(flat, shape)) + "]"

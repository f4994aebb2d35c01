"""The check of every component of a gradient on its own, in float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from difflab.core.conversions import host_numbers, host_reals
from difflab.differences.sampling import noise_along
from difflab.errors import DifflabError, DomainError, PointError
from difflab.testing.components.message import (
    Component,
    GradientMismatch,
    GradientUnjudged,
    describe,
    diagnose,
)
from difflab.testing.components.mistakes import guesses
from difflab.testing.components.observed import observed
from difflab.testing.components.truth import (
    MOST_OWN,
    NumericJacobian,
    argument,
    estimated,
    most_own,
    refereed,
    rounds,
    traced,
)
from difflab.testing.components.verdict import CheckSettings, Verdicts, doubt, judged

if TYPE_CHECKING:
    from difflab.graph.function import Function


Array = NDArray[float64]
Callee = Callable[[Any], Any]

_NEIGHBOURS = 4  # points at which the gradient's sensitivity to rounding is sampled
_ALIKE = 1e-6
_REPORTED_NOISE = 1e-12  # noise above which the message reports it, relative to the value
_RADIUS = 2  # ULPs by which the inputs of those points are moved


@dataclass(frozen=True)
class Names:
    """Names of the elements of a Jacobian, such as ``x[1]`` or ``dy[0]/dx[1]``.

    Attributes
    ----------
    root : str
        The name of the arguments; empty for several.
    of : callable
        From a row and a column to the name of the element.
    arrays : callable
        Returns the name, the first column and the shape of each array, and if it is complex.
    """

    root: str
    of: Callable[[int, int], str]
    arrays: Callable[[], list[tuple[str, int, tuple[int, ...], bool]]]

    @classmethod
    def of_array(cls, into: tuple[int, ...], out: tuple[int, ...], root: str = "x") -> Names:
        """Return the names of the derivatives of an array by another."""

        def of(row: int, column: int) -> str:
            x = root + subscript(column, into)
            return f"dy{subscript(row, out)}/d{x}" if out else x

        return cls(root, of, lambda: [(root, 0, into, False)] if into else [])


def decided(
    f: Callee,
    gradient: Callee | ArrayLike,
    yours: Array,
    point: Array,
    values: Array,
    allowed: CheckSettings,
    graph: Callable[[], Function | None] | None = None,
) -> tuple[NumericJacobian, Verdicts]:
    """Return the verdicts: by a numeric method, then the referee, then scans of the values.

    `graph` returns the graph of `f` that the referee evaluates; by default `f` is traced.
    """
    truth = estimated(f, point, values, allowed.method)
    verdicts = judged(yours, truth, allowed, np.zeros_like(yours))
    coarse = ~(truth.bar <= allowed.rtol * np.abs(truth.value))
    if not (verdicts.wrong | verdicts.unjudged | coarse).any():
        return truth, verdicts
    function = traced(f, point, values) if graph is None else graph()
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


def point_of(x: ArrayLike) -> Array:
    """Return the point as an array of float64."""
    point = real_array(x, "the point is not an array of real numbers", PointError).copy()
    if not np.isfinite(point).all():
        raise PointError(f"the point has an element that is not finite: {point.tolist()}")
    if point.size == 0:
        raise PointError("the point is empty: there is no input to differentiate with respect to")
    return point


def value_of(f: Callee, point: Array) -> Array:
    """Return the values of `f`, in their shape."""
    with np.errstate(all="ignore"):
        result = f(argument(point))
    values = real_array(result, "f does not return real numbers", PointError)
    if not values.size:
        raise PointError("f returns an empty array: there is nothing to differentiate")
    if not np.isfinite(values).all():
        raise DomainError(f"f is not finite at {point.tolist()}: it returns {values.tolist()}")
    return values


def jacobian_of(gradient: Callee | ArrayLike, point: Array, values: Array) -> Array:
    """Return the gradient under test as an ``(m, n)`` Jacobian."""
    __tracebackhide__ = True
    result = gradient(argument(point)) if callable(gradient) else gradient
    array = real_array(result, "the gradient is not an array of real numbers", GradientMismatch)
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


def real_array(value: Any, fault: str, kind: type[DifflabError]) -> Array:
    """Return an array of float64; raise an error of the given kind otherwise.

    Imaginary parts of 0 are no part of the value; all others are.
    """
    __tracebackhide__ = True
    try:
        found = host_numbers(value, "it")
        if found.dtype.kind == "c" and not found.imag.any():
            found = found.real
        return host_reals(found, "it")
    except DifflabError as error:
        raise kind(f"{fault}: {getattr(error, 'message', error)}") from error


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
            return jacobian_of(gradient, x, values)

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
    direction = draw.choice((-1.0, 1.0), point.shape) * point
    own = noise_along(lambda t: judged(point + t * direction))
    return np.fmax(2 * widest, np.fmin(own, np.fmin(MOST_OWN * np.abs(here), most_own(here))))


def report(
    yours: Array,
    truth: NumericJacobian,
    verdicts: Verdicts,
    allowed: CheckSettings,
    names: Names,
    values: Array,
    explain: Callable[[], str] = str,
    eps: float = 2.0**-52,
) -> None:
    """Raise an error or emit a warning about the components that did not pass.

    `explain` returns the likely mistake where the numbers alone do not show it.
    """
    __tracebackhide__ = True
    if not (verdicts.wrong.any() or verdicts.unjudged.any()):
        return
    wrong, open_ = (_components(yours, truth, mask, names, values, eps) for mask in verdicts)
    hint = ""
    if wrong:
        hint = _misplaced(yours, truth, verdicts.wrong, names) or diagnose(
            yours, truth.value, verdicts.wrong, fixed=truth.final, bars=truth.bar
        )
        if not hint or hint.startswith("the errors"):
            hint = explain() or hint
    message = describe(wrong, open_, yours.size, source=truth.source, allowed=allowed, hint=hint)
    if wrong:
        error = GradientMismatch(message, wrong, open_)
        if len(yours) == 1 and names.root:
            column = int(np.flatnonzero(verdicts.wrong[0])[0])
            call = f"numeric_derivative(f, {names.root}, {column})"
            error.add_note(
                f"to repeat: from difflab.testing import numeric_derivative; print({call})"
            )
        raise error
    if allowed.unjudged == "fail":
        raise GradientUnjudged(message, wrong, open_)
    warnings.warn(message, stacklevel=3)


def _misplaced(yours: Array, truth: NumericJacobian, wrong: NDArray[np.bool_], names: Names) -> str:
    """Return how the gradient of one array is misplaced: transposed, shifted, conjugated."""
    if len(yours) > 1 or not np.isfinite(truth.value).all():
        return ""
    for name, start, shape, is_complex in names.arrays():
        part = slice(start, start + prod(shape) * (2 if is_complex else 1))
        if not wrong[0, part].any() or np.array_equal(yours[0, part], -truth.value[0, part]):
            continue
        for text, right in guesses(yours[0, part], shape, complex_=is_complex):
            numeric = truth.value[0, part]
            room = np.maximum(_ALIKE * np.abs(numeric), truth.bar[0, part])
            off = int((np.abs(right - numeric) > room).sum())
            # A shift without wrapping leaves one slice over.
            size = part.stop - part.start
            edge = size // max(shape) if text.startswith("off by") and max(shape) > 3 else 0
            if off <= edge and not text.startswith("a sign error"):
                return f"in {name}, likely {text}"
    return ""


def _components(
    yours: Array,
    truth: NumericJacobian,
    chosen: NDArray[np.bool_],
    names: Names,
    values: Array,
    eps: float,
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
            eps=eps,
        )
        for i, j in np.argwhere(chosen)
    )


def subscript(flat: int, shape: tuple[int, ...]) -> str:
    """Return the indices of an element, as Python writes them."""
    if not shape:
        return ""
    return "[" + ", ".join(str(int(k)) for k in np.unravel_index(flat, shape)) + "]"

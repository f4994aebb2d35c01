"""The check of every component of a gradient on its own, in float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.sampling import noise_along
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
    estimated,
    most_own,
    refereed,
    rounds,
)
from difflab.testing.components.verdict import CheckSettings, Verdicts, doubt, judged

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.testing.trees.arguments import Point
    from difflab.testing.trees.probe import Probe


Array = NDArray[float64]
Callee = Callable[[Any], Any]

_NEIGHBOURS = 4  # points at which the gradient's sensitivity to rounding is sampled
_ALIKE = 1e-6
_REPORTED_NOISE = 1e-12  # noise above which the message reports it, relative to the value
_RADIUS = 2  # ULPs by which the inputs of those points are moved


def decided(
    f: Callee,
    gradient: Callee | None,
    yours: Array,
    point: Array,
    values: Array,
    allowed: CheckSettings,
    graph: Callable[[], Function | None],
) -> tuple[NumericJacobian, Verdicts]:
    """Return the verdicts: by a numeric method, then the referee, then scans of the values.

    Parameters
    ----------
    f : callable
        The function of an array ``(n,)``.
    gradient : callable or None
        Maps an array ``(n,)`` to the Jacobian under test ``(m, n)``; None if that is a constant.
    yours : ndarray (m, n)
        The Jacobian under test.
    point, values : ndarray (n,), (m,)
        The point, and the values of `f` there.
    allowed : CheckSettings
        The tolerances.
    graph : callable
        Returns the graph of `f` that the referee evaluates, if there is one.
    """
    truth = estimated(f, point, values, allowed.method)
    verdicts = judged(yours, truth, allowed, np.zeros_like(yours))
    coarse = ~(truth.bar <= allowed.rtol * np.abs(truth.value))
    if not (verdicts.wrong | verdicts.unjudged | coarse).any():
        return truth, verdicts
    function = graph()
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


def _sensitivity(
    gradient: Callee | None, function: Function | None, point: Array, values: Array
) -> Array:
    """Return how far the gradient changes when the inputs change by a few ULPs.

    A correct gradient may be off by this much through rounding: by its conditioning, and by
    cancellation in its own formula. For a constant array the traced function's gradient is used.
    """
    shape = (values.size, point.size)
    judged = gradient
    if judged is None:
        if function is None:
            return np.zeros(shape)
        from difflab.autodiff import jacobian

        packed = jacobian(function)

        def judged(x: Array) -> Array:
            return packed.values(x).reshape(shape)

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
    probe: Probe,
    root: str,
    yours: Array,
    truth: NumericJacobian,
    verdicts: Verdicts,
    allowed: CheckSettings,
    explain: Callable[[], str],
) -> None:
    """Raise an error or emit a warning about the components that did not pass.

    `root` is the name of the arguments, empty for several; `explain` returns the likely mistake
    where the numbers alone do not show it.
    """
    __tracebackhide__ = True
    if not (verdicts.wrong.any() or verdicts.unjudged.any()):
        return
    wrong, open_ = (_components(probe, yours, truth, mask) for mask in verdicts)
    hint = ""
    if wrong:
        hint = _misplaced(probe.point, yours, truth, verdicts.wrong) or diagnose(
            yours, truth.value, verdicts.wrong, fixed=truth.final, bars=truth.bar
        )
        if not hint or hint.startswith("the errors"):
            hint = explain() or hint
    message = describe(wrong, open_, yours.size, source=truth.source, allowed=allowed, hint=hint)
    if wrong:
        error = GradientMismatch(message, wrong, open_)
        if len(yours) == 1 and root:
            column = int(np.flatnonzero(verdicts.wrong[0])[0])
            call = f"numeric_derivative(f, {root}, {column})"
            error.add_note(
                f"to repeat: from difflab.testing import numeric_derivative; print({call})"
            )
        raise error
    if allowed.unjudged == "fail":
        raise GradientUnjudged(message, wrong, open_)
    warnings.warn(message, stacklevel=3)


def _misplaced(point: Point, yours: Array, truth: NumericJacobian, wrong: NDArray[np.bool_]) -> str:
    """Return how the gradient of one array is misplaced: transposed, shifted, conjugated."""
    if len(yours) > 1 or not np.isfinite(truth.value).all():
        return ""
    for leaf, position, start in zip(point.leaves, point.positions, point.starts, strict=False):
        part = slice(start, start + leaf.size)
        if not leaf.shape or not wrong[0, part].any():
            continue
        if np.array_equal(yours[0, part], -truth.value[0, part]):
            continue
        for text, right in guesses(yours[0, part], leaf.shape, complex_=leaf.complex):
            numeric = truth.value[0, part]
            room = np.maximum(_ALIKE * np.abs(numeric), truth.bar[0, part])
            off = int((np.abs(right - numeric) > room).sum())
            # A shift without wrapping leaves one slice over.
            longest = max(leaf.shape)
            edge = leaf.size // longest if text.startswith("off by") and longest > 3 else 0
            if off <= edge and not text.startswith("a sign error"):
                return f"in {point.path(position)}, likely {text}"
    return ""


def _components(
    probe: Probe, yours: Array, truth: NumericJacobian, chosen: NDArray[np.bool_]
) -> tuple[Component, ...]:
    noise = np.where(truth.noise > _REPORTED_NOISE * np.abs(probe.center), truth.noise, 0.0)
    return tuple(
        Component(
            name=_name(probe, int(i), int(j)),
            yours=float(yours[i, j]),
            numeric=float(truth.value[i, j]),
            bar=float(truth.bar[i, j]),
            left=float(truth.left[i, j]),
            right=float(truth.right[i, j]),
            noise=float(noise[i]),
            eps=probe.eps,
        )
        for i, j in np.argwhere(chosen)
    )


def _name(probe: Probe, row: int, column: int) -> str:
    """Return the name of an element of the Jacobian: ``x[1]``, or ``dy[0]/dx[1]``."""
    name = probe.point.name(column)
    return name if probe.outputs.m == 1 else f"d{probe.outputs.name(row)}/d{name}"

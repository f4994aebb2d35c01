"""The check of every component of a gradient on its own, in float64.

A numeric method judges first, then the referee, then scans of the function's values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.differences.sampling import noise_along, scale_of
from difflab.differences.scan import LineScan, scan_aside, scan_line
from difflab.differences.window import Changes
from difflab.testing.checker.leaves import Array, BoolArray, Callee
from difflab.testing.checker.message import (
    Component,
    GradientMismatch,
    GradientUnjudged,
    describe,
    diagnose,
    guesses,
)
from difflab.testing.checker.truth import (
    MOST_OWN,
    CheckSettings,
    Doubt,
    NumericJacobian,
    Verdicts,
    doubt,
    estimated,
    judged,
    most_own,
    refereed,
    rounds,
    values_at,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.testing.checker.arguments import Point
    from difflab.testing.checker.probe import Probe


_NEIGHBOURS = 4  # points at which the gradient's sensitivity to rounding is sampled
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
    truth = _observed(f, point, values, truth, doubts)
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


# --- scans of the values ----------------------------------------------------------------------

# Errors of code whose values jump also have a smooth part, which the values do not reveal. It may
# be `_BIAS` times larger than the jumps, but at most the share `_MOST` of a right derivative.
_BIAS, _MOST = 1e5, 5e-4
_CHOSEN = 8  # components that are scanned for noise first
_EPS = float(np.finfo(np.float64).eps)
_HIDDEN = 32.0  # a first change below this many units of rounding may have been hidden before
_REACH, _STRIDES = 16.0, 10  # growing steps at which a constant component must stay constant


def _observed(
    f: Callee, point: Array, values: Array, truth: NumericJacobian, doubt: Doubt
) -> NumericJacobian:
    """Return `truth`, improved by scans of the values where a verdict is in doubt.

    A numeric method sees only how neighbouring values differ. Before a gradient is reported as
    wrong, the values are scanned for noise; where the error bar is too wide, the scans also
    replace the derivative.
    """
    observer = _Observer(f, point, values)
    final = truth.final.copy()
    for j in np.flatnonzero((doubt.zero & ~final).any(axis=0)):
        final[doubt.zero[:, j] & observer.constant(int(j)), j] = True
    entries = doubt.entries & ~final
    if not entries.any():
        return replace(truth, final=final)
    scans, noise, pieces = _scans(observer, entries, doubt)
    names = ("value", "bar", "left", "right", "rise", "smooth")
    parts: dict[str, Any] = {name: getattr(truth, name).copy() for name in names}
    new = replace(truth, **parts, final=final, noise=noise)
    for column, scan in scans.items():
        _enter(new, column, scan, entries[:, column])
    hidden = np.fmin(_BIAS * pieces[:, None] / scale_of(point), _MOST * np.abs(new.value))
    new.bar[entries] += hidden[entries]
    fitted = f"polynomials through {observer.count} values of f"
    return replace(new, source=fitted if noise.any() else f"{truth.source}; {fitted}")


def _scans(
    observer: _Observer, entries: BoolArray, doubt: Doubt
) -> tuple[dict[int, LineScan], Array, Array]:
    """Return scans along the components in doubt, the noise, and that of smooth pieces.

    Noise along one component applies to all, since the values are the same. Of many components
    that a method judges wrong only a few are scanned if these show no noise.
    """
    columns = [int(j) for j in np.argsort(-doubt.size.max(axis=0)) if entries[:, j].any()]
    scans = {j: observer.along(j, entries[:, j]) for j in columns[:_CHOSEN]}
    across = [observer.across()] if len(scans) < observer.point.size else []
    first = [*scans.values(), *across]
    noise = np.max([each.noise for each in first], axis=0)
    pieces = np.max([each.pieces for each in first], axis=0) if noise.any() else observer.aside()
    rest = [j for j in columns[_CHOSEN:] if noise.any() or not doubt.wrong[:, j].any()]
    scans |= {j: observer.along(j, entries[:, j]) for j in rest}
    return scans, np.max([noise, *(each.noise for each in scans.values())], axis=0), pieces


def _enter(truth: NumericJacobian, j: int, scan: LineScan, chosen: BoolArray) -> None:
    """Store the estimates along component `j` in `truth`, for the chosen outputs."""
    if not scan.windows:
        return
    seen = scan.estimate(truth.noise)
    value, bar = truth.value[:, j], truth.bar[:, j]
    gap = np.abs(seen.value - value)
    noisy = truth.noise > 0
    finite = np.isfinite(seen.bar)
    # Two estimates without noise that exclude each other: one of them is wrong.
    apart = finite & ~noisy & (gap > bar + seen.bar + np.abs(seen.half_jump))
    # The method uses closer points: a kink that only the scan shows is not at the point.
    kink = chosen & (seen.half_jump != 0) & (noisy | ~(bar < 0.5 * np.abs(seen.half_jump)))
    finite &= kink | (seen.half_jump == 0)
    better = noisy | (finite & ~(bar <= seen.bar))
    better &= chosen
    lost = chosen & ~noisy & np.isinf(seen.bar) & np.isfinite(value)
    truth.value[:, j] = np.where(better, seen.value, value)
    truth.bar[:, j] = np.where(better, seen.bar, np.where(lost, np.inf, bar))
    truth.bar[:, j] += np.where(apart & chosen, gap, 0.0)
    truth.smooth[:, j] = np.where(better, ~kink, truth.smooth[:, j] & ~kink)
    truth.left[:, j] = truth.value[:, j] - np.where(kink, seen.half_jump, 0.0)
    truth.right[:, j] = truth.value[:, j] + np.where(kink, seen.half_jump, 0.0)
    truth.rise[:, j] = seen.rise


class _Observer:
    """A function's values near a point, with a count of evaluations."""

    def __init__(self, f: Callee, point: Array, values: Array) -> None:
        self.f = f
        self.point = point
        self.center = values
        self.rounding = _EPS * np.abs(self.center)
        self.count = 0

    def along(self, j: int, wanted: BoolArray) -> LineScan:
        """Scan along one component."""
        unit = np.zeros(self.point.size)
        unit[j] = 1.0
        x = float(self.point[j])
        return scan_line(self._changes(unit), self.rounding, x, wanted)

    def across(self) -> LineScan:
        """Scan for noise along a direction that moves every component."""
        return scan_line(self._changes(self._direction()), self.rounding, 1.0)

    def aside(self) -> Array:
        """Return the jumps on both sides of the point along the same direction."""
        return scan_aside(self._changes(self._direction()), self.rounding)

    def _direction(self) -> Array:
        draw = np.random.default_rng(0)
        size = scale_of(self.point)
        return draw.choice((-1.0, 1.0), size.size) * draw.uniform(0.5, 1.0, size.size) * size

    def constant(self, j: int) -> BoolArray:
        """Return which outputs do not change with a component, not even below their rounding.

        A large function may hide a small change near the point in its rounding. It then changes
        further away, at first by no more than a few units of rounding.
        """
        unit = np.zeros(self.point.size)
        unit[j] = max(abs(float(self.point[j])), 1.0)
        changes = self._changes(unit)
        near = changes(np.array([-0.3, -0.11, 0.11, 0.3]))
        result: BoolArray = (near == 0).all(axis=0)
        unseen = result.copy()
        step = 1.0
        for _ in range(_STRIDES):
            if not unseen.any():
                break
            change = np.abs(changes(np.array([-step, step])))
            first = np.where(change > 0, change, np.inf).min(axis=0)
            moved = unseen & np.isfinite(first)
            result &= ~(moved & (first <= _HIDDEN * self.rounding))
            unseen &= ~moved
            step *= _REACH
        return result

    def _changes(self, unit: Array) -> Changes:
        def changes(moves: Array) -> Array:
            self.count += moves.size
            rows = (self.point + t * unit for t in moves)
            values = np.array([values_at(self.f, row, self.center.size) for row in rows])
            return values - self.center

        return changes


# --- the report -------------------------------------------------------------------------------

_ALIKE = 1e-6
_REPORTED_NOISE = 1e-12  # noise above which the message reports it, relative to the value


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
    where the values alone do not show it.
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
            margin = np.maximum(_ALIKE * np.abs(numeric), truth.bar[0, part])
            off = int((np.abs(right - numeric) > margin).sum())
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
            name=probe.point.element(probe.outputs, int(i), int(j)),
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

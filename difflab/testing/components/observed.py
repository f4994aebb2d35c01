"""Scans of a function's values for gradients on which a numeric method cannot decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.sampling import scale_of
from difflab.differences.scan import LineScan, scan_aside, scan_line
from difflab.differences.window import Changes
from difflab.testing.components.truth import Callee, Doubt, NumericJacobian

Array = NDArray[float64]
BoolArray = NDArray[np.bool_]

# Errors of code whose values jump also have a smooth part, which the values do not reveal. It may
# be `_BIAS` times larger than the jumps, but at most the share `_MOST` of a right derivative.
_BIAS, _MOST = 1e5, 5e-4
_CHOSEN = 8  # components that are scanned for noise first
_EPS = float(np.finfo(float64).eps)
_HIDDEN = 32.0  # a first change below this many units of rounding may have been hidden before
_REACH, _STRIDES = 16.0, 10  # growing steps at which a constant component must stay constant


def observed(
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
    found = np.isfinite(seen.bar)
    # Two estimates without noise that exclude each other: one of them is wrong.
    apart = found & ~noisy & (gap > bar + seen.bar + np.abs(seen.half_jump))
    # The method uses closer points: a kink that only the scan shows is not at the point.
    kink = chosen & (seen.half_jump != 0) & (noisy | ~(bar < 0.5 * np.abs(seen.half_jump)))
    found &= kink | (seen.half_jump == 0)
    better = noisy | (found & ~(bar <= seen.bar))
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
            return np.array([self.f(self.point + t * unit) for t in moves]) - self.center

        return changes

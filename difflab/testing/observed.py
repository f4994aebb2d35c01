"""What a function's values show where a numeric method's verdict on a gradient is in doubt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.testing.noise import Look, look, look_aside
from difflab.testing.truth import Callee, Doubt, Truth, values_at

__all__ = ["observed"]

Array = NDArray[float64]
Mask = NDArray[np.bool_]

# Code whose values jump has errors with a smooth part, too: the values do not show it. It may be
# so many times larger than the jumps, but a right derivative is at least this accurate.
_BIAS, _MOST = 1e5, 5e-4
_CHOSEN = 8  # components whose values are looked at for noise before all are
_EPS = float(np.finfo(float64).eps)
_HIDDEN = 32.0  # roundings of the value: a function that first moves by so little was hidden
_REACH, _STRIDES = 16.0, 10  # growing steps at which a constant component must stay constant


def observed(f: Callee, point: Array, values: Array, truth: Truth, doubt: Doubt) -> Truth:
    """Return the truth with what the values themselves show where a verdict is in doubt.

    A numeric method sees only how neighbouring values differ. Before it may call a gradient
    wrong the values are looked at for noise, and where its error bar says nothing they are
    looked at for more.
    """
    observer = _Observer(f, point, values)
    final = truth.final.copy()
    for j in np.flatnonzero((doubt.zero & ~final).any(axis=0)):
        final[doubt.zero[:, j] & observer.constant(int(j)), j] = True
    entries = doubt.entries & ~final
    if not entries.any():
        return replace(truth, final=final)
    looks, noise, pieces = _looks(observer, entries, doubt)
    names = ("value", "bar", "left", "right", "rise", "smooth")
    parts: dict[str, Any] = {name: getattr(truth, name).copy() for name in names}
    new = replace(truth, **parts, final=final, noise=noise)
    for column, taken in looks.items():
        _enter(new, column, taken, entries[:, column])
    hidden = np.fmin(_BIAS * pieces[:, None] / _lengths(point), _MOST * np.abs(new.value))
    new.bar[entries] += hidden[entries]
    fitted = f"polynomials through {observer.count} values of f"
    return replace(new, source=fitted if noise.any() else f"{truth.source}; {fitted}")


def _looks(
    observer: _Observer, entries: Mask, doubt: Doubt
) -> tuple[dict[int, Look], Array, Array]:
    """Look along the components in doubt; return also the noise, and that of smooth pieces.

    Noise along one component counts in all, since it is of one and the same values. Of many
    components that a method calls wrong a few are looked at, if these show no noise.
    """
    columns = [int(j) for j in np.argsort(-doubt.size.max(axis=0)) if entries[:, j].any()]
    looks = {j: observer.along(j, entries[:, j]) for j in columns[:_CHOSEN]}
    across = [observer.across()] if len(looks) < observer.point.size else []
    taken = [*looks.values(), *across]
    noise = np.max([each.noise for each in taken], axis=0)
    pieces = np.max([each.pieces for each in taken], axis=0) if noise.any() else observer.aside()
    rest = [j for j in columns[_CHOSEN:] if noise.any() or not doubt.wrong[:, j].any()]
    looks |= {j: observer.along(j, entries[:, j]) for j in rest}
    return looks, np.max([noise, *(each.noise for each in looks.values())], axis=0), pieces


def _enter(truth: Truth, j: int, taken: Look, chosen: Mask) -> None:
    """Put what was seen along component `j` into a truth, for the chosen outputs."""
    seen = taken.seen(truth.noise)
    value, bar = truth.value[:, j], truth.bar[:, j]
    gap = np.abs(seen.slope - value)
    noisy = truth.noise > 0
    found = np.isfinite(seen.bar)
    # Two estimates without noise that exclude each other say that one of them is deceived.
    apart = found & ~noisy & (gap > bar + seen.bar + np.abs(seen.half_jump))
    # The method looks nearer: where it sees no kink, the one that is seen is beside the point.
    kink = chosen & (seen.half_jump != 0) & (noisy | ~(bar < 0.5 * np.abs(seen.half_jump)))
    found &= kink | (seen.half_jump == 0)
    better = noisy | (found & ~(bar <= seen.bar))
    better &= chosen & bool(taken.windows)
    lost = chosen & ~noisy & np.isinf(seen.bar) & np.isfinite(value) & bool(taken.windows)
    truth.value[:, j] = np.where(better, seen.slope, value)
    truth.bar[:, j] = np.where(better, seen.bar, np.where(lost, np.inf, bar))
    truth.bar[:, j] += np.where(apart & chosen, gap, 0.0)
    truth.smooth[:, j] = np.where(better, ~kink, truth.smooth[:, j] & ~kink)
    truth.left[:, j] = truth.value[:, j] - np.where(kink, seen.half_jump, 0.0)
    truth.right[:, j] = truth.value[:, j] + np.where(kink, seen.half_jump, 0.0)
    truth.rise[:, j] = seen.rise


class _Observer:
    """A function's values beside a point, counted."""

    def __init__(self, f: Callee, point: Array, values: Array) -> None:
        self.f = f
        self.point = point
        self.center = values.ravel()
        self.count = 0

    def along(self, j: int, wanted: Mask) -> Look:
        """Look along one component."""
        unit = np.zeros(self.point.size)
        unit[j] = 1.0
        return look(self._moved(unit), self.center, float(self.point.flat[j]), wanted)

    def across(self) -> Look:
        """Look along a direction that moves every component, for the noise."""
        return look(self._moved(self._direction()), self.center, 1.0)

    def aside(self) -> Array:
        """Look for jumps of the values to both sides, with every component moved."""
        return look_aside(self._moved(self._direction()), self.center)

    def _direction(self) -> Array:
        draw = np.random.default_rng(0)
        size = _lengths(self.point)
        return draw.choice((-1.0, 1.0), size.size) * draw.uniform(0.5, 1.0, size.size) * size

    def constant(self, j: int) -> Mask:
        """Return which outputs do not change with a component, nor hide that they do.

        A function that is constant near the point may be too large for its change to be seen.
        Then it changes further out, and at first by no more than a few roundings.
        """
        unit = np.zeros(self.point.size)
        unit[j] = max(abs(float(self.point.flat[j])), 1.0)
        values = self._moved(unit)
        near = values(np.array([-0.3, -0.11, 0.11, 0.3])) - self.center
        result: Mask = (near == 0).all(axis=0)
        unseen = result.copy()
        step = 1.0
        for _ in range(_STRIDES):
            if not unseen.any():
                break
            change = np.abs(values(np.array([-step, step])) - self.center)
            first = np.where(change > 0, change, np.inf).min(axis=0)
            moved = unseen & np.isfinite(first)
            result &= ~(moved & (first <= _HIDDEN * _EPS * np.abs(self.center)))
            unseen &= ~moved
            step *= _REACH
        return result

    def _moved(self, unit: Array) -> Callable[[Array], Array]:
        start, shape = self.point.ravel(), self.point.shape

        def values(moves: Array) -> Array:
            self.count += moves.size
            rows = ((start + t * unit).reshape(shape) for t in moves)
            return np.array([values_at(self.f, row, self.center.size) for row in rows])

        return values


def _lengths(point: Array) -> Array:
    """Return the length over which a function of each component is assumed to change, ``(n,)``."""
    return np.where(point == 0, 1.0, np.abs(point)).ravel()

"""What a gradient is held to: numeric derivatives, each with what is known of its error.

May import every floor below `testing`: the numeric methods, tracing and the referee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import DomainError
from difflab.testing.noise import Look, look, look_aside

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = [
    "TRUSTED",
    "Doubt",
    "Truth",
    "argument",
    "estimated",
    "observed",
    "refereed",
    "rounds",
    "traced",
]

Array = NDArray[float64]
Mask = NDArray[np.bool_]
Callee = Callable[[Any], Any]

TRUSTED = 0.1
"""A bar above this share of the derivative leaves nothing of it but its size."""

_LARGEST = 20_000  # operations times inputs that the referee is asked to take on
_PATIENCE = 5.0  # seconds that it gets
_SAME = 1e4  # roundings by which the traced function may differ from the code
# Code whose values jump has errors with a smooth part, too: the values do not show it. It may be
# so many times larger than the jumps, but a right derivative is at least this accurate.
_BIAS, _MOST = 1e5, 5e-4
_CHOSEN = 8  # components whose values are looked at for noise before all are
_EPS = float(np.finfo(float64).eps)
_HIDDEN = 32.0  # roundings of the value: a function that first moves by so little was hidden
_REACH, _STRIDES = 16.0, 10  # growing steps at which a constant component must stay constant


@dataclass(frozen=True)
class Truth:
    """Numeric derivatives ``(m, n)``, and where they come from.

    Attributes
    ----------
    value, bar : ndarray (m, n)
        The derivative, and the bound on its error.
    left, right : ndarray (m, n)
        The one-sided derivatives; they differ at a kink.
    rise : ndarray (m, n)
        The steepest mean slope that the function was seen to have around the point.
    final : ndarray of bool (m, n)
        Where the derivative is known to all digits that matter, or to be zero.
    smooth : ndarray of bool (m, n)
        Where there is no kink.
    noise : ndarray (m,)
        The errors of the values, where they were found to be more than rounding.
    source : str
        For the message.
    """

    value: Array
    bar: Array
    left: Array
    right: Array
    rise: Array
    final: Mask
    smooth: Mask
    noise: Array
    source: str


@dataclass(frozen=True)
class Doubt:
    """Entries ``(m, n)`` of which a numeric method alone cannot tell.

    Attributes
    ----------
    wrong : ndarray of bool
        Those that it calls wrong.
    entries : ndarray of bool
        Those, and all that its error bar is too wide for.
    zero : ndarray of bool
        Those that are zero by both.
    size : ndarray
        How far they are off.
    """

    wrong: Mask
    entries: Mask
    zero: Mask
    size: Array


def size_of(point: Array) -> Array:
    """Return the length over which a function of each component is assumed to change, ``(n,)``."""
    return np.where(point == 0, 1.0, np.abs(point)).ravel()


def argument(point: Array) -> Any:
    """Return the point as `f` expects it: its own copy, a number where it is one."""
    return float(point) if point.ndim == 0 else point.copy()


def estimated(f: Callee, point: Array, values: Array, method: str) -> Truth:
    """Return the derivatives by a numeric method."""
    from difflab.methods.differentiate import differentiate

    def isolated(x: Any) -> Any:
        return f(x.copy() if isinstance(x, np.ndarray) else x)

    found = differentiate(isolated, point, method=method)
    shape = (values.size, point.size)
    value = np.reshape(found.value, shape)
    bar = np.zeros(shape) if found.error is None else np.reshape(found.error, shape)
    return Truth(
        value=value,
        bar=bar,
        left=value,
        right=value,
        rise=np.zeros(shape),
        final=np.zeros(shape, dtype=bool),
        smooth=bar <= TRUSTED * np.abs(value),
        noise=np.zeros(values.size),
        source=f"{method}, {found.evaluations} evaluations of f",
    )


def traced(f: Callee, point: Array, values: Array) -> Function | None:
    """Return the graph of `f`, or None where Python decides what it computes, or it is large."""
    from difflab.graph.counts import count
    from difflab.graph.trace import trace

    try:
        function = trace(f, argument(point))
        small = count(function).operations * point.size <= _LARGEST
    except Exception:  # whatever the user's code does when it meets a value that is no number
        return None
    return function if small and function.m == values.size else None


def refereed(function: Function, f: Callee, point: Array, truth: Truth) -> Truth:
    """Put the referee's derivative where it settled one, if the code computes what was traced."""
    from difflab.lab.referee import refer
    from difflab.lab.ulp import nearest

    found = refer(function, point.ravel().tolist(), timeout=_PATIENCE)
    if not _same(function, f, point, found.magnitude):
        return truth
    settled = ~np.isin(found.regularity, ("undefined", "unsettled"))
    smooth = found.regularity == "smooth"
    value = np.where(settled, found.jacobian, truth.value)
    left, right = (
        np.where(settled & ~smooth, np.reshape([nearest(v) for v in side.flat], side.shape), value)
        for side in (found.left, found.right)
    )
    source = f"differences of mpmath values, {found.evaluations} evaluations"
    return replace(
        truth,
        value=value,
        bar=np.where(settled, found.bounds, truth.bar),
        left=left,
        right=right,
        final=settled,
        smooth=smooth,
        source=source if settled.all() else truth.source,
    )


def _same(function: Function, f: Callee, point: Array, magnitude: float) -> bool:
    """Return whether a graph and the code that was traced agree at the point and beside it."""
    draw = np.random.default_rng(0)
    for reach in (0.0, 1e-3, 0.1):
        near = point * (1.0 + reach * draw.uniform(-1.0, 1.0, point.shape))
        with np.errstate(all="ignore"):
            theirs = _value(f, near, function.m)
            ours = function.values(near.ravel())
        room = _SAME * _EPS * np.fmax(np.abs(theirs), magnitude)
        if not (np.abs(ours - theirs) <= room)[np.isfinite(theirs)].all():
            return False
    return True


def rounds(function: Function) -> bool:
    """Return whether a graph has operations whose results move in steps, such as `round`.

    Its derivative is that of the pieces, zero where the result itself is rounded. What is asked
    for may also be the derivative of the function that was rounded.
    """
    return any(row.name in ("floor", "ceil", "round") for row in function.graph.primitives)


def _value(f: Callee, point: Array, m: int) -> Array:
    """Return the flattened values, nan where the code refuses the point."""
    try:
        return np.asarray(f(argument(point)), dtype=float64).reshape(m)
    except (ArithmeticError, ValueError, DomainError):
        return np.full(m, np.nan)


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
    columns = [int(j) for j in np.argsort(-doubt.size.max(axis=0)) if entries[:, j].any()]
    if not columns:
        return replace(truth, final=final)
    looks = {j: observer.along(j, entries[:, j]) for j in columns[:_CHOSEN]}
    across = [observer.across()] if len(looks) < point.size else []
    noise = np.max([each.noise for each in (*looks.values(), *across)], axis=0)
    pieces = np.max([each.pieces for each in (*looks.values(), *across)], axis=0)
    if not noise.any():
        pieces = observer.aside()
    rest = [j for j in columns[_CHOSEN:] if noise.any() or not doubt.wrong[:, j].any()]
    looks |= {j: observer.along(j, entries[:, j]) for j in rest}
    noise = np.max([noise, *(each.noise for each in looks.values())], axis=0)
    names = ("value", "bar", "left", "right", "rise", "smooth")
    parts: dict[str, Any] = {name: getattr(truth, name).copy() for name in names}
    new = replace(truth, **parts, final=final, noise=noise)
    for column, each in looks.items():
        _enter(new, column, each, entries[:, column])
    rough = np.fmin(_BIAS * pieces[:, None] / size_of(point), _MOST * np.abs(new.value))
    new.bar[entries] += rough[entries]
    fitted = f"polynomials through {observer.count} values of f"
    return replace(new, source=fitted if noise.any() else f"{truth.source}; {fitted}")


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
        size = size_of(self.point)
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
            return np.array([_value(self.f, row, self.center.size) for row in rows])

        return values

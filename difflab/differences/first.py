"""First and second derivatives from values: choice of steps and sides, and error estimates.

One batch of values on a short ladder of steps suffices for ordinary functions; components for
which it does not converge are passed to `search_widely`. Hessians are extrapolated from second
difference quotients.

With steps ``h_i = t s_i`` along each component, the quotients

    (f(x+h_i) - 2 f(x) + f(x-h_i)) / h_i^2
    (f(x+h_i+h_j) - f(x+h_i-h_j) - f(x-h_i+h_j) + f(x-h_i-h_j)) / (4 h_i h_j)

have error series in ``t^2, t^4, ...``, and the one-sided

    (f(x+2h_i) - 2 f(x+h_i) + f(x)) / h_i^2
    (f(x+h_i+h_j) - f(x+h_i) - f(x+h_j) + f(x)) / (h_i h_j)

in ``t, t^2, ...``; so the weights of first derivatives also apply to them. The lengths
``s_i`` are those that resolved the first derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import (
    REJECT,
    Weights,
    consistent,
    quotients_of,
    scores,
    solve,
    solve_on_search,
    tail,
    usable,
)
from difflab.differences.rules import DifferenceRule, FirstDerivatives, SecondRule
from difflab.differences.sampling import (
    FLOATS,
    LEAD,
    Arithmetic,
    NoiseEstimate,
    Sampler,
    ladder,
    lead_points,
    moved_values,
    noise_of,
    probe,
    scale_of,
)
from difflab.differences.wide import SUSPECT, search_widely

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Maximum elements of the arrays of quotients: components are processed in blocks.
_ENTRIES = 1 << 22


def first_derivatives(rule: DifferenceRule, sampler: Sampler, x: Array) -> FirstDerivatives:
    """Return the first derivatives of every output in every component at `x`."""
    scale = scale_of(x)
    with np.errstate(all="ignore"):
        found = _first_pass(rule, sampler, x, scale)
        if (found.error < rule.tolerance * np.abs(found.value)).all():
            return found
        near = NoiseEstimate(found.center, found.noise, found.eps)
        open_ = ~(found.error <= rule.wanted(near, found.value, scale))
        search = (open_ | found.flat).any(axis=1)
        if search.any():
            found.error[open_] = np.inf
            search_widely(rule, sampler, x, np.flatnonzero(search), found)
    return found


def _first_pass(rule: DifferenceRule, sampler: Sampler, x: Array, scale: Array) -> FirstDerivatives:
    """Evaluate the short ladder of steps, in one batch if memory allows."""
    units, n = rule.signed_units, x.size
    block = max(1, _ENTRIES // (len(units) * sampler.m))
    if n <= block and LEAD + units.size * n <= sampler.rows:
        lead, body, moved = probe(sampler, x, scale, units)
        near = noise_of(lead, eps=sampler.eps)
        parts = [_judged(rule, sampler, x, np.arange(n), scale, near, body, moved)]
    else:
        near = noise_of(sampler(lead_points(x, scale)), eps=sampler.eps)
        parts = []
        for start in range(0, n, block):
            chosen = np.arange(start, min(start + block, n))
            body, moved = ladder(sampler, x, chosen, units * scale[chosen])
            parts.append(_judged(rule, sampler, x, chosen, scale, near, body, moved))
    value, error, flat = (
        parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    )
    return FirstDerivatives(value, error, flat, scale, *near)


def _judged(
    rule: DifferenceRule,
    sampler: Sampler,
    x: Array,
    chosen: Index,
    scale: Array,
    near: NoiseEstimate,
    body: Array,
    moved: Array,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return value, error and flatness ``(b, m)`` from the sampled values."""

    def sample(steps: Array) -> tuple[Array, Array]:
        return ladder(sampler, x, chosen, steps)

    point = LadderPoint(x[chosen], scale[chosen], near)
    value, error, quotients = judged(rule, point, body, moved, sample)
    flat = value == 0
    if np.count_nonzero(flat):
        flat &= quotients.any(axis=0).reshape(flat.shape) | (point.scale < SUSPECT)[:, None]
    return value, error, flat


class LadderPoint(NamedTuple):
    """The components to differentiate by ``(b,)``, their scales, and the values at the point."""

    x: Array
    scale: Array
    near: NoiseEstimate


Sample = Callable[[Array], tuple[Array, Array]]
"""Map signed steps ``(R, b)`` of the components to values ``(R, b, m)`` and moved components."""


def judged(
    rule: DifferenceRule,
    point: LadderPoint,
    body: Array,
    moved: Array,
    sample: Sample,
    on: Arithmetic = FLOATS,
) -> tuple[Array, Array, Array]:
    """Return derivatives and errors ``(b, m)``, and the quotients ``(K, b * m)``.

    Parameters
    ----------
    rule : DifferenceRule
    point : LadderPoint
        The point.
    body, moved : ndarray (R, b, m), (R, b)
        The values on the ladder of `DifferenceRule.signed_units`, and the moved components.
    sample : callable
        Evaluates the function at further steps.
    on : Arithmetic
        The operations on the arrays.
    """
    shape = body.shape[1:]
    if rule.central is None:
        value, error, quotients = _forward(rule, point, body, moved, sample, on)
    else:
        value, error, quotients = _central(rule, rule.central, point, body, moved, on)
    return value.reshape(shape), error.reshape(shape), quotients


def _central(
    rule: DifferenceRule,
    weights: Weights,
    point: LadderPoint,
    body: Array,
    moved: Array,
    on: Arithmetic,
) -> tuple[Array, Array, Array]:
    """Judge central differences."""
    levels = len(rule.units)
    center, noise, eps = point.near
    up, down = body[:levels], body[levels:]
    width = (moved[:levels] - moved[levels:])[:, :, None]
    found = quotients_of(up, down, width, noise, eps, on)
    quotients, rounding = (part.reshape(levels, -1) for part in found)
    value, error, pick = solve(weights, quotients, rounding, on=on)
    if not rule.strict:
        error = on.larger(error, tail(weights, quotients, rounding, pick, on))
    # Over the whole width 2h this is half the difference of the one-sided quotients.
    curvature = ((up + down - 2.0 * center) / width).reshape(levels, -1)
    half_jump = np.abs(on.picked(weights, "jump", curvature, pick))
    error = error + on.where(on.greater(half_jump, error), half_jump, 0.0)
    return value, error, quotients


def _forward(
    rule: DifferenceRule,
    point: LadderPoint,
    body: Array,
    moved: Array,
    sample: Sample,
    on: Arithmetic,
) -> tuple[Array, Array, Array]:
    """Judge forward differences, checked by a backward difference."""
    weights, levels = rule.onesided, len(rule.units)
    x, scale, (center, noise, eps) = point
    found = quotients_of(body, center, (moved - x)[:, :, None], noise, eps, on)
    quotients, rounding = (part.reshape(levels, -1) for part in found)
    value, error, pick = solve(weights, quotients, rounding, on=on)
    error = on.larger(error, tail(weights, quotients, rounding, pick, on))
    # A kink is visible only from the other side: one more point per component, at its step.
    units = np.broadcast_to(rule.units[weights.level], (len(weights.level), value.size))
    step = on.smaller.reduce(on.chosen(units, pick).reshape(x.size, -1), axis=1) * scale
    behind, back = sample(-step[None, :])
    gap = np.abs(((center - behind[0]) / (x - back[0])[:, None]).ravel() - value)
    return value, on.larger_known(error, gap), quotients


# --- second derivatives -----------------------------------------------------------------------

# A scale may be too long for a pair of components: further attempts use shorter ones.
_TRIES = 6
_SHRINK = 8.0
_SHORT = 2.0**-10
# Relative error of the gradient above which a kink or pole is assumed, without a Hessian.
_ROUGH = 1e-2


def second_derivatives(
    rule: SecondRule, sampler: Sampler, x: Array, found: FirstDerivatives
) -> tuple[Array, Array]:
    """Return the Hessian ``(n, n)`` of the only output and the errors of its elements."""
    n = x.size
    rows, columns = np.triu_indices(n)
    # Errors are distinguished from `UNUSABLE` by size: values must stay far below it.
    unit = np.where(np.abs(found.center) > 1e200, 2.0**600, 1.0)
    found = replace(
        found,
        value=found.value / unit,
        error=found.error / unit,
        center=found.center / unit,
        noise=found.noise / unit,
        unit=unit,
    )
    search = _HessianSearch(rule, sampler, x, found, rows, columns)
    with np.errstate(all="ignore"):
        if np.isfinite(found.center[0]):
            search.run()
        size = np.abs(found.value[:, 0]) + np.abs(found.center[0]) / found.scale
        broken = ~(found.error[:, 0] <= _ROUGH * size)
    error = search.error
    error[broken[rows] | broken[columns] | ~(error < REJECT)] = np.inf
    hessian, bound = np.empty((n, n)), np.empty((n, n))
    hessian[rows, columns] = hessian[columns, rows] = search.value * unit
    bound[rows, columns] = bound[columns, rows] = error * unit
    return hessian, bound


@dataclass
class _HessianSearch:
    """Search for the elements of the upper triangle, with the best estimate of each."""

    rule: SecondRule
    sampler: Sampler
    x: Array
    found: FirstDerivatives
    rows: Index
    columns: Index
    value: Array = field(init=False)
    error: Array = field(init=False)

    def __post_init__(self) -> None:
        self.value = np.full(self.rows.size, np.nan)
        self.error = np.full(self.rows.size, np.inf)

    def run(self) -> None:
        """Evaluate central, then one-sided quotients, at ever shorter scales as needed."""
        if self.rule.central is not None:
            self._descend(self.rule.central, None)
            if (self.error < REJECT).all():
                return
        self._descend(self.rule.onesided, self._open_sides())

    def _descend(self, weights: Weights, sides: Array | None) -> None:
        for scale in self._scales():
            natural = np.abs(self.found.center[0]) / (scale[self.rows] * scale[self.columns])
            size = np.fmax(np.abs(self.value), natural)
            converged = self.error <= self.rule.tolerance * size
            pending = np.flatnonzero(~converged | np.isinf(self.error))
            if not pending.size:
                return
            self._attempt(weights, sides, scale, pending)

    def _scales(self) -> Iterator[Array]:
        """Yield the lengths to use: those of the gradient, shorter ones, longer ones."""
        scale = self.found.scale
        for shrink in range(_TRIES):
            yield scale / _SHRINK**shrink
        if scale.min() < _SHORT:
            # Near zero the lengths may suit first differences but be too short for second ones.
            for power in (0.0, 0.25, 0.5, 0.75):
                yield np.minimum(np.maximum(scale, scale**power), np.maximum(scale, 1.0))

    def _open_sides(self) -> Array:
        """Return +1 or -1 for each component: the side on which more values are finite."""
        n = self.x.size
        steps = self.rule.units * self.found.scale
        values, _ = ladder(self.sampler, self.x, np.arange(n), np.concatenate([steps, -steps]))
        usable = np.isfinite(values[:, :, 0]).reshape(2, -1, n).sum(axis=1)
        return np.where(usable[1] > usable[0], -1.0, 1.0)

    def _attempt(self, weights: Weights, sides: Array | None, scale: Array, pending: Index) -> None:
        rows, columns = self.rows[pending], self.columns[pending]
        if sides is None:
            quotients, level, jump = self._central(scale, rows, columns)
        else:
            quotients, level = self._onesided(scale * sides, rows, columns)
            jump = np.zeros_like(quotients)
        quotients, level = usable(quotients, level)
        value, error, pick = solve_on_search(weights, quotients, level)
        error = np.fmax(error, np.abs(FLOATS.picked(weights, "side_jump", jump, pick)))
        _, low, high = consistent(quotients, scores(quotients, level))
        error = np.fmax(error, np.maximum(low - value, value - high))
        better = error < self.error[pending]
        self.value[pending[better]] = value[better]
        self.error[pending[better]] = error[better]

    def _level(self, *values: Array) -> Array:
        """Return a common bound on the errors of `values`, element by element."""
        size = np.abs(self.found.center[0])
        for value in values:
            size = np.maximum(size, np.abs(value))
        level: Array = np.maximum(self.found.noise[0], self.found.eps * size)
        return level

    def _moved(self, rows: Index, columns: Index, to_row: Array, to_column: Array) -> Array:
        """Return values ``(K, P)`` with component ``rows[p]``, ``columns[p]`` moved there."""
        moves = ((rows, to_row), (columns, to_column))
        values = moved_values(self.sampler, self.x, *moves)[:, :, 0] / self.found.unit
        return np.asarray(values, dtype=float)

    def _central(self, scale: Array, rows: Index, columns: Index) -> tuple[Array, Array, Array]:
        """Return central quotients, their rounding, and differences between the two sides."""
        x, center = self.x, self.found.center[0]
        up, down = x + self.rule.units * scale, x - self.rule.units * scale
        quotients, level = np.empty((2, len(up), rows.size))
        jump = np.zeros_like(quotients)
        pure, mixed = np.flatnonzero(rows == columns), np.flatnonzero(rows != columns)
        i = rows[pure]
        if pure.size:
            high, low = (
                self._moved(i, i, up[:, i], up[:, i]),
                self._moved(i, i, down[:, i], down[:, i]),
            )
            right, left = (high - center) / (up[:, i] - x[i]), (center - low) / (x[i] - down[:, i])
            width = up[:, i] - down[:, i]
            quotients[:, pure] = 2.0 * (right - left) / width
            level[:, pure] = 16.0 * self._level(high, low) / width**2
            # f[x, x+h, x+rh] against f[x, x-h, x-rh]: a jump of the second derivative.
            jump[1:, pure] = np.nan_to_num(
                np.diff(right, axis=0) / np.diff(up[:, i], axis=0)
                - np.diff(left, axis=0) / np.diff(down[:, i], axis=0),
                posinf=0.0,
                neginf=0.0,
            )
        if mixed.size:
            i, j = rows[mixed], columns[mixed]
            corners = [
                self._moved(i, j, a[:, i], b[:, j])
                for a, b in ((up, up), (up, down), (down, up), (down, down))
            ]
            area = (up[:, i] - down[:, i]) * (up[:, j] - down[:, j])
            total = (corners[0] - corners[1]) - (corners[2] - corners[3])
            quotients[:, mixed] = total / area
            level[:, mixed] = 4.0 * self._level(*corners) / area
        return quotients, level, jump

    def _onesided(self, scale: Array, rows: Index, columns: Index) -> tuple[Array, Array]:
        """Return one-sided quotients, towards the signs of `scale`, and their rounding."""
        x, center = self.x, self.found.center[0]
        near, far = x + self.rule.units * scale, x + 2.0 * self.rule.units * scale
        i, j = rows, columns
        pure = i == j
        one = self._moved(i, i, near[:, i], near[:, i])
        two = self._moved(
            j, j, np.where(pure, far[:, j], near[:, j]), np.where(pure, far[:, j], near[:, j])
        )
        step = near - x
        quotients, level = np.empty((2, *one.shape))
        slope = (one - center) / step[:, i]
        steeper = (two - one) / (far - near)[:, i]
        straight = 2.0 * (steeper - slope) / (far - x)[:, i]
        quotients[:, pure] = straight[:, pure]
        level[:, pure] = (4.0 * self._level(one, two) / step[:, i] ** 2)[:, pure]
        mixed = np.flatnonzero(~pure)
        if mixed.size:
            i, j = i[mixed], j[mixed]
            both = self._moved(i, j, near[:, i], near[:, j])
            total = (both - one[:, mixed]) - (two[:, mixed] - center)
            area = step[:, i] * step[:, j]
            quotients[:, mixed] = total / area
            bound = self._level(both, one[:, mixed], two[:, mixed])
            level[:, mixed] = 4.0 * bound / np.abs(area)
        return quotients, level

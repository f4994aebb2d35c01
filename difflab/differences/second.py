"""Second derivatives from values: Hessians extrapolated from second difference quotients.

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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import (
    REJECT,
    Weights,
    consistent,
    scores,
    solve_on_search,
    usable,
)
from difflab.differences.first import FirstDerivatives
from difflab.differences.sampling import FLOATS, Sampler, ladder, moved_values

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# A scale may be too long for a pair of components: further attempts use shorter ones.
_TRIES = 6
_SHRINK = 8.0
_SHORT = 2.0**-10
# Relative error of the gradient above which a kink or pole is assumed, without a Hessian.
_ROUGH = 1e-2


@dataclass(frozen=True)
class SecondRule:
    """The ladder and the candidates for second derivatives; fields as in `DifferenceRule`."""

    units: Array
    central: Weights | None
    onesided: Weights
    tolerance: float


def second_derivatives(
    rule: SecondRule, sampler: Sampler, x: Array, first: FirstDerivatives
) -> tuple[Array, Array]:
    """Return the Hessian ``(n, n)`` of the only output and the errors of its elements."""
    n = x.size
    rows, columns = np.triu_indices(n)
    # Errors are distinguished from `UNUSABLE` by size: values must stay far below it.
    unit = np.where(np.abs(first.center) > 1e200, 2.0**600, 1.0)
    first = replace(
        first,
        value=first.value / unit,
        error=first.error / unit,
        center=first.center / unit,
        noise=first.noise / unit,
        unit=unit,
    )
    search = _HessianSearch(rule, sampler, x, first, rows, columns)
    with np.errstate(all="ignore"):
        if np.isfinite(first.center[0]):
            search.run()
        size = np.abs(first.value[:, 0]) + np.abs(first.center[0]) / first.scale
        broken = ~(first.error[:, 0] <= _ROUGH * size)
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
    first: FirstDerivatives
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
            natural = np.abs(self.first.center[0]) / (scale[self.rows] * scale[self.columns])
            size = np.fmax(np.abs(self.value), natural)
            converged = self.error <= self.rule.tolerance * size
            pending = np.flatnonzero(~converged | np.isinf(self.error))
            if not pending.size:
                return
            self._attempt(weights, sides, scale, pending)

    def _scales(self) -> Iterator[Array]:
        """Yield the lengths to use: those of the gradient, shorter ones, longer ones."""
        scale = self.first.scale
        for shrink in range(_TRIES):
            yield scale / _SHRINK**shrink
        if scale.min() < _SHORT:
            # Near zero the lengths may suit first differences but be too short for second ones.
            for power in (0.0, 0.25, 0.5, 0.75):
                yield np.minimum(np.maximum(scale, scale**power), np.maximum(scale, 1.0))

    def _open_sides(self) -> Array:
        """Return +1 or -1 for each component: the side on which more values are finite."""
        n = self.x.size
        steps = self.rule.units * self.first.scale
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
        size = np.abs(self.first.center[0])
        for value in values:
            size = np.maximum(size, np.abs(value))
        level: Array = np.maximum(self.first.noise[0], self.first.eps * size)
        return level

    def _moved(self, rows: Index, columns: Index, to_row: Array, to_column: Array) -> Array:
        """Return values ``(K, P)`` with component ``rows[p]``, ``columns[p]`` moved there."""
        moves = ((rows, to_row), (columns, to_column))
        values = moved_values(self.sampler, self.x, *moves)[:, :, 0] / self.first.unit
        return np.asarray(values, dtype=float)

    def _central(self, scale: Array, rows: Index, columns: Index) -> tuple[Array, Array, Array]:
        """Return central quotients, their rounding, and differences between the two sides."""
        x, center = self.x, self.first.center[0]
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
        x, center = self.x, self.first.center[0]
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

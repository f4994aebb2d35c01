"""First derivatives from values: choice of steps and sides, and error estimates.

One batch of values on a short ladder of steps suffices for ordinary functions; components for
which it does not converge are passed to `search_widely`. A rule states the steps and the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import Weights, quotients_of, solve, tail
from difflab.differences.sampling import (
    FLOATS,
    LEAD,
    Arithmetic,
    NoiseEstimate,
    Sampler,
    ladder,
    lead_points,
    noise_of,
    probe,
    scale_of,
)
from difflab.differences.wide import SUSPECT, search_widely

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Maximum elements of the arrays of quotients: components are processed in blocks.
_ENTRIES = 1 << 22
# Error allowed to a derivative of zero: this many roundings of the value over the scale.
ROUNDINGS = 256.0


@dataclass(frozen=True)
class DifferenceRule:
    """A family of stencils and the ladders of steps at which they are evaluated.

    Attributes
    ----------
    units : ndarray (K, 1)
        Steps of the first ladder, relative to the component's scale.
    central : Weights or None
        Candidates from central quotients on the first ladder; None for a
        one-sided rule.
    onesided : Weights
        Candidates from one-sided quotients on the first ladder.
    tolerance : float
        A component has converged if its relative error is below this.
    fine_units : ndarray (K', 1)
        Steps of the second ladder, relative to the step found for the component.
    fine_central, fine_onesided
        Candidates on the second ladder.
    strict : bool
        A component without relative accuracy has converged only at the level of rounding,
        because a short ladder of long steps is no sufficient evidence otherwise.
    from_onset : bool
        The second ladder starts from the largest step at which quotients converge
        (extrapolation works best with large steps), not from the best single step.
    """

    units: Array
    central: Weights | None
    onesided: Weights
    tolerance: float
    strict: bool
    fine_units: Array
    fine_central: Weights | None
    fine_onesided: Weights
    from_onset: bool

    def wanted(
        self, near: NoiseEstimate, value: Array, scale: Array, on: Arithmetic = FLOATS
    ) -> Array:
        """Return the error of derivatives ``(n, m)`` that are as accurate as can be expected."""
        floor = (ROUNDINGS * near.eps if self.strict else self.tolerance) * np.abs(near.center)
        relative = self.tolerance * np.abs(value)
        bound: Array = on.larger(relative, floor / on.larger(scale, 1.0)[:, None])
        return bound

    @cached_property
    def signed_units(self) -> Array:
        """Steps of the first ladder: to the right and, for central quotients, to the left."""
        if self.central is None:
            return self.units
        return np.concatenate([self.units, -self.units])


@dataclass
class FirstDerivatives:
    """First derivatives and the properties of the function found with them.

    Attributes
    ----------
    value, error : ndarray (n, m)
    flat : ndarray (n, m)
        Whether the function seems constant, possibly because its changes round to zero.
    scale : ndarray (n,)
        A length over which the function is resolved, for each component.
    center, noise, eps
        See `NoiseEstimate`.
    unit : ndarray (m,)
        Factor by which huge values are divided in intermediate steps.
    """

    value: Array
    error: Array
    flat: NDArray[np.bool_]
    scale: Array
    center: Array
    noise: Array
    eps: float
    unit: Array = field(default_factory=lambda: np.ones(1))


def first_derivatives(rule: DifferenceRule, sampler: Sampler, x: Array) -> FirstDerivatives:
    """Return the first derivatives of every output in every component at `x`."""
    scale = scale_of(x)
    with np.errstate(all="ignore"):
        first = _first_pass(rule, sampler, x, scale)
        if (first.error < rule.tolerance * np.abs(first.value)).all():
            return first
        near = NoiseEstimate(first.center, first.noise, first.eps)
        open_ = ~(first.error <= rule.wanted(near, first.value, scale))
        search = (open_ | first.flat).any(axis=1)
        if search.any():
            first.error[open_] = np.inf
            search_widely(rule, sampler, x, np.flatnonzero(search), first)
    return first


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
    parts = quotients_of(up, down, width, noise, eps, on)
    quotients, rounding = (part.reshape(levels, -1) for part in parts)
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
    parts = quotients_of(body, center, (moved - x)[:, :, None], noise, eps, on)
    quotients, rounding = (part.reshape(levels, -1) for part in parts)
    value, error, pick = solve(weights, quotients, rounding, on=on)
    error = on.larger(error, tail(weights, quotients, rounding, pick, on))
    # A kink is visible only from the other side: one more point per component, at its step.
    units = np.broadcast_to(rule.units[weights.level], (len(weights.level), value.size))
    step = on.smaller.reduce(on.chosen(units, pick).reshape(x.size, -1), axis=1) * scale
    behind, back = sample(-step[None, :])
    gap = np.abs(((center - behind[0]) / (x - back[0])[:, None]).ravel() - value)
    return value, on.larger_known(error, gap), quotients

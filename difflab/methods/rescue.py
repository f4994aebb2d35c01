"""Derivatives where an ordinary ladder fails: odd scales, edges of the domain, kinks.

May import `difflab.methods` (rules, stencil, weights) and NumPy.

The quotients are formed on both sides over the whole range of steps that the numbers
allow. Where they begin to converge a fine ladder starts. Central quotients are taken
where both sides exist, one-sided ones at an edge of the domain; where both sides exist
and disagree, half their difference (the kink) is part of the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from difflab.methods.rules import Found, Rule
from difflab.methods.stencil import Sampler, ladder
from difflab.methods.weights import Weights, solve

__all__ = ["rescue"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# A quotient that cannot be formed gets this rounding error and is never picked; an
# infinite one would turn into nan in a product with a weight of zero.
_UNUSABLE = 1e300
_REJECT = 1e290

# Every step of the wide ladder is the largest one times 2^-e. Functions of a component
# near zero may change over any length, hence the second, longer one.
_NEAR = np.arange(0.0, 72.0, 4.0)
_FAR = np.concatenate([np.arange(0.0, 64.0, 4.0), np.arange(64.0, 1000.0, 16.0)])
_TOP = 0.3

# Quotients that keep growing over so many steps have no limit.
_STREAK = 4


@dataclass(frozen=True)
class _Sides:
    """Values on both sides of x: ``(K, N)``, N = components × outputs, steps positive."""

    up: Array
    down: Array
    step_up: Array
    step_down: Array
    center: Array
    noise: Array
    eps: float

    def right(self) -> tuple[Array, Array]:
        """Return forward quotients and their rounding."""
        return self._quotients(self.up, self.center, self.step_up)

    def left(self) -> tuple[Array, Array]:
        """Return backward quotients and their rounding."""
        return self._quotients(self.center, self.down, self.step_down)

    def central(self) -> tuple[Array, Array]:
        """Return central quotients and their rounding."""
        return self._quotients(self.up, self.down, self.step_up + self.step_down)

    def curvature(self) -> Array:
        """Return half the difference of forward and backward quotients."""
        gap = (self.up - self.center) + (self.down - self.center)
        return np.nan_to_num(gap / (self.step_up + self.step_down), posinf=0.0, neginf=0.0)

    def _quotients(self, high: Array, low: Array, width: Array) -> tuple[Array, Array]:
        quotients = (high - low) / width
        level = np.maximum(self.noise, self.eps * np.maximum(np.abs(high), np.abs(low)))
        rounding = 2.0 * level / width
        bad = ~np.isfinite(quotients) | ~np.isfinite(rounding)
        return np.where(bad, 0.0, quotients), np.where(bad, _UNUSABLE, rounding)


def rescue(rule: Rule, sampler: Sampler, x: Array, components: Index, found: Found) -> None:
    """Settle `components` over the whole range of steps; improves `found` in place."""
    found.error[np.isnan(found.error) | np.isnan(found.value)] = np.inf
    undefined = ~np.isfinite(found.center)
    found.value[:, undefined] = np.nan
    found.error[:, undefined] = np.inf
    if undefined.all():
        return
    near_zero = np.abs(x[components]) < 2.0**-20
    for group, exponents in ((components[~near_zero], _NEAR), (components[near_zero], _FAR)):
        if group.size:
            _rescue_group(rule, sampler, x, group, exponents, found)


def _rescue_group(
    rule: Rule, sampler: Sampler, x: Array, group: Index, exponents: Array, found: Found
) -> None:
    top = _TOP * np.maximum(np.abs(x[group]), 1.0)
    steps = np.multiply.outer(2.0**-exponents, top)
    sides = _both_sides(sampler, x, group, steps, found)
    survey = _survey(rule, sides, exponents, np.repeat(top, sampler.m))
    rung = survey.onset if rule.from_onset else survey.best
    start = np.take_along_axis(steps, rung.reshape(group.size, -1), axis=0)
    start = start[:, np.isfinite(found.center)]
    for wanted in _distinct(start):
        fine = _both_sides(sampler, x, group, rule.fine_units * wanted, found)
        value, error = _combine(rule, fine)
        better = _improve(found, group, value, error)
        found.scale[group] = np.where(better.any(axis=1), wanted, found.scale[group])
    _declare_lost(found, group, survey, x)


def _both_sides(
    sampler: Sampler, x: Array, group: Index, steps: Array, found: Found
) -> _Sides:
    levels = len(steps)
    values, moved = ladder(sampler, x, group, np.concatenate([steps, -steps]))
    shift = np.repeat(np.abs(moved - x[group]), sampler.m, axis=1)
    flat = values.reshape(2 * levels, -1)
    return _Sides(
        up=flat[:levels],
        down=flat[levels:],
        step_up=shift[:levels],
        step_down=shift[levels:],
        center=np.tile(found.center, group.size),
        noise=np.tile(found.noise, group.size),
        eps=found.eps,
    )


@dataclass(frozen=True)
class _Survey:
    """What the wide ladder shows, for every component and output ``(N,)``."""

    best: Index
    onset: Index
    diverging: NDArray[np.bool_]
    last: Array


def _survey(rule: Rule, sides: _Sides, exponents: Array, top: Array) -> _Survey:
    """Find the best single step, the largest converging one, and quotients without limit."""
    series = [sides.right(), sides.left()]
    if rule.central is not None:
        series.insert(0, sides.central())
    columns = np.arange(top.size)
    chosen_q, chosen_r = series[-1]
    unsettled = np.full(top.size, np.inf)
    natural = np.abs(sides.center) / top
    for quotients, rounding in reversed(series):
        score = _scores(quotients, rounding)
        best = score.argmin(axis=0)
        size = np.maximum(np.abs(quotients[best, columns]), natural)
        relative = np.fmin(score[best, columns] / size, np.where(score[best, columns] == 0, 0, np.inf))
        # An earlier series (central before right before left) wins when it converges.
        take = (relative <= 0.1) | (relative <= unsettled)
        chosen_q = np.where(take, quotients, chosen_q)
        chosen_r = np.where(take, rounding, chosen_r)
        unsettled = np.where(take, relative, unsettled)
    score = _scores(chosen_q, chosen_r)
    best = score.argmin(axis=0)
    limit = np.maximum(4.0 * score[best, columns], np.abs(chosen_q[best, columns]) / 16.0)
    onset = (score <= limit).argmax(axis=0)
    diverging, last = _trend(chosen_q, chosen_r, exponents)
    return _Survey(best, onset, diverging, last)


def _scores(quotients: Array, rounding: Array) -> Array:
    """Return how far each quotient is from its neighbour with the larger step, and rounding."""
    score = np.full(quotients.shape, np.inf)
    usable = (rounding[1:] < _REJECT) & (rounding[:-1] < _REJECT)
    score[1:] = np.where(usable, np.abs(np.diff(quotients, axis=0)) + rounding[1:], np.inf)
    return score


def _trend(quotients: Array, rounding: Array, exponents: Array) -> tuple[NDArray[np.bool_], Array]:
    """Tell which series keep growing down to the smallest steps, and their last values.

    A convergent series has differences that shrink with the step. Those of a series
    that grows like a power or a logarithm of the step do not.
    """
    change = np.diff(quotients, axis=0) / np.diff(exponents)[:, None]
    streak = np.zeros(quotients.shape[1], dtype=int)
    last = quotients[0]
    for k in range(1, len(change)):
        clear = (rounding[k + 1] < _REJECT) & (
            np.abs(quotients[k + 1] - quotients[k]) > 10.0 * (rounding[k + 1] + rounding[k])
        )
        grows = change[k] * np.sign(change[k - 1]) >= 0.9 * np.abs(change[k - 1])
        flat = (quotients[k + 1] == quotients[k]) & (rounding[k + 1] < _REJECT)
        streak = np.where(clear, np.where(grows, streak + 1, 0), np.where(flat, 0, streak))
        last = np.where(clear, quotients[k + 1], last)
    return streak >= _STREAK, last


def _distinct(start: Array) -> list[Array]:
    """Return the steps to start from: outputs of one component may need different ones."""
    low, high = start.min(axis=1), start.max(axis=1)
    return [high] if np.array_equal(low, high) else [high, low]


def _combine(rule: Rule, sides: _Sides) -> tuple[Array, Array]:
    """Return the best of the central, right and left candidates, and its error."""
    right, right_error, _ = solve(rule.fine_onesided, *sides.right())
    left, left_error, _ = solve(rule.fine_onesided, *sides.left())
    both = (right_error < _REJECT) & (left_error < _REJECT)
    gap = np.where(both, np.abs(right - left), 0.0)
    right_error, left_error = np.maximum(right_error, gap), np.maximum(left_error, gap)
    to_left = (left_error < 0.25 * right_error) | (right_error > _REJECT)
    value = np.where(to_left, left, right)
    error = np.where(to_left, left_error, right_error)
    if rule.fine_central is not None:
        middle, middle_error = _central(rule.fine_central, sides)
        keep = middle_error <= 4.0 * error
        value, error = np.where(keep, middle, value), np.where(keep, middle_error, error)
    return value, np.where(error < _REJECT, error, np.inf)


def _central(weights: Weights, sides: _Sides) -> tuple[Array, Array]:
    quotients, rounding = sides.central()
    value, error, pick = solve(weights, quotients, rounding)
    half_jump = np.abs((weights.jump[pick].T * sides.curvature()).sum(axis=0))
    return value, np.maximum(error, half_jump)


def _improve(found: Found, group: Index, value: Array, error: Array) -> NDArray[np.bool_]:
    shape = (group.size, -1)
    value, error = value.reshape(shape), error.reshape(shape)
    better: NDArray[np.bool_] = (error < found.error[group]) & np.isfinite(found.center)
    found.value[group] = np.where(better, value, found.value[group])
    found.error[group] = np.where(better, error, found.error[group])
    return better


def _declare_lost(found: Found, group: Index, survey: _Survey, x: Array) -> None:
    """Give up, with an infinite error, where the quotients have no limit."""
    shape = (group.size, -1)
    value, error = found.value[group], found.error[group]
    lost = survey.diverging.reshape(shape) & (error > 1e-3 * np.abs(value))
    last = survey.last.reshape(shape)
    # Only at zero do steps get small enough to tell infinite from very large.
    endless = lost & (x[group] == 0)[:, None] & (np.abs(last) > 1e30)
    found.error[group] = np.where(lost, np.inf, error)
    found.value[group] = np.where(endless, np.copysign(np.inf, last), value)

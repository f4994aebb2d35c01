"""Derivatives where an ordinary ladder fails: unusual scales, edges of the domain, kinks.

The quotients are formed on both sides over the whole range of steps that float64
allows. A fine ladder starts where they begin to converge. Central quotients are used
if both sides exist, one-sided ones at an edge of the domain; if both sides exist
and disagree, half their difference (the kink) is part of the error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import (
    REJECT,
    UNUSABLE,
    Sides,
    Weights,
    consistent,
    scores,
    solve_on_search,
)
from difflab.differences.sampling import FLOATS, Sampler, ladder, lead_points, noise_of

if TYPE_CHECKING:
    from difflab.differences.first import DifferenceRule, FirstDerivatives

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Every step of the wide ladder is the largest one times 2^-e. Functions of a component
# near zero may change over any length, hence the second, longer one.
_NEAR = np.arange(0.0, 72.0, 4.0)
_FAR = np.concatenate([np.arange(0.0, 64.0, 4.0), np.arange(64.0, 1070.0, 16.0)])
# At zero itself: squares of the steps do not underflow.
_ZERO = _FAR[_FAR <= 500.0]
_TOP = 0.3

# Below this |x| a function may be flat only because changes of its values round to zero, as
# log(1 + x) at 1e-17: flatness is accepted only after a wider search.
SUSPECT = 2.0**-20

# Amplitude, relative to the value, that is treated as noise if only short steps show it.
_NEXT_TO_NOTHING = 1e-5

# The first step of a ladder for second derivatives, in steps that begin to converge, is
# this times the ladder's first unit.
_ONSETS = 16.0

# Noise above this many roundings of the value is estimated again, at a few units in the last
# place.
_QUIET = 1e3
_NEAREST = 0.7316 * 2.0**-49

# Maximum elements of the arrays of quotients: components are processed in blocks.
_ENTRIES = 1 << 21

# Number of growing steps in a row after which quotients are considered divergent.
_STREAK = 4


def search_widely(
    rule: DifferenceRule,
    sampler: Sampler,
    x: Array,
    components: Index,
    first: FirstDerivatives,
) -> None:
    """Differentiate by `components` over the whole range of steps; modifies `first` in place."""
    undefined = ~np.isfinite(first.center)
    first.value[:, undefined] = np.nan
    first.error[:, undefined] = np.inf
    if not undefined.all():
        _WideSearch(rule, sampler, x, first).run(components)


@dataclass
class _WideSearch:
    """The search at one point; it improves `first`."""

    rule: DifferenceRule
    sampler: Sampler
    x: Array
    first: FirstDerivatives

    def run(self, components: Index) -> None:
        """Differentiate by `components`, in blocks whose arrays fit in memory."""
        first = self.first
        # Errors are distinguished from `UNUSABLE` by size: values must stay far below it.
        unit = np.where(np.abs(first.center) > 1e200, 2.0**600, 1.0)
        self._rescale(1.0 / unit)
        first.unit = unit
        first.noise = self._noise()
        size = np.abs(self.x[components])
        for chosen, exponents in (
            (size >= SUSPECT, _NEAR),
            ((size < SUSPECT) & (size > 0), _FAR),
            (size == 0, _ZERO),
        ):
            group = components[chosen]
            block = max(1, _ENTRIES // (len(exponents) * self.sampler.m))
            for start in range(0, group.size, block):
                self._improve_group(group[start : start + block], exponents)
        self._rescale(unit)

    def _noise(self) -> Array:
        """Return the noise, estimated again with the shortest possible steps if it seems large.

        Near an edge or a pole, and at zero, the steps of the first estimate may be so long that
        they show the function itself.
        """
        x, first = self.x, self.first
        if (first.noise <= _QUIET * first.eps * np.abs(first.center)).all():
            return first.noise
        lengths = np.where(x == 0, 2.0**-300, np.abs(x))
        lead = self.sampler(lead_points(x, lengths, _NEAREST)) / first.unit
        near = noise_of(lead, eps=self.sampler.eps)
        return np.fmin(first.noise, near.noise)

    def _rescale(self, factor: Array) -> None:
        first = self.first
        first.value, first.error = first.value * factor, first.error * factor
        first.center, first.noise = first.center * factor, first.noise * factor

    def _improve_group(self, group: Index, exponents: Array) -> None:
        """Improve the derivatives in a group of components."""
        rule, first, m = self.rule, self.first, self.sampler.m
        top = _TOP * np.maximum(np.abs(self.x[group]), 1.0)
        steps = np.multiply.outer(2.0**-exponents, top)
        sides = self._both_sides(group, steps, np.tile(first.noise, group.size))
        sides, hidden = _unmask(sides, first, group)
        lengths = np.repeat(top, m)
        survey = _survey(rule, sides, exponents, lengths)
        if survey.noise.any():
            sides = replace(sides, noise=np.maximum(sides.noise, survey.noise))
            survey = _survey(rule, sides, exponents, lengths)
        noise = sides.noise
        rung = survey.onset if rule.from_onset else survey.best
        start = steps[rung.reshape(group.size, -1), np.arange(group.size)[:, None]]
        for wanted in _distinct(start[:, np.isfinite(first.center)]):
            fine = self._both_sides(group, rule.fine_units * wanted, noise)
            value, error = _combine(rule, fine)
            outside = np.maximum(survey.low - value, value - survey.high)
            _improve(first, group, value, np.maximum(error, outside))
        onset = steps[survey.onset.reshape(group.size, -1), np.arange(group.size)[:, None]]
        first.scale[group] = _ONSETS * onset[:, np.isfinite(first.center)].min(axis=1)
        doubtful = (first.value[group] == 0) & (first.error[group] < hidden)
        first.error[group] = np.where(doubtful, hidden, first.error[group])
        first.noise = np.maximum(first.noise, noise.reshape(group.size, -1).max(axis=0))
        _declare_lost(first, group, survey, self.x)

    def _both_sides(self, group: Index, steps: Array, noise: Array) -> Sides:
        first, m = self.first, self.sampler.m
        values, moved = ladder(self.sampler, self.x, group, np.concatenate([steps, -steps]))
        shift = np.repeat(np.abs(moved - self.x[group]), m, axis=1)
        flat = (values / first.unit).reshape(len(shift), -1)
        return Sides.of(flat, shift, np.tile(first.center, group.size), noise, first.eps)


def _unmask(sides: Sides, first: FirstDerivatives, group: Index) -> tuple[Sides, Array]:
    """Return sides without stairs, and the error of a zero ``(b, m)`` that flatness may hide."""
    sides, stairs = sides.unmasked()
    # Flat near a tiny x, but neither constant further out nor a step function: undecidable.
    shape = (group.size, -1)
    first.error[group] = np.where(stairs.reshape(shape), np.inf, first.error[group])
    steepest = np.zeros(stairs.shape)
    for quotients, rounding in (sides.right(), sides.left()):
        steepest = np.fmax(
            steepest, np.where(rounding < REJECT, np.abs(quotients), 0.0).max(axis=0)
        )
    close = first.flat[group] & (first.scale[group] < SUSPECT)[:, None]
    return sides, np.where(close, steepest.reshape(shape), 0.0)


@dataclass(frozen=True)
class _Survey:
    """Results of the wide ladder, for every component and output ``(N,)``."""

    best: Index
    value: Array
    onset: Index
    low: Array
    high: Array
    noise: Array
    diverging: NDArray[np.bool_]
    last: Array


def _survey(rule: DifferenceRule, sides: Sides, exponents: Array, top: Array) -> _Survey:
    """Find the best single step, the largest converging one, and divergent quotients."""
    series = [sides.right(), sides.left()]
    if rule.central is not None:
        series.insert(0, sides.central())
    columns = np.arange(top.size)
    chosen_q, chosen_r = series[-1]
    unconverged = np.full(top.size, np.inf)
    natural = np.abs(sides.center) / top
    for quotients, rounding in reversed(series):
        score = scores(quotients, rounding)
        best = score.argmin(axis=0)
        size = np.maximum(np.abs(quotients[best, columns]), natural)
        relative = np.fmin(
            score[best, columns] / size, np.where(score[best, columns] == 0, 0, np.inf)
        )
        # An earlier series (central before right before left) wins when it converges.
        take = (relative <= 0.1) | (relative <= unconverged)
        chosen_q = np.where(take, quotients, chosen_q)
        chosen_r = np.where(take, rounding, chosen_r)
        unconverged = np.where(take, relative, unconverged)
    score, low, high = consistent(chosen_q, scores(chosen_q, chosen_r))
    noise = _hidden_noise(sides, score, low, high)
    best = score.argmin(axis=0)
    limit = np.maximum(4.0 * score[best, columns], np.abs(chosen_q[best, columns]) / 16.0)
    onset = (score <= limit).argmax(axis=0)
    diverging, last = _trend(chosen_q, chosen_r, exponents)
    usable = np.isfinite(score[best, columns])
    value = np.where(usable, chosen_q[best, columns], np.nan)
    return _Survey(best, value, onset, low, high, noise, diverging, last)


def _hidden_noise(sides: Sides, score: Array, low: Array, high: Array) -> Array:
    """Return the height ``(N,)`` of stairs that short steps mistake for a slope, else zero.

    ``(1 - cos(x)) / x^2`` at 1e-4 changes in stairs of ``1e-8``, each of which has its own
    slope. Central quotients at longer steps agree with each other, but not with the short
    ones, whose slope extends over a negligible rise only.
    """
    columns = np.arange(score.shape[1])
    central, rounding = sides.central()
    plain = scores(central, rounding)
    long, short = plain.argmin(axis=0), np.isfinite(score).argmax(axis=0)
    far, doubt = central[long, columns], plain[long, columns]
    gap = np.maximum(low - far, far - high)
    height = gap * sides.step_up[short, columns]
    # Near a kink long steps disagree too, but so do their two sides.
    kink = 2.0 * np.abs(sides.curvature()[long, columns]) > 0.5 * gap
    stairs = (gap > 4.0 * doubt) & (long < short) & (doubt <= 0.1 * np.abs(far)) & ~kink
    return np.where(stairs & (height <= _NEXT_TO_NOTHING * np.abs(sides.center)), height, 0.0)


def _trend(quotients: Array, rounding: Array, exponents: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return which series keep growing down to the smallest steps, and their last values.

    A convergent series has differences that shrink with the step. Those of a series
    that grows like a power or a logarithm of the step do not.
    """
    gaps = np.diff(exponents)
    streak = np.zeros(quotients.shape[1], dtype=int)
    last, trend = quotients[0], np.zeros(quotients.shape[1])
    for k, gap in enumerate(gaps):
        noise = (rounding[k] + rounding[k + 1]) / gap
        change = (quotients[k + 1] - quotients[k]) / gap
        clear = np.abs(change) > 10.0 * noise
        grows = clear & (change * np.sign(trend) >= 0.9 * np.abs(trend)) & (trend != 0)
        shrinks = ~grows & (np.abs(change) + noise < 0.9 * np.abs(trend))
        streak = np.where(grows, streak + 1, np.where(shrinks, 0, streak))
        last = np.where(clear, quotients[k + 1], last)
        trend = np.where(clear, change, trend)
    return streak >= _STREAK, last


def _distinct(start: Array) -> list[Array]:
    """Return the initial steps: outputs of one component may need different ones."""
    low, high = start.min(axis=1), start.max(axis=1)
    return [high] if np.array_equal(low, high) else [high, low]


def _combine(rule: DifferenceRule, sides: Sides) -> tuple[Array, Array]:
    """Return the best of the central, right and left candidates, and its error."""
    right, right_error, _ = solve_on_search(rule.fine_onesided, *sides.right())
    left, left_error, _ = solve_on_search(rule.fine_onesided, *sides.left())
    to_left = (left_error < 0.25 * right_error) | (right_error > REJECT)
    error = np.where(to_left, left_error, right_error)
    value = np.where(error < REJECT, np.where(to_left, left, right), np.nan)
    # The other side counts wherever the function is defined there, limit or not.
    other = np.where(to_left, sides.defined(sides.up), sides.defined(sides.down))
    limit = (right_error < REJECT) & (left_error < REJECT)
    gap = np.where(limit, np.abs(right - left), UNUSABLE)
    error = np.where(other, np.maximum(error, gap), error)
    if rule.fine_central is not None:
        middle, middle_error = _central(rule.fine_central, sides)
        keep = middle_error <= 4.0 * error
        value, error = np.where(keep, middle, value), np.where(keep, middle_error, error)
    return value, np.where(error < REJECT, error, np.inf)


def _central(weights: Weights, sides: Sides) -> tuple[Array, Array]:
    quotients, rounding = sides.central()
    value, error, pick = solve_on_search(weights, quotients, rounding)
    half_jump = np.abs(FLOATS.picked(weights, "jump", sides.curvature(), pick))
    return value, error + np.where(half_jump > error, half_jump, 0.0)


def _improve(first: FirstDerivatives, group: Index, value: Array, error: Array) -> None:
    shape = (group.size, -1)
    value, error = value.reshape(shape), error.reshape(shape)
    unknown = np.isinf(first.error[group]) & np.isfinite(value)
    better = (error < first.error[group]) | unknown
    better &= np.isfinite(first.center)
    first.value[group] = np.where(better, value, first.value[group])
    first.error[group] = np.where(better, error, first.error[group])


def _declare_lost(first: FirstDerivatives, group: Index, survey: _Survey, x: Array) -> None:
    """Set an infinite error where the quotients have no limit."""
    shape = (group.size, -1)
    error = first.error[group]
    value = np.where(np.isinf(error), survey.value.reshape(shape), first.value[group])
    lost = survey.diverging.reshape(shape) & (error > 1e-3 * np.abs(value))
    last = survey.last.reshape(shape)
    # Only at zero are the steps small enough to distinguish infinite from very large.
    endless = lost & (x[group] == 0)[:, None] & (np.abs(last) > 1e30)
    first.error[group] = np.where(lost, np.inf, error)
    first.value[group] = np.where(endless, np.copysign(np.inf, last), value)

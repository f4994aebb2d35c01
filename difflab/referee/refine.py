"""Refinement of a derivative: elements stay open until a level of the ladder resolves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from time import perf_counter
from typing import Any

from difflab.errors import UnsupportedError
from difflab.referee.differences import (
    CONFIRMING,
    FORWARD,
    LADDER,
    ZERO,
    PointSampler,
    Sample,
    Stage,
    Unit,
    product,
    symmetric,
)
from difflab.referee.limits import DIGITS, DerivativeEntry, Regularity, classify, limit, smooth
from difflab.referee.values import BudgetSpent

MpReal = Any  # an mpmath number
EntryKey = tuple[int, int]  # the output, and the position in the list of units

_JOINT = 10  # powers of ten by which a joint direction's residual must fall per level
_NEGLIGIBLE = 20  # digits of the elements' sum below which the residual is ignored
_FIRST = 3  # units whose time projects that of all units
_BLOCK = 256  # units that one joint direction checks
_SHARE = 0.25  # of the time, for the first samples of a block


class Refinement:
    """The refinement of one derivative.

    Attributes
    ----------
    units : list of tuple
        The inputs ``(i,)`` to differentiate by, or the pairs ``(i, j)`` with ``i <= j``.
    entries : dict
        The resolved elements, by output and unit; structural zeros are omitted.
    rows : dict of int to list of int
        For each visited unit, the outputs that depend on it.
    judged : list of int
        The units whose refinement is complete.
    ended : bool
        Whether the time limit was reached before all units were judged.
    value : list of mpf
        The outputs, at the highest precision used.
    linear : list of bool
        For each output, whether its elements predict the change along a joint direction.
    level : int
        The highest level of the ladder that a derivative needed.
    """

    def __init__(self, sampler: PointSampler, order: int) -> None:
        self.sampler = sampler
        self.mp = sampler.mp
        self.order = order
        n = len(sampler.point)
        self.units: list[Unit] = (
            [(i,) for i in range(n)]
            if order == 1
            else [(i, j) for i in range(n) for j in range(i, n)]
        )
        self.entries: dict[EntryKey, DerivativeEntry] = {}
        self.judged: list[int] = []
        self.ended = False
        self.value: list[MpReal] = []
        self.linear: list[bool] = []
        self.level = 0
        self._highest = 0
        self._stages: dict[int, Stage] = {}
        self._history: dict[EntryKey, list[Sample]] = {}
        self.rows: dict[int, list[int]] = {}
        self._firsts: dict[int, dict[int, Sample]] = {}
        self._draw = Random(1)
        self._weights: dict[int, int] = {}
        self._all_weights: dict[int, int] = {}

    def run(self) -> None:
        """Resolve the elements block by block until the time limit is reached."""
        try:
            with self.mp.workdps(60):
                self.value = self._stage(0).moved()
                if self.order == 2 and len(self.value) != 1:
                    raise UnsupportedError(
                        f"a Hessian requires one output, and the function has {len(self.value)}"
                    )
                self.linear = [True] * len(self.value)
                for positions in self._blocks():
                    self._resolve(positions)
                self._weights = self._all_weights
                self._judge_joint()
        except BudgetSpent:
            self.ended = True

    def defined(self, row: int) -> bool:
        """Return whether an output has a value at the point."""
        return bool(self.mp.isfinite(self.value[row]))

    def without_values(self, rounded: Sequence[float]) -> None:
        """Go without differences, with rounded outputs as values."""
        self.ended = True
        self.value = [self.mp.mpf(value) for value in rounded]
        self.linear = [False] * len(rounded)

    def _stage(self, level: int) -> Stage:
        if level not in self._stages:
            self._stages[level] = Stage(self.sampler, LADDER[level], self.order)
        return self._stages[level]

    def _blocks(self) -> Iterator[list[int]]:
        """Yield blocks of units, each small enough to be resolved in a share of the time.

        Blocks that are resolved before the time limit are kept; a block is spread over all units,
        so that these are not the first ones only. Pairs of inputs are checked together by one
        direction and form one block.
        """
        began = perf_counter()
        for position in range(min(_FIRST, len(self.units))):
            self._sample(position)
        seconds = (perf_counter() - began) / _FIRST
        size = len(self.units)
        if self.order == 1 and seconds > 0:
            fitting = int(_SHARE * self.sampler.remaining() / seconds)
            size = min(max(fitting, 1), _BLOCK) if min(fitting, _BLOCK) < size else size
        else:
            self.sampler.expect(seconds * size)
        count = -(-len(self.units) // size) if size else 0
        for block in range(count):
            yield list(range(block, len(self.units), count))

    def _resolve(self, positions: Sequence[int]) -> None:
        """Resolve some units."""
        self._history = {}
        for position in positions:
            samples = self._sample(position)
            self._history.update({(row, position): [s] for row, s in samples.items()})
        self._check(sorted({i for position in positions for i in self.units[position]}))
        if not self.entries.keys() >= self._history.keys():
            self._resolve_zeros()
            self._climb()
        self.judged += positions

    def _sample(self, position: int) -> dict[int, Sample]:
        """Return a unit's samples at the first level; those of the first units are cached."""
        if position not in self._firsts:
            unit = self.units[position]
            rows = self.rows[position] = self.sampler.reached(unit, len(self.value))
            samples = self._stage(0).sample(unit, rows) if rows else {}
            if position >= _FIRST:
                return samples
            self._firsts[position] = samples
        return self._firsts[position]

    def _is_zero(self, sample: Sample) -> bool:
        sides = (sample.left, sample.right, sample.centre)
        return all(abs(side) <= sample.noise for side in sides)

    def _check(self, inputs: Sequence[int]) -> None:
        """Resolve smooth elements that predict a joint direction at twice the digits."""
        calm = {key: smooth(self.mp, history[0]) for key, history in self._history.items()}
        still = {
            i
            for key, history in self._history.items()
            if self.defined(key[0]) and not calm[key] and not self._is_zero(history[0])
            for i in self.units[key[1]]
        }
        draw = self._draw
        weights = {i: draw.choice((-1, 1)) * draw.randrange(2**20, 2**21) for i in inputs}
        self._weights = {i: weight for i, weight in weights.items() if i not in still}
        self._all_weights |= self._weights
        first, stage = self._stage(0).moved(), self._stage(1)
        self._take_value(1)
        if not self._weights:
            return
        steady = [
            bool(abs(new - old) <= self.mp.mpf(10) ** -30 * abs(new))
            for new, old in zip(stage.moved(), first, strict=True)
        ]
        slopes = {key: self._history[key][0].centre for key, yes in calm.items() if yes}
        residuals = [
            abs(gap)
            for gap in self._gaps(1, slopes, stage.along(*symmetric([self._weights] * self.order)))
        ]
        least = self.mp.mpf(10) ** -DIGITS
        for key, (sample, *_) in self._history.items():
            weight = stage.weight(self.units[key[1]], self._weights)
            if weight and calm[key] and steady[key[0]]:
                bound = abs(residuals[key[0]] / weight)
                if bound <= least * abs(sample.centre):  # enough digits are confirmed
                    self.entries[key] = DerivativeEntry(
                        Regularity.SMOOTH, sample.centre, sample.left, sample.right, bound
                    )

    def _gaps(
        self, level: int, slopes: dict[EntryKey, MpReal], along: Sequence[MpReal]
    ) -> list[MpReal]:
        """Return a joint difference minus its prediction by the elements in `slopes`."""
        stage = self._stage(level)
        gaps = list(along)
        with self.mp.workdps(stage.digits):
            for key, value in slopes.items():
                gaps[key[0]] -= value * stage.weight(self.units[key[1]], self._weights)
        return gaps

    def _resolve_zeros(self) -> None:
        """Resolve elements that are zero within rounding, at digits that would show any float64."""
        stage = Stage(self.sampler, ZERO, self.order)
        zeros: dict[int, list[EntryKey]] = {}
        for key, history in self._history.items():
            if key not in self.entries and self._is_zero(history[0]):
                zeros.setdefault(key[1], []).append(key)
        for position, keys in zeros.items():
            samples = stage.sample(self.units[position], [row for row, _ in keys])
            for key in keys:
                sample = samples[key[0]]
                if self._is_zero(sample):
                    zero = self.mp.mpf(0)
                    self.entries[key] = DerivativeEntry(
                        Regularity.SMOOTH, zero, zero, zero, sample.noise
                    )

    def _climb(self) -> None:
        """Refine open elements level by level."""
        self._undefined_rows()
        for level in range(1, len(LADDER)):
            waiting: dict[int, list[EntryKey]] = {}
            for key in self._history:
                if key not in self.entries:
                    waiting.setdefault(key[1], []).append(key)
            if not waiting:
                return
            stage = self._stage(level)
            for position, keys in waiting.items():
                samples = stage.sample(self.units[position], [row for row, _ in keys])
                for key in keys:
                    self._history[key].append(samples[key[0]])
                    self._decide(key, level)
            self._take_value(level)

    def _take_value(self, level: int) -> None:
        """Store the outputs if this is the highest precision so far."""
        if level > self._highest:
            self._highest, self.value = level, self._stage(level).moved()

    def _decide(self, key: EntryKey, level: int) -> None:
        entry = classify(self.mp, self._history[key], final=level >= CONFIRMING)
        if entry is None:
            return
        if entry.regularity is Regularity.JUMP and self.order == 1:
            entry = self._pieces(key, entry, level)
        self.entries[key] = entry
        self.level = max(self.level, level)

    def _pieces(self, key: EntryKey, entry: DerivativeEntry, level: int) -> DerivativeEntry:
        """Return an element at a jump with the derivatives of the pieces on both sides."""
        row, position = key
        unit = self.units[position]
        slopes = [self._stage(k).piece_slopes(unit[0])[row] for k in range(level + 1)]
        noises = [sample.noise for sample in self._history[key]]
        sides = []
        for side in range(2):
            slope = limit(self.mp, [pair[side] for pair in slopes], noises, final=True)
            sides.append(self.mp.nan if slope.value is None else slope.value)
        return DerivativeEntry(entry.regularity, entry.value, sides[0], sides[1], entry.bound)

    def _undefined_rows(self) -> None:
        """Resolve outputs without a value; a symmetric limit of their derivative may exist."""
        mp = self.mp
        for key, history in self._history.items():
            row, position = key
            if self.defined(row):
                continue
            history.append(self._stage(1).sample(self.units[position], [row])[row])
            symmetric_limit = limit(mp, [s.centre for s in history], [mp.mpf(0)] * 2, final=False)
            value = mp.nan if symmetric_limit.value is None else symmetric_limit.value
            self.entries[key] = DerivativeEntry(Regularity.UNDEFINED, mp.nan, value, value, mp.inf)

    def _judge_joint(self) -> None:
        """Check whether the elements predict a direction that moves all inputs at once.

        The residual of a smooth function is of higher order in the step and falls faster than
        the step; the residual of √|xy| at 0 does not.
        """
        if len(self._weights) < 2:
            return
        mp = self.mp
        slopes = {key: e.value for key, e in self.entries.items() if mp.isfinite(e.value)}
        coarse, fine = (self._left_over(level, slopes) for level in range(2))
        drop = mp.mpf(10) ** -_JOINT
        for row, (before, after) in enumerate(zip(coarse, fine, strict=True)):
            if self.defined(row):
                self.linear[row] = bool(after[0] <= max(drop * before[0], after[1]))

    def _left_over(self, level: int, slopes: dict[EntryKey, MpReal]) -> list[tuple[MpReal, MpReal]]:
        """Return the joint direction's residual per step, and the size below which it is noise."""
        mp, stage = self.mp, self._stage(level)
        ahead = product([FORWARD] * self.order, [self._weights] * self.order)
        gaps = self._gaps(level, slopes, stage.along(ahead))
        scale = max(stage.steps) ** self.order
        sizes = [mp.mpf(0)] * len(gaps)
        for key, value in slopes.items():
            weight = stage.weight(self.units[key[1]], self._weights)
            sizes[key[0]] += abs(value * weight)
        negligible = mp.mpf(10) ** -_NEGLIGIBLE
        return [
            (abs(gap) / scale, negligible * size / scale + stage.noise(scale, value))
            for gap, size, value in zip(gaps, sizes, self.value, strict=True)
        ]

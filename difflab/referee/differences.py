"""Values of a function around a point in mpmath, and their finite differences.

A *stage* is one precision and one step; the ladder of stages doubles the digits and reduces the
step. Every difference is computed forward, backward and symmetrically, so that a kink is
detected. No derivative rule is used anywhere.

A difference takes values at whole multiples of the steps, with whole weights. Along several
directions it is the product of one along each, as polynomials in the shifts: forward differences
along u and v give f(x + u + v) - f(x + u) - f(x + v) + f(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from difflab.referee.values import BudgetSpent, ExactValues

MpReal = Any  # an mpmath number
MpFunction = Callable[[Sequence[MpReal]], Sequence[MpReal]]
Unit = tuple[int, ...]  # (i,) for ∂/∂xᵢ, (i, j) for ∂²/∂xᵢ∂xⱼ

Stencil = Mapping[int, int]
"""The weights of values, by the multiple of the step."""
Direction = Mapping[int, int]
"""The inputs that a direction moves, each by a multiple of its step."""
Moves = tuple[tuple[int, int], ...]
"""Inputs and the multiples of their steps by which they are moved."""
Terms = dict[Moves, int]
"""The weights of values, by how the inputs are moved."""

FORWARD: Stencil = {1: 1, 0: -1}
BACKWARD: Stencil = {0: 1, -1: -1}
AHEAD: Stencil = {2: 1, 1: -1}
BEHIND: Stencil = {-1: 1, -2: -1}
"""With `AHEAD`, differences that leave out the value at the point."""


@dataclass(frozen=True)
class LadderLevel:
    """Decimal digits of the arithmetic, and the step as a power of ten of the input's scale."""

    digits: int
    exponent: int


# A step of 10^-k leaves digits − k digits of a first difference; the last levels use
# distances below every float64 and below every product of two of them.
LADDER = (
    LadderLevel(110, 40),
    LadderLevel(220, 80),
    LadderLevel(440, 160),
    LadderLevel(720, 340),
    LadderLevel(1600, 700),
    LadderLevel(2880, 1400),
)
ZERO = LadderLevel(440, 40)  # separates every float64 from zero: 440 − 40 digits are more than 324
CONFIRMING = 3  # first level at which a limit may be zero, or a point not smooth

_PATIENCE = 3.0  # factor by which a projection must exceed the time budget to stop early
_GUARD = 10**6  # rounding error of the function's operations, in units of the last digit


@dataclass(frozen=True)
class Sample:
    """Differences for one output and one unit at one level; nan where undefined.

    Attributes
    ----------
    left, right, centre : mpf
        One-sided differences and the symmetric one.
    noise : mpf
        A bound on their rounding error.
    gap_left, gap_right : mpf
        The change of the value over one step to either side.
    """

    left: MpReal
    right: MpReal
    centre: MpReal
    noise: MpReal
    gap_left: MpReal
    gap_right: MpReal


class PointSampler:
    """Evaluations of a function near one point, counted and within a time budget.

    Parameters
    ----------
    values : callable
        Map a list of ``n`` mpmath numbers to ``m`` outputs, at the precision of their context; nan
        (or a number that is not real) where the function is undefined. The context is that of
        `ExactValues`, and for other code `mpmath.mp`.
    point : sequence of float
        The point; every float64 is exact.
    seconds : float
        After this time `BudgetSpent` is raised.
    offset : sequence of float, optional
        Added to the point, exactly: neighbours closer than the next double.
    """

    def __init__(
        self,
        values: MpFunction,
        point: Sequence[float],
        seconds: float,
        offset: Sequence[float] | None = None,
    ) -> None:
        import mpmath
        from mpmath import libmp

        self.mp = values.mp if isinstance(values, ExactValues) else mpmath.mp
        self.evaluations = 0
        self._function = values
        self._deadline = perf_counter() + seconds
        self._exact = values if isinstance(values, ExactValues) else None
        self._unmoved: dict[int, list[MpReal]] = {}
        self.point = [float(value) for value in point]
        exact, number = libmp.from_float, self.mp.make_mpf
        self._centre = [number(exact(value)) for value in self.point]
        if offset is not None:
            pairs = zip(self._centre, offset, strict=True)
            self._centre = [self.mp.fadd(value, shift, exact=True) for value, shift in pairs]
        self.scales = _scales(self.point)
        # Extra digits, so that inputs of size 10^±k combine with others of size 1 without loss.
        sizes = [abs(math.log10(abs(value))) for value in self.point if value]
        self.extra = 2 * math.ceil(max(sizes, default=0.0))

    def values(self, shifts: dict[int, MpReal]) -> list[MpReal]:
        """Return the outputs at the point moved by `shifts`, at the precision in force."""
        if self.evaluations and perf_counter() > self._deadline:
            raise BudgetSpent
        self.evaluations += 1
        moved = {position: self._centre[position] + shift for position, shift in shifts.items()}
        if self._exact is None:
            point = [moved.get(position, x) for position, x in enumerate(self._centre)]
            return [self._real(value) for value in self._function(point)]
        self._exact.until = self._deadline
        unmoved = self._unmoved.get(self.mp.prec)
        if unmoved is None:
            unmoved = [self._real(value) for value in self._exact(self._centre)]
            self._unmoved[self.mp.prec] = unmoved
        outputs = unmoved.copy()  # outputs that depend on no moved input are reused
        if moved:
            for row, value in self._exact.near(self._centre, moved).items():
                outputs[row] = self._real(value)
        return outputs

    def reached(self, unit: Unit, m: int) -> list[int]:
        """Return the outputs, of `m`, that may depend on all inputs of a unit."""
        outputs = set(range(m))
        if self._exact is not None:
            outputs.intersection_update(*map(self._exact.reached, unit))
        return sorted(outputs)

    def restart(self, seconds: float) -> None:
        """Restart the time budget."""
        self._deadline = perf_counter() + seconds

    def remaining(self) -> float:
        """Return the remaining seconds."""
        return max(self._deadline - perf_counter(), 0.0)

    def expect(self, seconds: float) -> None:
        """Stop now if the remaining work takes far longer than the remaining time.

        Raises
        ------
        BudgetSpent
            The `seconds` are more than `_PATIENCE` times the remaining time.
        """
        if seconds > _PATIENCE * self.remaining():
            raise BudgetSpent

    def _real(self, value: MpReal) -> MpReal:
        """Return a finite real mpmath number, or nan."""
        mp = self.mp
        if isinstance(value, bool | int | float):
            value = mp.mpf(value)
        if isinstance(value, mp.mpc):
            value = value.real if value.imag == 0 else mp.nan
        return value if mp.isfinite(value) else mp.nan


def _scales(point: Sequence[float]) -> list[float]:
    """Return the length scale of each input, as a power of two.

    The scale of a zero is that of the smallest other input: hypot(x, 1e-200) bends at 1e-200.
    """
    sizes = [abs(value) for value in point if value]
    least = min([1.0, *sizes])
    return [math.ldexp(1.0, math.frexp(abs(value) or least)[1] - 1) for value in point]


class Stage:
    """The function around the sampler's point at one level of the ladder.

    Parameters
    ----------
    sampler : PointSampler
        The function and the point.
    level : LadderLevel
        Precision and step.
    order : int
        1 or 2; a second difference loses the step's digits twice.
    """

    def __init__(self, sampler: PointSampler, level: LadderLevel, order: int = 1) -> None:
        self.sampler = sampler
        self.mp = sampler.mp
        self.digits = level.digits + (order - 1) * level.exponent + sampler.extra
        bits = math.ceil(level.exponent * math.log2(10))
        self.steps = [self.mp.ldexp(scale, -bits) for scale in sampler.scales]
        self._order = order
        self._seen: dict[Moves, list[MpReal]] = {}

    def moved(self, *moves: tuple[int, int]) -> list[MpReal]:
        """Return the outputs with inputs, or none, moved by whole multiples of their steps."""
        outputs = self._seen.get(moves)
        if outputs is None:
            with self.mp.workdps(self.digits):
                outputs = self.sampler.values({i: k * self.steps[i] for i, k in moves})
            # First differences move each input only once, and there may be many: do not store them.
            if self._order > 1 or len(moves) != 1:
                self._seen[moves] = outputs
        return outputs

    def sample(self, unit: Unit, rows: Sequence[int] | None = None) -> dict[int, Sample]:
        """Return the differences of some outputs for one unit; of all if `rows` is None."""
        directions, order = [{i: 1} for i in unit], len(unit)
        sides = [product([side] * order, directions) for side in (BACKWARD, FORWARD)]
        both, over = symmetric(directions)
        ends = [tuple((i, k) for i in dict.fromkeys(unit)) for k in (-1, 1)]
        with self.mp.workdps(self.digits):
            area = self.mp.fprod(self.steps[i] for i in unit)
            values = {moves: self.moved(*moves) for moves in {(): 0, **sides[1], **sides[0]}}
            samples = {}
            for row in range(len(self.moved())) if rows is None else rows:
                at = {moves: outputs[row] for moves, outputs in values.items()}
                left, right, centre = (self._total(terms, at) / area for terms in (*sides, both))
                noise = self.noise(area, *at.values())
                gaps = (abs(at[end] - at[()]) for end in ends)
                samples[row] = Sample(left, right, centre / over, noise, *gaps)
            return samples

    def _total(self, terms: Terms, at: Mapping[Moves, MpReal]) -> MpReal:
        return sum((weight * at[moves] for moves, weight in terms.items()), self.mp.zero)

    def along(self, terms: Terms, over: int = 1) -> list[MpReal]:
        """Return a difference of every output, over a divisor.

        Along weighted inputs wᵢhᵢ all at once it approximates Σ gᵢ wᵢhᵢ for order 1 and
        Σ Hᵢⱼ wᵢhᵢ wⱼhⱼ for order 2.
        """
        with self.mp.workdps(self.digits):
            values = {moves: self.moved(*moves) for moves in terms}
            each = zip(*values.values(), strict=True)
            return [self._total(terms, dict(zip(values, row, strict=True))) / over for row in each]

    def noise(self, divisor: MpReal, *values: MpReal) -> MpReal:
        """Return a bound on the rounding error of a difference of function values."""
        sizes = (abs(value) for value in values if self.mp.isfinite(value))
        largest = max(sizes, default=self.mp.zero)
        with self.mp.workdps(20):
            return _GUARD * largest * self.mp.mpf(10) ** -self.digits / divisor

    def piece_slopes(self, i: int) -> list[tuple[MpReal, MpReal]]:
        """Return the slopes left and right of the point, without the value at the point."""
        behind, ahead = (self.along(product([side], [{i: 1}])) for side in (BEHIND, AHEAD))
        with self.mp.workdps(self.digits):
            pairs = zip(behind, ahead, strict=True)
            return [(left / self.steps[i], right / self.steps[i]) for left, right in pairs]

    def weight(self, unit: Unit, weights: dict[int, int]) -> MpReal:
        """Return the factor of a unit's derivative in a difference along weighted inputs.

        It is 0 unless the direction moves all inputs of the unit.
        """
        with self.mp.workdps(self.digits):
            factor = self.mp.mpf(1)
            for i in unit:
                factor *= weights.get(i, 0) * self.steps[i]
            return 2 * factor if len(unit) == 2 and unit[0] != unit[1] else factor


def product(stencils: Sequence[Stencil], directions: Sequence[Direction]) -> Terms:
    """Return the terms of a stencil along each direction.

    Examples
    --------
    >>> product([FORWARD, FORWARD], [{0: 1}, {0: 1}])
    {((0, 2),): 1, ((0, 1),): -2, (): 1}
    """
    terms: Terms = {(): 1}
    for stencil, direction in zip(stencils, directions, strict=True):
        after: Terms = {}
        for moves, weight in terms.items():
            for multiple, factor in stencil.items():
                moved = dict(moves)
                for i, step in direction.items():
                    moved[i] = moved.get(i, 0) + multiple * step
                key = tuple((i, shift) for i, shift in moved.items() if shift)
                after[key] = after.get(key, 0) + weight * factor
        terms = after
    return terms


def symmetric(directions: Sequence[Direction]) -> tuple[Terms, int]:
    """Return the terms of the symmetric difference along directions, and their divisor.

    Along one direction twice it is the product of both sides, and otherwise their mean.

    Examples
    --------
    >>> symmetric([{0: 1}])
    ({((0, -1),): -1, ((0, 1),): 1}, 2)
    >>> symmetric([{0: 1}, {0: 1}])
    ({((0, 1),): 1, (): -2, ((0, -1),): 1}, 1)
    """
    if len(directions) == 2 and directions[0] == directions[1]:
        return product([FORWARD, BACKWARD], directions), 1
    left, right = (product([side] * len(directions), directions) for side in (BACKWARD, FORWARD))
    both = {moves: left.get(moves, 0) + right.get(moves, 0) for moves in {**left, **right}}
    return {moves: weight for moves, weight in both.items() if weight}, 2

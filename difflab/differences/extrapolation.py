"""Difference quotients, and weights that turn those at several steps into one derivative.

A difference quotient with step ``h`` has an error series
``D(h) = f' + a_1 h^{p_1} + a_2 h^{p_2} + ...``; the powers are ``2, 4, 6, ...`` for
central and ``1, 2, 3, ...`` for one-sided quotients. On the ladder of steps
``h_k = h_0 / r^k`` Richardson's tableau

    T[k, 0] = D(h_k)
    T[k, j] = T[k, j-1] + (T[k, j-1] - T[k-1, j-1]) / (r^{p_j} - 1)

is linear in the quotients, so that all entries for all components are one product of
a constant matrix with the matrix of quotients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.differences.sampling import FLOATS, Arithmetic

Array = NDArray[np.float64]

EVEN: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
FULL: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
ODD: tuple[int, ...] = (1, 3, 5, 7, 9, 11)

# Maximum improvement of the error estimate from one column of the tableau to the next:
# two entries may agree by accident, three seldom do.
GUARD = 1e-3

# A quotient that cannot be formed gets this rounding error and is never picked; an
# infinite one would turn into nan in a product with a weight of zero.
UNUSABLE = 1e300
REJECT = 1e290

# Errors of single quotients, in multiples of their estimates, within which they must agree.
_WIDE = 4.0

# Ratio of the bound on |value - truth| to the error in the tableau; see `solve`.
SAFETY = 2.0


@dataclass(frozen=True)
class Weights:
    """Candidates for a derivative, each a row of weights on the quotients of a ladder.

    Attributes
    ----------
    value : ndarray (E, K)
        Each row gives one candidate.
    spread : ndarray (E, K)
        Each row gives the candidate's truncation error.
    guard : ndarray (E, K)
        Each row gives a floor of that error, from a neighbouring candidate.
    jump : ndarray (E, K)
        Rows that take ``(f(x+h) - 2 f(x) + f(x-h)) / h`` to its limit at ``h = 0``,
        the jump of the one-sided derivatives.
    change, before : ndarray (E, K)
        Rows that give the last two changes of the candidate as the step became shorter;
        zero where there are fewer.
    level : ndarray (E,)
        The finest step that each candidate uses.
    side_jump : ndarray (E, K)
        The same for second derivatives, where the difference of the sides is formed from
        two neighbouring steps, so that there is none at the first step.
    tableau : Extrapolation or None
        The tableau of which the candidates are entries, if they are.
    """

    value: Array
    spread: Array
    guard: Array
    jump: Array
    side_jump: Array
    change: Array
    before: Array
    level: NDArray[np.intp]
    tableau: Extrapolation | None = None

    @cached_property
    def stacked(self) -> Array:
        """All but the jump, in one matrix, so that one product applies them."""
        return np.vstack([self.value, self.spread, self.guard])

    @cached_property
    def gain(self) -> Array:
        """How much of the rounding error of each quotient reaches each candidate."""
        return np.abs(self.value)


class Extrapolation(NamedTuple):
    """Parameters of Richardson's tableau: the ladder of steps, and the candidate entries."""

    levels: int
    ratio: float
    powers: tuple[int, ...]
    depth: int
    spare: int = 2

    @property
    def candidates(self) -> list[tuple[int, int]]:
        """Row k and column j of each, ``1 <= j <= k - spare`` and ``j <= depth``."""
        return [
            (k, j)
            for k in range(2, self.levels)
            for j in range(1, min(k - self.spare, self.depth) + 1)
        ]


def tableau(
    quotients: Iterable[Any], ratio: float, powers: Sequence[int], depth: int
) -> list[list[Any]]:
    """Return Richardson's tableau ``T[k][j]``; of unit vectors, weights on the quotients."""
    table: list[list[Any]] = []
    for k, quotient in enumerate(quotients):
        row = [quotient]
        for j in range(1, min(k, depth) + 1):
            row.append(row[-1] + (row[-1] - table[k - 1][j - 1]) / (ratio ** powers[j - 1] - 1))
        table.append(row)
    return table


@lru_cache
def extrapolated(
    levels: int, ratio: float, powers: tuple[int, ...], depth: int, spare: int = 2
) -> Weights:
    """Return the extrapolated entries ``T[k, j]``, ``1 <= j <= k - spare``, of the tableau.

    With two spare entries in its column, each entry has a `tail`.

    The error of ``T[k, j]`` is estimated by ``|T[k, j] - T[k-1, j-1]|``, which is the error
    of the entry of lower order, hence an overestimate (C. Ridders, *Accurate computation
    of F'(x) and F'(x) F''(x)*, Adv. Eng. Software 4, 1982; Numerical Recipes 5.7).
    """
    table = tableau(np.eye(levels), ratio, powers, depth)
    odd = tableau(np.eye(levels), ratio, ODD, depth)
    rows: list[_Row] = []
    chosen = Extrapolation(levels, ratio, powers, depth, spare)
    for k, j in chosen.candidates:
        spread = table[k][j] - table[k - 1][j - 1]
        before = table[k][j - 1] - table[k - 1][max(j - 2, 0)]
        others = odd[k][j], odd[k][min(j, k - 1)], *_changes(table, k, j)
        rows.append((table[k][j], spread, GUARD * before, *others, k))
    return _weights(rows, chosen)


def _changes(table: list[list[Array]], k: int, j: int) -> tuple[Array, Array]:
    """Return the last two changes down column j, zero where the column is too short."""
    none = np.zeros(len(table))
    if k < j + 2:
        return none, none
    return table[k][j] - table[k - 1][j], table[k - 1][j] - table[k - 2][j]


_Row = tuple[Array, Array, Array, Array, Array, Array, Array, int]


def _weights(rows: list[_Row], table: Extrapolation | None = None) -> Weights:
    columns: Any = (np.array(column) for column in zip(*rows, strict=True))
    return replace(Weights(*columns), tableau=table)


@lru_cache
def plain(levels: int, ratio: float, powers: tuple[int, ...], column: int = 0) -> Weights:
    """Return the entries of one column of the tableau: a classical stencil at every step.

    Column 0 holds the quotients themselves; column 1 of one-sided quotients is the
    three-point stencil of second order. With ``p`` the leading power of the error,
    ``T(r h) - T(h) = (r^p - 1) a h^p`` gives the error ``a h^p`` of ``T(h)``.
    """
    table = tableau(np.eye(levels), ratio, powers, column)
    odd = tableau(np.eye(levels), ratio, ODD, 1)
    shrink = ratio ** powers[column]
    rows: list[_Row] = []
    for k in range(column + 2, levels):
        spread = (table[k][column] - table[k - 1][column]) / (shrink - 1)
        before = (table[k - 1][column] - table[k - 2][column]) / (shrink - 1)
        rows.append(
            (
                table[k][column],
                spread,
                before / (8 * shrink),
                odd[k][1],
                odd[k][1],
                *_changes(table, k, column),
                k,
            )
        )
    return _weights(rows)


def solve(
    weights: Weights,
    quotients: Array,
    rounding: Array,
    doubt: Array | None = None,
    on: Arithmetic = FLOATS,
) -> tuple[Array, Array, Any]:
    """Pick for each column the candidate with the smallest error estimate.

    Parameters
    ----------
    weights : Weights
        The candidates, on ladders of ``K`` steps.
    quotients : ndarray (K, N)
        Difference quotients, one column for each derivative wanted.
    rounding : ndarray (K, N)
        Bounds on the rounding error of the quotients.
    doubt : ndarray (K, N), optional
        Added to the error of the candidates whose finest step is at each level.
    on : Arithmetic
        The operations on the arrays.

    Returns
    -------
    value, error : ndarray (N,)
        ``error`` is `SAFETY` × (truncation + rounding) of the picked candidate.
    pick
        Which candidates are picked, for `Arithmetic.chosen` and `Arithmetic.picked`.
    """
    value, spread, guard = on.candidates(weights, quotients)
    error = on.larger(np.abs(spread), np.abs(guard)) + on.applied(weights.gain, rounding)
    if doubt is not None:
        error += doubt[weights.level]
    pick = on.least(error)
    return on.chosen(value, pick), SAFETY * on.chosen(error, pick), pick


def _doubts(quotients: Array, rounding: Array) -> Array:
    """Return the terms to add to the errors of the candidates at each level, ``(K, N)``.

    Quotients whose differences do not shrink with the step, for reasons other than rounding,
    are not near a limit, however small the differences are: those of ``sqrt(h)/h`` halve as
    the step is quadrupled, and would favour the largest step.
    """
    change = np.abs(np.diff(quotients, axis=0))
    noise = rounding[1:] + rounding[:-1]
    wild = (change[1:] > 0.8 * change[:-1]) & (change[1:] > 4.0 * noise[1:])
    doubt = np.zeros_like(quotients)
    doubt[2:] = np.where(wild, UNUSABLE, 0.0)
    return doubt


def scores(quotients: Array, rounding: Array) -> Array:
    """Return the distance of each quotient from that of the next larger step, plus rounding."""
    score = np.full(quotients.shape, np.inf)
    usable = (rounding[1:] < REJECT) & (rounding[:-1] < REJECT)
    score[1:] = np.where(usable, np.abs(np.diff(quotients, axis=0)) + rounding[1:], np.inf)
    return score


def consistent(quotients: Array, score: Array) -> tuple[Array, Array, Array]:
    """Reject quotients that contradict those of smaller steps; return the common interval.

    The quotients of a bounded function at steps far longer than its oscillations are small
    and similar, and would appear converged.
    """
    score = score.copy()
    low = np.full(quotients.shape[1], -np.inf)
    high = np.full(quotients.shape[1], np.inf)
    for k in range(len(score) - 1, 0, -1):
        below, above = quotients[k] - _WIDE * score[k], quotients[k] + _WIDE * score[k]
        agrees = (below <= high) & (above >= low)
        score[k] = np.where(agrees, score[k], np.inf)
        low = np.where(agrees, np.fmax(low, below), low)
        high = np.where(agrees, np.fmin(high, above), high)
    return score, low, high


def tail(
    weights: Weights, quotients: Array, rounding: Array, pick: Any, on: Arithmetic = FLOATS
) -> Array:
    """Return the estimated change of the picked candidates at shorter steps, ``(N,)``.

    Changes that shrink by a constant factor from step to step sum up like a geometric
    series. The factor is ``r^-p`` where the error series has its usual powers, and larger
    where it starts with another, as ``sqrt(h)`` for ``x^1.5`` at 0.
    """
    change = np.abs(on.picked(weights, "change", quotients, pick))
    before = np.abs(on.picked(weights, "before", quotients, pick))
    noise = 4.0 * on.picked(weights, "gain", rounding, pick)
    ratio = on.where(on.greater(before, change), change / before, 1.0)
    left = change * ratio / (1.0 - on.smaller(ratio, 0.9))
    result: Array = on.where(on.greater(change, noise), SAFETY * left, 0.0)
    return result


def solve_on_search(
    weights: Weights, quotients: Array, rounding: Array
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Solve on a ladder whose steps may all be too long; the error includes `tail`."""
    value, error, pick = solve(weights, quotients, rounding, _doubts(quotients, rounding))
    return value, np.maximum(error, tail(weights, quotients, rounding, pick)), pick


def quotients_of(
    high: Array, low: Array, width: Array, noise: Array, eps: float, on: Arithmetic = FLOATS
) -> tuple[Array, Array]:
    """Return the difference quotients of values `width` apart, and bounds on their rounding.

    Parameters
    ----------
    high, low, width : ndarray
        The values, and the distance of their arguments; they broadcast.
    noise : ndarray
        A bound on the error of a value, at least its rounding at the point.
    eps : float
        The relative rounding of the values.
    on : Arithmetic
        The operations on the arrays.
    """
    level = on.larger(noise, eps * on.larger(np.abs(high), np.abs(low)))
    return (high - low) / width, 2.0 * level / width


def usable(quotients: Array, rounding: Array) -> tuple[Array, Array]:
    """Return quotients and their rounding; those that are not finite are never picked."""
    bad = ~np.isfinite(quotients) | ~np.isfinite(rounding)
    return np.where(bad, 0.0, quotients), np.where(bad, UNUSABLE, rounding)


# --- values on both sides ---------------------------------------------------------------------


@dataclass(frozen=True)
class Sides:
    """Values on both sides of x: ``(K, N)``, N = components × outputs, steps positive."""

    up: Array
    down: Array
    step_up: Array
    step_down: Array
    center: Array
    noise: Array
    eps: float = 2.0**-52

    @classmethod
    def of(
        cls, values: Array, steps: Array, center: Array, noise: Array, eps: float = 2.0**-52
    ) -> Sides:
        """Return the sides from values ``(2K, N)`` at ``steps`` to the right, then to the left."""
        levels = len(values) // 2
        up, down, right, left = values[:levels], values[levels:], steps[:levels], steps[levels:]
        return cls(up, down, right, left, center, noise, eps)

    def defined(self, values: Array) -> NDArray[np.bool_]:
        """Return where `values` of one side are finite at all but the largest steps."""
        return np.asarray(np.isfinite(values[len(values) // 2 :]).all(axis=0))

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

    def unmasked(self) -> tuple[Sides, NDArray[np.bool_]]:
        """Return the sides with the height of stairs as noise, and which outputs have stairs.

        ``log(x + sqrt(x^2 + 1))`` at -1e6 is constant near x, since its parts cancel, and a
        step function further out. Such steps are distinguished from a function that really is
        constant near x (as a maximum near its kink) by quotients that agree over several steps
        and on both sides, and differ from zero: then the height of a step is the noise.
        """
        right, right_rounding = self.right()
        left, left_rounding = self.left()
        usable = (right_rounding < REJECT) & (left_rounding < REJECT)
        still = (self.up == self.center) & (self.down == self.center)
        near = 0.25 * np.abs(right)
        slope = usable & (right != 0) & (np.abs(right - left) <= near)
        slope[1:] &= np.abs(np.diff(right, axis=0)) <= near[1:]
        slope[0] = False
        stairs = slope.any(axis=0) & still.any(axis=0)
        change = np.abs(np.concatenate([self.up, self.down]) - self.center)
        height = np.where(change > 0, change, np.inf).min(axis=0)
        noise = np.where(stairs, np.maximum(self.noise, height), self.noise)
        return replace(self, noise=noise), stairs

    def _quotients(self, high: Array, low: Array, width: Array) -> tuple[Array, Array]:
        return usable(*quotients_of(high, low, width, self.noise, self.eps))

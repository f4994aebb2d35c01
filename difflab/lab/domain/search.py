"""The search for the worst point of each method: a scan of the domain, then climbing.

The scan continues the sample's sequence with as many points again or more, and ranks errors by
float64 against derivatives from balls of few bits. From its worst points differential evolution
climbs: it needs no slope, which an error of rounding has not, it keeps within the domain, and it
evaluates a whole generation in one call. Two measures are climbed, since either alone is blind:

- the error in ULP, which is large where a derivative is small, however it comes to be;
- the error relative to the derivative and its usual size in the domain, which is large where
  a method is wrong.

What is reported is judged by the referee; the ranks only choose where it looks.

References
----------
R. Storn and K. Price, Differential Evolution, J. Global Optimization 11, 1997
(`scipy.optimize.differential_evolution`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.lab.domain.answers import Candidate
from difflab.lab.domain.box import Box
from difflab.referee.ulp import rough_ulps

Points = NDArray[float64]
Truths = Callable[[Points], NDArray[float64]]

POPULATION, GENERATIONS = 24, 20
KEPT = 64
"""The worst points of a measure that are remembered for each method."""
SUSPECTS = 8
"""How many of these the referee judges."""
BLOCK = 4096
_LEAST = 1e-30  # of a rank, whose logarithm is climbed


@dataclass
class _Ranked:
    """The worst points of a method by one measure, as points of the unit cube."""

    ranks: NDArray[float64] = field(default_factory=lambda: np.zeros(0))
    units: Points | None = None

    def add(self, ranks: NDArray[float64], units: Points) -> None:
        """Keep the worst of the known and of further points."""
        if self.units is not None:
            ranks, units = np.concatenate([self.ranks, ranks]), np.concatenate([self.units, units])
        worst = np.argsort(-ranks, kind="stable")[:KEPT]
        self.ranks, self.units = ranks[worst], units[worst]

    def worst(self, count: int) -> Points:
        """Return the worst points that have an error."""
        assert self.units is not None
        return self.units[:count][self.ranks[:count] > 0]


class Search:
    """The search for the worst points of some methods.

    Parameters
    ----------
    box : Box
        The domain.
    methods : sequence of Candidate
        The methods.
    truths : callable
        Map points ``(N, n)`` to derivatives ``(N, m, n)``, nan where unknown.
    seed : int
        Seed of the climbing.
    """

    def __init__(self, box: Box, methods: Sequence[Candidate], truths: Truths, seed: int) -> None:
        self._box = box
        self._methods = methods
        self._truths = truths
        self._seed = seed
        self._usual: NDArray[float64] | None = None
        self._ranked = [(_Ranked(), _Ranked()) for _ in methods]
        self.evaluated = 0

    def scan(self, unit: Points) -> None:
        """Rank the errors of all methods at points of the unit cube."""
        for start in range(0, len(unit), BLOCK):
            part = unit[start : start + BLOCK]
            points = self._box.points(part)
            truth = self._truths(points)
            if self._usual is None:
                resolved = np.isfinite(truth).all(axis=(1, 2))
                self._usual = np.median(np.abs(truth[resolved]), axis=0) if resolved.any() else None
            for index in range(len(self._methods)):
                self._rank(index, part, points, truth)
            self.evaluated += len(part)

    def climb(self, index: int) -> None:
        """Climb from the worst points of a method, by either measure."""
        from scipy.optimize import Bounds, differential_evolution

        dimensions = len(self._box.moving)
        for measure in (0, 1):
            start = self._ranked[index][measure].worst(POPULATION)
            if not len(start) or self._methods[index].derivative is None:
                continue
            draw = np.random.default_rng([self._seed, index, measure])
            others = draw.random((max(POPULATION - len(start), 0), dimensions))

            def height(columns: Points, measure: int = measure) -> Any:
                unit = columns.T
                points = self._box.points(unit)
                ranks = self._rank(index, unit, points, self._truths(points))[measure]
                self.evaluated += len(unit)
                return -np.log(np.clip(ranks, _LEAST, 1 / _LEAST))

            differential_evolution(
                height,
                Bounds(np.zeros(dimensions), np.ones(dimensions)),
                init=np.concatenate([start, others]),
                vectorized=True,
                updating="deferred",
                polish=False,
                maxiter=GENERATIONS,
                tol=0.0,
                rng=draw,
            )

    def suspects(self, index: int) -> Points:
        """Return the points of the domain at which a method's errors are the largest."""
        parts = [self._box.points(ranked.worst(SUSPECTS)) for ranked in self._ranked[index]]
        points: Points = np.unique(np.concatenate(parts), axis=0)
        return points

    def _rank(
        self, index: int, unit: Points, points: Points, truth: NDArray[float64]
    ) -> tuple[NDArray[float64], NDArray[float64]]:
        """Return the two measures of a method's error at points, and remember the worst."""
        answers = self._methods[index].answers(points)
        usual = 0.0 if self._usual is None else self._usual
        with np.errstate(all="ignore"):
            relative = np.abs(answers.value - truth) / (np.abs(truth) + usual)
        ranks = []
        for ranked, size in zip(
            self._ranked[index], (rough_ulps(answers.value, truth), relative), strict=True
        ):
            # A method that returns nan where there is a derivative is as wrong as can be.
            size = np.where(np.isfinite(size), size, 1 / _LEAST)
            rank = np.where(np.isfinite(truth), size, 0.0).max(axis=(1, 2))
            rank[list(answers.silent)] = 0.0
            ranked.add(rank, unit)
            ranks.append(rank)
        return ranks[0], ranks[1]

"""The derivatives of one method at many points: in one call, or point by point where that fails."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import DifflabError, MethodTimeout
from difflab.lab.measure import wait_for
from difflab.lab.outcomes import Outcome, outcome
from difflab.methods.protocol import Batched, Estimate, Family, Method, Prepared, Problem
from difflab.methods.timer import Stopwatch

__all__ = ["Answers", "Candidate", "prepared"]

Points = NDArray[float64]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a method answers at N points.

    Attributes
    ----------
    family : Family
        The method's family.
    value : ndarray (N, m, n)
        The derivatives; nan where there is no answer.
    error : ndarray (N, m, n) or None
        The method's own estimates.
    silent : mapping of int to Outcome
        The points without an answer, and why.
    seconds : float
        The time of all points, without the waiting for a processor.
    evaluations : int
        The number of points at which the function was evaluated.
    """

    family: Family
    value: NDArray[float64]
    error: NDArray[float64] | None
    silent: dict[int, Outcome] = field(default_factory=dict)
    seconds: float = 0.0
    evaluations: int = 0

    def estimate(self, index: int) -> Estimate:
        """Return the answer at one point."""
        error = None if self.error is None else self.error[index]
        return Estimate(self.value[index], error, 0)

    def part(self, rows: NDArray[np.intp]) -> Answers:
        """Return the answers at some of the points."""
        silent = {
            k: self.silent[index] for k, index in enumerate(rows.tolist()) if index in self.silent
        }
        error = None if self.error is None else self.error[rows]
        return replace(self, value=self.value[rows], error=error, silent=silent)


@dataclass
class Candidate:
    """A method of a comparison over a domain, prepared if it can be.

    Attributes
    ----------
    method : Method
        The method.
    shape : (int, int)
        The shape of a derivative.
    derivative : Prepared or None
        The prepared method; None if it has given up.
    ended : Outcome or None
        Why it has.
    prepare_seconds : float or None
        The time of preparing.
    """

    method: Method
    shape: tuple[int, int]
    derivative: Prepared | None = None
    ended: Outcome | None = None
    prepare_seconds: float | None = None

    def answers(self, points: Points) -> Answers:
        """Return the derivatives at the points ``(N, n)``.

        A method that exceeds its time limit is not asked again.
        """
        points = np.array(points)
        points.flags.writeable = False
        with Stopwatch() as watch, np.errstate(all="ignore"):
            found = self._together(points) or self._singly(points)
            return replace(found, seconds=watch.seconds())

    def _together(self, points: Points) -> Answers | None:
        """Return the derivatives by one call; None if there is none, or it failed."""
        derivative: object = self.derivative
        if not isinstance(derivative, Batched) or not len(points):
            return None
        try:
            found = derivative.batch(points)
            value = np.array(found.value, dtype=float64).reshape(len(points), *self.shape)
            error = None if found.error is None else np.reshape(found.error, value.shape)
        except MethodTimeout as raised:
            self._end(raised)
            return None
        except (Exception, SystemExit):  # point by point it shows where, and why
            return None
        return Answers(self.method.family, value, error, evaluations=int(found.evaluations))

    def _singly(self, points: Points) -> Answers:
        """Return the derivatives by a call at each point, and why some have none."""
        value = np.full((len(points), *self.shape), math.nan)
        error = np.full_like(value, math.nan)
        silent: dict[int, Outcome] = {}
        estimated, evaluations = False, 0
        for index, x in enumerate(points):
            if self.derivative is None:
                silent[index] = self.ended or outcome(DifflabError("it was not prepared"))
                continue
            try:
                found = self.derivative(x)
                value[index] = np.reshape(found.value, self.shape)
                evaluations += int(found.evaluations)
                if found.error is not None:
                    error[index], estimated = np.reshape(found.error, self.shape), True
            except MethodTimeout as raised:
                silent[index] = self._end(raised)
            except (Exception, SystemExit) as raised:  # another package may raise anything
                silent[index] = outcome(raised)
        return Answers(
            self.method.family,
            value,
            error if estimated else None,
            silent,
            evaluations=evaluations,
        )

    def _end(self, error: BaseException) -> Outcome:
        self.derivative, self.ended = None, outcome(error)
        return self.ended


def prepared(method: Method, problem: Problem) -> Candidate:
    """Return a method prepared for a problem, or why it cannot be."""
    found = Candidate(method, problem.shape)
    try:
        wait_for(method, problem.order)
        with Stopwatch() as watch, np.errstate(all="ignore"):
            found.derivative = method.prepare(problem)
            seconds = watch.seconds()
        found.prepare_seconds = float(getattr(found.derivative, "prepare_seconds", seconds))
    except (Exception, SystemExit) as error:  # another package's method may raise anything
        found.derivative, found.ended = None, outcome(error)
    return found

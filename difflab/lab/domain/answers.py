"""The derivatives of one method at many points: in one call, or point by point where that fails."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError
from difflab.lab.judge import DeclaredRules
from difflab.lab.measure import wait_for
from difflab.lab.record import Outcome, outcome
from difflab.methods.in_dtype import InDtype
from difflab.methods.protocol import Batched, Estimate, Family, Method, Prepared, Problem
from difflab.methods.registry import own
from difflab.methods.timer import Deadline, Stopwatch

Points = NDArray[float64]


@dataclass(frozen=True, eq=False)
class Answers:
    """Derivatives by one method at N points.

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
    plain : Answers or None
        Its answers for the function without its declared rules, if it follows them.
    rules : tuple of str
        The names of the rules.
    dtype : FloatFormat
        The format in which it computes.
    """

    family: Family
    value: NDArray[float64]
    error: NDArray[float64] | None
    silent: dict[int, Outcome] = field(default_factory=dict)
    seconds: float = 0.0
    evaluations: int = 0
    plain: Answers | None = None
    rules: tuple[str, ...] = ()
    dtype: FloatFormat = DOUBLE

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
        plain = None if self.plain is None else self.plain.part(rows)
        return replace(self, value=self.value[rows], error=error, silent=silent, plain=plain)


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
    limit : Deadline or None
        The time limit of each call for many points, of a method that calls Python code.
    plain : Candidate or None
        The same method for the function without the rules that this declares.
    rules : tuple of str
        The names of the rules.
    """

    method: Method
    shape: tuple[int, int]
    derivative: Prepared | None = None
    ended: Outcome | None = None
    prepare_seconds: float | None = None
    limit: Deadline | None = None
    plain: Candidate | None = None
    rules: tuple[str, ...] = ()

    def answers(self, points: Points) -> Answers:
        """Return the derivatives at the points ``(N, n)``.

        A method that exceeds its time limit is not asked again.
        """
        points = np.array(points)
        points.flags.writeable = False
        limit = self.limit or nullcontext()
        with limit, Stopwatch() as watch, np.errstate(all="ignore"):
            answers = self._together(points) or self._singly(points)
            answers = replace(answers, seconds=watch.seconds(), dtype=self.dtype)
        if self.plain is None:
            return answers
        return replace(answers, plain=self.plain.answers(points), rules=self.rules)

    @property
    def dtype(self) -> FloatFormat:
        """The format in which it computes."""
        return self.method.dtype if isinstance(self.method, InDtype) else DOUBLE

    @property
    def ranked(self) -> Candidate:
        """The candidate that a search for the worst point ranks: a declared difference is no error.

        Methods that call Python code are not searched, since they are slow, nor those in other
        formats than float64, whose points are few.
        """
        if self.limit is not None or self.dtype is not DOUBLE:
            return replace(self, derivative=None, limit=None)
        return self.plain or self

    def _together(self, points: Points) -> Answers | None:
        """Return the derivatives by one call; None if there is none, or it failed."""
        derivative: object = self.derivative
        if not isinstance(derivative, Batched) or not len(points):
            return None
        try:
            estimate = derivative.batch(points)
            value = np.array(estimate.value, dtype=float64).reshape(len(points), *self.shape)
            error = None if estimate.error is None else np.reshape(estimate.error, value.shape)
        except MethodTimeout as raised:
            self._end(raised)
            return None
        except (Exception, SystemExit):  # point by point it shows where, and why
            return None
        return Answers(self.method.family, value, error, evaluations=int(estimate.evaluations))

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
                estimate = self.derivative(x)
                value[index] = np.reshape(estimate.value, self.shape)
                evaluations += int(estimate.evaluations)
                if estimate.error is not None:
                    error[index], estimated = np.reshape(estimate.error, self.shape), True
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


class EachTime(Deadline):
    """A time limit that begins again with every ``with``."""

    def __enter__(self) -> Deadline:
        self._left = self.seconds
        return super().__enter__()


def prepared(method: Method, problem: Problem, rules: DeclaredRules | None = None) -> Candidate:
    """Return a method prepared for a problem, or why it cannot be.

    With `rules` it is also prepared for the function without them, if it follows them.
    """
    candidate = Candidate(method, problem.shape, limit=problem.deadline)
    if rules is not None and rules.apply_to(method) and method.name in own():
        try:
            plain = replace(problem, function=rules.without())
            candidate.plain, candidate.rules = prepared(method, plain), rules.names
        except UnsupportedError:  # they cannot be left out
            pass
    try:
        wait_for(method, problem.order)
        with Stopwatch() as watch, np.errstate(all="ignore"):
            candidate.derivative = method.prepare(problem)
            seconds = watch.seconds()
        candidate.prepare_seconds = float(getattr(candidate.derivative, "prepare_seconds", seconds))
    except (Exception, SystemExit) as error:  # another package's method may raise anything
        candidate.derivative, candidate.ended = None, outcome(error)
    return candidate

"""The referee at many points: proofs for all of them, and its full work where one is in doubt.

At a point where ball arithmetic encloses every element of the derivative, a method that reproduces
it agrees; that is decided for all points at once. At every other point the verdict is that of a
comparison at the point, with both witnesses, `difflab.lab.judge.Judge`.

A file keeps finished blocks of points as JSON: they are read again, and joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import add
from time import perf_counter
from typing import Any, TypeVar

import mpmath
import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.lab.domain.answers import Answers
from difflab.lab.judge import CONFIRMED, Judge, declared
from difflab.lab.record import ERRORS, MethodRow, Outcome, Status
from difflab.referee.proofs import prove, roots_at
from difflab.referee.referee import PROVING
from difflab.referee.ulp import errors, largest_errors, nearest
from difflab.referee.values import SLOW
from difflab.referee.verdict import Verdict, reproduced, tolerance

Values = Callable[[NDArray[Any]], NDArray[Any]]

VERDICTS = tuple(Verdict)
PATIENT = 3
"""Points of a block at which the referee may reach its time limit; no more are tried then."""
SILENT = -1
"""In place of a verdict's index where a method gives no answer."""


@dataclass(frozen=True, eq=False)
class Referred:
    """Results of the referee at N points.

    Attributes
    ----------
    status : list of str
        The regularity of the worst element at each point.
    proved : ndarray of bool (N,)
        Where ball arithmetic encloses every element.
    contradictions : mapping of int to str
        Where the referee's two witnesses exclude each other.
    """

    status: list[str]
    proved: NDArray[np.bool_]
    contradictions: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class MethodJudged:
    """One method at N points.

    Attributes
    ----------
    verdicts : ndarray of int (N,)
        Indices of `VERDICTS`, or `SILENT`.
    absolute, relative, ulps : ndarray (N,)
        The largest error of an element; minus infinity where no element has one, nan where the
        method returned nan.
    reasons : mapping of int to str
        Of verdicts other than agreement.
    silent : mapping of int to Outcome
        The points without an answer, and why.
    seconds : float
        The time of all points.
    evaluations : int
        How many points the function was evaluated at.
    """

    verdicts: NDArray[np.int64]
    absolute: NDArray[float64]
    relative: NDArray[float64]
    ulps: NDArray[float64]
    reasons: Mapping[int, str]
    silent: Mapping[int, Outcome]
    seconds: float
    evaluations: int


@dataclass(frozen=True, eq=False)
class JudgedPoints:
    """The referee's results at N points, and its verdicts on every method there."""

    referred: Referred
    methods: list[MethodJudged]


Part = TypeVar("Part", Referred, MethodJudged)


def judged(
    function: Function | None,
    points: NDArray[float64],
    methods: Sequence[Answers],
    order: int,
    timeout: float,
    values: Values | None = None,
) -> JudgedPoints:
    """Judge the methods' derivatives at points.

    Parameters
    ----------
    function : Function or None
        The function; None for code that has no graph.
    points : ndarray (N, n)
        The flattened inputs.
    methods : sequence of Answers
        The answers of each method there, all in one format.
    order : int
        1 for the Jacobian, 2 for the Hessian.
    timeout : float
        The referee's time limit at one point, in seconds.
    values : callable, optional
        The values of the code.
    """
    shape = methods[0].value.shape[1:] if methods else (0, 0)
    dtype = methods[0].dtype if methods else DOUBLE
    work = _Judging(function, points, (order, shape), timeout, values, dtype)
    judgements = [work.method(answers) for answers in methods]
    return JudgedPoints(work.referred(), judgements)


class _Judging:
    """The referee at some points; where one is in doubt, its full work is done once."""

    def __init__(
        self,
        function: Function | None,
        points: NDArray[float64],
        kind: tuple[int, tuple[int, ...]],
        timeout: float,
        values: Values | None,
        dtype: FloatFormat,
    ) -> None:
        self._dtype = dtype
        self._function = function
        self._points = points
        self._order, shape = kind
        self._timeout = timeout
        self._values = values
        self._judges: dict[int, Judge] = {}
        self._slow = function is not None and not SLOW.isdisjoint(function.graph.primitives)
        self._late = 0
        if function is None:
            self._exact = np.full((len(points), *shape), mpmath.nan, dtype=object)
            self._bounds = np.full(self._exact.shape, math.inf)
            self._truth = np.full(self._exact.shape, math.nan)
            self._proved = np.zeros(len(points), dtype=bool)
            return
        with roots_at(function, points):
            proofs = [prove(function, x, self._order, PROVING * timeout) for x in points.tolist()]
        self._exact = _joined([proof.exact for proof in proofs], shape)
        self._bounds = _joined([proof.bounds for proof in proofs], shape)
        self._proved = np.isfinite(self._bounds).all(axis=(1, 2))
        truth = [nearest(number) for number in self._exact.flat]
        rounded = np.array(truth, dtype=float64).reshape(self._exact.shape)
        self._truth = dtype.rounded(rounded)

    def method(self, answers: Answers) -> MethodJudged:
        """Return the results of one method, with their verdicts."""
        count, dtype = len(self._points), self._dtype
        same = reproduced(answers.value, self._truth, tolerance(answers.family, dtype)).all(
            axis=(1, 2)
        )
        answered = np.ones(count, dtype=bool)
        answered[list(answers.silent)] = False
        plain = self._proved & same & answered
        parts = np.full((3, count), -math.inf)
        kinds = errors(answers.value[plain], self._exact[plain], dtype)
        parts[:, plain] = largest_errors(
            kinds, self._exact[plain], self._truth[plain], self._bounds[plain]
        )
        verdicts = np.where(answered, VERDICTS.index(Verdict.AGREE), SILENT)
        reasons: dict[int, str] = {}
        blank = MethodRow(name="", family=answers.family, status=Status.OK)
        for index in np.flatnonzero(answered & ~plain).tolist():
            row = self._judged(index, blank, answers)
            verdicts[index] = VERDICTS.index(Verdict(row.verdict or "inconclusive"))
            largest = [getattr(row, name) for name in ERRORS]
            parts[:, index] = [-math.inf if size is None else size for size in largest]
            if row.message and row.verdict != Verdict.AGREE:
                reasons[index] = row.message
        absolute, relative, ulps = parts
        about = answers.silent, answers.seconds, answers.evaluations
        return MethodJudged(verdicts, absolute, relative, ulps, reasons, *about)

    def _judged(self, index: int, blank: MethodRow, answers: Answers) -> MethodRow:
        """Return the verdict at one point, by the referee's full work."""
        began = perf_counter()
        judge, plain = self._judge(index), answers.plain
        row = judge.judged(blank, answers.estimate(index))
        self._late += perf_counter() - began > self._timeout
        if row.verdict == Verdict.DISAGREE and plain is not None and index not in plain.silent:
            again = judge.judged(blank, plain.estimate(index))
            if again.verdict in CONFIRMED:
                return declared(row, answers.rules)
        return row

    def referred(self) -> Referred:
        """Return the referee's results."""
        status = ["smooth"] * len(self._points)
        contradictions: dict[int, str] = {}
        proved = self._proved.copy()
        for index in np.flatnonzero(~proved).tolist():
            status[index] = self._judge(index).row().status
        for index, judge in self._judges.items():
            row = judge.row()
            status[index] = row.status
            proved[index] = row.proved
            if row.contradiction:
                contradictions[index] = row.contradiction
        return Referred(status, proved, contradictions)

    def _judge(self, index: int) -> Judge:
        if index not in self._judges:
            late = self._slow and self._late >= PATIENT
            reason = f"not tried: the referee reached its time limit at {PATIENT} points before"
            about = self._function, self._points[index], self._order, self._timeout
            self._judges[index] = Judge(
                *about, self._values, self._dtype, reason=reason if late else ""
            )
        return self._judges[index]


def _joined(parts: Sequence[NDArray[Any]], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.stack(parts) if parts else np.zeros((0, *shape))


def truths(
    function: Function | None, points: NDArray[float64], order: int, shape: tuple[int, int]
) -> NDArray[float64]:
    """Return derivatives ``(N, m, n)`` at points, by balls of few bits, to rank errors by.

    They are nan where a few bits are not enough, or there is no derivative: nothing is reported
    from them, and the points that they single out are judged by `judged`.
    """
    derivatives = np.full((len(points), *shape), math.nan)
    if function is None:
        return derivatives
    try:
        from difflab.balls.evaluation import PRECISIONS, evaluator
        from difflab.balls.library import arb, precision

        bits = PRECISIONS[0]
        with precision(bits), roots_at(function, points):
            compute = evaluator(function, bits, order)
            for derivative, x in zip(derivatives, points.tolist(), strict=True):
                for row, jet in enumerate(compute([arb(number) for number in x])):
                    if jet.fault is None:
                        _read(derivative, row, jet, order)
    except DifflabError:  # without python-flint, or for a function that cannot be recorded
        derivatives[:] = math.nan
    return derivatives


_ROUGH = 2.0**-60
"""The largest radius of a ball over its size that ranks errors of float64."""


def _read(derivative: NDArray[float64], row: int, jet: Any, order: int) -> None:
    """Write the sharp derivatives of an expansion into ``(m, n)`` or ``(n, n)``."""
    if order == 1:
        derivative[row] = 0.0
        for column, ball in jet.slopes.items():
            derivative[row, column] = _sharp(ball)
        return
    derivative[:] = 0.0
    for (i, j), ball in (jet.curves or {}).items():
        derivative[i, j] = derivative[j, i] = _sharp(ball)


def _sharp(ball: Any) -> float:
    rough = not hasattr(ball, "rad") or ball.rad() <= abs(ball.mid()) * _ROUGH
    return float(ball) if rough else math.nan


def block_of(record: Mapping[str, Any]) -> JudgedPoints:
    """Return the block of a record, which `difflab.core.strict_json.strict` returned."""
    methods = [MethodJudged(**_parts_of(each)) for each in record["methods"]]
    return JudgedPoints(Referred(**_parts_of(record["referred"])), methods)


def _parts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _READERS[name](content) if name in _READERS else content
        for name, content in record.items()
    }


def _by_point(content: Mapping[str, str]) -> dict[int, str]:
    return {int(index): text for index, text in content.items()}


def _outcomes(content: Mapping[str, tuple[str, str]]) -> dict[int, Outcome]:
    return {int(index): Outcome(Status(name), text) for index, (name, text) in content.items()}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "proved": partial(np.array, dtype=bool),
    "contradictions": _by_point,
    "verdicts": partial(np.array, dtype=np.int64),
    **dict.fromkeys(("absolute", "relative", "ulps"), partial(np.array, dtype=float64)),
    "reasons": _by_point,
    "silent": _outcomes,
}


def gathered(blocks: Sequence[JudgedPoints]) -> JudgedPoints:
    """Return consecutive blocks as one."""
    starts = np.cumsum([0, *(len(block.referred.status) for block in blocks)]).tolist()
    methods = zip(*(block.methods for block in blocks), strict=True)
    return JudgedPoints(
        _together([block.referred for block in blocks], starts),
        [_together(parts, starts) for parts in methods],
    )


def _together(parts: Sequence[Part], starts: Sequence[int]) -> Part:
    """Return the parts of blocks that begin at the points `starts` as one."""
    made = {
        each.name: _contents([getattr(part, each.name) for part in parts], starts)
        for each in fields(parts[0])
    }
    return type(parts[0])(**made)


def _contents(contents: Sequence[Any], starts: Sequence[int]) -> Any:
    """Concatenate a field of all blocks; indices of points are counted from the first block's."""
    if isinstance(contents[0], np.ndarray):
        return np.concatenate(contents)
    if isinstance(contents[0], Mapping):
        return {
            start + index: content
            for start, part in zip(starts, contents, strict=False)
            for index, content in part.items()
        }
    return reduce(add, contents)

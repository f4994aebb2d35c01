"""Derivatives of solutions: what each way returns, against the true derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter

import numpy as np

from difflab.bench.solvers.drawing import draw
from difflab.bench.solvers.problem import JUDGES, WAYS, Answer, SolverProblem, Truth, Way, problems
from difflab.errors import MissingDependencyError, UnsupportedError
from difflab.lab import provenance
from difflab.lab.outcomes import Row, trial
from difflab.lab.sweep import Cell, Task
from difflab.methods.timer import peak_of

__all__ = ["LAYOUT", "QUICK", "TOLERANCES", "draw", "tasks", "ways"]

LAYOUT = provenance.layout(
    {
        "problem": str,
        "kind": str,
        "way": str,
        "tolerance": float,
        "status": str,
        "message": str,
        "relative_error": float,
        "truth_bound": float,
        "truth": str,
        "steps": int,
        "seconds": float,
        "peak_bytes": int,
    },
    key=("problem", "way", "tolerance"),
)

TOLERANCES = (1e-4, 1e-8, 1e-12)
LONGEST = 0.5
"""Seconds of a call above which its memory is not measured, which takes several times as long."""
QUICK = 6
"""With ``quick`` one of so many problems is measured, at one tolerance."""


def ways() -> list[Way]:
    """Return all ways of differentiating, also those whose package is missing."""
    return [way for module in WAYS for way in import_module(module).WAYS]


def tasks(
    chosen: Sequence[SolverProblem] | None = None,
    tolerances: Sequence[float] | None = None,
    *,
    quick: bool = False,
) -> Iterator[Task]:
    """Yield one task for each problem, way of its kind, and tolerance.

    Parameters
    ----------
    chosen : sequence of SolverProblem, optional
        By default all, or with `quick` one of `QUICK`.
    tolerances : sequence of float, optional
        By default `TOLERANCES`, or with `quick` 1e-8.
    quick : bool
        Whether some problems are enough.
    """
    listed = (problems()[:: QUICK if quick else 1]) if chosen is None else chosen
    sizes = tolerances or ((1e-8,) if quick else TOLERANCES)
    for problem in listed:
        truth = cache(partial(_truth, problem))
        for way in ways():
            if problem.kind not in way.kinds:
                continue
            source = provenance.source(None, uses=("python-flint", *way.uses))
            for tolerance in sizes:
                key: Row = {"problem": problem.name, "way": way.name, "tolerance": tolerance}
                measure = partial(_measured, problem, way, tolerance, truth)
                yield trial(key, measure, source, kind=problem.kind)


def _truth(problem: SolverProblem) -> Truth:
    """Return the true derivative of a problem's solution."""
    found: Truth = import_module(JUDGES[problem.kind]).judge(problem)
    return found


def _measured(
    problem: SolverProblem, way: Way, tolerance: float, truth: Callable[[], Truth]
) -> dict[str, Cell]:
    if way.package and find_spec(way.package) is None:
        raise MissingDependencyError(f"{way.package} is not installed")
    known = truth()
    start = perf_counter()
    answer = way.differentiate(problem, tolerance)
    seconds = perf_counter() - start
    call: Callable[[], Answer] = partial(way.differentiate, problem, tolerance)
    if way.prepare is not None:
        call = way.prepare(problem, tolerance)
        start = perf_counter()
        answer = call()
        seconds = perf_counter() - start
    error = _error(answer, known)
    if not np.isfinite(error):
        raise UnsupportedError("the derivative is nan")
    return {
        "status": "ok",
        "message": "",
        "relative_error": error,
        "truth_bound": known.bound,
        "truth": known.how,
        "steps": answer.steps,
        "seconds": seconds,
        "peak_bytes": peak_of(call) if seconds < LONGEST else None,
        "repetitions": 1,
    }


def _error(answer: Answer, truth: Truth) -> float:
    """Return the largest error of an element, relative to the largest element of its row."""
    found = np.asarray(answer.jacobian, dtype=np.float64).reshape(truth.jacobian.shape)
    scale = np.max(np.abs(truth.jacobian), axis=1, keepdims=True)
    return float(np.max(np.abs(found - truth.jacobian) / np.where(scale == 0, 1.0, scale)))

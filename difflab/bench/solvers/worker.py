"""The process in which the ways of differentiating a solution are measured."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

from difflab.bench.solvers.bench import ways
from difflab.bench.solvers.problem import JUDGES, Answer, Prepared, SolverProblem, Truth
from difflab.core.worker import Handlers, ReportProgress
from difflab.errors import MissingDependencyError, UnsupportedError
from difflab.lab.sweep import Cell
from difflab.methods.timer import resident_peak

Truths = dict[Path, Truth]
"""The truths of the problems whose ways were measured before, by file."""


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of the process."""
    return {"measure": partial(_measured, {})}


def _measured(
    truths: Truths, problem: SolverProblem, name: str, tolerance: float
) -> dict[str, Cell]:
    way = next(way for way in ways() if way.name == name and problem.kind in way.kinds)
    if way.package and find_spec(way.package) is None:
        raise MissingDependencyError(way.package)
    with np.errstate(all="ignore"):
        if problem.path not in truths:
            truths[problem.path] = import_module(JUDGES[problem.kind]).judge(problem)
        call = way.prepare(problem, tolerance)
        call()  # it may compile
        peak, (answer, seconds) = _with_peak(call)
    known = truths[problem.path]
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
        "peak_bytes": peak,
        "repetitions": 1,
    }


def _with_peak(call: Prepared) -> tuple[int | None, tuple[Answer, float]]:
    """Return the growth of resident memory, the answer, and the seconds of a call.

    What fits into memory that the process holds already does not count.
    """

    def timed() -> tuple[Answer, float]:
        start = perf_counter()
        answer = call()
        return answer, perf_counter() - start

    try:
        return resident_peak(timed)
    except UnsupportedError:  # the system does not count it
        return None, timed()


def _error(answer: Answer, truth: Truth) -> float:
    """Return the largest error of an element, relative to the largest element of its row."""
    found = np.asarray(answer.jacobian, dtype=np.float64).reshape(truth.jacobian.shape)
    scale = np.max(np.abs(truth.jacobian), axis=1, keepdims=True)
    return float(np.max(np.abs(found - truth.jacobian) / np.where(scale == 0, 1.0, scale)))

"""Derivatives of solutions: what each way returns, against the true derivative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module

from difflab.bench.columns import layout
from difflab.bench.solvers.drawing import draw
from difflab.bench.solvers.problem import WAYS, SolverProblem, Way, problems
from difflab.core.environ import environment_variables
from difflab.core.worker import RestartedWorker
from difflab.lab import provenance
from difflab.lab.outcomes import Row, trial
from difflab.lab.sweep import Cell, Task
from difflab.methods.timer import FREED_AT_ONCE

__all__ = ["LAYOUT", "QUICK", "TOLERANCES", "draw", "tasks", "ways"]

LAYOUT = layout(
    "problem kind way tolerance status message relative_error truth_bound truth steps seconds "
    "peak_bytes",
    key="problem way tolerance",
)

TOLERANCES = (1e-4, 1e-8, 1e-12)
QUICK = 6
"""With ``quick`` one of so many problems is measured, at one tolerance."""


def ways() -> list[Way]:
    """Return all ways of differentiating, also those whose package is missing."""
    return [way for module in WAYS for way in import_module(module).WAYS]


def tasks(
    chosen: Sequence[SolverProblem] | None = None,
    tolerances: Sequence[float] | None = None,
    timeout: float = 60.0,
    *,
    quick: bool = False,
) -> Iterator[Task]:
    """Yield one task for each problem, way of its kind, and tolerance.

    A problem is measured in a process of its own, which is ended where a way takes too long; a
    way is not tried at further tolerances after that.

    Parameters
    ----------
    chosen : sequence of SolverProblem, optional
        By default all, or with `quick` one of `QUICK`.
    tolerances : sequence of float, optional
        By default `TOLERANCES`, or with `quick` 1e-8.
    timeout : float
        Seconds of one row: the truth, what the way compiles, and two derivatives.
    quick : bool
        Whether some problems are enough.
    """
    listed = (problems()[:: QUICK if quick else 1]) if chosen is None else chosen
    sizes = tolerances or ((1e-8,) if quick else TOLERANCES)
    process = _Process(timeout)
    for problem in listed:
        late: dict[str, str] = {}
        for way in ways():
            if problem.kind not in way.kinds:
                continue
            source = provenance.source(None, uses=("python-flint", *way.uses), timeout=timeout)
            for tolerance in sizes:
                key: Row = {"problem": problem.name, "way": way.name, "tolerance": tolerance}
                measure = partial(process.measured, problem, way.name, tolerance)
                yield trial(
                    key, measure, source, timeouts=late, name=way.name, size=f"at {tolerance:g}",
                    kind=problem.kind,
                )  # fmt: skip


class _Process:
    """The process that measures the ways of one problem after the other, one for each problem."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._worker = RestartedWorker("difflab.bench.solvers.worker")
        self._problem = ""

    def measured(self, problem: SolverProblem, way: str, tolerance: float) -> dict[str, Cell]:
        """Return the row of a way."""
        if problem.name != self._problem:  # what the packages compiled for the last one is freed
            self._worker.stop()
            self._problem = problem.name
        with environment_variables(FREED_AT_ONCE):
            running = self._worker.running()
        # Without what the problem has cached, which need not be sent.
        found: dict[str, Cell] = running.request(
            "measure", replace(problem), way, tolerance, timeout=self._timeout
        )
        return found

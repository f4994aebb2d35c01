"""Error of the derivative of a solution by each way of differentiating it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from statistics import median
from time import perf_counter

import numpy as np

from difflab.bench.shared import (
    BLUE,
    BROWN,
    GREEN,
    ORANGE,
    OTHER_STYLE,
    PURPLE,
    RED,
    SKY,
    VIOLET,
    CurveStyle,
    layout,
    picture,
    plot_curve,
)
from difflab.bench.solvers.problem import (
    JUDGES,
    WAYS,
    Answer,
    Prepared,
    SolverProblem,
    SolverTruth,
    SolverWay,
    problems,
)
from difflab.core.system import environment_variables
from difflab.core.worker import Handlers, ReportProgress, RestartedWorker
from difflab.errors import MissingDependencyError, UnsupportedError
from difflab.lab import provenance
from difflab.lab.sweep import Cell, Row, SweepRow, Task, number, trial
from difflab.methods.timer import FREED_AT_ONCE, resident_peak
from difflab.report.canvas import (
    FAINT,
    INK,
    Axes,
    Figure,
    Label,
    label_ends,
    power_tick,
    ticks,
    titled_figure,
)

LAYOUT = layout(
    "problem kind way tolerance status message relative_error truth_bound truth steps seconds "
    "peak_bytes",
    key="problem way tolerance",
)

TOLERANCES = (1e-4, 1e-8, 1e-12)
QUICK = 6
"""With ``quick`` one of so many problems is measured, at one tolerance."""


def ways() -> list[SolverWay]:
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
        Seconds of one row: the truth, the compilation, and two derivatives.
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
        self._worker = RestartedWorker("difflab.bench.solvers.bench")
        self._problem = ""

    def measured(self, problem: SolverProblem, way: str, tolerance: float) -> dict[str, Cell]:
        """Return the row of a way."""
        if problem.name != self._problem:  # the code compiled for the last one is freed
            self._worker.stop()
            self._problem = problem.name
        with environment_variables(FREED_AT_ONCE):
            running = self._worker.running()
        # Without the caches of the problem, which need not be sent.
        row: dict[str, Cell] = running.request(
            "measure", replace(problem), way, tolerance, timeout=self._timeout
        )
        return row


Truths = dict[Path, SolverTruth]
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
            truths[problem.path] = resolve_name(JUDGES[problem.kind])(problem)
        call = way.prepare(problem, tolerance)
        call()  # it may compile
        peak, (answer, seconds) = _with_peak(call)
    truth = truths[problem.path]
    error = _error(answer, truth)
    if not np.isfinite(error):
        raise UnsupportedError("the derivative is nan")
    return {
        "status": "ok",
        "message": "",
        "relative_error": error,
        "truth_bound": truth.bound,
        "truth": truth.how,
        "steps": answer.steps,
        "seconds": seconds,
        "peak_bytes": peak,
        "repetitions": 1,
    }


def _with_peak(call: Prepared) -> tuple[int | None, tuple[Answer, float]]:
    """Return the growth of resident memory, the answer, and the seconds of a call.

    Allocations within memory that the process already holds do not count.
    """

    def timed() -> tuple[Answer, float]:
        start = perf_counter()
        answer = call()
        return answer, perf_counter() - start

    try:
        return resident_peak(timed)
    except UnsupportedError:  # the system does not count it
        return None, timed()


def _error(answer: Answer, truth: SolverTruth) -> float:
    """Return the largest error of an element, relative to the largest element of its row."""
    jacobian = np.asarray(answer.jacobian, dtype=np.float64).reshape(truth.jacobian.shape)
    scale = np.max(np.abs(truth.jacobian), axis=1, keepdims=True)
    return float(np.max(np.abs(jacobian - truth.jacobian) / np.where(scale == 0, 1.0, scale)))


# --- the picture -----------------------------------------------------------------------------

CRIMSON = "#B3261E"
STYLES = {
    "implicit": CurveStyle(BLUE, "o", width=2.4),
    "unrolled": CurveStyle(SKY, "v", "--"),
    "rk45 unrolled": CurveStyle(SKY, "v", "--"),
    "rk45 forward": CurveStyle(BLUE, "^", width=2.0),
    "rk45 adjoint": CurveStyle(GREEN, "D"),
    "taylor unrolled": CurveStyle(ORANGE, "v", "--"),
    "taylor forward": CurveStyle(PURPLE, "^", width=2.0),
    "taylor adjoint": CurveStyle(BROWN, "D"),
    "dopri8 unrolled": CurveStyle(SKY, "<", "--"),
    "dopri8 forward": CurveStyle(BLUE, ">"),
    "dopri8 adjoint": CurveStyle(GREEN, "p"),
    "diffrax unrolled": CurveStyle(VIOLET, "v", "--"),
    "diffrax backsolve": CurveStyle(VIOLET, "D"),
    "torchdiffeq dopri5": CurveStyle(CRIMSON, "d"),
    "torchdiffeq dopri8": CurveStyle(CRIMSON, "p", "--"),
    "cvodes forward": CurveStyle(INK, "^"),
    "cvodes adjoint": CurveStyle(INK, "D"),
    "scipy differences": CurveStyle(RED, "s"),
    "jax custom_root": CurveStyle(GREEN, "^"),
    "jax unrolled": CurveStyle(GREEN, "<", "--"),
    "torch unrolled": CurveStyle(ORANGE, ">", "--"),
    "casadi rootfinder": CurveStyle(PURPLE, "P"),
    "advect implicit_root": CurveStyle(BROWN, "d"),
}
SMALLEST, LARGEST, REFUSED = 1e-17, 10.0, 300.0
"""The range of errors; further ones lie on its ends, and what has no result beyond."""


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the errors at the smallest tolerance by problem, and medians against the tolerance."""
    problems = list(dict.fromkeys(str(row["problem"]) for row in rows))
    ways = [way for way in STYLES if any(row["way"] == way for row in rows)]
    ways += sorted({str(row["way"]) for row in rows} - set(ways))
    height = max(1.9 + 0.21 * len(problems), 1.8 + 0.19 * len(ways))
    canvas = titled_figure(
        height,
        "derivatives of solvers: relative error against the true derivative of the solution",
        "left: at the smallest tolerance · × beyond the line: refused, no convergence or too slow"
        " · right: median over the problems that every tolerance solves",
        left=1.9,
        right=1.75,
    )
    left, right = canvas.subplots(1, 2, gridspec_kw={"width_ratios": (2, 1), "wspace": 0.42})
    _errors(left, rows, problems, ways)
    _tolerances(right, rows, ways)
    return canvas


def _errors(
    axes: Axes, rows: Sequence[SweepRow], problems: Sequence[str], ways: Sequence[str]
) -> None:
    """Draw one dot for each problem and way."""
    smallest = min(number(row, "tolerance") or 0.0 for row in rows)
    axes.set(xscale="log", xlim=(SMALLEST / 2, REFUSED * 4), ylim=(len(problems) - 0.5, -0.5))
    ends = {SMALLEST: f"≤{power_tick(SMALLEST)}", LARGEST: f"≥{power_tick(LARGEST)}"}
    decades = {10.0**power: power_tick(10.0**power) for power in (-12, -8, -4)}
    ticks(axes.xaxis, ends | decades)  # none beyond the line
    axes.set_yticks(range(len(problems)), problems, fontsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True)
    axes.axvline(30.0, color=FAINT, lw=0.8)
    axes.set_xlabel("relative error of the derivative")
    for row in rows:
        if (number(row, "tolerance") or 0.0) != smallest:
            continue
        style = STYLES.get(str(row["way"]), OTHER_STYLE)
        position = problems.index(str(row["problem"]))
        spread = (ways.index(str(row["way"])) + 0.5) / len(ways) - 0.5
        error = number(row, "relative_error")
        if error is None:
            axes.plot(REFUSED, position + 0.7 * spread, "x", color=style.colour, ms=4, mew=1.0)
            continue
        x = min(max(error, SMALLEST), LARGEST)
        axes.plot(x, position + 0.7 * spread, style.marker, color=style.colour, ms=4.2)


def _tolerances(axes: Axes, rows: Sequence[SweepRow], ways: Sequence[str]) -> None:
    """Draw a curve for each way, labelled at its end."""
    axes.set(
        xscale="log", yscale="log", xlabel="tolerance of the solver", ylabel="median relative error"
    )
    axes.grid(visible=True)
    sizes = sorted({number(row, "tolerance") or 0.0 for row in rows})
    labels = []
    for way in ways:
        errors = {
            size: {
                str(row["problem"]): number(row, "relative_error")
                for row in rows
                if row["way"] == way and number(row, "tolerance") == size
            }
            for size in sizes
        }
        own = [size for size in sizes if errors[size]]
        solved = [
            name
            for name in errors[own[0]]
            if all(errors[size].get(name) is not None for size in own)
        ]
        style = STYLES.get(way, OTHER_STYLE)
        if not solved:
            continue
        curve = [
            max(median([errors[size][name] or 0.0 for name in solved]), SMALLEST) for size in own
        ]
        plot_curve(axes, own, curve, style)
        labels.append(Label(way, sizes[-1], curve[-1], style.colour, style.marker))
    axes.set_xlim(sizes[0] / 3, sizes[-1] * 1.5)
    label_ends(axes, labels)

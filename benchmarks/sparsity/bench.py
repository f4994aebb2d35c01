"""Sparse Jacobians: exactness of the pattern, sweeps against a lower bound, and cost.

The truth is NumPy's, by complex steps at random points. An entry that a package misses makes its
Jacobian wrong; one that it adds costs work. A coloring of columns needs as many sweeps as the
longest row has entries, one of rows as many as the longest column; ``bound`` is the smaller of the
two for the true pattern. A coloring of both at once may stay below it. Every package runs in a
process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.dot_chart import legend, name_lines, panel
from benchmarks.sparsity.problems import PROBLEMS, jacobian, true_pattern
from benchmarks.sparsity.tools import PACKAGES, TOOLS
from difflab.bench.pictures import picture
from difflab.core.optional import absence
from difflab.core.worker import Handlers, ReportProgress, Worker
from difflab.errors import DifflabError, UnsupportedError
from difflab.lab import provenance
from difflab.lab.outcomes import attempted
from difflab.lab.sampling import TimeSampler
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.methods.timer import elapsed
from difflab.report.canvas import INK, titled_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LAYOUT", "draw", "handlers", "measured", "tasks"]

LAYOUT = provenance.layout(
    {
        "problem": str,
        "inputs": int,
        "tool": str,
        "status": str,
        "message": str,
        "nonzeros": int,
        "missing": int,
        "added": int,
        "forward": int,
        "reverse": int,
        "bound": int,
        "detect_seconds": float,
        "color_seconds": float,
        "call_seconds": float,
        "ratio": float,
    },
    key=("problem", "inputs", "tool"),
)
SIZES = (64, 1024)
"""Of the inputs; a square number for the grid."""
NEAR = 1e-10
"""The largest error of an entry."""


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every problem, size and package; `quick` takes the small size."""
    timeouts: dict[str, str] = {}
    for n in SIZES[:1] if quick else SIZES:
        for problem in PROBLEMS:
            for tool in TOOLS:
                key: dict[str, Cell] = {"problem": problem, "inputs": n, "tool": tool}
                uses = PACKAGES.get(tool, (tool,))
                source = provenance.source(uses=uses, timeout=timeout, measured_by=__name__)
                take = partial(_apart, tool, problem, n, timeout)
                what = f"{problem} of {tool}"
                row = partial(attempted, take, timeouts, what, what)
                yield Task(key, lambda row=row: {"message": "", **row()}, source)  # type: ignore[misc]


def _apart(tool: str, problem: str, n: int, timeout: float) -> dict[str, Cell]:
    """Measure in a process of its own."""
    missing = None if tool == "difflab" else absence(tool)
    if missing is not None:
        raise UnsupportedError(missing)
    worker = Worker(__name__, tool)
    try:
        limit = 120 + 10 * timeout  # importing and compiling are not what is measured
        found: dict[str, Cell] = worker.request("measured", problem, n, timeout, timeout=limit)
    finally:
        worker.stop()
    return found


def handlers(report: ReportProgress, tool: str) -> Handlers:
    """Return the handlers of a package's process."""
    return {"measured": partial(measured, tool)}


def measured(tool: str, problem: str, n: int, timeout: float) -> dict[str, Cell]:
    """Return the columns of a package for a problem.

    Raises
    ------
    DifflabError
        An entry of its Jacobian is wrong.
    """
    truth = true_pattern(problem, n)
    x = np.random.default_rng(0).uniform(0.5, 1.5, n)
    TOOLS[tool](problem, x)  # imports
    found = TOOLS[tool](problem, x)
    error = np.abs(found.entries(found.call(x)) - jacobian(problem, x)).max()
    if not error <= NEAR:
        raise DifflabError(f"an entry of the Jacobian of {tool} is wrong by {error:.3g}")
    pattern = found.pattern.toarray()
    sampler = TimeSampler(lambda repeats: elapsed(lambda: found.call(x), repeats), timeout / 10)
    for _ in range(9):
        sampler.take()
    bound = min(int(truth.sum(axis=axis).max()) for axis in (0, 1))
    sweeps = None if found.forward is None else found.forward + (found.reverse or 0)
    return {
        "status": "ok",
        "nonzeros": int(pattern.sum()),
        "missing": int((truth & ~pattern).sum()),
        "added": int((pattern & ~truth).sum()),
        "forward": found.forward,
        "reverse": found.reverse,
        "bound": bound,
        "detect_seconds": found.detect_seconds,
        "color_seconds": found.color_seconds,
        "call_seconds": min(sampler.samples),
        "ratio": None if sweeps is None else sweeps / bound,
        "repetitions": len(sampler.samples),
    }


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the sweeps of each package over the lower bound."""
    shown = list(dict.fromkeys(f"{row['problem']}, {row['inputs']}" for row in rows))
    height = 1.9 + 0.4 * len(shown)
    canvas = titled_figure(
        (10.0, height),
        "Coloring of sparse Jacobians",
        "sweeps over the lower bound for one direction · Jacobians were correct",
    )
    axes = canvas.add_axes((0.3, 0.55 / height, 0.66, 1 - 1.6 / height))
    panel(axes, rows, shown, lambda row: f"{row['problem']}, {row['inputs']}", "ratio")
    axes.axvline(1, color=INK, lw=0.9, ls="--", zorder=1)
    name_lines(axes, shown)
    legend(axes, rows)
    return canvas

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

from benchmarks.beside import tool_tasks
from benchmarks.dot_chart import ratio_chart
from benchmarks.sparsity.problems import PROBLEMS, jacobian, true_pattern
from benchmarks.sparsity.tools import PACKAGES, TOOLS
from difflab.bench.shared import picture
from difflab.core.worker import Handlers, ReportProgress, Worker
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.sampling import TimeSampler
from difflab.lab.sweep import Row, SweepRow, Task
from difflab.methods.timer import elapsed

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
            yield from tool_tasks(
                {"problem": problem, "inputs": n},
                {tool: partial(_apart, tool, problem, n, timeout) for tool in TOOLS},
                lambda tool: provenance.source(
                    uses=PACKAGES.get(tool, (tool,)), timeout=timeout, measured_by=__name__
                ),
                timeouts,
            )


def _apart(tool: str, problem: str, n: int, timeout: float) -> Row:
    """Measure in a process of its own."""
    limit = 120 + 10 * timeout  # importing and compiling are not what is measured
    with Worker(__name__, tool) as worker:
        found: Row = worker.request("measured", problem, n, timeout, timeout=limit)
    return found


def handlers(report: ReportProgress, tool: str) -> Handlers:
    """Return the handlers of a package's process."""
    return {"measured": partial(measured, tool)}


def measured(tool: str, problem: str, n: int, timeout: float) -> Row:
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
    titles = (
        "coloring of sparse Jacobians",
        "sweeps over the lower bound for one direction · Jacobians were correct",
    )
    labels = {_problem(row): _problem(row) for row in rows}
    label = "sweeps over the lower bound"
    return ratio_chart(rows, _problem, labels, titles, label)[0]


def _problem(row: SweepRow) -> str:
    return f"{row['problem']}, {row['inputs']}"

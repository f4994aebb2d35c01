"""Time to solve ODEs to a tolerance, by Taylor's method beside heyoka, diffrax and torchdiffeq.

The states at the end are judged first: against the truth of ``bench solvers``, or for the outer
solar system against difflab's other method, DOP853. Calls of difflab and of the other package are
then timed in turns. Code is compiled before: difflab by `jit`, diffrax by ``jax.jit``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import difflab as dl
from benchmarks.beside import OWN, TIMED, in_turns, tool_tasks
from benchmarks.dot_chart import own_figures, ratio_chart
from benchmarks.ivp.tools import CASES, TOOLS, Case, require_near
from difflab.bench.shared import picture
from difflab.lab import provenance
from difflab.lab.sweep import Row, SweepRow, Task

if TYPE_CHECKING:
    from typing import Any

    from matplotlib.figure import Figure

__all__ = ["LAYOUT", "draw", "tasks"]

LAYOUT = provenance.layout(
    {
        "problem": str,
        "tool": str,
        "status": str,
        "message": str,
        "error": float,
        "steps": int,
        "prepare_seconds": float,
        "call_seconds": float,
        **TIMED,
    },
    key=("problem", "tool"),
)

TOLERANCE = 1e-12
CLOSEST = 1e-15
"""The tolerance for the outer solar system, heyoka's own example."""
WRONG = 1e-3
"""The relative error at which a time means nothing; chaos multiplies the tolerance by 1e5."""


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every problem and package; `quick` takes the first three problems."""
    timeouts: dict[str, str] = {}
    for name in list(CASES)[: 3 if quick else None]:
        yield from tool_tasks(
            {"problem": name},
            {tool: partial(_timed, name, tool, timeout) for tool in TOOLS},
            lambda _: provenance.source(timeout=timeout, measured_by=__name__),
            timeouts,
        )


def _timed(name: str, tool: str, timeout: float) -> Row:
    """Time the calls of difflab and of a package in turns."""
    case = CASES[name]
    tolerance = TOLERANCE if case.problem is not None else CLOSEST
    own = TOOLS[OWN](case, tolerance)
    start = perf_counter()
    ready = TOOLS[tool](case, tolerance)
    found = ready.call()
    prepared = perf_counter() - start
    error = require_near(found, _expected(case), WRONG)
    row = in_turns(own.call, ready.call, prepared, timeout)
    return {**row, "error": error, "steps": ready.steps}


def _expected(case: Case) -> Any:
    truth = case.truth()
    if truth is not None:
        return truth
    found = dl.solve.ivp(
        lambda t, y: case.rate(np, t, y), case.span, case.y0, method="dopri8", rtol=1e-14,
        atol=1e-14,
    )  # fmt: skip
    return np.ravel(found.y[..., -1])


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw each package's time over difflab's."""
    titles = (
        "initial value problems to a relative tolerance of 1e-12",
        "time over that of difflab's Taylor series · states were judged before they were timed",
    )
    labels = own_figures(rows, _problem)
    label = "time over difflab's"
    return ratio_chart(rows, _problem, labels, titles, label, line=0.3)[0]


def _problem(row: SweepRow) -> str:
    return str(row["problem"])

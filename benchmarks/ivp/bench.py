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
from benchmarks.dot_chart import legend, name_lines, number, panel
from benchmarks.ivp.tools import CASES, TOOLS, Case, require_near
from difflab.bench.peers.bench import ratio_columns
from difflab.bench.pictures import picture
from difflab.core.optional import absence
from difflab.core.quantities import seconds
from difflab.errors import UnsupportedError
from difflab.lab import provenance
from difflab.lab.outcomes import attempted
from difflab.lab.sampling import paired
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.report.canvas import INK, titled_figure
from difflab.report.style import clean

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
        "difflab_seconds": float,
        "ratio": float,
        "ratio_low": float,
        "ratio_high": float,
    },
    key=("problem", "tool"),
)

TOLERANCE = 1e-12
CLOSEST = 1e-15
"""The tolerance for the outer solar system, heyoka's own example."""
WRONG = 1e-3
"""The relative error at which a time means nothing; chaos multiplies the tolerance by 1e5."""
OWN = "difflab"


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every problem and package; `quick` takes the first three problems."""
    timeouts: dict[str, str] = {}
    for name in list(CASES)[: 3 if quick else None]:
        for tool in TOOLS:
            key: dict[str, Cell] = {"problem": name, "tool": tool}
            source = provenance.source(None, timeout=timeout, measured_by=__name__)
            what = f"{name} by {tool}"
            row = partial(attempted, partial(_timed, name, tool, timeout), timeouts, what, what)
            yield Task(key, lambda row=row: {"message": "", **row()}, source)  # type: ignore[misc]


def _timed(name: str, tool: str, timeout: float) -> dict[str, Cell]:
    """Time the calls of difflab and of a package in turns."""
    missing = None if tool == OWN else absence(tool)
    if missing is not None:
        raise UnsupportedError(missing)
    case = CASES[name]
    tolerance = TOLERANCE if case.problem is not None else CLOSEST
    own = TOOLS[OWN](case, tolerance)
    start = perf_counter()
    ready = TOOLS[tool](case, tolerance)
    found = ready.call()
    prepared = perf_counter() - start
    error = require_near(found, _expected(case), WRONG)
    pairs = paired(own.call, ready.call, budget=timeout)
    row: dict[str, Cell] = {"status": "ok", "prepare_seconds": prepared, "error": error}
    return {**row, "steps": ready.steps, **ratio_columns(pairs)}


def _expected(case: Case) -> Any:
    truth = case.truth()
    if truth is not None:
        return truth
    found = dl.solve.ivp(
        lambda t, y: case.rate(np, t, y), case.span, case.y0, method="dopri8", rtol=1e-14,
        atol=1e-14,
    )  # fmt: skip
    return np.ravel(found.y[..., -1])


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw each package's time over difflab's."""
    own = {str(row["problem"]): row for row in rows if row["tool"] == OWN}
    height = 1.9 + 0.3 * len(own)
    canvas = titled_figure(
        (10.0, height),
        "initial value problems to a relative tolerance of 1e-12",
        "time over that of difflab's Taylor series · states were judged before they were timed",
    )
    axes = canvas.add_axes((0.34, 0.55 / height, 0.62, 1 - 1.6 / height))
    panel(axes, rows, list(own), lambda row: str(row["problem"]), "ratio")
    axes.axvline(1, color=INK, lw=0.9, ls="--", zorder=1)
    name_lines(axes, [_label(name, row) for name, row in own.items()])
    axes.xaxis.set_major_formatter("{x:g}")
    legend(axes, rows)
    return canvas


def _label(name: str, row: SweepRow) -> str:
    """Return a problem with difflab's own time."""
    call = number(row, "call_seconds")
    return clean(name if call is None else f"{name}: {seconds(call)}")

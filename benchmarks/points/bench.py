"""Derivatives of scalar code at one point, in given memory, beside CasADi's buffer and heyoka.

A result is compared with difflab's before anything is timed. Calls of difflab and of the other
package are timed in turns, and the ratio of each pair of times is reported. Each is called as in
a loop of a million calls, by its fastest call, which the column ``call_form`` states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.beside import OWN, TIMED, in_turns, require_same, tool_tasks
from benchmarks.dot_chart import own_figures, ratio_chart
from benchmarks.points.programs import CASES
from benchmarks.points.tools import TOOLS
from difflab.bench.shared import picture
from difflab.lab import provenance
from difflab.lab.record import cell_types
from difflab.lab.sweep import Row, SweepRow, Task
from difflab.methods.registry import peers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LAYOUT", "draw", "tasks"]

LAYOUT = provenance.layout(
    {
        "measure": str,
        "points": int,
        "tool": str,
        **cell_types("status", "message"),
        **cell_types("prepare_seconds", "call_seconds", "call_form"),
        **TIMED,
    },
    key=("measure", "points", "tool"),
)

NEAR = 1e-12
"""The largest relative difference of two results."""


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every derivative and package; `quick` takes those at one point."""
    timeouts: dict[str, str] = {}
    for measure, case in CASES.items():
        if quick and case.points > 1:
            continue
        yield from tool_tasks(
            {"measure": measure, "points": case.points},
            {tool: partial(_timed, measure, tool, timeout) for tool in TOOLS},
            lambda tool: provenance.source(
                peers().get(tool), timeout=timeout, measured_by=__name__
            ),
            timeouts,
        )


def _timed(measure: str, tool: str, timeout: float) -> Row:
    """Time the calls of difflab and of a package in turns."""
    case = CASES[measure]
    own = TOOLS[OWN](case)
    own.call()
    expected = own.result().reshape(-1)
    start = perf_counter()
    ready = TOOLS[tool](case)
    ready.call()
    prepared = perf_counter() - start
    require_same(tool, ready.result().reshape(-1), expected, NEAR)
    row = in_turns(own.call, ready.call, prepared, timeout)
    return {**row, "call_form": ready.call.form}


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw each package's time over difflab's."""
    titles = (
        "scalar code at one point and at a million",
        "time over difflab's, each by its fastest call · results were equal before they were timed",
    )
    labels = own_figures(rows, _measure)
    label = "time over difflab's"
    return ratio_chart(rows, _measure, labels, titles, label)[0]


def _measure(row: SweepRow) -> str:
    return str(row["measure"])

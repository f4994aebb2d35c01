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

import numpy as np

from benchmarks.dot_chart import legend, name_lines, number, panel
from benchmarks.points.programs import CASES
from benchmarks.points.tools import TOOLS
from difflab.bench.peers.bench import ratio_columns
from difflab.bench.pictures import picture
from difflab.core.optional import absence
from difflab.core.quantities import seconds
from difflab.errors import DifflabError, UnsupportedError
from difflab.lab import provenance
from difflab.lab.outcomes import attempted
from difflab.lab.record import cell_types
from difflab.lab.sampling import paired
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.methods.registry import peers
from difflab.report.canvas import INK, titled_figure
from difflab.report.style import clean

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
        "difflab_seconds": float,
        "ratio": float,
        "ratio_low": float,
        "ratio_high": float,
    },
    key=("measure", "points", "tool"),
)

NEAR = 1e-12
"""The largest relative difference of two results."""
OWN = "difflab"


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every derivative and package; `quick` takes those at one point."""
    timeouts: dict[str, str] = {}
    for measure, case in CASES.items():
        if quick and case.points > 1:
            continue
        for tool in TOOLS:
            key: dict[str, Cell] = {"measure": measure, "points": case.points, "tool": tool}
            peer = None if tool == OWN else peers().get(tool)
            source = provenance.source(peer, timeout=timeout, measured_by=__name__)
            take = partial(_timed, measure, tool, timeout)
            what = f"{measure} of {tool}"
            row = partial(attempted, take, timeouts, what, what)
            yield Task(key, lambda row=row: {"message": "", **row()}, source)  # type: ignore[misc]


def _timed(measure: str, tool: str, timeout: float) -> dict[str, Cell]:
    """Time the calls of difflab and of a package in turns."""
    missing = None if tool == OWN else absence(tool)
    if missing is not None:
        raise UnsupportedError(missing)
    case = CASES[measure]
    own = TOOLS[OWN](case)
    own.call()
    expected = own.result().reshape(-1)
    start = perf_counter()
    ready = TOOLS[tool](case)
    ready.call()
    prepared = perf_counter() - start
    found = ready.result().reshape(-1)
    scale = float(np.max(np.abs(expected)))
    if found.shape != expected.shape or not np.allclose(found, expected, 0, NEAR * scale):
        raise DifflabError(f"{tool} and difflab differ: {found[:3]} and {expected[:3]}")
    pairs = paired(own.call, ready.call, budget=timeout)
    row: dict[str, Cell] = {"status": "ok", "prepare_seconds": prepared}
    return {**row, "call_form": ready.call.form, **ratio_columns(pairs)}


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw each package's time over difflab's."""
    own = {str(row["measure"]): row for row in rows if row["tool"] == OWN}
    height = 1.9 + 0.4 * len(own)
    canvas = titled_figure(
        (10.0, height),
        "scalar code at one point and at a million",
        "time over difflab's, each by its fastest call · results were equal before they were timed",
    )
    axes = canvas.add_axes((0.34, 0.55 / height, 0.62, 1 - 1.6 / height))
    panel(axes, rows, list(own), lambda row: str(row["measure"]), "ratio")
    axes.axvline(1, color=INK, lw=0.9, ls="--", zorder=1)
    name_lines(axes, [_label(name, row) for name, row in own.items()])
    axes.xaxis.set_major_formatter("{x:g}")
    legend(axes, rows)
    return canvas


def _label(name: str, row: SweepRow) -> str:
    """Return a derivative with difflab's own time."""
    call = number(row, "call_seconds")
    return clean(name if call is None else f"{name}: {seconds(call)}")

"""Python code as graphs, beside JAX and PyTorch: calls of `jit`, scans, forward mode, memory.

A result is compared with difflab's before anything is timed. Calls of difflab and of the other
tool are timed in turns, and the ratio of each pair of times is reported; ``compiled`` is the
compiled function that a call of `jit` ends in. Memory is that of a compiled gradient in a process
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.beside import TIMED, in_turns, require_same, tool_tasks
from benchmarks.dot_chart import own_figures, ratio_chart
from benchmarks.graphs.programs import MEASURES
from difflab.bench.shared import picture
from difflab.core.system import environment_variables
from difflab.core.worker import Worker
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.record import cell_types
from difflab.lab.sweep import Row, SweepRow, Task, number
from difflab.methods.peers.jax import double
from difflab.methods.registry import peers
from difflab.methods.timer import FREED_AT_ONCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LAYOUT", "STEPS", "draw", "tasks"]

LAYOUT = provenance.layout(
    {
        "measure": str,
        "steps": int,
        "tool": str,
        **cell_types("status", "message"),
        **cell_types("prepare_seconds", "call_seconds"),
        **TIMED,
        "peak_bytes": int,
    },
    key=("measure", "steps", "tool"),
)

STEPS = {"scan": 8192, "scan gradient": 8192}
"""Of the loops."""
CHAIN = 64
"""Steps of the chain whose memory is measured."""
NEAR = 1e-10
"""The largest relative difference of two results."""


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every measure and tool; `quick` takes an eighth of the steps."""
    timeouts: dict[str, str] = {}
    for measure, steps, measures in _measures(quick, timeout):
        yield from tool_tasks(
            {"measure": measure, "steps": steps},
            measures,
            lambda tool: provenance.source(
                peers().get(tool), timeout=timeout, measured_by=__name__
            ),
            timeouts,
        )


def _measures(
    quick: bool, timeout: float
) -> Iterator[tuple[str, int, Mapping[str, Callable[[], Row]]]]:
    """Yield each measure with its steps, and for each tool what measures it."""
    for measure, tools in MEASURES.items():
        steps = STEPS.get(measure, 1) // (8 if quick and measure in STEPS else 1)
        yield measure, steps, {t: partial(_timed, measure, t, steps, timeout) for t in tools}
    chain = CHAIN // 4 if quick else CHAIN
    for strategy in ("plain", "checkpoints"):
        held = {t: partial(_held, strategy, t, chain, timeout) for t in ("difflab", "jax", "torch")}
        yield f"memory, {strategy}", chain, held


def _timed(measure: str, tool: str, steps: int, timeout: float) -> Row:
    """Time the calls of difflab and of a tool in turns."""
    tools = MEASURES[measure]
    own = tools["difflab"](steps)
    expected = own.result(own.call())
    with _precision(tool):
        start = perf_counter()
        ready = tools[tool](steps)
        found = ready.result(ready.call())  # compiles, where a tool does
        prepared = perf_counter() - start
        require_same(tool, found, expected, NEAR)
        return in_turns(own.call, ready.call, prepared, timeout)


def _precision(tool: str) -> AbstractContextManager[None]:
    """Return the context in which a tool computes in float64."""
    return double() if tool == "jax" else nullcontext()


def _held(strategy: str, tool: str, steps: int, timeout: float) -> Row:
    """Measure the memory of a gradient."""
    own, expected = _measured(strategy, "difflab", steps, timeout)
    peak, total = _measured(strategy, tool, steps, timeout)
    if not abs(total - expected) <= NEAR * abs(expected):
        raise DifflabError(f"the gradients of {tool} and difflab add up to {total} and {expected}")
    return {"status": "ok", "peak_bytes": peak, "ratio": peak / own, "repetitions": 1}


@cache
def _measured(strategy: str, tool: str, steps: int, timeout: float) -> tuple[int, float]:
    """Return the peak of memory and the sum of a gradient, from a process of its own."""
    limit = 120 + 10 * timeout  # importing and compiling are not what is measured
    with environment_variables(FREED_AT_ONCE), Worker("benchmarks.graphs.memory") as worker:
        found: tuple[int, float] = worker.request("held", tool, strategy, steps, timeout=limit)
    return found


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw each tool's time or memory over difflab's."""
    titles = (
        "Python code as graphs",
        "time or memory over difflab's · results were equal before they were timed",
    )
    labels = own_figures(rows, _measure)
    label = "time or memory over difflab's"
    canvas, axes = ratio_chart(rows, _measure, labels, titles, label, right=2.95)
    for place, measure in enumerate(labels):
        text = _ratios(row for row in rows if row["measure"] == measure)
        at = (1.02, place)
        axes.annotate(text, at, xycoords=axes.get_yaxis_transform(), va="center", fontsize=9)
    return canvas


def _measure(row: SweepRow) -> str:
    return str(row["measure"])


def _ratios(rows: Iterable[SweepRow]) -> str:
    """Return the ratios of the other tools in one line, since their marks may cover each other."""
    known = [(row["tool"], number(row, "ratio")) for row in rows if row["tool"] != "difflab"]
    return " · ".join(f"{tool} {value:.3g}×" for tool, value in known if value is not None)

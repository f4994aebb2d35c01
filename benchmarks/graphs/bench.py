"""Python code as graphs, beside JAX and PyTorch: calls of `jit`, scans, forward mode, memory.

A result is compared with difflab's before anything is timed. Calls of difflab and of the other
tool are timed in turns, and the ratio of each pair of times is reported; ``compiled`` is the
compiled function that a call of `jit` ends in. Memory is that of a compiled gradient in a process
of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from pathlib import Path
from subprocess import TimeoutExpired, run
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.dot_chart import legend, name_lines, number, panel
from benchmarks.graphs.memory import ENVIRONMENT
from benchmarks.graphs.programs import MEASURES
from difflab.bench.peers.bench import ratio_columns
from difflab.bench.pictures import picture
from difflab.core.optional import absence
from difflab.core.quantities import bytes_text, seconds
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError
from difflab.lab import provenance
from difflab.lab.outcomes import attempted
from difflab.lab.record import cell_types
from difflab.lab.sampling import paired
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.methods.peers.jax import double
from difflab.methods.registry import peers
from difflab.report.canvas import INK, titled_figure
from difflab.report.style import clean

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
        "difflab_seconds": float,
        "ratio": float,
        "ratio_low": float,
        "ratio_high": float,
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
OWN = ("difflab", "compiled")


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every measure and tool; `quick` takes an eighth of the steps."""
    timeouts: dict[str, str] = {}
    for measure, tools in MEASURES.items():
        steps = STEPS.get(measure, 1) // (8 if quick and measure in STEPS else 1)
        for tool in tools:
            take = partial(_timed, measure, tool, steps, timeout)
            yield _task(measure, steps, tool, take, timeout, timeouts)
    for strategy in ("plain", "checkpoints"):
        for tool in ("difflab", "jax", "torch"):
            chain = CHAIN // 4 if quick else CHAIN
            take = partial(_held, strategy, tool, chain, timeout)
            yield _task(f"memory, {strategy}", chain, tool, take, timeout, timeouts)


def _task(
    measure: str,
    steps: int,
    tool: str,
    take: partial[dict[str, Cell]],
    timeout: float,
    timeouts: dict[str, str],
) -> Task:
    key: dict[str, Cell] = {"measure": measure, "steps": steps, "tool": tool}
    source = provenance.source(
        None if tool in OWN else peers().get(tool), timeout=timeout, measured_by=__name__
    )
    what = f"{measure} of {tool}"
    return Task(key, lambda: {"message": "", **attempted(take, timeouts, what, what)}, source)


def _require(tool: str) -> None:
    """Raise `UnsupportedError` if a package is not installed."""
    missing = None if tool in OWN else absence(tool)
    if missing is not None:
        raise UnsupportedError(missing)


def _timed(measure: str, tool: str, steps: int, timeout: float) -> dict[str, Cell]:
    """Time the calls of difflab and of a tool in turns."""
    _require(tool)
    tools = MEASURES[measure]
    own = tools["difflab"](steps)
    expected = own.result(own.call())
    with _precision(tool):
        start = perf_counter()
        ready = tools[tool](steps)
        found = ready.result(ready.call())  # compiles, where a tool does
        prepared = perf_counter() - start
        scale = float(np.max(np.abs(expected)))
        if found.shape != expected.shape or not np.allclose(found, expected, 0, NEAR * scale):
            raise DifflabError(f"{tool} and difflab differ: {found[:3]} and {expected[:3]}")
        pairs = paired(own.call, ready.call, budget=timeout)
    return {"status": "ok", "prepare_seconds": prepared, **ratio_columns(pairs)}


def _precision(tool: str) -> AbstractContextManager[None]:
    """Return the context in which a tool computes in float64."""
    return double() if tool == "jax" else nullcontext()


def _held(strategy: str, tool: str, steps: int, timeout: float) -> dict[str, Cell]:
    """Measure the memory of a gradient."""
    _require(tool)
    own, expected = _measured(strategy, "difflab", steps, timeout)
    peak, total = _measured(strategy, tool, steps, timeout)
    if not abs(total - expected) <= NEAR * abs(expected):
        raise DifflabError(f"the gradients of {tool} and difflab add up to {total} and {expected}")
    return {"status": "ok", "peak_bytes": peak, "ratio": peak / own, "repetitions": 1}


@cache
def _measured(strategy: str, tool: str, steps: int, timeout: float) -> tuple[int, float]:
    """Return the peak of memory and the sum of a gradient, from a process of its own."""
    if not sys.platform.startswith("linux"):
        raise UnsupportedError("the peak of resident memory is reset by Linux only")
    command = [sys.executable, "-m", "benchmarks.graphs.memory", tool, strategy, str(steps)]
    limit = 120 + 10 * timeout  # importing and compiling are not what is measured
    try:
        done = run(
            command,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except TimeoutExpired:
        raise MethodTimeout(f"stopped after {limit:g} s") from None
    if done.returncode:
        raise DifflabError(f"{tool} failed: {done.stderr.strip().splitlines()[-1:]}")
    peak, total = done.stdout.split()[-2:]
    return int(peak), float(total)


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw each tool's time or memory over difflab's."""
    own = {str(row["measure"]): row for row in rows if row["tool"] == "difflab"}
    height = 1.9 + 0.4 * len(own)
    canvas = titled_figure(
        (10.0, height),
        "Python code as graphs",
        "time or memory over difflab's · results were equal before they were timed",
    )
    axes = canvas.add_axes((0.3, 0.62 / height, 0.4, 1 - 1.67 / height))
    panel(axes, rows, list(own), lambda row: str(row["measure"]), "ratio")
    axes.axvline(1, color=INK, lw=0.9, ls="--", zorder=1)
    name_lines(axes, [_label(name, row) for name, row in own.items()])
    axes.xaxis.set_major_formatter("{x:g}×")
    axes.set_xlabel("over difflab's time or memory, logarithmic", loc="left")
    for place, measure in enumerate(own):
        text = _ratios(row for row in rows if row["measure"] == measure)
        at = (1.02, place)
        axes.annotate(text, at, xycoords=axes.get_yaxis_transform(), va="center", fontsize=9)
    legend(axes, rows)
    return canvas


def _ratios(rows: Iterable[SweepRow]) -> str:
    """Return the ratios of the other tools in one line, since their marks may cover each other."""
    known = [(row["tool"], number(row, "ratio")) for row in rows if row["tool"] != "difflab"]
    return " · ".join(f"{tool} {value:.3g}×" for tool, value in known if value is not None)


def _label(name: str, row: SweepRow) -> str:
    """Return a measure with difflab's own figure."""
    held, call = number(row, "peak_bytes"), number(row, "call_seconds")
    shown = "" if call is None else seconds(call)
    return clean(f"{name}: {shown if held is None else bytes_text(held)}")

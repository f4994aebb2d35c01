"""GradBench: its evals questioning difflab and other tools, one after the other on this machine.

Only timings called ``evaluate`` count, as in GradBench, which adds up the means over runs; the
shortest run is what remains of a tool that compiles in its first one. difflab's preparation is a
column of its own. Every answer is judged by the eval, and by a stricter comparison with its golden
answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.gradbench.checkout import EVALS, TOOLS, Checkout, PublishedTime, published
from benchmarks.gradbench.drawing import draw
from benchmarks.gradbench.session import Evaluation, GoldenAnswers, Session, session
from difflab.errors import InputError
from difflab.lab import provenance
from difflab.lab.sweep import Cell, Row, Task, together

__all__ = ["LAYOUT", "TOLERANCE", "chosen_tools", "draw", "tasks"]

LAYOUT = provenance.layout(
    {
        "eval": str,
        "function": str,
        "sizes": str,
        "tool": str,
        "origin": str,
        "status": str,
        "workloads": int,
        "valid": int,
        "inexact": int,
        "mean_seconds": float,
        "best_seconds": float,
        "prepare_seconds": float,
        "difference": float,
        "message": str,
    },
    key=("eval", "function", "sizes", "tool", "origin"),
)
TOLERANCE = 1e-10
"""The largest relative difference of an exact answer from the golden one; GradBench allows 1e-4."""
ANOTHER_FUNCTION = ("ode", "gradient")
"""Its golden answer is the gradient of the exact solution, not that of the steps."""


def chosen_tools(checkout: Checkout, names: Sequence[str] | None) -> list[str]:
    """Return the tools to measure: the named ones, or all that can run.

    Raises
    ------
    InputError
        There is no such tool.
    """
    for name in names or ():
        if name not in TOOLS:
            raise InputError(f"there is no tool '{name}'", hint=f"one of {', '.join(TOOLS)}")
    if names is not None:
        return list(dict.fromkeys(["difflab", *names]))
    return [name for name in TOOLS if checkout.lacks(name) is None]


def tasks(
    checkout: Checkout,
    evals: Sequence[str],
    tools: Sequence[str],
    figures: Path | None = None,
    *,
    quick: bool = False,
    timeout: float = 600.0,
) -> Iterator[Task]:
    """Yield a task for every function of an eval and tool; its first function measures all.

    Parameters
    ----------
    checkout : Checkout
        GradBench.
    evals, tools : sequence of str
        What is measured.
    figures : pathlib.Path, optional
        The folder of published figures, which are rows as well.
    quick : bool
        Whether to ask for the sizes of `Eval.quick` instead of GradBench's own.
    timeout : float
        Seconds for one answer.
    """
    known = [] if figures is None else published(figures)
    sizes = "quick" if quick else "full"
    for name in evals:
        for tool in tools:
            source = provenance.source(timeout=timeout, measured_by=__name__)
            key: Row = {"eval": name, "function": "", "sizes": sizes}
            key |= {"tool": tool, "origin": "measured"}
            measure = partial(_rows, checkout, name, tool, quick, timeout)
            functions = dict.fromkeys(EVALS[name].functions, source)
            yield from together(key, functions, measure, "function")
        for time in (time for time in known if time.eval == name):
            key = {"eval": name, "function": time.function, "sizes": "full"}
            key |= {"tool": time.tool, "origin": "published"}
            yield Task(key, partial(_published_row, time), {"packages": time.source})


def _measured(checkout: Checkout, name: str, tool: str, quick: bool, timeout: float) -> Session:
    absent = checkout.lacks(tool)
    if absent is not None:
        return Session(error=absent)
    asking = checkout.eval_command(name, quick=quick)
    with closing(GoldenAnswers(asking, checkout.root)) as golden:

        def expected(function: str, question: Any) -> Any:
            return None if (name, function) == ANOTHER_FUNCTION else golden(function, question)

        command = checkout.tool_command(tool)
        return session(asking, command, checkout.root, timeout, expected)


def _rows(checkout: Checkout, name: str, tool: str, quick: bool, timeout: float) -> dict[str, Row]:
    """Return the row of every function of an eval."""
    found = _measured(checkout, name, tool, quick, timeout)
    return {function: _row(found, function) for function in EVALS[name].functions}


def _row(found: Session, function: str) -> Row:
    """Return the sums over the workloads of a function."""
    asked = [entry for entry in found.evaluations if entry.function == function]
    statuses = [_status(entry) for entry in asked]
    timed = [
        entry for entry, status in zip(asked, statuses, strict=True) if status in ("ok", "inexact")
    ]
    messages = [entry.error for entry in asked if entry.error]
    row: Row = {
        "status": _worst(statuses, found.error),
        "workloads": len(asked),
        "valid": statuses.count("ok"),
        "inexact": statuses.count("inexact"),
        "message": found.error or (messages[0] if messages else ""),
    }
    if timed:
        row |= {
            "mean_seconds": math.fsum(math.fsum(e.seconds) / len(e.seconds) for e in timed),
            "best_seconds": math.fsum(min(entry.seconds) for entry in timed),
            "repetitions": sum(len(entry.seconds) for entry in timed),
        }
        if any(entry.prepare for entry in timed):
            row["prepare_seconds"] = math.fsum(sum(entry.prepare) for entry in timed)
        known = [entry.difference for entry in timed if entry.difference is not None]
        row["difference"] = max(known, default=None)
    return row


def _status(entry: Evaluation) -> str:
    if not entry.seconds or entry.valid is None:
        return "failed"
    if not entry.valid:
        return "invalid"
    return "inexact" if (entry.difference or 0.0) > TOLERANCE else "ok"


_ORDER = ("invalid", "failed", "inexact", "ok")


def _worst(statuses: Sequence[str], error: str) -> str:
    """Return the status of a row: the worst of its workloads'."""
    if error or not statuses:
        statuses = [*statuses, "failed"]
    return min(statuses, key=_ORDER.index)


def _published_row(time: PublishedTime) -> Mapping[str, Cell]:
    return {
        "status": "ok",
        "workloads": time.workloads,
        "mean_seconds": time.seconds,
        "message": time.source,
    }

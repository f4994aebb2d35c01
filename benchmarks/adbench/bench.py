"""ADBench: the time of a Jacobian over that of its objective, for difflab and its peers.

The tools of an instance are measured in turns, one sample of each after the other, so that a
disturbance affects all; a time is the smallest of its samples. Results are checked first: a tool
outside the suite's tolerance is not timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.adbench.answers import TOLERANCE, AdbenchAnswer, answered, difference, expected
from benchmarks.adbench.drawing import draw
from benchmarks.adbench.problems import PROBLEMS, AdbenchProblem, instances, load
from benchmarks.adbench.tools import TOOLS, Ready
from difflab.core.strict_json import strict
from difflab.errors import InputError, printable
from difflab.lab import provenance
from difflab.lab.environment import environment
from difflab.lab.sampling import SHORTEST, TimeSampler, spread
from difflab.lab.sweep import Cell, SweepRow, Task, together
from difflab.methods.timer import elapsed

__all__ = ["BUDGET", "LARGE", "LAYOUT", "ROUNDS", "chosen", "document", "draw", "tasks"]

LAYOUT = provenance.layout(
    {
        "problem": str,
        "instance": str,
        "data": str,
        "tool": str,
        "status": str,
        "against": str,
        "difference": float,
        "objective_seconds": float,
        "jacobian_seconds": float,
        "ratio": float,
        "prepare_seconds": float,
        "message": str,
    },
    key=("problem", "instance", "data", "tool"),
)
ROUNDS = 15
"""Samples of each tool's objective and Jacobian."""
BUDGET = 20.0
"""Seconds for an instance after which no further round starts; there is at least one."""
LARGE = 100_000
"""Most observations or points of an instance that is measured by default."""


def chosen(data: Path, names: Sequence[str], *, large: bool) -> list[str]:
    """Return the instances of some problems in a folder.

    Parameters
    ----------
    data : pathlib.Path
        The folder.
    names : sequence of str
        The problems: ``gmm``, ``ba``, ``lstm`` and ``hand``.
    large : bool
        Whether to include instances of more than `LARGE` points.

    Raises
    ------
    InputError
        There is no such problem, or there is no instance.
    """
    found = [instance for name in names for instance in instances(data, name)]
    if not found:
        raise InputError(
            f"{data} holds no instance of {', '.join(names) or 'nothing'}",
            hint="give the folder data of Microsoft ADBench with --data",
        )
    return [instance for instance in found if large or _size(instance) <= LARGE]


def _size(instance: str) -> float:
    """Return the number of points of an instance, read from its name."""
    if instance.startswith("gmm_"):
        text = instance.split("/")[0].split("_")[1]
        return float(text[:-1]) * {"k": 1e3, "M": 1e6}.get(text[-1], 1.0)
    name = Path(instance).stem
    return float(name.rsplit("_p", 1)[1]) if "_p" in name else 0.0


def tasks(data: Path, found: Sequence[str], tools: Sequence[str]) -> Iterator[Task]:
    """Yield a task for every instance and tool; the first of an instance measures all.

    Raises
    ------
    InputError
        There is no such tool.
    """
    for name in tools:
        if name not in TOOLS:
            raise InputError(f"there is no tool '{name}'", hint=f"one of {', '.join(TOOLS)}")
    sources = {
        name: provenance.source(TOOLS[name], timeout=BUDGET, measured_by=__name__) for name in tools
    }
    for instance in found:
        problem = next(name for name in PROBLEMS if instance.startswith(name))
        key = {"problem": problem, "instance": instance, "data": _digest(data, instance)}
        yield from together(key, sources, partial(_measured, data, instance, tools), "tool")


def _digest(data: Path, instance: str) -> str:
    """Return a hash of an instance's data: other folders may have another one of that name."""
    digest = sha256((data / instance).read_bytes())
    model = data / "hand" / "model"
    if instance.startswith("hand") and model.is_dir():
        for path in sorted(model.iterdir()):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def document(rows: Sequence[SweepRow]) -> dict[str, Any]:
    """Return the rows and the environment for strict JSON; non-finite numbers are strings."""
    return {"schema": "difflab.adbench/1", "rows": strict(rows), "environment": environment()}


def _measured(data: Path, instance: str, tools: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """Return a row for every tool."""
    problem = load(data, instance)
    rows: dict[str, dict[str, Cell]] = {name: {"status": "ok"} for name in tools}
    ready: dict[str, Ready] = {}
    answers: dict[str, AdbenchAnswer] = {}
    for name in tools:
        try:
            ready[name] = _prepared(name, problem, rows[name])
            answers[name] = answered(problem, ready[name].objective(), ready[name].jacobian())
        except Exception as error:  # a peer may fail in any way, which is a result
            ready.pop(name, None)
            text = printable(str(error).split("\n")[0]) or type(error).__name__
            rows[name] |= {"status": "failed", "message": text}
    _judged(expected(data, instance), answers, rows)
    right = {name: entry for name, entry in ready.items() if rows[name]["status"] == "ok"}
    for name, (objective, jacobian) in _timed(right).items():
        rows[name] |= {
            "objective_seconds": min(objective),
            "jacobian_seconds": min(jacobian),
            "ratio": min(jacobian) / min(objective),
            "repetitions": len(jacobian),
            "spread": spread(jacobian),
        }
    return rows


def _prepared(name: str, problem: AdbenchProblem, row: dict[str, Cell]) -> Ready:
    absent = TOOLS[name].missing()
    if absent:
        raise InputError(absent)
    start = perf_counter()
    ready = TOOLS[name].prepare(problem)
    row["prepare_seconds"] = perf_counter() - start
    return ready


def _judged(
    known: AdbenchAnswer | None,
    answers: Mapping[str, AdbenchAnswer],
    rows: Mapping[str, dict[str, Cell]],
) -> None:
    """Compare every result with the published one or, without one, with another tool's."""
    for name, answer in answers.items():
        others = [other for other in answers if other != name]
        against = "expected" if known else (others[-1] if others else "nothing")
        truth = known or (answers[against] if others else answer)
        apart = max(map(difference, answer, truth))
        rows[name] |= {"against": against, "difference": apart}
        if not apart < TOLERANCE:
            rows[name] |= {
                "status": "wrong",
                "message": f"its answers differ from {against} by {apart:.1e}",
            }


def _timed(ready: Mapping[str, Ready]) -> dict[str, tuple[list[float], list[float]]]:
    """Return the seconds of every objective and Jacobian, measured in turns."""
    samplers = {
        name: [
            TimeSampler(partial(elapsed, call), inf, SHORTEST)
            for call in (entry.objective, entry.jacobian)
        ]
        for name, entry in ready.items()
    }
    start = perf_counter()
    for done in range(ROUNDS):
        if done and perf_counter() - start > BUDGET:
            break
        for sampler in chain.from_iterable(samplers.values()):
            sampler.take()
    return {name: (first.samples, second.samples) for name, (first, second) in samplers.items()}

"""Operations and time of a Jacobian against its numbers of inputs and outputs.

Forward mode pays for every input and reverse mode for every output (Baydin et al. 2018, §3),
so for f: Rⁿ → Rᵐ there is a place where their costs cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import exp, log

import numpy as np

from difflab.bench.outcomes import outcome
from difflab.errors import MethodTimeout
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.lab import measure, provenance
from difflab.lab.problems import crossover
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.language import parse
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import installed

__all__ = ["FIXED", "LAYOUT", "SIZES", "crossing", "curve", "tasks"]

LAYOUT = provenance.layout(
    {
        "inputs": int,
        "outputs": int,
        "method": str,
        "status": str,
        "message": str,
        "function_operations": int,
        "operations": int,
        "prepare_seconds": float,
        "call_seconds": float,
    },
    key=("inputs", "outputs", "method"),
)

FIXED = 8
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


def tasks(sizes: Sequence[int] = SIZES, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every method and shape: n varies at `FIXED` outputs, then m at inputs.

    After its first timeout along a direction a method is not asked for more: the rest are rows
    that say so.
    """
    methods = installed()
    sources = {
        name: provenance.source(method, target="auto", timeout=timeout)
        for name, method in methods.items()
    }
    for direction in ("inputs", "outputs"):
        beaten: dict[str, str] = {}
        for size in sizes:
            n, m = (size, FIXED) if direction == "inputs" else (FIXED, size)
            for name, method in methods.items():
                key: dict[str, Cell] = {"inputs": n, "outputs": m, "method": name}
                measured = partial(_measured, method, n, m, timeout, beaten)
                yield Task(key, measured, sources[name])


def _measured(
    method: Method, n: int, m: int, timeout: float, beaten: dict[str, str]
) -> dict[str, Cell]:
    """Measure one method on one shape; what it cannot do is a row that says why."""
    if method.name in beaten:
        return {"status": "timeout", "message": beaten[method.name]}
    try:
        return _cost(method, parse(crossover(n, m)), timeout)
    except (Exception, SystemExit) as error:  # another package's method may fail in any way
        if isinstance(error, MethodTimeout):
            beaten[method.name] = f"not tried: at n = {n}, m = {m} it was {error}"
        return outcome(error)


def _cost(method: Method, function: Function, timeout: float) -> dict[str, Cell]:
    problem = Problem(function.values, function.n, function.m, function, timeout=timeout)
    x = np.linspace(0.3, 0.7, function.n)
    found = measure.answer(method, problem, x)
    work = count(function).operations
    operations = found.call.prepared.operations
    if operations is None:
        operations = found.estimate.evaluations * work
    (called,) = measure.in_turns([found.call])
    if isinstance(called, BaseException):
        raise called
    return {
        "status": "ok",
        "function_operations": work,
        "operations": operations,
        "prepare_seconds": min(found.prepare_samples),
        "call_seconds": called.seconds,
        "repetitions": len(called.samples),
        "spread": measure.spread(called.samples),
    }


def crossing(first: Mapping[float, float], second: Mapping[float, float]) -> float | None:
    """Return where two curves on log-log paper cross, or None.

    Parameters
    ----------
    first, second : mapping of float to float
        Positive values by positive size.

    Examples
    --------
    >>> crossing({1: 10.0, 4: 40.0}, {1: 20.0, 4: 20.0})
    2.0
    """
    sizes = sorted(set(first) & set(second))
    gaps = [log(first[size] / second[size]) for size in sizes]
    for k, (a, b) in enumerate(pairwise(gaps)):
        if a == 0:
            return float(sizes[k])
        if a * b < 0:
            left, right = log(sizes[k]), log(sizes[k + 1])
            return round(exp(left + (right - left) * a / (a - b)), 12)
    return float(sizes[-1]) if gaps and gaps[-1] == 0 else None


def curve(rows: Sequence[SweepRow], along: str, method: str, column: str) -> dict[float, float]:
    """Return one method's values of a column by size, along "inputs" or "outputs"."""
    other = "outputs" if along == "inputs" else "inputs"
    return {
        float(row[along] or 0): float(row[column] or 0)
        for row in rows
        if row["method"] == method and row[other] == FIXED and row["status"] == "ok" and row[column]
    }

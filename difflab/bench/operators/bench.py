"""A Laplacian in every way against the dimension: error, operations, time and memory.

Three functions: a network, whose Hessian is dense; a potential of all pairs; a sum of terms of
one coordinate each. The error is that at one point, against a closed form at 40 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from difflab.bench.columns import layout
from difflab.bench.operators.drawing import draw
from difflab.bench.operators.functions import FUNCTIONS, points_of
from difflab.bench.operators.ways import WAYS
from difflab.lab import provenance
from difflab.lab.outcomes import Row, trial
from difflab.lab.sweep import Cell, Task

__all__ = ["DIMENSIONS", "LAYOUT", "POINTS", "draw", "tasks"]

LAYOUT = layout(
    "function inputs way status message points operations relative_error call_seconds peak_bytes",
    key="function inputs way",
)

DIMENSIONS = (2, 4, 8, 16, 32, 64, 128)
POINTS = 100
BUDGET = 0.2
"""Seconds in which a call is repeated."""


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every function, dimension and way; `quick` keeps four dimensions.

    A way that takes longer than `timeout` for one call is not tried at a larger dimension.
    """
    source = provenance.source(timeout=timeout)
    for name in FUNCTIONS:
        slow: set[str] = set()
        for n in DIMENSIONS[:4] if quick else DIMENSIONS:
            for way in WAYS:
                key: Row = {"function": name, "inputs": n, "way": way}
                yield trial(key, partial(_measured, name, n, way, timeout, slow), source)


def _measured(name: str, n: int, way: str, timeout: float, slow: set[str]) -> dict[str, Cell]:
    """Measure one way."""
    if way in slow:
        return {"status": "timeout", "message": "not tried: a smaller dimension took too long"}
    function, points = FUNCTIONS[name], points_of(n, POINTS)
    weights = function.weights(n)
    prepared = WAYS[way](function, points, weights)
    found, expected = np.asarray(prepared.call()), function.exact(points[0], weights)
    seconds = _shortest(prepared.call)
    if seconds > timeout:
        slow.add(way)
    return {
        "status": "ok",
        "points": POINTS,
        "operations": prepared.operations,
        "relative_error": abs(float(found[0]) - expected) / max(abs(expected), 1e-300),
        "call_seconds": seconds,
        "peak_bytes": prepared.peak(),
    }


def _shortest(call: Any) -> float:
    """Return the seconds of the fastest of at least two calls."""
    shortest, spent, calls = float("inf"), 0.0, 0
    while calls < 2 or spent < BUDGET:
        start = perf_counter()
        call()
        seconds = perf_counter() - start
        shortest, spent, calls = min(shortest, seconds), spent + seconds, calls + 1
    return shortest

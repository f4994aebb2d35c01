"""The process that runs one method for another process: it prepares, calls and measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from time import perf_counter
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import UnsupportedError
from difflab.methods import registry
from difflab.methods.plugged import Description, describe, load
from difflab.methods.process.facts import PreparedFacts
from difflab.methods.process.worker import Handlers, ReportProgress
from difflab.methods.protocol import Estimate, Method, Prepared, Problem, Size
from difflab.methods.timer import elapsed, peak_of

__all__ = ["MethodSession", "handlers"]

QUICK = 0.5  # seconds; faster preparations are repeated, since the first one includes imports


def handlers(report: ReportProgress, name: str, value: str) -> Handlers:
    """Load the method, with all that it imports, and return the handlers of this process."""
    session = MethodSession(load(EntryPoint(name, value, registry.GROUP)) if value else _own(name))
    return {
        "describe": session.describe,
        "prepare": session.prepare,
        "value": session.value,
        "elapsed": session.elapsed,
        "peak": session.peak,
    }


def _own(name: str) -> Method:
    """Return one of difflab's methods; a peer imports its package."""
    method = (registry.peers() | registry.own())[name]
    start = getattr(method, "start", None)
    if start is not None and method.missing() is None:
        start()
    return method


class MethodSession:
    """One method, and its derivatives by the numbers that the other process assigned."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._description = describe(method)
        self._derivatives: dict[int, Prepared] = {}

    def describe(self) -> Description:
        """Return the description of the method."""
        return self._description

    def prepare(
        self, number: int, problem: Problem, forgotten: Sequence[int] = ()
    ) -> PreparedFacts:
        """Prepare the derivative of `problem` and keep it as `number`; drop `forgotten` ones."""
        for other in forgotten:
            self._derivatives.pop(other, None)
        if problem.function is None:
            raise UnsupportedError(
                "it runs in its own process, to which Python code cannot be sent"
            )
        problem = replace(problem, values=problem.function.values)
        start = perf_counter()
        with np.errstate(all="ignore"):
            prepared = self._method.prepare(problem)
        seconds = perf_counter() - start
        for _ in range(2):
            if seconds > min(QUICK, problem.timeout / 10):
                break
            start = perf_counter()
            with np.errstate(all="ignore"):
                prepared = self._method.prepare(problem)
            seconds = min(seconds, perf_counter() - start)
        self._derivatives[number] = prepared
        operations, size = prepared.operations, prepared.size
        return PreparedFacts(seconds, None if operations is None else int(operations), _plain(size))

    def value(self, number: int, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`, in newly allocated arrays."""
        with np.errstate(all="ignore"):
            found = self._derivatives[number](_kept(x))
        error = None if found.error is None else np.array(found.error, dtype=float64)
        return Estimate(np.array(found.value, dtype=float64), error, int(found.evaluations))

    def elapsed(self, number: int, x: NDArray[float64], repeats: int) -> float:
        """Return the seconds that `repeats` calls take in this process, excluding communication."""
        derivative, x = self._derivatives[number], _kept(x)
        with np.errstate(all="ignore"):
            return elapsed(lambda: derivative(x), repeats)

    def peak(self, number: int, x: NDArray[float64]) -> int:
        """Return the bytes that one call allocates at its peak."""
        derivative, x = self._derivatives[number], _kept(x)
        with np.errstate(all="ignore"):
            return peak_of(lambda: derivative(x))


def _kept(x: NDArray[float64]) -> NDArray[float64]:
    """Return `x` as read-only, a flag that pickling does not preserve."""
    x.flags.writeable = False
    return x


def _plain(size: Any) -> Size | None:
    """Return a size in built-in integers, which every process can unpickle."""
    if size is None:
        return None
    parts = (size.tree, size.dag, size.simplified_tree, size.simplified_dag)
    return Size(*[None if part is None else int(part) for part in parts])

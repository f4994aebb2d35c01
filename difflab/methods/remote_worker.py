"""The process that runs one method for another process: it prepares, calls and measures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from importlib.metadata import EntryPoint
from time import perf_counter
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.worker import Handlers, ReportProgress
from difflab.errors import DifflabError, UnsupportedError
from difflab.execute.long_loops import values_of
from difflab.methods import registry
from difflab.methods.plugged import Description, describe, load, located
from difflab.methods.process.derivative import PreparedFacts
from difflab.methods.process.session import DerivativeSession
from difflab.methods.protocol import Estimate, Method, Prepared, Problem, Size

QUICK = 0.5  # seconds; faster preparations are repeated, since the first one includes imports


def handlers(report: ReportProgress, name: str, value: str) -> Handlers:
    """Load the method, with all that it imports, and return the handlers of this process."""
    entry = EntryPoint(name, value, registry.GROUP)
    session = MethodSession(load(entry) if value else _own(name))
    requests: Handlers = {**session.handlers(), "describe": session.describe}
    return (
        {request: _locating(call, entry) for request, call in requests.items()}
        if value
        else requests
    )


def _locating(call: Callable[..., Any], entry: EntryPoint) -> Callable[..., Any]:
    """Return a handler whose errors name the plug-in's file and line."""

    @wraps(call)
    def located_call(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (DifflabError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            raise DifflabError(located(error, entry)) from error

    return located_call


def _own(name: str) -> Method:
    """Return one of difflab's methods; a peer imports its package."""
    method = (registry.peers() | registry.own())[name]
    start = getattr(method, "start", None)
    if start is not None and method.missing() is None:
        start()
    return method


class MethodSession(DerivativeSession):
    """One method, and the derivatives that it has prepared."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self._method = method
        self._description = describe(method)

    def describe(self) -> Description:
        """Return the description of the method."""
        return self._description

    def prepared(self, problem: Problem) -> tuple[Prepared, PreparedFacts]:
        """Return the method's derivative, with its size and the shortest time of a few trials."""
        if problem.function is None:
            raise UnsupportedError(
                "it runs in its own process, to which Python code cannot be sent"
            )
        problem = replace(problem, values=values_of(problem.function))
        seconds = math.inf
        for trial in range(3):
            if trial and seconds > min(QUICK, problem.timeout / 10):
                break
            start = perf_counter()
            with np.errstate(all="ignore"):
                derivative = self._method.prepare(problem)
            seconds = min(seconds, perf_counter() - start)
        for name in ("operations", "size"):
            if not hasattr(derivative, name):
                raise TypeError(
                    f"the {type(derivative).__name__} that `prepare` returned has no attribute"
                    f" `{name}`; give it one, None if unknown"
                )
        count, size = derivative.operations, _plain(derivative.size)
        return derivative, PreparedFacts(seconds, None if count is None else int(count), size)

    def value(self, number: int, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`, in newly allocated arrays."""
        with np.errstate(all="ignore"):
            estimate: Any = self.call(number, x)()
        if not isinstance(estimate, Estimate):
            raise TypeError(
                f"a call of the derivative returned {type(estimate).__name__}, not"
                " difflab.methods.protocol.Estimate(value, error, evaluations)"
            )
        error = None if estimate.error is None else np.array(estimate.error, dtype=float64)
        return Estimate(np.array(estimate.value, dtype=float64), error, int(estimate.evaluations))


def _plain(size: Any) -> Size | None:
    """Return a size in built-in integers, which every process can unpickle."""
    if size is None:
        return None
    parts = (size.tree, size.dag, size.simplified_tree, size.simplified_dag)
    return Size(*[None if part is None else int(part) for part in parts])

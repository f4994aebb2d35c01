"""The other side of `derivative`: the derivatives that a method's process holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.worker import Handlers
from difflab.methods.process.derivative import PreparedFacts
from difflab.methods.protocol import Estimate, Problem, stacked
from difflab.methods.timer import LoopCall, elapsed, in_loop, peak_of


class DerivativeSession(ABC):
    """The derivatives of one method, keyed by the ids that the other process assigned."""

    def __init__(self) -> None:
        self._derivatives: dict[int, Any] = {}
        self._loops: dict[int, tuple[NDArray[float64], LoopCall]] = {}

    def handlers(self) -> Handlers:
        """Return the handlers of the requests of `ProcessDerivative`."""
        requests = ("prepare", "value", "batch", "elapsed", "form", "peak")
        return {request: getattr(self, request) for request in requests}

    def prepare(
        self, number: int, problem: Problem, forgotten: Sequence[int] = ()
    ) -> PreparedFacts:
        """Prepare a derivative and keep it as `number`; drop `forgotten` ones; return its facts."""
        for other in forgotten:
            self._derivatives.pop(other, None)
            self._loops.pop(other, None)
        self._derivatives[number], facts = self.prepared(problem)
        return facts

    @abstractmethod
    def prepared(self, problem: Problem) -> tuple[Any, PreparedFacts]:
        """Return the derivative of a problem, and the facts to report."""

    @abstractmethod
    def value(self, number: int, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`."""

    def batch(self, number: int, points: NDArray[float64]) -> Estimate:
        """Return the derivatives at the points ``(N, n)``."""
        points.flags.writeable = False
        return stacked([self.value(number, x) for x in points])

    def elapsed(self, number: int, x: NDArray[float64], repeats: int) -> float:
        """Return the seconds that `repeats` calls take in this process, excluding communication."""
        with np.errstate(all="ignore"):
            return elapsed(self.loop(number, x), repeats)

    def form(self, number: int, x: NDArray[float64]) -> str:
        """Return the call that is timed, as its users write it; empty for the usual one."""
        with np.errstate(all="ignore"):
            return self.loop(number, x).form

    def peak(self, number: int, x: NDArray[float64]) -> int:
        """Return the bytes that one call allocates at its peak."""
        with np.errstate(all="ignore"):
            return peak_of(self.call(number, x))

    def call(self, number: int, x: NDArray[float64]) -> Callable[[], Any]:
        """Return a call of a derivative at `x`, read-only: a flag that pickling does not keep."""
        derivative = self._derivatives[number]
        x.flags.writeable = False
        return lambda: derivative(x)

    def loop(self, number: int, x: NDArray[float64]) -> LoopCall:
        """Return the call that is timed, made once for each derivative and point."""
        known = self._loops.get(number)
        if known is None or not np.array_equal(known[0], x, equal_nan=True):
            x.flags.writeable = False
            known = self._loops[number] = x, in_loop(self._derivatives[number], x)
        return known[1]

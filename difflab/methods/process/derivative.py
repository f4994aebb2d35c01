"""The parent's side of a method in a process of its own: the process, and its derivatives."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, replace
from functools import partialmethod
from itertools import count as counter
from typing import TYPE_CHECKING, Any

from difflab.core.worker import RestartedWorker

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from difflab.methods.protocol import Estimate, Problem, Size


class MethodProcess(RestartedWorker):
    """The process of one method, started when it is needed and again after it has ended.

    Parameters
    ----------
    module, *arguments : str
        The module that the process imports, and arguments of its `handlers`; see `Worker`.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        super().__init__(module, *arguments)
        # A derivative may be garbage-collected in the middle of a message to the process, so its
        # number is queued for the next message.
        self.forgotten: deque[int] = deque()

    def start(self) -> None:
        """Start the process without waiting for it."""
        self.running()

    def wait(self) -> None:
        """Wait until the process has started."""
        self.running().wait()


@dataclass(frozen=True)
class PreparedFacts:
    """Seconds, operations and size of a derivative that the process has prepared."""

    seconds: float
    operations: int | None
    size: Any


class ProcessDerivative:
    """A derivative held by a method's process, prepared again if that was stopped.

    Attributes
    ----------
    prepare_seconds : float
        Seconds that preparing took in the process, without its start.
    operations : int or None
        Operations of one call.
    """

    _numbers = counter()

    def __init__(self, method: MethodProcess, problem: Problem) -> None:
        self._method = method
        self._problem = problem
        self._number = next(self._numbers)
        self._facts = self._prepare()
        weakref.finalize(self, method.forgotten.append, self._number)
        self.prepare_seconds = self._facts.seconds
        self.operations = self._facts.operations

    @property
    def size(self) -> Size | None:
        """The size of the derivative, as the process reports it."""
        return self._facts.size  # type: ignore[no-any-return]

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`."""
        return self._ask("value", x)  # type: ignore[no-any-return]

    def _ask(self, name: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Return an answer about this derivative; if its process has ended, prepare it again."""
        if not self._worker.alive:
            self._prepare()
        return self._request(name, *arguments, timeout=timeout)

    def _prepare(self) -> PreparedFacts:
        """Prepare the derivative in the process; return the facts that it reports."""
        self._worker = self._method.running()
        self._worker.wait()
        # The process rebuilds `values` from the function; this process keeps the deadline.
        sent = replace(self._problem, values=None, deadline=None)  # type: ignore[arg-type]
        forgotten = self._method.forgotten
        dropped = [forgotten.popleft() for _ in range(len(forgotten))]
        return self._request("prepare", sent, dropped)  # type: ignore[no-any-return]

    def _request(self, name: str, *arguments: Any, timeout: float | None = None) -> Any:
        problem = self._problem
        seconds = problem.seconds_left() if timeout is None else timeout
        return self._worker.request(
            name, self._number, *arguments, timeout=seconds, limit=problem.timeout
        )

    batch = partialmethod(_ask, "batch")
    """``batch(points)``: the derivatives at the points ``(N, n)``, in one message."""
    elapsed = partialmethod(_ask, "elapsed")
    """``elapsed(x, repeats)``: the seconds that calls at `x` take in the process."""
    form = partialmethod(_ask, "form")
    """``form(x)``: the call that is timed, as its users write it; empty for the usual one."""
    peak_bytes = partialmethod(_ask, "peak")
    """``peak_bytes(x)``: the bytes that one call allocates at its peak."""

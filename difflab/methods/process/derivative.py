"""The parent's side of a method in a process of its own: the process, and its derivatives.

Such a method can be stopped whatever it is doing. Plug-ins run this way: they may hang where no
exception is delivered, exit the interpreter, modify their arguments, or print. They share nothing
with this process, and are timed in their own.
"""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, replace
from functools import partialmethod
from itertools import count as counter
from typing import TYPE_CHECKING, Any

from difflab.core.worker import STARTING, RestartedWorker, UnsentError
from difflab.errors import DifflabError, UnsupportedError
from difflab.methods.plugged import Broken, Description
from difflab.methods.protocol import Family, Method, Prepared, Problem

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from difflab.methods.protocol import Estimate, Size


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
        problem = self._problem
        seconds = problem.seconds_left() if timeout is None else timeout
        return self._worker.request(
            name, self._number, *arguments, timeout=seconds, limit=problem.timeout
        )

    def _prepare(self) -> PreparedFacts:
        """Prepare the derivative in the process; return the facts that it reports."""
        self._worker = self._method.running()
        self._worker.wait()
        # The process rebuilds `values` from the function; this process keeps the deadline.
        sent = replace(self._problem, values=None, deadline=None)  # type: ignore[arg-type]
        forgotten = self._method.forgotten
        dropped = [forgotten.popleft() for _ in range(len(forgotten))]
        return self._ask("prepare", sent, dropped)  # type: ignore[no-any-return]

    batch = partialmethod(_ask, "batch")
    """``batch(points)``: the derivatives at the points ``(N, n)``, in one message."""
    elapsed = partialmethod(_ask, "elapsed")
    """``elapsed(x, repeats)``: the seconds that calls at `x` take in the process."""
    form = partialmethod(_ask, "form")
    """``form(x)``: the call that is timed, as its users write it; empty for the usual one."""
    peak_bytes = partialmethod(_ask, "peak")
    """``peak_bytes(x)``: the bytes that one call allocates at its peak."""


class Remote(MethodProcess):
    """A method that another process loads, prepares and calls.

    Parameters
    ----------
    name : str
        The name of a method: difflab's own, a peer, or one that is plugged in.
    value : str
        The value of the entry point of one that is plugged in.
    here : Method, optional
        The method in this process, if it is safe to load: its description is known without
        waiting, and it handles problems that cannot be sent.

    Attributes
    ----------
    here : Method or None
        The same.
    """

    def __init__(self, name: str, value: str = "", here: Method | None = None) -> None:
        super().__init__("difflab.methods.remote_worker", name, value)
        self.name = name
        self._value = value
        self.here = here
        self._loaded: Description | None = None

    @property
    def family(self) -> Family:
        """The family to which it belongs."""
        return (self.here or self._describe()).family

    @property
    def summary(self) -> str:
        """A one-line description."""
        return (self.here or self._describe()).summary

    @property
    def orders(self) -> tuple[int, ...]:
        """The supported orders of derivative."""
        return (self.here or self._describe()).orders

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes beside float64 in which it computes."""
        return getattr(self.here, "dtypes", ())

    def missing(self) -> str | None:
        """Return why the method cannot be loaded or cannot run here, or None."""
        return self._describe().missing

    def wait(self) -> None:
        """Wait until the process has loaded the method, or has failed to."""
        self._describe()

    def prepare(self, problem: Problem) -> Prepared:
        """Let the process prepare the method for `problem`.

        Raises
        ------
        UnsupportedError
            The method cannot be used, or cannot differentiate this function.
        MethodTimeout
            It took longer than ``problem.timeout``.
        DifflabError
            It failed, or its process ended.
        """
        reason = self.missing()
        if reason is not None:
            raise UnsupportedError(reason)
        if problem.function is None and self.here is not None:
            return self.here.prepare(problem)  # Python code cannot be sent
        try:
            return ProcessDerivative(self, problem)
        except UnsentError:
            if self.here is None:
                raise
            return self.here.prepare(problem)

    def _describe(self) -> Description:
        """Return the description of the loaded method; it is requested once."""
        if self._loaded is None:
            worker = self.running()
            try:
                worker.wait()
                self._loaded = worker.request("describe", timeout=STARTING)
            except DifflabError as error:
                self._loaded = self._unusable(f"cannot be used: {error}")
        return self._loaded

    def _unusable(self, why: str) -> Description:
        broken = Broken(self.name, f"{self._value or self.name} {why}")
        like = self.here or broken
        return Description(self.name, like.family, like.orders, like.summary, broken.reason)

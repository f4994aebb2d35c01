"""A method in a process of its own, which can be stopped whatever the method is doing.

Plug-ins run this way: they may hang where no exception is delivered, exit the interpreter, modify
their arguments, or print. They share nothing with this process, and are timed in their own.
"""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import replace
from itertools import count as counter
from typing import TYPE_CHECKING, Any

from numpy import float64
from numpy.typing import NDArray

from difflab.errors import DifflabError, UnsupportedError
from difflab.methods.plugged import Broken, Description
from difflab.methods.process.worker import UnsentError, Worker
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem, Size

if TYPE_CHECKING:
    from difflab.methods.process.facts import PreparedFacts

__all__ = ["Remote", "RemoteDerivative"]


class Remote:
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
    """

    def __init__(self, name: str, value: str = "", here: Method | None = None) -> None:
        self.name = name
        self._value = value
        self._here = here
        self._worker: Worker | None = None
        self._loaded: Description | None = None
        # A derivative may be garbage-collected in the middle of a message to the process, so its
        # number is queued for the next message.
        self.forgotten: deque[int] = deque()

    @property
    def family(self) -> Family:
        """The family to which it belongs."""
        return (self._here or self._describe()).family

    @property
    def summary(self) -> str:
        """A one-line description."""
        return (self._here or self._describe()).summary

    @property
    def orders(self) -> tuple[int, ...]:
        """The supported orders of derivative."""
        return (self._here or self._describe()).orders

    def missing(self) -> str | None:
        """Return why the method cannot be loaded or cannot run here, or None."""
        return self._describe().missing

    def start(self) -> None:
        """Start the process without waiting for it."""
        self.running()

    def wait(self) -> None:
        """Wait until the process has loaded the method, or has failed to."""
        self._describe()

    def stop(self) -> None:
        """End the process; the next derivative starts another."""
        if self._worker is not None:
            self._worker.stop()

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
        try:
            return RemoteDerivative(self, problem)
        except UnsentError:
            if self._here is None:
                raise
            return self._here.prepare(problem)

    def running(self) -> Worker:
        """Return the process, started if it is not running."""
        if self._worker is None or not self._worker.alive:
            self._worker = Worker("difflab.methods.remote_worker", self.name, self._value)
        return self._worker

    def drain(self) -> list[int]:
        """Return the numbers of the derivatives that the process may drop, and clear them."""
        return [self.forgotten.popleft() for _ in range(len(self.forgotten))]

    def _describe(self) -> Description:
        """Return the description of the loaded method; it is requested once."""
        if self._loaded is None:
            worker = self.running()
            try:
                worker.wait()
                self._loaded = worker.request("describe", timeout=1.0)
            except DifflabError as error:
                self._loaded = self._unusable(f"cannot be used: {error}")
        return self._loaded

    def _unusable(self, why: str) -> Description:
        broken = Broken(self.name, f"{self._value or self.name} {why}")
        like = self._here or broken
        return Description(self.name, like.family, like.orders, like.summary, broken.reason)


class RemoteDerivative:
    """A derivative held by another process, prepared again if that was stopped.

    Attributes
    ----------
    prepare_seconds : float
        Seconds that preparing took in the other process.
    size, operations
        As of every prepared derivative.
    """

    _numbers = counter()

    def __init__(self, method: Remote, problem: Problem) -> None:
        self._method = method
        self._problem = problem
        self._number = next(self._numbers)
        self._facts = self._prepare()
        weakref.finalize(self, method.forgotten.append, self._number)
        self.prepare_seconds = self._facts.seconds

    @property
    def operations(self) -> int | None:
        """Arithmetic operations of one call, where they are known."""
        return self._facts.operations

    @property
    def size(self) -> Size | None:
        """The derivative's size as an expression, where it is one."""
        return self._facts.size

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`."""
        estimate: Estimate = self._ask("value", x)
        return estimate

    def elapsed(self, x: NDArray[float64], repeats: int) -> float:
        """Return the seconds that `repeats` calls at `x` take in the other process."""
        seconds: float = self._ask("elapsed", x, repeats)
        return seconds

    def peak_bytes(self, x: NDArray[float64]) -> int:
        """Return the bytes that one call allocates at its peak."""
        peak: int = self._ask("peak", x)
        return peak

    def _ask(self, request: str, *arguments: Any) -> Any:
        if not self._worker.alive:
            self._prepare()
        return self._request(request, self._number, *arguments)

    def _prepare(self) -> PreparedFacts:
        self._worker = self._method.running()
        self._worker.wait()
        # The other process rebuilds `values` from the function; this process keeps the deadline.
        sent = replace(self._problem, values=None, deadline=None)  # type: ignore[arg-type]
        facts: PreparedFacts = self._request("prepare", self._number, sent, self._method.drain())
        return facts

    def _request(self, name: str, *arguments: Any) -> Any:
        limit = self._problem.timeout
        return self._worker.request(
            name, *arguments, timeout=self._problem.seconds_left(), limit=limit
        )

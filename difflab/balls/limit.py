"""Time limits of ball arithmetic.

The clock is read between operations. Nothing can interrupt a call of FLINT, and the cost of a few
functions grows without bound with their parameters: those are evaluated in a process of its own,
which is stopped.
"""

from __future__ import annotations

import math
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

from difflab.core.progress import ProgressLine
from difflab.core.worker import Handlers, ReportProgress, UnsentError, Worker
from difflab.errors import MethodTimeout
from difflab.graph.function import Function
from difflab.primitives import TABLE

TIMEOUT = 60.0
"""Seconds after which bounds are returned as they are."""

GRACE = 1.0
"""Seconds for which a process may exceed its limit: it returns by itself unless FLINT computes."""

LARGE = 1000
"""Elements of an array from which one operation, such as a matrix product, may take seconds."""

SLOW = frozenset(
    TABLE[name]
    for name in (
        *("besseli", "besselj", "besselk", "bessely", "betainc", "gammainc"),
        *("betainc_derivative", "gammainc_derivative", "gammaincc", "polygamma", "zeta"),
    )
)
"""Rows with parameters for which a call of FLINT may take minutes."""


@dataclass
class _TimeLimit:
    until: float = math.inf
    seconds: float = math.inf
    progress: str = ""
    report: Callable[[str], None] | None = None


_limit = _TimeLimit()  # global, as FLINT's precision is


@contextmanager
def time_limit(seconds: float, report: Callable[[str], None] | None = None) -> Iterator[None]:
    """Raise `MethodTimeout` from operations after so many seconds.

    Examples
    --------
    >>> with time_limit(0.0):
    ...     reached("at 80 bits")
    ...     within(abs)(-1)
    Traceback (most recent call last):
        ...
    difflab.errors.MethodTimeout: stopped after 0 s; at 80 bits
    """
    global _limit
    before = _limit
    until = min(before.until, perf_counter() + seconds)
    _limit = _TimeLimit(until, seconds, report=report or before.report)
    try:
        yield
    finally:
        _limit = before


@contextmanager
def shown_as(name: str) -> Iterator[None]:
    """Show on a terminal or in a notebook how far the computations of a long call are."""
    with ProgressLine() as line, time_limit(math.inf, line.count if line.live else None):
        line.count(name)
        yield


class ReportedProgress(str):
    """Progress and partial results of a computation, for a parent that stops this process."""

    partial: Any = None


def reached(text: str, partial: Callable[[], Any] | None = None) -> None:
    """State how far the computation is, for the message of a timeout.

    Parameters
    ----------
    text : str
    partial : callable, optional
        Returns the result so far.
    """
    _limit.progress = text
    if _limit.report is not None:
        progress = ReportedProgress(text)
        progress.partial = None if partial is None else partial()
        _limit.report(progress)


def within(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation that is not begun after the time limit."""

    def timed(*args: Any, **params: Any) -> Any:
        if perf_counter() > _limit.until:
            after = f"; {_limit.progress}" if _limit.progress else ""
            raise MethodTimeout(f"stopped after {_limit.seconds:g} s{after}")
        return operation(*args, **params)

    return timed


def in_time(task: Callable[..., Any], function: Function, *arguments: Any, timeout: float) -> Any:
    """Return ``task(function, *arguments)``, computed within a time limit.

    Parameters
    ----------
    task : callable
        A function of a module.
    function : Function
    *arguments : object
        They can be pickled.
    timeout : float
        Seconds.

    Raises
    ------
    MethodTimeout
        The limit is reached, and `task` lets the exception of its operations through, or FLINT did
        not return.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.balls.evaluation import evaluated
    >>> in_time(evaluated, dl.parse("1 + 1"), [], 80, timeout=5.0)[0]
    Jet(2.00000000000000, {}, None, None)
    """
    if not _may_hang(function) or math.isinf(timeout):
        with time_limit(timeout):
            return task(function, *arguments)
    return in_process(task, function, *arguments, timeout=timeout)


def in_process(
    task: Callable[..., Any],
    function: Function,
    *arguments: Any,
    timeout: float,
    grace: float = GRACE,
) -> Any:
    """Return ``task(function, *arguments)`` as `in_time` does, computed in another process.

    The process is stopped `grace` seconds after the limit. Tasks that cannot be pickled run here.
    """
    try:
        sent = task, pickle.dumps(function), arguments, timeout
        return _process().request("perform", *sent, timeout=timeout + grace, limit=timeout)
    except (UnsentError, pickle.PicklingError, AttributeError, TypeError):
        with time_limit(timeout):
            return task(function, *arguments)


def _may_hang(function: Function) -> bool:
    """Whether one operation may take longer than any time limit."""
    graph = function.graph
    return not SLOW.isdisjoint(graph.primitives) or any(
        math.prod(shape) >= LARGE for shape in graph.shape_table
    )


_workers: list[Worker] = []


def _process() -> Worker:
    """Return the process of this one, which is started again after it was stopped."""
    if not _workers or not _workers[0].alive:
        _workers[:] = [Worker(__name__)]
    return _workers[0]


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of the process."""

    def perform(task: Callable[..., Any], function: bytes, arguments: Any, timeout: float) -> Any:
        with time_limit(timeout, report), _alarm(timeout + 2 * GRACE):
            return task(_unpickled(function), *arguments)

    return {"perform": perform}


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End this process after so many seconds: if the parent is gone, nobody else stops FLINT."""
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@lru_cache(maxsize=4)
def _unpickled(function: bytes) -> Function:
    """Return a function, which caches the preparation of its last points."""
    loaded: Function = pickle.loads(function)  # noqa: S301 - from the parent process
    return loaded

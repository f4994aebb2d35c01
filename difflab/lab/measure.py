"""Cost of preparing and calling a derivative: time and memory, measured separately, or estimated.

A time is the smallest of several samples, since every disturbance makes a measurement longer.
Samples are shorter than the time slices of a busy machine, so that most of them are undisturbed;
calls that are compared are measured alternately. The raw samples are kept. Memory is measured in a
separate call, since tracing allocations slows a call severalfold. Estimates decide which of
difflab's own methods need a separate process.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import MethodTimeout, UnsupportedError
from difflab.graph.counts import operation_count
from difflab.lab.record import outcome
from difflab.lab.sampling import BUDGET, QUICK, TimeSampler, spread
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem
from difflab.methods.registry import apart
from difflab.methods.timer import Deadline, LoopCall, Stopwatch, elapsed, in_loop, peak_of

if TYPE_CHECKING:
    from difflab.lab.sweep import Cell

SAMPLES = 15
PREPARED = 5  # preparations that are timed if they are quick
PREPARING = 0.02  # seconds of repeated preparations after which there is no other
FIRST_CALL = "the time of a call is that of the first, which may include compilation"
"""The message of a row whose method is too slow for a second call."""


@runtime_checkable
class SelfMeasured(Protocol):
    """A prepared derivative that lives in another process and reads the clock there."""

    prepare_seconds: float

    def elapsed(self, x: NDArray[float64], repeats: int) -> float:
        """Return the seconds that `repeats` calls at `x` take."""

    def peak_bytes(self, x: NDArray[float64]) -> int:
        """Return the memory that one call at `x` takes at its peak."""


@dataclass(frozen=True)
class CallCost:
    """Cost of one call.

    Attributes
    ----------
    samples : tuple of float
        Seconds per call, one element per sample.
    peak_bytes : int or None
        The peak memory that one call allocates; None if it was not measured.
    first : bool
        Whether the only sample is the first call, since another one would take too long.
    form : str
        The call that was timed, as its users write it; empty for the usual one.
    """

    samples: tuple[float, ...]
    peak_bytes: int | None
    first: bool = False
    form: str = ""

    def noted(self, message: object = "") -> str:
        """Return the message of a row, and `FIRST_CALL` if that has to be said of the time."""
        return "; ".join(str(part) for part in (message, FIRST_CALL * self.first) if part)

    @property
    def seconds(self) -> float:
        """The fastest sample."""
        return min(self.samples)

    def columns(self, message: object = "") -> dict[str, Cell]:
        """Return the columns of a benchmark's row, whose message was `message`."""
        return {
            "call_seconds": self.seconds,
            "call_form": self.form,
            "message": self.noted(message),
            "repetitions": len(self.samples),
            "spread": spread(self.samples),
            "peak_bytes": self.peak_bytes,
        }


def prepare(
    method: Method, problem: Problem, most: int = PREPARED
) -> tuple[Prepared, tuple[float, ...]]:
    """Prepare `method` for `problem`; return the derivative and the seconds of each preparation.

    A preparation that is quick, or during which a module was imported, is repeated, `most` times
    in all, and the first sample is then dropped: imports belong to the process and not to the
    method. A derivative that is prepared in another process reports its own time, without the time
    to start the process.
    """
    samples: list[float] = []
    counted = 0  # the first sample without imports
    quick = min(QUICK, problem.seconds_left() / 10)
    while not samples or (
        len(samples) < most and sum(samples) < quick and sum(samples[counted:]) < PREPARING
    ):
        loaded = len(sys.modules)
        with Stopwatch() as watch:
            prepared = method.prepare(problem)
            samples.append(watch.seconds())
        if isinstance(prepared, SelfMeasured):
            return prepared, (prepared.prepare_seconds,)
        if len(sys.modules) > loaded:
            counted = len(samples)
    return prepared, tuple(samples[max(counted, 1) :] or samples[-1:])


@dataclass(frozen=True)
class MethodCall:
    """A prepared derivative at a point, and the remaining time of its method.

    What is timed is its fastest call, that of a loop (`difflab.methods.timer.in_loop`).

    Attributes
    ----------
    prepared : Prepared
        The prepared derivative.
    x : ndarray
        The point.
    deadline : Deadline
        The deadline of all further calls together.
    first : float or None
        Seconds of the first call, reported, as such, if there is no time for another.
    """

    prepared: Prepared
    x: NDArray[float64]
    deadline: Deadline = field(default_factory=lambda: Deadline(math.inf))
    first: float | None = None

    @cached_property
    def _loop(self) -> LoopCall:
        return in_loop(self.prepared, self.x)

    @property
    def form(self) -> str:
        """The call that is timed, as its users write it; empty for the usual one."""
        if isinstance(self.prepared, SelfMeasured):
            form = getattr(self.prepared, "form", None)
            return "" if form is None else str(form(self.x))
        return self._loop.form

    @property
    def is_long(self) -> bool:
        """Whether another measurement would exceed the deadline."""
        return self.first is not None and 2 * self.first >= self.deadline.remaining()

    def elapsed(self, repeats: int) -> float:
        """Return the seconds that `repeats` calls take."""
        with self.deadline:
            if isinstance(self.prepared, SelfMeasured):
                return self.prepared.elapsed(self.x, repeats)
            return elapsed(self._loop, repeats)

    def peak_bytes(self) -> int:
        """Return the memory that one call takes at its peak."""
        with self.deadline:
            if isinstance(self.prepared, SelfMeasured):
                return self.prepared.peak_bytes(self.x)
            return peak_of(partial(self.prepared, self.x))


@dataclass(frozen=True)
class MethodAnswer:
    """Result of one method at one point.

    Attributes
    ----------
    estimate : Estimate
        The derivative.
    prepare_samples : tuple of float
        Seconds of each preparation.
    call : MethodCall
        The call, for timing.
    """

    estimate: Estimate
    prepare_samples: tuple[float, ...]
    call: MethodCall


def wait_for(method: Method, order: int) -> None:
    """Wait until a method can run, as one whose process is still starting.

    Raises
    ------
    UnsupportedError
        It cannot run in this environment, or has no derivatives of this order.
    """
    reason = method.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    if order not in method.orders:
        raise UnsupportedError(f"the method has no derivatives of order {order}")
    wait = getattr(method, "wait", None)
    if wait is not None:
        wait()


def answer(
    method: Method, problem: Problem, x: NDArray[float64], preparations: int = PREPARED
) -> MethodAnswer:
    """Prepare a method and call it at `x`, within ``problem.timeout`` seconds together.

    The calls by which it is timed later have as many seconds again: what is left after preparing
    and the first call, which compile, would not show whether a call is slow.

    A quick preparation is repeated, `preparations` times in all, to be timed.

    The time to start the process of a method that has one is not counted. The method receives a
    read-only copy of the point. A method of difflab that may exceed the time limit is stopped only
    if `difflab.lab.measure.Effort.stoppable` has moved it to a process.

    Raises
    ------
    MethodTimeout
        The method exceeded the time limit.
    DifflabError, or any exception
        The method cannot run in this environment or failed.
    """
    wait_for(method, problem.order)
    x = x.copy()
    x.flags.writeable = False
    with Deadline(problem.timeout) as deadline:
        prepared, samples = prepare(method, replace(problem, deadline=deadline), preparations)
        began = perf_counter()
        estimate = prepared(x)
        first = perf_counter() - began
    return MethodAnswer(
        estimate, samples, MethodCall(prepared, x, Deadline(problem.timeout), first)
    )


def in_turns(calls: Sequence[MethodCall], budget: float = BUDGET) -> list[CallCost | BaseException]:
    """Measure the cost of several calls alternately: one sample of each per round.

    A temporary disturbance of the machine then affects all calls of a round, not only one of them.
    Memory is measured only if a call is short compared with the budget, since that is slower.

    Parameters
    ----------
    calls : sequence of MethodCall
        The calls to measure.
    budget : float
        Seconds for each call, after which no further sample is started; there is always one.

    Returns
    -------
    list of CallCost or exception
        The cost of each call, or the exception that it raised.
    """
    samplers = [TimeSampler(call.elapsed, min(budget, call.deadline.remaining())) for call in calls]
    indices = range(len(calls))
    ended: dict[int, CallCost | BaseException] = {
        index: _known(calls[index], samplers[index]) for index in indices if calls[index].is_long
    }
    for number in range(SAMPLES):
        for index in indices if number % 2 == 0 else reversed(indices):
            if index in ended:
                continue
            try:
                samplers[index].take()
            except MethodTimeout:
                ended[index] = _known(calls[index], samplers[index])
            except (Exception, SystemExit) as error:  # a plug-in may fail in any way
                ended[index] = error
    return [
        ended[index] if index in ended else _cost(calls[index], samplers[index], budget)
        for index in indices
    ]


def rows_in_turns(
    methods: Sequence[Method],
    first: Callable[[Method], tuple[Mapping[str, Cell], MethodCall | None]],
) -> dict[str, dict[str, Cell]]:
    """Return the row of every method by its name: all are called once, then timed alternately.

    Parameters
    ----------
    methods : sequence of Method
        The methods.
    first : callable
        Calls a method; returns its row, and the call that is timed, if it is. What it raises
        becomes the status and the message of the row.
    """
    rows: dict[str, dict[str, Cell]] = {}
    calls: dict[str, MethodCall] = {}
    for method in methods:
        try:
            row, call = first(method)
            rows[method.name] = {**row}
            if call is not None:
                calls[method.name] = call
        except (Exception, SystemExit) as error:  # another package's method may fail in any way
            rows[method.name] = outcome(error)._asdict()
    for name, cost in zip(calls, in_turns([*calls.values()]), strict=True):
        if isinstance(cost, CallCost):
            rows[name] |= cost.columns(rows[name].get("message"))
        else:
            rows[name] |= outcome(cost)._asdict()
    return rows


def _known(call: MethodCall, sampler: TimeSampler) -> CallCost:
    """Return the known cost of a call whose deadline has passed."""
    if sampler.samples:
        return CallCost(tuple(sampler.samples), None)
    return CallCost((call.first or math.inf,), None, first=True)


def _cost(call: MethodCall, sampler: TimeSampler, budget: float) -> CallCost | BaseException:
    if min(sampler.samples) > budget / 4:
        return _known(call, sampler)
    try:
        return CallCost(tuple(sampler.samples), call.peak_bytes(), form=call.form)
    except MethodTimeout:
        return _known(call, sampler)
    except (Exception, SystemExit) as error:
        return error


# Evaluations of a numeric method for each input.
_POINTS = 30
# Seconds of a sweep for each node, compilation included, and for each array element, a call
# included.
_NODE = 3e-5
_NUMBER = 1e-8
# Seconds of an operation on complex numbers, at one of several points.
_COMPLEX = 2e-7
_LONG = 0.1  # seconds above which an evaluation is not repeated
_SHARE = 0.25  # of the time limit; leaves a margin for the error of the estimate


class Effort:
    """The work of a problem, estimated from the time of one evaluation of its function.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.methods.registry import own
    >>> f = dl.parse("x: [3]; sum(sin(x))")
    >>> effort = Effort(Problem(f.values, f.n, f.m, f), np.ones(3))
    >>> any(effort.is_long(method) for method in own().values())
    False
    """

    def __init__(self, problem: Problem, x: NDArray[float64]) -> None:
        self._problem = problem
        self._value = math.inf  # the shortest of a few evaluations; the first has one-time costs
        for _ in range(3):
            start = perf_counter()
            with np.errstate(all="ignore"):
                problem.values(x[None, :])
            self._value = min(self._value, perf_counter() - start)
            if self._value > _LONG:
                break
        graph = problem.function.graph if problem.function is not None else None
        self._nodes = 0 if graph is None else len(graph)
        self._operations = operation_count(problem.function) if problem.function else 0
        sizes = [] if graph is None else [math.prod(shape) for shape in graph.shape_table]
        self._numbers = self._nodes * max(sizes, default=1)

    def stoppable(self, method: Method) -> Method:
        """Return the method, in a process of its own if it may exceed the time limit."""
        return apart(method) if self.is_long(method) else method

    def is_long(self, method: Method) -> bool:
        """Return whether the method may exceed the time limit, by a conservative estimate."""
        problem = self._problem
        if method.family is Family.NUMERIC:
            value = self._value
            if method.name == "complex-step":  # long loops are machine code on real points only
                value = max(value, _COMPLEX * self._operations)
            seconds = value * _POINTS * float(problem.n) ** problem.order
        else:
            sweeps = problem.m if method.name == "reverse" else problem.n
            if problem.order == 2:
                sweeps = problem.n * (1 if method.name == "reverse" else problem.n)
            seconds = sweeps * (_NODE * self._nodes + _NUMBER * self._numbers)
        return seconds > _SHARE * problem.timeout

"""Cost of preparing and calling a derivative: time and memory, measured separately.

A time is the smallest of several samples, since every disturbance makes a measurement longer.
Each sample repeats the call until it is long enough for the clock (the repeats double, as in
ADBench, Šrajer et al. 2018). Samples are shorter than the time slices of a busy machine, so that
most of them are undisturbed; calls that are compared are measured in turns. The raw samples are
kept. Memory is measured in a separate call, since tracing allocations slows a call severalfold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import MethodTimeout, UnsupportedError
from difflab.methods.deadline import Deadline
from difflab.methods.protocol import Estimate, Method, Prepared, Problem
from difflab.methods.timer import Stopwatch, elapsed, peak_of

__all__ = [
    "FIRST_CALL",
    "CallCost",
    "MethodAnswer",
    "MethodCall",
    "Pairs",
    "SelfMeasured",
    "TimeSampler",
    "answer",
    "in_turns",
    "paired",
    "prepare",
    "spread",
    "timed_call",
]

SHORTEST = 2e-3  # minimum seconds of a sample of a pair: 20,000 ticks of a 100 ns clock
BRIEF = 5e-4  # minimum seconds of a sample of one of several calls: 5,000 such ticks
SAMPLES = 15
PREPARED = 5  # preparations that are timed if they are quick
ROUNDS = 31  # of two calls in turns
LOOKS = 3  # samples of a short call in one turn; the fastest counts
BUDGET = 0.5  # seconds after which no further sample of one call is started
QUICK = 0.5  # seconds of preparation after which it is not repeated
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
    """

    samples: tuple[float, ...]
    peak_bytes: int | None
    first: bool = False

    def noted(self, message: object = "") -> str:
        """Return the message of a row, and `FIRST_CALL` if that has to be said of the time."""
        return "; ".join(str(part) for part in (message, FIRST_CALL * self.first) if part)

    @property
    def seconds(self) -> float:
        """The fastest sample."""
        return min(self.samples)


def prepare(
    method: Method, problem: Problem, most: int = PREPARED
) -> tuple[Prepared, tuple[float, ...]]:
    """Prepare `method` for `problem`; return the derivative and the seconds of each preparation.

    A quick preparation is repeated, `most` times in all, and its first sample is then dropped: it
    includes imports, which belong to the process and not to the method. A derivative that is
    prepared in another process reports its own time, without the time to start the process.
    """
    samples: list[float] = []
    quick = min(QUICK, problem.seconds_left() / 10)
    while not samples or (len(samples) < most and sum(samples) < quick):
        with Stopwatch() as watch:
            prepared = method.prepare(problem)
            samples.append(watch.seconds())
        if isinstance(prepared, SelfMeasured):
            return prepared, (prepared.prepare_seconds,)
    return prepared, tuple(samples[1:] or samples)


@dataclass(frozen=True)
class MethodCall:
    """A prepared derivative at a point, and the remaining time of its method.

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

    @property
    def is_long(self) -> bool:
        """Whether another measurement would exceed the deadline."""
        return self.first is not None and 2 * self.first >= self.deadline.remaining()

    def elapsed(self, repeats: int) -> float:
        """Return the seconds that `repeats` calls take."""
        with self.deadline:
            if isinstance(self.prepared, SelfMeasured):
                return self.prepared.elapsed(self.x, repeats)
            return elapsed(partial(self.prepared, self.x), repeats)

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


def answer(
    method: Method, problem: Problem, x: NDArray[float64], preparations: int = PREPARED
) -> MethodAnswer:
    """Prepare a method and call it at `x`, within ``problem.timeout`` seconds together.

    The calls by which it is timed later have as many seconds again: what is left after preparing
    and the first call, which compile, would not tell whether a call is slow.

    A quick preparation is repeated, `preparations` times in all, to be timed.

    The time to start the process of a method that has one is not counted. The method receives a
    read-only copy of the point. A method of difflab that may exceed the time limit is stopped only
    if `difflab.lab.effort.Effort.stoppable` has moved it to a process.

    Raises
    ------
    MethodTimeout
        The method exceeded the time limit.
    DifflabError, or any exception
        The method cannot run in this environment or failed.
    """
    reason = method.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    if problem.order not in method.orders:
        raise UnsupportedError(f"the method has no derivatives of order {problem.order}")
    wait = getattr(method, "wait", None)
    if wait is not None:
        wait()
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


def timed_call(prepared: Prepared, x: NDArray[float64], budget: float = BUDGET) -> CallCost:
    """Measure the cost of one call of `prepared` at `x`, in at most about `budget` seconds.

    Memory is measured only if a call is short compared with the budget, since that is slower.
    """
    (cost,) = in_turns([MethodCall(prepared, x)], budget)
    if isinstance(cost, CallCost):
        return cost
    raise cost


def in_turns(calls: Sequence[MethodCall], budget: float = BUDGET) -> list[CallCost | BaseException]:
    """Measure the cost of several calls in turns: one sample of each per round.

    A temporary disturbance of the machine then affects all calls of a round, not only one of them.

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


def _known(call: MethodCall, sampler: TimeSampler) -> CallCost:
    """Return the known cost of a call whose deadline has passed."""
    if sampler.samples:
        return CallCost(tuple(sampler.samples), None)
    return CallCost((call.first or math.inf,), None, first=True)


def _cost(call: MethodCall, sampler: TimeSampler, budget: float) -> CallCost | BaseException:
    if min(sampler.samples) > budget / 4:
        return _known(call, sampler)
    try:
        return CallCost(tuple(sampler.samples), call.peak_bytes())
    except MethodTimeout:
        return _known(call, sampler)
    except (Exception, SystemExit) as error:
        return error


class TimeSampler:
    """Sampler of the seconds that one repetition takes.

    Parameters
    ----------
    run : callable
        ``run(repeats)``: return the seconds that `repeats` repetitions take.
    budget : float
        Seconds after which no further sample is started; there is always one.
    shortest : float
        The least seconds of a sample.

    Attributes
    ----------
    samples : list of float
        Seconds of one repetition.
    spent : float
        Seconds of all samples together.

    Examples
    --------
    >>> quick, slow = TimeSampler(lambda repeats: 0.001 * repeats), TimeSampler(lambda repeats: 3.0)
    >>> for _ in range(3):
    ...     quick.take()
    ...     slow.take()
    >>> quick.samples, slow.samples
    ([0.001, 0.001, 0.001], [3.0])
    """

    def __init__(
        self, run: Callable[[int], float], budget: float = BUDGET, shortest: float = BRIEF
    ) -> None:
        self.samples: list[float] = []
        self.spent = 0.0
        self._run = run
        self._budget = budget
        self._shortest = shortest
        self._seconds = 0.0
        self._repeats = 0

    def take(self) -> None:
        """Take a sample, unless that would exceed the budget."""
        if not self.samples or self.spent + self._seconds <= self._budget:
            self.samples.append(self.measured())

    def measured(self) -> float:
        """Return the seconds of one repetition; the first time, find how many a sample needs."""
        if self._repeats:
            self._seconds = self._run(self._repeats)
        else:
            self._repeats = 1
            while (seconds := self._run(self._repeats)) < self._shortest:
                self._repeats *= 2
            self._seconds = seconds
        self.spent += self._seconds
        return self._seconds / self._repeats


def spread(samples: Sequence[float]) -> float:
    """Return the interquartile range of `samples` over their median.

    Examples
    --------
    >>> spread([1.0, 1.9, 2.0, 2.1, 9.0])
    0.1
    """
    low, middle, high = np.percentile(samples, (25, 50, 75)).tolist()
    return round((high - low) / middle, 12) if middle else 0.0


@dataclass(frozen=True)
class Pairs:
    """Two calls measured in turns.

    Attributes
    ----------
    first, second : tuple of float
        Seconds per call, one element per round.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """The second's time over the first's, round by round: a drift of both cancels."""
        return tuple(b / a for a, b in zip(self.first, self.second, strict=True))


def paired(
    first: Callable[[], object],
    second: Callable[[], object],
    budget: float = BUDGET,
    clock: Callable[[Callable[[], object], int], float] = elapsed,
) -> Pairs:
    """Measure two calls in turns, A B, B A, A B, …, in at most about `budget` seconds.

    A turn is the fastest of `LOOKS` samples, or one sample if it is long, since a disturbance
    makes a sample longer. A disturbance longer than a round affects both calls, so that the ratio
    of the round is preserved.

    Parameters
    ----------
    first, second : callable
        The calls to measure, without arguments.
    budget : float
        Seconds after which no further round is started; there is always one.
    clock : callable
        ``clock(call, repeats)``: return the seconds that `repeats` calls take.

    Examples
    --------
    >>> speeds = {min: 0.001, max: 0.003}
    >>> paired(min, max, clock=lambda call, repeats: speeds[call] * repeats).ratios[:2]
    (3.0, 3.0)
    """
    samplers = [TimeSampler(partial(clock, call), shortest=SHORTEST) for call in (first, second)]
    for sampler in samplers:
        sampler.measured()
    looks = LOOKS if sum(sampler.spent for sampler in samplers) < QUICK else 1
    found: tuple[list[float], list[float]] = ([], [])
    while len(found[0]) < ROUNDS:
        if found[0] and sum(sampler.spent for sampler in samplers) >= budget:
            break
        for index in (0, 1) if len(found[0]) % 2 == 0 else (1, 0):
            found[index].append(min(samplers[index].measured() for _ in range(looks)))
    return Pairs(tuple(found[0]), tuple(found[1]))

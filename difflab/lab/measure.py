"""What preparing and calling a derivative cost: time and memory, apart from each other.

A time is the smallest of several samples, since everything that disturbs a measurement makes
it longer; each sample repeats the call as often as it takes to last long enough for the clock
(the repeats double, as in ADBench, Šrajer et al. 2018). Samples are short against the slices of
time that a busy machine deals out, so that most of them are undisturbed; what is compared is
measured in turns. The raw samples are kept. Memory is
measured in a call of its own, since tracing allocations slows a call down severalfold.
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
    "MethodAnswer",
    "MethodCall",
    "CallCost",
    "Pairs",
    "TimeSampler",
    "SelfMeasured",
    "answer",
    "in_turns",
    "paired",
    "prepare",
    "spread",
    "timed_call",
]

SHORTEST = 2e-3  # a sample of a pair lasts at least so long: 20,000 ticks of a 100 ns clock
BRIEF = 5e-4  # a sample of one among several calls: 5,000 ticks of such a clock
SAMPLES = 15
PREPARED = 5  # times that what is prepared quickly is prepared
ROUNDS = 31  # of two calls in turns
LOOKS = 3  # at a short call in one turn, of which the fastest counts: others may use the machine
BUDGET = 0.5  # seconds after which no further sample of one call is begun
QUICK = 0.5  # seconds of preparing after which nothing is prepared again


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
    """What one call costs.

    Attributes
    ----------
    samples : tuple of float
        Seconds a call, one number per sample.
    peak_bytes : int or None
        The memory that one call allocates at its peak; None where it was not measured.
    """

    samples: tuple[float, ...]
    peak_bytes: int | None

    @property
    def seconds(self) -> float:
        """The fastest sample."""
        return min(self.samples)


def prepare(method: Method, problem: Problem) -> tuple[Prepared, tuple[float, ...]]:
    """Prepare `method` for `problem` and return it with the seconds that took, several times.

    What is prepared quickly is prepared again, and the first time does not count then: it pays
    for imports, which belong to the process and not to the method. A derivative that is
    prepared in another process reports its own time, without the time to start the process.
    """
    samples: list[float] = []
    quick = min(QUICK, problem.seconds_left() / 10)
    while not samples or (len(samples) < PREPARED and sum(samples) < quick):
        with Stopwatch() as watch:
            prepared = method.prepare(problem)
            samples.append(watch.seconds())
        if isinstance(prepared, SelfMeasured):
            return prepared, (prepared.prepare_seconds,)
    return prepared, tuple(samples[1:] or samples)


@dataclass(frozen=True)
class MethodCall:
    """A prepared derivative at a point, and the time that its method has left.

    Attributes
    ----------
    prepared : Prepared
        What is called.
    x : ndarray
        The point.
    deadline : Deadline
        The time for all calls together.
    first : float or None
        Seconds of a call that was made before, all that is stated where no more fit the time.
    """

    prepared: Prepared
    x: NDArray[float64]
    deadline: Deadline = field(default_factory=lambda: Deadline(math.inf))
    first: float | None = None

    @property
    def is_long(self) -> bool:
        """Whether measuring it again would not end in time."""
        return self.first is not None and 2 * self.first >= self.deadline.remaining()

    def elapsed(self, repeats: int) -> float:
        """Return the seconds that so many calls take."""
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
    """What one method gave at one point, within its time.

    Attributes
    ----------
    estimate : Estimate
        The derivative.
    prepare_samples : tuple of float
        What preparing took, each time.
    call : MethodCall
        The call that gave it, to be measured.
    """

    estimate: Estimate
    prepare_samples: tuple[float, ...]
    call: MethodCall


def answer(method: Method, problem: Problem, x: NDArray[float64]) -> MethodAnswer:
    """Prepare a method and call it at `x`, in ``problem.timeout`` seconds together.

    The time until a process has started, where the method runs in one, is not counted. The
    method has its own copy of the point, which it cannot change. A method of difflab's own that
    may be long ends in time where `difflab.lab.effort.Effort.stoppable` has put it.

    Raises
    ------
    MethodTimeout
        It took longer.
    DifflabError, or anything
        The method cannot run here or failed.
    """
    reason = method.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    if problem.order not in method.orders:
        raise UnsupportedError(f"it gives no derivatives of order {problem.order}")
    wait = getattr(method, "wait", None)
    if wait is not None:
        wait()
    x = x.copy()
    x.flags.writeable = False
    with Deadline(problem.timeout) as deadline:
        prepared, samples = prepare(method, replace(problem, deadline=deadline))
        began = perf_counter()
        estimate = prepared(x)
        first = perf_counter() - began
    return MethodAnswer(estimate, samples, MethodCall(prepared, x, deadline, first))


def timed_call(prepared: Prepared, x: NDArray[float64], budget: float = BUDGET) -> CallCost:
    """Measure what one call of `prepared` at `x` costs, in at most about `budget` seconds.

    The memory is measured where a call is short against the budget, since it is slower then.
    """
    (cost,) = in_turns([MethodCall(prepared, x)], budget)
    if isinstance(cost, CallCost):
        return cost
    raise cost


def in_turns(calls: Sequence[MethodCall], budget: float = BUDGET) -> list[CallCost | BaseException]:
    """Measure what a call of each costs, one sample of each after the other, round by round.

    What disturbs the machine for a while disturbs a round of all, so that none looks slow for
    having been measured last.

    Parameters
    ----------
    calls : sequence of MethodCall
        What is measured.
    budget : float
        Seconds for each, after which no further sample of it is begun; there is always one.

    Returns
    -------
    list of CallCost or exception
        What each costs, or what it raised.
    """
    samplers = [TimeSampler(call.elapsed, min(budget, call.deadline.remaining())) for call in calls]
    places = range(len(calls))
    ended: dict[int, CallCost | BaseException] = {
        place: _known(calls[place], samplers[place]) for place in places if calls[place].is_long
    }
    for number in range(SAMPLES):
        for place in places if number % 2 == 0 else reversed(places):
            if place in ended:
                continue
            try:
                samplers[place].take()
            except MethodTimeout:
                ended[place] = _known(calls[place], samplers[place])
            except (Exception, SystemExit) as error:  # a plug-in may fail in any way
                ended[place] = error
    return [
        ended[place] if place in ended else _cost(calls[place], samplers[place], budget)
        for place in places
    ]


def _known(call: MethodCall, sampler: TimeSampler) -> CallCost:
    """Return what is known of a call whose time is over."""
    return CallCost(tuple(sampler.samples) or (call.first or math.inf,), None)


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
    """Takes samples of the seconds that one repetition takes.

    Parameters
    ----------
    run : callable
        ``run(repeats)``: seconds that so many repetitions take.
    budget : float
        Seconds after which no further sample is begun; there is always one.

    Attributes
    ----------
    samples : list of float
        Seconds of one repetition.

    Examples
    --------
    >>> quick, slow = TimeSampler(lambda repeats: 0.001 * repeats), TimeSampler(lambda repeats: 3.0)
    >>> for _ in range(3):
    ...     quick.take()
    ...     slow.take()
    >>> quick.samples, slow.samples
    ([0.001, 0.001, 0.001], [3.0])
    """

    def __init__(self, run: Callable[[int], float], budget: float = BUDGET) -> None:
        self.samples: list[float] = []
        self._run = run
        self._budget = budget
        self._spent = 0.0
        self._seconds = 0.0
        self._repeats = 1

    def take(self) -> None:
        """Take a sample, unless that would exceed the budget."""
        if not self.samples:
            while (seconds := self._run(self._repeats)) < BRIEF:
                self._repeats *= 2
        elif self._spent + self._seconds > self._budget:
            return
        else:
            seconds = self._run(self._repeats)
        self._seconds = seconds
        self._spent += seconds
        self.samples.append(seconds / self._repeats)


def spread(samples: Sequence[float]) -> float:
    """Return the distance between the quartiles of some times, over their median.

    Examples
    --------
    >>> spread([1.0, 1.9, 2.0, 2.1, 9.0])
    0.1
    """
    low, middle, high = np.percentile(samples, (25, 50, 75)).tolist()
    return round((high - low) / middle, 12) if middle else 0.0


@dataclass(frozen=True)
class Pairs:
    """Two calls measured in turns: seconds a call, one number of each for every round.

    Attributes
    ----------
    first, second : tuple of float
        Seconds a call.
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

    A turn is the fastest of `LOOKS` samples, one where a sample is long; whoever disturbs a
    sample makes it longer. What lasts longer than a round disturbs both calls, and the ratio of
    the round stays.

    Parameters
    ----------
    first, second : callable
        What is measured, without arguments.
    budget : float
        Seconds after which no further round is begun; there is always one.
    clock : callable
        ``clock(call, repeats)``: the seconds that so many calls take.

    Examples
    --------
    >>> speeds = {min: 0.001, max: 0.003}
    >>> paired(min, max, clock=lambda call, repeats: speeds[call] * repeats).ratios[:2]
    (3.0, 3.0)
    """
    calls, repeats, spent = (first, second), [1, 1], 0.0
    for place, call in enumerate(calls):
        while (seconds := clock(call, repeats[place])) < SHORTEST:
            repeats[place] *= 2
            spent += seconds
        spent += seconds
    looks = LOOKS if spent < QUICK else 1
    found: tuple[list[float], list[float]] = ([], [])
    while len(found[0]) < ROUNDS and (not found[0] or spent < budget):
        for place in (0, 1) if len(found[0]) % 2 == 0 else (1, 0):
            samples = [clock(calls[place], repeats[place]) for _ in range(looks)]
            spent += sum(samples)
            found[place].append(min(samples) / repeats[place])
    return Pairs(tuple(found[0]), tuple(found[1]))

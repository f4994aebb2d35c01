"""What preparing and calling a derivative cost: time and memory, apart from each other.

A time is the smallest of several samples, since everything that disturbs a measurement makes
it longer; each sample repeats the call as often as it takes to last long enough for the clock
(the repeats double, as in ADBench, Šrajer et al. 2018). The raw samples are kept. Memory is
measured in a call of its own, since tracing allocations slows a call down severalfold.
May import `difflab.methods` and `difflab.errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol, runtime_checkable

from numpy import float64
from numpy.typing import NDArray

from difflab.errors import MethodTimeout, UnsupportedError
from difflab.methods.deadline import Deadline
from difflab.methods.meter import elapsed, peak_of
from difflab.methods.protocol import Estimate, Method, Prepared, Problem

__all__ = [
    "Answer",
    "Cost",
    "Pairs",
    "SelfMeasured",
    "answer",
    "paired",
    "prepare",
    "sample",
    "timed_call",
]

SHORTEST = 2e-3  # a sample lasts at least so long: 20,000 ticks of a 100 ns clock
SAMPLES = 5
ROUNDS = 31  # of two calls in turns
LOOKS = 3  # at a short call in one turn, of which the fastest counts: others may use the machine
BUDGET = 0.5  # seconds after which no further sample of one call is begun
QUICK = 0.5  # what is prepared faster than this is prepared again, to leave out first imports


@runtime_checkable
class SelfMeasured(Protocol):
    """A prepared derivative that lives in another process and reads the clock there."""

    prepare_seconds: float

    def elapsed(self, x: NDArray[float64], repeats: int) -> float:
        """Return the seconds that `repeats` calls at `x` take."""

    def peak_bytes(self, x: NDArray[float64]) -> int:
        """Return the memory that one call at `x` takes at its peak."""


@dataclass(frozen=True)
class Cost:
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


def prepare(method: Method, problem: Problem) -> tuple[Prepared, float]:
    """Prepare `method` for `problem` and return it with the seconds that took.

    What is prepared quickly is prepared twice more, and the fastest counts: the first run
    pays for imports that belong to the process and not to the method. A derivative that is
    prepared in another process reports its own time, without the time to start the process.
    """
    start = perf_counter()
    prepared = method.prepare(problem)
    seconds = perf_counter() - start
    if isinstance(prepared, SelfMeasured):
        return prepared, prepared.prepare_seconds
    for _ in range(2):
        if seconds > min(QUICK, problem.seconds_left() / 10):
            break
        start = perf_counter()
        prepared = method.prepare(problem)
        seconds = min(seconds, perf_counter() - start)
    return prepared, seconds


def timed_call(prepared: Prepared, x: NDArray[float64], budget: float = BUDGET) -> Cost:
    """Measure what one call of `prepared` at `x` costs, in at most about `budget` seconds.

    The memory is measured where a call is short against the budget, since it is slower then.
    """
    if isinstance(prepared, SelfMeasured):
        remote = prepared
        samples = sample(lambda repeats: remote.elapsed(x, repeats), budget)
    else:
        samples = sample(lambda repeats: elapsed(lambda: prepared(x), repeats), budget)
    if min(samples) > budget / 4:
        return Cost(samples, None)
    if isinstance(prepared, SelfMeasured):
        return Cost(samples, prepared.peak_bytes(x))
    return Cost(samples, peak_of(lambda: prepared(x)))


@dataclass(frozen=True)
class Answer:
    """What one method gave at one point, within its time.

    Attributes
    ----------
    estimate : Estimate
        The derivative.
    prepare_seconds : float
        What preparing took.
    prepared : Prepared
        What was called.
    """

    estimate: Estimate
    prepare_seconds: float
    prepared: Prepared
    _x: NDArray[float64]
    _first: float
    _deadline: Deadline

    def cost(self) -> Cost:
        """Measure what one call costs in what is left of the time: at least the first call."""
        left = self._deadline.remaining()
        if 2 * self._first < left:
            with suppress(MethodTimeout):
                return timed_call(self.prepared, self._x, min(BUDGET, left))
        return Cost((self._first,), None)


def answer(method: Method, problem: Problem, x: NDArray[float64]) -> Answer:
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
    deadline = Deadline(problem.timeout)
    prepared, seconds = prepare(method, replace(problem, deadline=deadline))
    began = perf_counter()
    estimate = prepared(x)
    return Answer(estimate, seconds, prepared, x, perf_counter() - began, deadline)


def sample(run: Callable[[int], float], budget: float = BUDGET) -> tuple[float, ...]:
    """Return samples of the seconds that one repetition takes.

    Parameters
    ----------
    run : callable
        ``run(repeats)``: seconds that so many repetitions take.
    budget : float
        Seconds after which no further sample is begun; there is always one.

    Examples
    --------
    >>> sample(lambda repeats: 0.001 * repeats)
    (0.001, 0.001, 0.001, 0.001, 0.001)
    >>> sample(lambda repeats: 3.0 * repeats)
    (3.0,)
    """
    repeats, spent = 1, 0.0
    seconds = run(repeats)
    while seconds < SHORTEST:
        repeats *= 2
        seconds = run(repeats)
    samples = [seconds / repeats]
    spent = seconds
    while len(samples) < SAMPLES and spent + seconds <= budget:
        seconds = run(repeats)
        samples.append(seconds / repeats)
        spent += seconds
    return tuple(samples)


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

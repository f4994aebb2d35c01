"""What preparing and calling a derivative cost: time and memory, apart from each other.

A time is the smallest of several samples, since everything that disturbs a measurement makes
it longer; each sample repeats the call as often as it takes to last long enough for the clock
(the repeats double, as in ADBench, Šrajer et al. 2018). The raw samples are kept. Memory is
measured in a call of its own, since tracing allocations slows a call down severalfold.
May import `difflab.methods`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, runtime_checkable

from numpy import float64
from numpy.typing import NDArray

from difflab.methods.meter import elapsed, peak_of
from difflab.methods.protocol import Method, Prepared, Problem

__all__ = ["Cost", "SelfMeasured", "prepare", "sample", "timed_call"]

SHORTEST = 2e-3  # a sample lasts at least so long: 20,000 ticks of a 100 ns clock
SAMPLES = 5
BUDGET = 0.5  # seconds after which no further sample of one call is begun
QUICK = 0.05  # what is prepared faster than this is prepared again, to leave out first imports


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

    What is prepared in no time is prepared twice more, and the fastest counts: the first run
    pays for imports that belong to the process and not to the method. A derivative that is
    prepared in another process reports its own time, without the time to start the process.
    """
    start = perf_counter()
    prepared = method.prepare(problem)
    seconds = perf_counter() - start
    if isinstance(prepared, SelfMeasured):
        return prepared, prepared.prepare_seconds
    for _ in range(2):
        if seconds > QUICK:
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

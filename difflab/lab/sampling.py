"""Samples of the time of a call, alone and alternating with another.

A sample repeats the call until it is long enough for the clock (the repeats double, as in ADBench,
Šrajer et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles

from difflab.methods.timer import elapsed

SHORTEST = 2e-3  # minimum seconds of a sample of a pair: 20,000 ticks of a 100 ns clock
BRIEF = 5e-4  # minimum seconds of a sample of one of several calls: 5,000 such ticks
ROUNDS = 31  # of two alternating calls
LOOKS = 3  # samples of a short call in one round; the fastest counts
BUDGET = 0.5  # seconds after which no further sample of one call is started
QUICK = 0.5  # seconds of a measurement after which it is not repeated


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


def quartiles(samples: Sequence[float]) -> list[float]:
    """Return the quartiles of a few samples, linear between two of them.

    `numpy.percentile` would import `numpy.ma`, which no comparison needs.

    Examples
    --------
    >>> quartiles([1.0, 2.0, 4.0])
    [1.5, 2.0, 3.0]
    """
    return quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [*samples] * 3


def spread(samples: Sequence[float]) -> float:
    """Return the interquartile range of `samples` over their median.

    Examples
    --------
    >>> spread([1.0, 1.9, 2.0, 2.1, 9.0])
    0.1
    """
    low, middle, high = quartiles(samples)
    return round((high - low) / middle, 12) if middle else 0.0


RATIOS: Mapping[str, type[float]] = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), float)
"""The columns of the ratio of two times: its median and quartiles over the rounds."""


@dataclass(frozen=True)
class Pairs:
    """Two calls measured alternately.

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

    def columns(self, first: str) -> dict[str, float | int]:
        """Return the columns of the second call, and the seconds of the first under its name."""
        low, middle, high = quartiles(self.ratios)
        return {
            "call_seconds": median(self.second),
            first: median(self.first),
            **dict(zip(RATIOS, (middle, low, high), strict=True)),
            "repetitions": len(self.ratios),
            "spread": spread(self.second),
        }


def paired(
    first: Callable[[], object],
    second: Callable[[], object],
    budget: float = BUDGET,
    clock: Callable[[Callable[[], object], int], float] = elapsed,
) -> Pairs:
    """Measure two calls alternately, A B, B A, A B, …, in at most about `budget` seconds.

    In a round, a call is timed by the fastest of `LOOKS` samples, or by one sample if it is long,
    since a disturbance makes a sample longer. A disturbance longer than a round affects both calls,
    so that the ratio of the round is preserved.

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
    times: tuple[list[float], list[float]] = ([], [])
    while len(times[0]) < ROUNDS:
        if times[0] and sum(sampler.spent for sampler in samplers) >= budget:
            break
        for index in (0, 1) if len(times[0]) % 2 == 0 else (1, 0):
            times[index].append(min(samplers[index].measured() for _ in range(looks)))
    return Pairs(tuple(times[0]), tuple(times[1]))

"""Whether a call became slower: a test on its times, paired round by round with a yardstick.

In each round of a block the call and the yardstick are timed directly after one another, so that
the speed of the machine cancels in their ratio. A core that is shared with other work slows the
two by different factors, so only *quiet* rounds count, those in which the yardstick itself is
within 20 % of the fastest of both runs: which rounds these are does not depend on the code under
test. A block is prepared anew, and the medians of the blocks are the sample: rounds of one block
share the places of code and data in memory, by which equal code differs by some per cent (Mytkowicz
et al., "Producing wrong data without doing anything obviously wrong", ASPLOS 2009). Such
differences between two processes are within the margin of 2 %, beyond which Welch's one-sided
t-test has to find a slowdown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy import float64
from numpy.typing import NDArray

__all__ = ["LEVEL", "Blocks", "TimeChange", "time_change"]

Blocks = Sequence[tuple[Sequence[float], Sequence[float]]]
"""For each block the seconds of a call, and of the yardstick (or none), one element per round."""

LEVEL = 0.005
"""The probability of a false alarm among all tests of one comparison of two sets of records."""

_MARGIN = math.log(1.02)
_ALONE = math.log(1.25)  # the margin without a yardstick: the machine's own speed is in the times
_QUIET = 1.2
_FEWEST_ROUNDS = 3  # of a block
_FEWEST_BLOCKS = 3
_FINEST = 0.004  # standard deviation that the logarithms of two blocks have at least
_BATCH = 3  # rounds of a batch, which stands for a block where there is no yardstick


@dataclass(frozen=True)
class TimeChange:
    """The change of a call's time.

    Attributes
    ----------
    ratio : float
        New time over old time.
    slower, faster : float
        The probabilities to see this ratio or a larger (smaller) one without a change beyond the
        margin.
    """

    ratio: float
    slower: float
    faster: float


def time_change(old: Blocks, new: Blocks) -> TimeChange | None:
    """Return the change of a call's time; None if there are too few undisturbed samples.

    Examples
    --------
    >>> old = [([1.00, 1.01, 1.02], [2.0, 2.0, 2.0])] * 5
    >>> new = [([1.10, 1.11, 1.12], [2.0, 2.0, 2.0])] * 5
    >>> change = time_change(old, new)
    >>> round(change.ratio, 3), change.slower < 1e-6, change.faster > 0.99
    (1.099, True, True)
    """
    paired = all(yard for block in (old, new) for _, yard in block)
    fastest = min((s for block in (old, new) for _, yard in block for s in yard), default=math.inf)
    first, second = (
        _ratios(blocks, fastest) if paired else _times(blocks) for blocks in (old, new)
    )
    if min(len(first), len(second)) < _FEWEST_BLOCKS:
        return None
    difference = float(np.mean(second) - np.mean(first))
    # Welch's test, with a variance that few blocks cannot underestimate by chance.
    parts = [max(float(np.var(x, ddof=1)), _FINEST**2) / len(x) for x in (first, second)]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(x) - 1) for part, x in zip(parts, (first, second), strict=True)
    )
    margin = _MARGIN if paired else _ALONE
    from scipy.special import stdtr

    slower, faster = (
        float(stdtr(freedom, (margin - sign * difference) / error)) for sign in (1, -1)
    )
    return TimeChange(math.exp(difference), slower, faster)


def _ratios(blocks: Blocks, fastest: float) -> NDArray[float64]:
    """Return the logarithm of the median ratio in the quiet rounds of each block."""
    found = []
    for call, yard in blocks:
        quiet = [a / b for a, b in zip(call, yard, strict=True) if b <= _QUIET * fastest]
        if len(quiet) >= _FEWEST_ROUNDS:
            found.append(math.log(median(quiet)))
    return np.array(found)


def _times(blocks: Blocks) -> NDArray[float64]:
    """Return the logarithm of the median time of each batch of rounds."""
    calls = [s for call, _ in blocks for s in call]
    batches = [calls[k : k + _BATCH] for k in range(0, len(calls) - _BATCH + 1, _BATCH)]
    return np.array([math.log(median(batch)) for batch in batches])

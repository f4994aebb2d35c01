"""Revolve: which states of a chain to keep, so that reversing it repeats the fewest steps.

Reversing step k of a chain needs the state before it. Binomial checkpointing keeps at most
s states at a time and repeats the fewest forward steps (Griewank & Walther, Algorithm 799:
revolve, ACM TOMS 26, 2000, after Griewank, 1992). Pure arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from difflab.errors import InputError


def beta(snapshots: int, repeats: int) -> int:
    r"""Return the length of the longest chain that s snapshots reverse with r repetitions at most.

    .. math:: \beta(s, r) = \binom{s + r}{s}

    Examples
    --------
    >>> beta(3, 2)
    10
    """
    return comb(snapshots + repeats, snapshots) if repeats >= 0 else 0


def repetitions(steps: int, snapshots: int) -> int:
    """Return r with β(s, r - 1) < steps ≤ β(s, r): the largest number of repetitions of a step.

    Examples
    --------
    >>> repetitions(10, 3), repetitions(11, 3)
    (2, 3)
    """
    _require(steps, snapshots)
    low, high = -1, 0
    while beta(snapshots, high) < steps:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        if beta(snapshots, middle) < steps:
            low = middle
        else:
            high = middle
    return high


def forward_steps(steps: int, snapshots: int) -> int:
    r"""Return the minimal number of forward steps beside the recorded ones.

    .. math:: t(l, s) = r\,l - \beta(s + 1, r - 1)

    with r as in `repetitions`; the initial state counts as one of the s snapshots.

    Examples
    --------
    >>> forward_steps(10, 3)
    15
    """
    repeats = repetitions(steps, snapshots)
    return repeats * steps - beta(snapshots + 1, repeats - 1)


def kept_states(start: int, end: int, free: int) -> Iterator[int]:
    """Yield the steps before which to keep states, from the kept state `start` to ``end - 1``.

    Parameters
    ----------
    start, end : int
        The steps from `start` up to `end` (exclusive) are still to be reversed.
    free : int
        The number of further states that may be kept.

    Examples
    --------
    >>> list(kept_states(0, 10, 2))
    [4, 7]
    """
    while free > 0:
        start += _first_part(end - start, free + 1)
        if start >= end - 1:  # the last step is recorded immediately: its state is not kept
            return
        yield start
        free -= 1


def _first_part(steps: int, snapshots: int) -> int:
    """Return the number of steps to the next state to keep; `snapshots` includes the current one.

    Both parts then stay within their own optimum: β(s, r-2) ≤ k ≤ β(s, r-1) for the first,
    and β(s-1, r-1) ≤ l - k ≤ β(s-1, r) for the rest.
    """
    repeats = repetitions(steps, snapshots)
    return max(1, beta(snapshots, repeats - 2), steps - beta(snapshots - 1, repeats))


def _require(steps: int, snapshots: int) -> None:
    if steps < 1 or snapshots < 1:
        raise InputError(
            f"revolve needs at least 1 step and 1 snapshot, not {steps} and {snapshots}",
            hint="the initial state counts as a snapshot",
        )

r"""Profiles of methods over a set of problems.

The performance profile of a method is the share of problems on which it is right and costs at most
τ times as much as the cheapest right method (Dolan, Moré, Math. Program. 91 (2002) 201-213):

.. math:: \rho_s(\tau) = \frac{1}{|P|} |\{p : t_{p,s} \le \tau \min_{s'} t_{p,s'}\}|

A method that gives no right answer has the cost infinity. The accuracy profile is the share of
problems on which the largest error of an element is at most so many ULP.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from difflab.lab.sweep import SweepRow

CALLS = 1000
"""Calls in the cost of many derivatives, as in the recommendation of a comparison."""
RIGHT = ("agree", "convention")
"""The verdicts that count as an answer."""


@dataclass(frozen=True)
class Profiles:
    """The figures of every method, one for every problem; infinite where there is no answer.

    Attributes
    ----------
    problems : tuple of str
    once, often : mapping of str to tuple of float
        The cost of one derivative, and of `CALLS` of them, over that of the cheapest method.
    ulps : mapping of str to tuple of float
        The largest error.
    """

    problems: tuple[str, ...]
    once: Mapping[str, tuple[float, ...]]
    often: Mapping[str, tuple[float, ...]]
    ulps: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, rows: Sequence[SweepRow]) -> Profiles:
        """Return the profiles of the rows of `difflab.bench.problems.bench`."""
        names = tuple(dict.fromkeys(str(row["problem"]) for row in rows))
        by_method: dict[str, dict[str, SweepRow]] = {}
        for row in rows:
            by_method.setdefault(str(row["method"]), {})[str(row["problem"])] = row
        costs = {
            calls: {
                method: [_cost(found.get(name), calls) for name in names]
                for method, found in by_method.items()
            }
            for calls in (1, CALLS)
        }
        ulps = {
            method: tuple(_ulps(found.get(name)) for name in names)
            for method, found in by_method.items()
        }
        return cls(names, ratios(costs[1]), ratios(costs[CALLS]), ulps)


def ratios(costs: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """Return the cost of every method over the smallest cost of the same problem.

    Examples
    --------
    >>> ratios({"a": [1.0, 4.0], "b": [2.0, math.inf]})
    {'a': (1.0, 1.0), 'b': (2.0, inf)}
    """
    least = [min(column) for column in zip(*costs.values(), strict=True)]
    return {
        name: tuple(
            own / best if math.isfinite(own) else math.inf
            for own, best in zip(row, least, strict=True)
        )
        for name, row in costs.items()
    }


def share(values: Iterable[float], limit: float) -> float:
    """Return the share of values that are at most `limit`.

    Examples
    --------
    >>> share([1.0, 3.0, math.inf, 2.0], 2)
    0.5
    """
    listed = list(values)
    return sum(value <= limit for value in listed) / len(listed)


def _right(row: SweepRow | None) -> bool:
    return row is not None and row["verdict"] in RIGHT


def _cost(row: SweepRow | None, calls: int) -> float:
    """Return the seconds of preparing and calling; infinity without a right answer."""
    if row is None or not _right(row):
        return math.inf
    prepare, call = row["prepare_seconds"], row["call_seconds"]
    if prepare is None or call is None:
        return math.inf
    return float(prepare) + calls * float(call)


def _ulps(row: SweepRow | None) -> float:
    if row is None or row["ulps"] is None or row["status"] != "ok":
        return math.inf
    found = float(row["ulps"])
    return math.inf if math.isnan(found) else found

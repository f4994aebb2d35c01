"""Which method costs least in all for a number of calls: preparation + calls · time of a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from difflab.bench.dimensions.fits import PowerLaw, power_law
from difflab.lab.sweep import SweepRow

COLUMNS = ("operations", "call_seconds", "peak_bytes", "prepare_seconds")
Size = tuple[int, int]
Interval = tuple[float, float]
SizedCosts = Mapping[Size, Mapping[str, "Cost"]]


@dataclass(frozen=True)
class Cost:
    """Seconds of preparing and of one call; whether they are extrapolated."""

    prepare: float
    call: float
    extrapolated: bool = False

    def total(self, calls: float) -> float:
        """Return the seconds of preparing once and calling `calls` times."""
        return self.prepare + calls * self.call


def size_of(row: SweepRow) -> Size:
    """Return n and m of a row."""
    return int(row["n"] or 1), int(row["m"] or 1)


def laws(rows: Iterable[SweepRow], column: str) -> dict[str, PowerLaw]:
    """Return the power law of a column for every method that has enough sizes."""
    samples: dict[str, list[tuple[int, int, float]]] = {}
    for row in rows:
        if row["status"] == "ok" and row[column] is not None:
            samples.setdefault(str(row["method"]), []).append(
                (*size_of(row), float(row[column] or 0))
            )
    found = {name: power_law(points) for name, points in samples.items()}
    return {name: law for name, law in found.items() if law is not None}


def costs(rows: Sequence[SweepRow]) -> dict[Size, dict[str, Cost]]:
    """Return the cost of every method at every size.

    At a size where a method timed out its cost is extrapolated by its power laws, if it has them,
    and is not below the time limit; a method that cannot answer or disagrees has no cost there.
    """
    calls, prepares = laws(rows, "call_seconds"), laws(rows, "prepare_seconds")
    found: dict[Size, dict[str, Cost]] = {}
    for row in rows:
        size, name = size_of(row), str(row["method"])
        cell = found.setdefault(size, {})
        if row["status"] == "ok" and row["call_seconds"] is not None:
            cell[name] = Cost(float(row["prepare_seconds"] or 0), float(row["call_seconds"]))
        elif row["status"] == "timeout" and name in calls and name in prepares:
            call = calls[name].at(*size)
            # Preparing and one call took longer than the time limit, whatever the laws say.
            prepare = max(prepares[name].at(*size), float(row["timeout"] or 0) - call)
            cell[name] = Cost(prepare, call, extrapolated=True)
    return found


def pays(first: Cost, second: Cost) -> Interval | None:
    """Return the numbers of calls for which `first` costs no more than `second`, or None.

    The costs cross once, at the break-even ``k = (p₁ - p₂)/(c₂ - c₁)``.

    Examples
    --------
    >>> pays(Cost(1.0, 0.25), Cost(0.0, 0.75)), pays(Cost(1.0, 1.0), Cost(0.5, 0.5))
    ((2.0, inf), None)
    """
    dearer, slower = first.prepare - second.prepare, first.call - second.call
    low, high = 1.0, math.inf
    if slower == 0:
        return (low, high) if dearer <= 0 else None
    break_even = -dearer / slower
    if slower < 0:
        low = max(low, break_even)
    else:
        high = break_even
    return (low, high) if low <= high else None


def envelope(cell: Mapping[str, Cost]) -> dict[str, Interval]:
    """Return the numbers of calls for which each method costs least, in their order.

    Examples
    --------
    >>> envelope({"a": Cost(0.0, 3.0), "b": Cost(8.0, 1.0), "c": Cost(9.0, 2.0)})
    {'a': (1.0, 4.0), 'b': (4.0, inf)}
    """
    found: dict[str, Interval] = {}
    for name, cost in cell.items():
        low, high = 1.0, math.inf
        for other, its in cell.items():
            part = (low, high) if other == name else pays(cost, its)
            if part is None:
                break
            low, high = max(low, part[0]), min(high, part[1])
        else:
            if low < high:
                found[name] = low, high
    return dict(sorted(found.items(), key=lambda item: item[1]))

"""Power laws fitted to costs, and which method costs least for a number of calls.

The cost is that of preparation + calls · time of a call. The laws are least squares on logarithms,
with confidence intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.lab.sweep import SweepRow

Array = NDArray[np.float64]
Sample = tuple[int, int, float]
"""n, m and a positive figure."""

CONFIDENCE = 0.95


class Exponent(NamedTuple):
    """An exponent and its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PowerLaw:
    """The law ``figure = scale · n^a · m^b``.

    Attributes
    ----------
    scale : float
    exponents : dict of str to Exponent
        Of each size that varies.
    samples : int
        How many samples were fitted.
    """

    scale: float
    exponents: dict[str, Exponent]
    samples: int

    def at(self, n: int, m: int) -> float:
        """Return the figure of the law at a size."""
        logs = {"n": math.log(n), "m": math.log(m)}
        power = sum(exponent.value * logs[name] for name, exponent in self.exponents.items())
        return math.exp(math.log(self.scale) + power)


def least_squares(design: Array, y: Array) -> tuple[Array, Array]:
    r"""Return the coefficients of a linear model and their standard errors.

    .. math:: \hat\beta = \arg\min \|X\beta - y\|, \qquad
        s_j^2 = \frac{\|X\hat\beta - y\|^2}{N - p} (X^T X)^{-1}_{jj}

    Parameters
    ----------
    design : ndarray of shape (N, p)
        N > p.
    y : ndarray of shape (N,)

    Examples
    --------
    >>> X = np.array([[1.0, 0], [1, 1], [1, 2]])
    >>> [part.round(3).tolist() for part in least_squares(X, np.array([0.0, 1, 1]))]
    [[0.167, 0.5], [0.373, 0.289]]
    """
    q, r = np.linalg.qr(design)
    coefficients = np.linalg.solve(r, q.T @ y)
    residual = y - design @ coefficients
    variance = float(residual @ residual) / (len(y) - design.shape[1])
    inverse = np.linalg.inv(r)
    return coefficients, np.sqrt(variance * np.sum(inverse**2, axis=1))


def power_law(samples: Sequence[Sample]) -> PowerLaw | None:
    """Fit a power law to the larger sizes of a figure.

    Fixed costs dominate at small sizes, so only sizes in the upper half of each range, on a
    logarithmic scale, are fitted if they are enough.

    Parameters
    ----------
    samples : sequence of (n, m, figure)
        Figures that are not positive are left out.

    Returns
    -------
    PowerLaw or None
        None if there are too few sizes for an interval.

    Examples
    --------
    >>> law = power_law([(n, 1, 3.0 * n**2) for n in (1, 2, 4, 8, 16, 32)])
    >>> round(law.exponents["n"].value, 9), round(law.at(100, 1))
    (2.0, 30000)
    """
    positive = [sample for sample in samples if sample[2] > 0]
    return _fitted(_upper(positive)) or _fitted(positive)


def _upper(samples: Sequence[Sample]) -> list[Sample]:
    chosen = list(samples)
    for axis in (0, 1):
        sizes = [sample[axis] for sample in samples]
        if sizes:
            middle = math.sqrt(min(sizes) * max(sizes))
            chosen = [sample for sample in chosen if sample[axis] >= middle]
    return chosen


def _fitted(samples: Sequence[Sample]) -> PowerLaw | None:
    from scipy.stats import t

    varying = [axis for axis in (0, 1) if len({sample[axis] for sample in samples}) > 1]
    free = len(samples) - 1 - len(varying)
    if not varying or free < 1:
        return None
    logs = np.log(np.array(samples, dtype=np.float64))
    design = np.column_stack([np.ones(len(samples)), *(logs[:, axis] for axis in varying)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    coefficients, errors = least_squares(design, logs[:, 2])
    half = float(t.ppf((1 + CONFIDENCE) / 2, free)) * errors
    exponents = {
        "nm"[axis]: Exponent(float(value), float(value - width), float(value + width))
        for axis, value, width in zip(varying, coefficients[1:], half[1:], strict=True)
    }
    return PowerLaw(math.exp(coefficients[0]), exponents, len(samples))


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
    samples: dict[str, list[Sample]] = {}
    for row in rows:
        if row["status"] == "ok" and row[column] is not None:
            samples.setdefault(str(row["method"]), []).append(
                (*size_of(row), float(row[column] or 0))
            )
    fitted = {name: power_law(points) for name, points in samples.items()}
    return {name: law for name, law in fitted.items() if law is not None}


def costs(rows: Sequence[SweepRow]) -> dict[Size, dict[str, Cost]]:
    """Return the cost of every method at every size.

    At a size where a method timed out its cost is extrapolated by its power laws, if it has them,
    and is not below the time limit; a method that cannot answer or disagrees has no cost there.
    """
    calls, prepares = laws(rows, "call_seconds"), laws(rows, "prepare_seconds")
    by_size: dict[Size, dict[str, Cost]] = {}
    for row in rows:
        size, name = size_of(row), str(row["method"])
        cell = by_size.setdefault(size, {})
        if row["status"] == "ok" and row["call_seconds"] is not None:
            cell[name] = Cost(float(row["prepare_seconds"] or 0), float(row["call_seconds"]))
        elif row["status"] == "timeout" and name in calls and name in prepares:
            call = calls[name].at(*size)
            # Preparing and one call took longer than the time limit, whatever the laws say.
            prepare = max(prepares[name].at(*size), float(row["timeout"] or 0) - call)
            cell[name] = Cost(prepare, call, extrapolated=True)
    return by_size


def pays(first: Cost, second: Cost) -> Interval | None:
    """Return the interval of calls for which `first` costs no more than `second`, or None.

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
    """Return the interval of call counts on which each method costs least, in ascending order.

    Examples
    --------
    >>> envelope({"a": Cost(0.0, 3.0), "b": Cost(8.0, 1.0), "c": Cost(9.0, 2.0)})
    {'a': (1.0, 4.0), 'b': (4.0, inf)}
    """
    intervals: dict[str, Interval] = {}
    for name, cost in cell.items():
        low, high = 1.0, math.inf
        for other, its in cell.items():
            part = (low, high) if other == name else pays(cost, its)
            if part is None:
                break
            low, high = max(low, part[0]), min(high, part[1])
        else:
            if low < high:
                intervals[name] = low, high
    return dict(sorted(intervals.items(), key=lambda item: item[1]))

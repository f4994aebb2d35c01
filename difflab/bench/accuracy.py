"""Error against step size: truncation above, rounding below, and the floor between them.

A difference quotient of order p errs by C·hᵖ + ε/h: on a log-log picture a line of slope p
meets a line of slope -1 (Baydin et al. 2018, Figure 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.bench.outcomes import outcome
from difflab.graph.function import Function
from difflab.lab import provenance
from difflab.lab.measure import answer
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import installed

__all__ = ["FORMULAS", "LAYOUT", "Fit", "Formula", "Subject", "fit", "steps", "tasks"]

Array = NDArray[float64]
Values = Callable[[NDArray[Any]], NDArray[Any]]

LAYOUT = provenance.layout(
    {
        "expression": str,
        "point": str,
        "method": str,
        "step": float,
        "status": str,
        "message": str,
        "absolute_error": float,
        "relative_error": float,
    },
    key=("expression", "point", "method", "step"),
)

SEED = 0
"""Chooses the point where none is given."""
TIMEOUT = 10.0
"""Seconds for preparing one method."""

_MANTISSAS = (1.0, 1.33, 1.78, 2.37, 3.16, 4.22, 5.62, 7.5)


@dataclass(frozen=True)
class Formula:
    """A difference formula of fixed step.

    Attributes
    ----------
    order : int
        The power of the step in its truncation error.
    quotient : callable
        ``(values, x, h) -> Jacobian (m, n)``.
    """

    order: int
    quotient: Callable[[Values, Array, float], Array]


@dataclass(frozen=True)
class Subject:
    """The function under test, its point, and its true derivative."""

    function: Function
    point: Array
    jacobian: Array
    text: str
    where: str


@dataclass(frozen=True)
class Fit:
    """What one curve says: its slope where truncation rules, and its lowest place."""

    slope: float | None
    step: float
    error: float


def _moved(x: Array, h: complex) -> NDArray[Any]:
    """Return the points ``x + h e_j``, one row for each input j."""
    return x + h * np.eye(x.size)


def _forward(values: Values, x: Array, h: float) -> Array:
    return (values(_moved(x, h)) - values(x[np.newaxis])).T / h


def _central(values: Values, x: Array, h: float) -> Array:
    return (values(_moved(x, h)) - values(_moved(x, -h))).T / (2 * h)


def _richardson(column: int, values: Values, x: Array, h: float) -> Array:
    """Extrapolate central differences with steps h, h/2, … `column` times."""
    row = [_central(values, x, h / 2**k) for k in range(column + 1)]
    for power in range(1, column + 1):
        row = [(4**power * b - a) / (4**power - 1) for a, b in pairwise(row)]
    return row[0]


def _complex_step(values: Values, x: Array, h: float) -> Array:
    return values(_moved(x, 1j * h)).imag.T / h


FORMULAS: Mapping[str, Formula] = {
    "forward difference": Formula(1, _forward),
    "central difference": Formula(2, _central),
    "Richardson, column 1": Formula(4, partial(_richardson, 1)),
    "Richardson, column 2": Formula(6, partial(_richardson, 2)),
    "complex step": Formula(2, _complex_step),
}


def steps(per_decade: int = 8) -> tuple[float, ...]:
    """Return the steps from 1e-1 down to 1e-16, a divisor of 8 of them to a decade.

    Examples
    --------
    >>> steps(2)[:3]
    (0.1, 0.0316, 0.01)
    """
    chosen = _MANTISSAS[:: len(_MANTISSAS) // per_decade]
    grid = [float(f"{mantissa}e{-k}") for k in range(1, 17) for mantissa in chosen]
    return tuple(sorted((h for h in grid if h <= 0.1), reverse=True))


def tasks(subject: Subject, grid: Sequence[float]) -> Iterator[Task]:
    """Yield one task for each formula and step, and one for each method with its own step."""
    stated = partial(provenance.source, uses=("mpmath",), target="auto", seed=SEED)
    source = stated()
    for name, formula in FORMULAS.items():
        if formula.quotient is _complex_step and not _analytic(subject.function):
            continue
        for h in grid:
            yield Task(_key(subject, name, h), partial(_fixed, subject, formula, h), source)
    for name, method in installed().items():
        measure = partial(_chosen, subject, method)
        yield Task(_key(subject, name, None), measure, stated(method, timeout=TIMEOUT))


def _key(subject: Subject, method: str, step: float | None) -> dict[str, Cell]:
    return {
        "expression": subject.text,
        "point": subject.where,
        "method": method,
        "step": step,
    }


def _analytic(function: Function) -> bool:
    graph = function.graph
    rows = (graph.primitive(node) for node in range(len(graph)))
    return all(row is None or row.analytic for row in rows)


def _fixed(subject: Subject, formula: Formula, h: float) -> dict[str, Cell]:
    with np.errstate(all="ignore"):
        found = formula.quotient(subject.function.values, subject.point, h)
    return _errors(subject, found)


def _chosen(subject: Subject, method: Method) -> dict[str, Cell]:
    """Measure a method as it is, choosing its own step; whatever becomes of it is a row."""
    function = subject.function
    problem = Problem(function.values, function.n, function.m, function, timeout=TIMEOUT)
    try:
        found = answer(method, problem, subject.point).estimate.value
        return _errors(subject, np.array(found, dtype=float64).reshape(subject.jacobian.shape))
    except (Exception, SystemExit) as error:  # another package's method may fail in any way
        return outcome(error)


def _errors(subject: Subject, found: Array) -> dict[str, Cell]:
    """Return the largest error over all components, and beside the largest derivative."""
    truth = subject.jacobian
    error = float(np.max(np.abs(found - truth)))
    if not np.isfinite(error):
        return {"status": "failed", "message": "its derivative is not finite"}
    scale = float(np.max(np.abs(truth)))
    return {
        "status": "ok",
        "repetitions": 1,
        "absolute_error": error,
        "relative_error": error / scale if scale else None,
    }


def fit(rows: Sequence[SweepRow]) -> Fit | None:
    """Read the slope of the truncation side and the floor off one formula's rows.

    The slope is the median of the slopes between all pairs of points (Theil and Sen) that lie
    between a tenth of the largest error and a hundred times the floor, at steps above it. The
    floor is the lowest median of five neighbours, since single points fall below it by luck,
    and no lower than the spacing of floating-point numbers; its step is the largest that
    reaches it.

    Parameters
    ----------
    rows : sequence of row
        Rows of `LAYOUT` of one formula, any order.

    Returns
    -------
    Fit or None
        None where no row has an error; a slope of None where too few points show it.
    """
    known = sorted(
        (float(row["step"]), float(row["absolute_error"]))
        for row in rows
        if row["step"] is not None and row["absolute_error"] is not None
    )
    if not known:
        return None
    h, error = np.array(known).T
    smooth = np.array([np.median(error[max(i - 2, 0) : i + 3]) for i in range(h.size)])
    floor = max(float(smooth.min()), _spacing(rows))
    lowest = int(np.flatnonzero(smooth <= floor)[-1])
    rising = (h > h[lowest]) & (error < error.max() / 10) & (error > 100 * floor)
    slope = _theil_sen(np.log(h[rising]), np.log(error[rising])) if rising.sum() >= 3 else None
    return Fit(slope, float(h[lowest]), floor)


def _spacing(rows: Sequence[SweepRow]) -> float:
    """Return the spacing of floating-point numbers at the derivative that the rows are about."""
    for row in rows:
        absolute, relative = row["absolute_error"], row["relative_error"]
        if absolute and relative:
            return float(np.spacing(float(absolute) / float(relative)))
    return 0.0


def _theil_sen(x: Array, y: Array) -> float:
    i, j = np.triu_indices(x.size, 1)
    return float(np.median((y[j] - y[i]) / (x[j] - x[i])))

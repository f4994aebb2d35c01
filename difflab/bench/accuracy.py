"""Error against step size: truncation above, rounding below, and the floor between them.

A difference quotient of order p has the error C·hᵖ + ε/h: on logarithmic axes a line of slope
p meets a line of slope -1 (Baydin et al. 2018, Figure 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from difflab.bench.shared import (
    METHOD_STYLES,
    OTHER_STYLE,
    VIOLET,
    CurveStyle,
    formula_at_point,
    layout,
    picture,
    table,
)
from difflab.core.wording import error as error_text
from difflab.execute.long_loops import values_of
from difflab.graph.function import Function
from difflab.lab import provenance
from difflab.lab.measure import answer
from difflab.lab.sweep import Cell, SweepRow, Task, trial
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import installed
from difflab.report.canvas import INK, Axes, Figure, Label, label_ends, titled_figure
from difflab.report.terminal import Screen, clean

Array = NDArray[np.float64]
PointValues = Callable[[NDArray[Any]], NDArray[Any]]

LAYOUT = layout(
    "expression point method step status message absolute_error relative_error",
    key="expression point method step",
)

SEED = 0
"""Seed for choosing a point."""
TIMEOUT = 10.0
"""Seconds for preparing one method."""

_MANTISSAS = (1.0, 1.33, 1.78, 2.37, 3.16, 4.22, 5.62, 7.5)


@dataclass(frozen=True)
class DifferenceFormula:
    """A difference formula of fixed step.

    Attributes
    ----------
    order : int
        The power of the step in its truncation error.
    quotient : callable
        ``(values, x, h) -> Jacobian (m, n)``.
    """

    order: int
    quotient: Callable[[PointValues, Array, float], Array]


@dataclass(frozen=True)
class AccuracyCase:
    """The function under test, its point, and its true derivative."""

    function: Function
    point: Array
    jacobian: Array
    text: str
    where: str

    def error(self, derivative: ArrayLike) -> float:
        """Return the largest absolute error of a derivative."""
        jacobian = np.asarray(derivative, dtype=np.float64).reshape(self.jacobian.shape)
        return float(np.max(np.abs(jacobian - self.jacobian)))

    def columns(self, error: float) -> dict[str, Cell]:
        """Return the columns of an error, absolute and relative to the largest element."""
        if not np.isfinite(error):
            return {"status": "failed", "message": "its derivative is not finite"}
        scale = float(np.max(np.abs(self.jacobian)))
        relative = error / scale if scale else None
        return {"status": "ok", "absolute_error": error, "relative_error": relative}


@dataclass(frozen=True)
class Fit:
    """The slope of a curve where truncation error dominates, and its lowest point."""

    slope: float | None
    step: float
    error: float


def _perturbed(x: Array, h: complex) -> NDArray[Any]:
    """Return the points ``x + h e_j``, one row for each input j."""
    return x + h * np.eye(x.size)


def _forward(values: PointValues, x: Array, h: float) -> Array:
    return (values(_perturbed(x, h)) - values(x[np.newaxis])).T / h


def _central(values: PointValues, x: Array, h: float) -> Array:
    return (values(_perturbed(x, h)) - values(_perturbed(x, -h))).T / (2 * h)


def _richardson(column: int, values: PointValues, x: Array, h: float) -> Array:
    """Extrapolate central differences with steps h, h/2, … `column` times."""
    row = [_central(values, x, h / 2**k) for k in range(column + 1)]
    for power in range(1, column + 1):
        row = [(4**power * b - a) / (4**power - 1) for a, b in pairwise(row)]
    return row[0]


def _complex_step(values: PointValues, x: Array, h: float) -> Array:
    return values(_perturbed(x, 1j * h)).imag.T / h


FORMULAS: Mapping[str, DifferenceFormula] = {
    "forward difference": DifferenceFormula(1, _forward),
    "central difference": DifferenceFormula(2, _central),
    "Richardson, column 1": DifferenceFormula(4, partial(_richardson, 1)),
    "Richardson, column 2": DifferenceFormula(6, partial(_richardson, 2)),
    "complex step": DifferenceFormula(2, _complex_step),
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


def tasks(case: AccuracyCase, grid: Sequence[float]) -> Iterator[Task]:
    """Yield one task for each formula and step, and one for each method with its own step."""
    source_of = partial(provenance.source, uses=("mpmath",), target="auto", seed=SEED)
    source = source_of()
    for name, formula in FORMULAS.items():
        if formula.quotient is _complex_step and not _analytic(case.function):
            continue
        for h in grid:
            yield Task(_key(case, name, h), partial(_fixed, case, formula, h), source)
    for name, method in installed().items():
        measure, made = partial(_chosen, case, method), source_of(method, timeout=TIMEOUT)
        yield trial(_key(case, name, None), measure, made)


def _key(case: AccuracyCase, method: str, step: float | None) -> dict[str, Cell]:
    return {
        "expression": case.text,
        "point": case.where,
        "method": method,
        "step": step,
    }


def _analytic(function: Function) -> bool:
    graph = function.graph
    rows = (graph.primitive(node) for node in range(len(graph)))
    return all(row is None or row.analytic for row in rows)


def _fixed(case: AccuracyCase, formula: DifferenceFormula, h: float) -> dict[str, Cell]:
    with np.errstate(all="ignore"):
        derivative = formula.quotient(values_of(case.function), case.point, h)
    return _errors(case, derivative)


def _chosen(case: AccuracyCase, method: Method) -> dict[str, Cell]:
    """Measure a method that chooses its own step."""
    problem = Problem.of(case.function, timeout=TIMEOUT)
    return _errors(case, answer(method, problem, case.point).estimate.value)


def _errors(case: AccuracyCase, derivative: ArrayLike) -> dict[str, Cell]:
    return {"repetitions": 1, **case.columns(case.error(derivative))}


def fit(rows: Sequence[SweepRow]) -> Fit | None:
    """Estimate the slope of the truncation error and the floor from one formula's rows.

    The slope is the median of the slopes between all pairs of points (Theil–Sen estimator) with
    errors between a tenth of the largest error and a hundred times the floor, at steps above
    it. The floor is the lowest median of five neighbours, since single points fall below it by
    chance, and not below the spacing of floating-point numbers; its step is the largest that
    reaches it.

    Parameters
    ----------
    rows : sequence of row
        Rows of `LAYOUT` of one formula, any order.

    Returns
    -------
    Fit or None
        None if no row has an error; the slope is None if too few points determine it.
    """
    pairs = sorted(
        (float(row["step"]), float(row["absolute_error"]))
        for row in rows
        if row["step"] is not None and row["absolute_error"] is not None
    )
    if not pairs:
        return None
    h, error = np.array(pairs).T
    smooth = np.array([np.median(error[max(i - 2, 0) : i + 3]) for i in range(h.size)])
    floor = max(float(smooth.min()), _spacing(rows))
    lowest = int(np.flatnonzero(smooth <= floor)[-1])
    rising = (h > h[lowest]) & (error < error.max() / 10) & (error > 100 * floor)
    slope = _theil_sen(np.log(h[rising]), np.log(error[rising])) if rising.sum() >= 3 else None
    return Fit(slope, float(h[lowest]), floor)


def _spacing(rows: Sequence[SweepRow]) -> float:
    """Return the spacing of floating-point numbers at the derivative of the rows."""
    for row in rows:
        absolute, relative = row["absolute_error"], row["relative_error"]
        if absolute and relative:
            return float(np.spacing(float(absolute) / float(relative)))
    return 0.0


def _theil_sen(x: Array, y: Array) -> float:
    i, j = np.triu_indices(x.size, 1)
    return float(np.median((y[j] - y[i]) / (x[j] - x[i])))


_MOST_ROWS = 60


def text(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return the rows as a table; of many rows the most accurate of each formula and method."""
    best: dict[Any, SweepRow] = {}
    for row in rows:
        key = row["expression"], row["point"], row["method"]
        best[key] = min(best.get(key, row), row, key=_size)
    if len(rows) <= _MOST_ROWS or len(best) == len(rows):
        return table(LAYOUT, rows, **screen)
    shown = table(LAYOUT, list(best.values()), **screen).rstrip("\n")
    return f"{shown}\n\neach at the step of its smallest error; all {len(rows):,} rows: -o rows.csv"


def _size(row: SweepRow) -> float:
    """Return the error of a row; infinity without one."""
    error = row["absolute_error"]
    return math.inf if error is None else float(error)


# --- the picture -----------------------------------------------------------------------------

# Drawn first, since the central difference has the same truncation error and covers it.
_FORMULA_STYLES = {
    "complex step": METHOD_STYLES["complex-step"]._replace(width=3.0),
    "forward difference": METHOD_STYLES["finite-forward"],
    "central difference": METHOD_STYLES["finite-central"],
    "Richardson, column 1": CurveStyle(VIOLET, "d"),
    "Richardson, column 2": METHOD_STYLES["richardson"],
}


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the error of every difference formula against its step, slopes and floors marked."""
    canvas = titled_figure(
        5.8,
        "error of the derivative against step size",
        f"{formula_at_point(rows)} · marks: the floor, where both errors are equal",
        right=1.75,
    )
    space = {"width_ratios": (24, 1), "wspace": 1.2}
    lines, chosen = canvas.subplots(1, 2, sharey=True, gridspec_kw=space)
    low = _lowest(rows)
    _frame(lines, chosen, rows, low)
    _formulas(lines, rows, low)
    _own_steps(chosen, rows, low)
    return canvas


def _lowest(rows: Sequence[SweepRow]) -> float:
    """Return the height of an error of exactly zero: below the smallest other error."""
    errors = [float(row["absolute_error"]) for row in rows if row["absolute_error"]]
    return min(errors, default=1e-16) / 4


def _frame(lines: Axes, chosen: Axes, rows: Sequence[SweepRow], low: float) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    errors = [float(row["absolute_error"]) for row in rows if row["absolute_error"]]
    lines.set(xscale="log", yscale="log", xlim=(4e-17, 0.16), ylim=(low / 3, 4 * max(errors)))
    lines.xaxis.set_major_locator(LogLocator(numticks=9))
    lines.yaxis.set_major_locator(LogLocator(numticks=11))
    for axis in (lines.xaxis, lines.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.grid(visible=True)
    lines.set(xlabel="step h", ylabel="largest absolute error of the derivative")
    chosen.set(xlim=(0, 1))
    chosen.set_title("difflab's methods,\nwith their own steps", loc="left", fontsize=9)
    chosen.set_axis_off()


def _formulas(axes: Axes, rows: Sequence[SweepRow], low: float) -> None:
    labels = []
    for name, curve_style in _FORMULA_STYLES.items():
        chosen = [
            row for row in rows if row["method"] == name and row["absolute_error"] is not None
        ]
        fitted = fit(chosen)
        if fitted is None:
            continue
        chosen.sort(key=lambda row: float(row["step"] or 0))
        h = [float(row["step"] or 0) for row in chosen]
        errors = [max(float(row["absolute_error"] or 0), low) for row in chosen]
        axes.plot(h, errors, curve_style.dashes, color=curve_style.colour, lw=curve_style.width)
        floor = (fitted.step, max(fitted.error, low))
        axes.plot(*floor, curve_style.marker, color=curve_style.colour, ms=8, mec=INK, zorder=3)
        slope = "" if fitted.slope is None else f"slope {fitted.slope:.2f} · "
        about = f"{slope}floor {error_text(fitted.error)} at {error_text(fitted.step)}"
        labels.append(
            Label(f"{name}\n{about}", h[-1], errors[-1], curve_style.colour, curve_style.marker)
        )
    label_ends(axes, labels)


def _own_steps(axes: Axes, rows: Sequence[SweepRow], low: float) -> None:
    """Mark the error of each of difflab's methods with the step that it chooses."""
    labels = []
    for row in rows:
        if row["step"] is not None or row["absolute_error"] is None:
            continue
        name = str(row["method"])
        curve_style = METHOD_STYLES.get(name, OTHER_STYLE)
        error = float(row["absolute_error"])
        height = max(error, low)
        axes.plot(0, height, "_", color=INK, ms=8, clip_on=False)
        text = f"{clean(name)}: {error_text(error)}"
        labels.append(Label(text, 0, height, curve_style.colour, curve_style.marker))
    label_ends(axes, labels, gap=20)

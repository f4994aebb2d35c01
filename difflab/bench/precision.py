"""Work against precision: the error that each method reaches and the seconds that it spends.

The diagram by which numerical methods are chosen (Hairer, Nørsett & Wanner 1993, II.10): on
logarithmic axes, lower is more accurate and further left is faster. A difference formula of higher
order evaluates the function more often and reaches a smaller error at its best step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from difflab.bench.accuracy import AccuracyCase, Array, steps
from difflab.bench.shared import ORANGE, formula_at_point, layout, picture, style_of
from difflab.core.wording import error as error_text
from difflab.core.wording import seconds
from difflab.lab import measure, provenance
from difflab.lab.sweep import Row, SweepRow, Task, together
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem
from difflab.report.canvas import (
    FAINT,
    INK,
    Axes,
    Figure,
    Label,
    decades,
    label_ends,
    seconds_tick,
    titled_figure,
)
from difflab.report.terminal import clean, shorten

LAYOUT = layout(
    "expression point method status message step evaluations absolute_error relative_error "
    "prepare_seconds call_seconds",
    key="expression point method",
)

SEED = 0
_EXACT = 2.0**-54  # relative error that stands for zero: below half a spacing


def central_weights(pairs: int) -> Array:
    r"""Return the weights of f(x + kh) - f(x - kh), k = 1 … p, of the formula of order 2p.

    .. math:: w_k = (-1)^{k+1} \frac{(p!)^2}{k\,(p-k)!\,(p+k)!}

    Source: Fornberg, Math. Comp. 51, 1988.

    Examples
    --------
    >>> central_weights(2) * 12
    array([ 8., -1.])
    """
    k = np.arange(1, pairs + 1)
    order = k[:, None]
    moments: Array = order.T ** (2 * order - 1.0)
    return np.linalg.solve(moments, np.eye(pairs)[0] / 2)


@dataclass(frozen=True)
class CentralFormula:
    """The central difference formula of order 2p, as a method, at a given step."""

    pairs: int
    step: float = 1e-3
    family: Family = Family.NUMERIC
    orders: tuple[int, ...] = (1,)
    summary: str = "a central difference at its best step"

    @property
    def name(self) -> str:
        """Its name in the rows."""
        return f"central, order {2 * self.pairs}"

    def missing(self) -> None:
        """Return None: it needs nothing."""

    def prepare(self, problem: Problem) -> Prepared:
        """Return the formula for a function."""
        return _PreparedFormula(problem, central_weights(self.pairs), self.step)


@dataclass(frozen=True)
class _PreparedFormula:
    problem: Problem
    weights: Array
    step: float
    size: None = None
    operations: None = None

    def __call__(self, x: Array) -> Estimate:
        multiples = np.arange(1, self.weights.size + 1) * self.step
        moves = multiples[:, None, None] * np.eye(x.size)
        points = np.concatenate([x + moves, x - moves]).reshape(-1, x.size)
        values = np.asarray(self.problem.values(points), dtype=np.float64)
        above, below = values.reshape(2, self.weights.size, x.size, -1)
        slopes = np.tensordot(self.weights, above - below, 1) / self.step
        return Estimate(slopes.T, None, len(points))


FORMULAS = tuple(CentralFormula(pairs) for pairs in (1, 2, 3, 4, 6, 8))
"""Formulas of order 2 to 16, whose work grows and whose error falls."""


def tasks(
    case: AccuracyCase, methods: Sequence[Method], timeout: float = 10.0, *, per_decade: int = 8
) -> Iterator[Task]:
    """Return a task for each method, and for each difference formula at its best step.

    Parameters
    ----------
    case : AccuracyCase
        The function, the point, and the true Jacobian.
    methods : sequence of Method
        The methods.
    timeout : float
        Seconds for preparing and calling one method.
    per_decade : int
        How many steps of a decade the formulas try.
    """
    every = [*FORMULAS, *methods]
    sources = {
        method.name: provenance.source(
            None if isinstance(method, CentralFormula) else method,
            uses=("mpmath",),
            target="auto",
            timeout=timeout,
            seed=SEED,
        )
        for method in every
    }
    measure = partial(_measured, case, every, timeout, steps(per_decade))
    return together({"expression": case.text, "point": case.where}, sources, measure)


class _Best(NamedTuple):
    """A formula at its best step, and the error there."""

    formula: CentralFormula
    error: float


def _measured(
    case: AccuracyCase, methods: Sequence[Method], timeout: float, grid: Sequence[float]
) -> dict[str, Row]:
    """Measure all methods together: errors first, then times alternately."""
    problem = Problem.of(case.function, timeout=timeout, often=True)

    def first(method: Method) -> tuple[Row, measure.MethodCall]:
        best = _best(case, method, problem, grid) if isinstance(method, CentralFormula) else None
        answer = measure.answer(best.formula if best else method, problem, case.point)
        error = best.error if best else case.error(answer.estimate.value)
        row = {"prepare_seconds": min(answer.prepare_samples), **case.columns(error)}
        if row["status"] == "ok":
            row["evaluations"] = answer.estimate.evaluations
        return row | {"step": best.formula.step} if best else row, answer.call

    with np.errstate(all="ignore"):
        return measure.rows_in_turns(methods, first)


def _best(
    case: AccuracyCase, formula: CentralFormula, problem: Problem, grid: Sequence[float]
) -> _Best:
    """Return the formula with the step of the smallest error.

    Single steps reach a small error by chance, so the median of three neighbours counts.
    """
    tried = [CentralFormula(formula.pairs, step) for step in grid]
    errors = np.array([case.error(one.prepare(problem)(case.point).value) for one in tried])
    errors[~np.isfinite(errors)] = np.inf
    medians = [float(np.median(errors[max(k - 1, 0) : k + 2])) for k in range(errors.size)]
    k = int(np.argmin(medians))
    return _Best(tried[k], medians[k])


def front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names that no other beats in both seconds and error, fastest first.

    Examples
    --------
    >>> front({"a": (1.0, 1e-8), "b": (2.0, 1e-15), "c": (3.0, 1e-9)})
    ['a', 'b']
    """
    kept: list[str] = []
    for name in sorted(points, key=lambda name: points[name]):
        if not kept or points[name][1] < points[kept[-1]][1]:
            kept.append(name)
    return kept


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the error that every method reaches against the seconds that it spends."""
    canvas = titled_figure(
        6.6,
        "work against precision",
        f"{formula_at_point(rows)} · "
        "filled: a call · hollow: with preparation · stepped: nothing is better in both",
        right=3.0,
        top=0.2,
        bottom=0.9,
    )
    axes = canvas.subplots()
    _points(axes, rows)
    absent = [row for row in rows if row["status"] != "ok"]
    text = "\n".join(shorten(clean(f"{row['method']}: {row['message']}"), 120) for row in absent)
    canvas.text(0.012, 0.008, text, fontsize=8.5, color=FAINT, va="bottom", parse_math=False)
    return canvas


def _points(axes: Axes, rows: Sequence[SweepRow]) -> None:
    answered = {str(row["method"]): row for row in rows if row["status"] == "ok"}
    spent = {name: float(row["call_seconds"] or 0) for name, row in answered.items()}
    reached = {
        name: max(float(row["relative_error"] or row["absolute_error"] or 0), _EXACT)
        for name, row in answered.items()
    }
    axes.set(xscale="log", yscale="log", xlabel="time", ylabel="relative error of the derivative")
    axes.grid(visible=True)
    decades(axes.xaxis, seconds_tick)
    formulas = [one.name for one in FORMULAS if one.name in answered]
    axes.plot([spent[n] for n in formulas], [reached[n] for n in formulas], "-", color=ORANGE, lw=1)
    for name, row in answered.items():
        look = style_of(name)
        colour, shape = (ORANGE, "o") if name in formulas else (look.colour, look.marker)
        once = spent[name] + float(row["prepare_seconds"] or 0)
        height = reached[name]
        axes.plot([spent[name], once], [height] * 2, ":", color=colour, lw=0.9)
        axes.plot(once, height, shape, mfc="none", mec=colour, ms=6)
        axes.plot(spent[name], height, shape, color=colour, mec=INK, mew=0.5, ms=7, zorder=3)
    axes.set_ylim(bottom=_EXACT / 50)  # space for the labels of several exact methods
    best = front({name: (spent[name], reached[name]) for name in answered})
    stairs = [spent[n] for n in best], [reached[n] for n in best]
    axes.step(*stairs, where="post", color=INK, lw=1, zorder=1)
    if not answered:
        return
    left, edge = axes.get_xlim()
    labels = []
    for name in sorted(answered, key=lambda name: -spent[name]):  # equal errors: fastest on top
        look = style_of(name)
        colour, shape = (ORANGE, "o") if name in formulas else (look.colour, look.marker)
        text = f"{clean(name)}: {error_text(reached[name])} in {seconds(spent[name])}"
        labels.append(Label(text, edge, reached[name], colour, shape))
        axes.plot([spent[name], edge], [reached[name]] * 2, color=colour, lw=0.4, alpha=0.4)
    axes.set_xlim(left, edge)
    label_ends(axes, labels)

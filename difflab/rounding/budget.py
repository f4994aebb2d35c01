"""The error budget: contributions of each operation's rounding to value and gradient.

The gradient is a graph, too, and has its own budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from difflab.autodiff import gradient, jacobian
from difflab.core.dtypes import FloatFormat, format_of
from difflab.core.place import SourceLocation
from difflab.diagnose.findings import call_text
from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import DomainError, MethodTimeout, UnsupportedError
from difflab.graph.checks import require_flag
from difflab.graph.function import Function
from difflab.lab.domain.box import box_of, evenly
from difflab.rounding.sweeps import Array, Sweeps, function_of, overflow, placed_at, shown_point

SLACK = 1 + 1e-9
"""For the rounding of the sums of a budget."""
TINY = 1e-320
"""What an enclosure of 0 may be at most."""


@dataclass(frozen=True)
class Contribution:
    """The rounding error of one operation in the results.

    Attributes
    ----------
    node : int
        The node of the budget's function.
    operation : str
        The name of the primitive; "constant" for a number.
    text : str
        The operation in the source, or with its operands.
    site : SourceLocation
    ulps : float
        The largest contribution to an output, in units in the last place of it; over a domain, the
        mean over the points.
    worst : float
        The largest over the points.
    local : float
        The bound of its own error in units in the last place of its result, at the worst point.
    share : float
        The part of all contributions.
    """

    node: int
    operation: str
    text: str
    site: SourceLocation
    ulps: float
    worst: float
    local: float
    share: float

    @property
    def magnification(self) -> float:
        """How much larger, relative to the result, the error is than where it arises."""
        return self.worst / self.local if self.local else 0.0


@dataclass(frozen=True)
class OutputBudget:
    """The budget of one output number, at the worst point.

    Attributes
    ----------
    name : str
    value : float
        The computed result.
    bound : float
        The sum of all contributions, absolute.
    ulps : float
        The same in units in the last place of the result.
    remainder : float
        The bound on the terms of higher order; infinite where none is proved.
    error : float
        A proved bound of the error of the computed result; infinite where there is none.
    """

    name: str
    value: float
    bound: float
    ulps: float
    remainder: float = math.inf
    error: float = math.inf

    @property
    def proved(self) -> bool:
        """Whether ball arithmetic proves that the error lies in the budget and its remainder."""
        return self.error <= (self.bound + self.remainder) * SLACK + TINY < math.inf


@dataclass(frozen=True, eq=False)
class Budget:
    """The budget of one function: of the value, or of the gradient.

    Attributes
    ----------
    kind : str
        ``"value"``, ``"gradient"`` or ``"jacobian"``.
    function : Function
        Its graph is that of the budget.
    outputs : tuple of OutputBudget
        At the worst point.
    contributions : tuple of Contribution
        Those that are not 0, the largest first.
    omitted : int
        Outputs that were left out because there are too many.
    reason : str
        Why it is not proved; empty if it is.
    """

    kind: str
    function: Function
    outputs: tuple[OutputBudget, ...]
    contributions: tuple[Contribution, ...]
    omitted: int = 0
    reason: str = ""

    @property
    def proved(self) -> bool:
        """Whether the budget of every output is proved."""
        return not self.reason and all(each.proved for each in self.outputs)

    @property
    def ulps(self) -> float:
        """The largest budget of an output, in units in the last place."""
        return max((each.ulps for each in self.outputs), default=0.0)

    @cached_property
    def shares(self) -> dict[int, float]:
        """The share of every node that contributes."""
        return {each.node: each.share for each in self.contributions}


@dataclass(frozen=True, eq=False)
class ErrorBudget:
    """Result of `difflab.error_budget`.

    Attributes
    ----------
    function : Function
    point : dict of str to value
        The point; of a domain, the worst point.
    dtype : str
        In which value and gradient are computed.
    value : Budget
    gradient : Budget or None
        None for a function without inputs.
    over : dict of str to (float, float)
        The domain; empty for a point.
    points : int
        The number of points.
    advice : tuple of str
        The worst contributions in words, and what to rewrite.
    stable : tuple of str
        What `difflab.stabilise` rewrites, and how many digits that gains.
    """

    function: Function
    point: dict[str, Any]
    dtype: str
    value: Budget
    gradient: Budget | None
    over: dict[str, tuple[float, float]]
    points: int
    advice: tuple[str, ...] = ()
    stable: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Budget, ...]:
        """The budgets of value and gradient."""
        return (self.value,) if self.gradient is None else (self.value, self.gradient)

    @property
    def proved(self) -> bool:
        """Whether all of it is proved by ball arithmetic."""
        return all(part.proved for part in self.parts)


# --- the budget at points ---------------------------------------------------------------------

WORK = 20_000_000
"""Nodes times outputs times points above which only some of the outputs are budgeted."""
PROVED = 50_000
"""Elements of the graph and its sweeps up to which a budget is proved unless asked."""


def error_budget(
    f: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    over: Mapping[str, tuple[float, float]] | None = None,
    points: int = 64,
    dtype: str = "float64",
    prove: bool | None = None,
    seed: int = 0,
) -> ErrorBudget:
    """Return the budget without words; `difflab.error_budget` documents it."""
    function = function_of("error_budget", f, at, {} if over is None else over, points, seed)
    require_flag(False if prove is None else prove, "prove", "error_budget")
    form = format_of(dtype)
    if over:
        box = box_of(function, over, at)
        sample = box.points(evenly(len(box.moving), points, seed)[:points])
    else:
        sample = packed(function, checked_point(function, at, seed))[None]
    sample = np.asarray(form.cast(sample), np.float64).reshape(len(sample), function.n)
    slopes = None
    with np.errstate(all="ignore"):
        value, worst = _budget(function, function, "value", sample, form, prove)
        if function.n:
            kind = "gradient" if function.m == 1 else "jacobian"
            derived = gradient(function) if function.m == 1 else jacobian(function)
            slopes, steepest = _budget(derived, function, kind, sample, form, prove)
            worst = steepest if slopes.ulps > value.ulps else worst
    parts = dict(zip(function.inputs, function.split(sample[worst]), strict=True))
    ranges = {name: (float(low), float(high)) for name, (low, high) in (over or {}).items()}
    return ErrorBudget(function, parts, dtype, value, slopes, ranges, len(sample))


@dataclass(frozen=True, eq=False)
class _PointBudget:
    """The budget at one point: the sizes of contributions are in ULP of the output they move most.

    Attributes
    ----------
    index : int
        Of the point.
    values, errors : list of array
        Of all nodes; the errors are bounds.
    outputs : tuple of OutputBudget
    sizes : array
        One for each node.
    """

    index: int
    values: list[Any]
    errors: list[Any]
    outputs: tuple[OutputBudget, ...]
    sizes: Array

    @property
    def ulps(self) -> float:
        """The largest budget of an output, in units in the last place."""
        return max(each.ulps for each in self.outputs)


def _budget(
    function: Function,
    original: Function,
    kind: str,
    sample: Array,
    form: FloatFormat,
    prove: bool | None,
) -> tuple[Budget, int]:
    """Return the budget over points, proved at the worst one, and that point's index."""
    sweeps = Sweeps(function, form)
    count = len(sweeps.cells)
    most = max(1, WORK // (len(sweeps.combined.graph) * len(sample)))
    chosen = sorted({round(k) for k in np.linspace(0, count - 1, min(count, most))})
    means, largest = np.zeros(len(sweeps.graph)), np.zeros(len(sweeps.graph))
    worst: _PointBudget | None = None
    for each in _at_points(sweeps, kind, sample, chosen):
        means += each.sizes / len(sample)
        largest = np.maximum(largest, each.sizes)
        worst = each if worst is None or each.ulps > worst.ulps else worst
    assert worst is not None
    listed = tuple(_listed(sweeps, worst, means, largest))
    budget = Budget(kind, sweeps.function, worst.outputs, listed, count - len(chosen))
    point, order = sample[worst.index], 0 if kind == "value" else 1
    size = sweeps.combined.graph.element_count() * len(chosen)
    beyond = overflow(sweeps.graph, worst.values, sweeps.function.outputs, form.name)
    if prove is False:
        budget = replace(budget, reason="not requested")
    elif beyond:
        budget = replace(budget, reason=beyond)
    elif prove is None and size > PROVED:
        budget = replace(budget, reason=f"{size:,} elements: prove=True takes the time")
    else:
        budget = _proved(budget, sweeps, original, point, worst.errors, chosen, order)
    return budget, worst.index


def _at_points(
    sweeps: Sweeps, kind: str, sample: Array, chosen: Sequence[int]
) -> Iterator[_PointBudget]:
    """Yield the budget of the chosen outputs at each point."""
    for index, point in enumerate(sample):
        try:
            values, errors = sweeps.forward(point)
        except DomainError as error:
            before = "" if kind == "value" else f"the {kind} is not finite: "
            after = f" at {shown_point(sweeps.function, point)}" if len(sample) > 1 else ""
            raise placed_at(error, after, before) from None
        numbers = np.array([sweeps.value(values, output) for output in chosen])
        units = _units(numbers, sweeps.form)
        parts = np.array([sweeps.contributions(values, errors, output) for output in chosen])
        names, bounds = [sweeps.names[output] for output in chosen], np.sum(parts, axis=1)
        columns = names, numbers.tolist(), bounds.tolist(), (bounds / units).tolist()
        outputs = tuple(map(OutputBudget, *columns))
        yield _PointBudget(index, values, errors, outputs, np.max(parts / units[:, None], axis=0))


def _units(numbers: Array, form: FloatFormat) -> Array:
    """Return the unit in which the errors of outputs are counted: a 0 has that of the largest."""
    sizes = np.where(numbers == 0, np.max(np.abs(numbers), initial=0), numbers)
    units: Array = form.spacing(sizes)
    return np.where(units <= form.spacing(0.0), form.spacing(1.0), units)


def _listed(
    sweeps: Sweeps, worst: _PointBudget, means: Array, largest: Array
) -> Iterator[Contribution]:
    """Yield the contributions in order."""
    graph, whole = sweeps.graph, float(np.sum(means))
    for node in np.argsort(-means, kind="stable").tolist():
        if not means[node]:
            break
        row, site, value = graph.primitive(node), graph.place(node), worst.values[node]
        operands = [worst.values[arg] for arg in graph.arguments(node)]
        text = "" if site.where else site.part
        yield Contribution(
            node,
            "constant" if row is None else row.name,
            text or call_text(row, operands or [value]),
            site,
            float(means[node]),
            float(largest[node]),
            float(np.max(worst.errors[node] / sweeps.form.spacing(value))),
            float(means[node]) / whole,
        )


def _proved(
    budget: Budget,
    sweeps: Sweeps,
    original: Function,
    point: Array,
    errors: Sequence[Any],
    chosen: Sequence[int],
    order: int,
) -> Budget:
    """Return the budget with the bounds that ball arithmetic proves."""
    computed = {place: each.value for place, each in zip(chosen, budget.outputs, strict=True)}
    try:
        from difflab.balls.limit import in_time
        from difflab.rounding.proof import SECONDS, exact_results, largest_effect

        known = point.tolist(), order, computed
        actual, reason = in_time(exact_results, original, *known, timeout=SECONDS)
    except (UnsupportedError, MethodTimeout) as error:
        return replace(budget, reason=str(error))
    outputs = []
    for output, each, bound in zip(chosen, budget.outputs, actual, strict=True):
        most, doubt = largest_effect(sweeps, point, errors, output)
        reason = reason or doubt
        remainder = max(most - each.bound, 0.0)
        outputs.append(replace(each, remainder=remainder, error=bound))
    if not reason and not all(each.proved for each in outputs):
        reason = "the error exceeds the budget: a function is less accurate than documented"
    return replace(budget, outputs=tuple(outputs), reason=reason)

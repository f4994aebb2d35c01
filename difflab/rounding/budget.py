"""The error budget: what each operation's rounding contributes to value and gradient.

An operation i whose result errs by at most δᵢ moves an output y by at most |āᵢ| δᵢ to first order,
where the adjoint āᵢ = ∂y/∂vᵢ is that of the reverse sweep (S. Linnainmaa, Taylor expansion of the
accumulated rounding error, BIT 16, 1976). The gradient is a graph, too, and has its own budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff import gradient, jacobian
from difflab.core.dtypes import DOUBLE, FloatFormat, format_of
from difflab.core.place import SourceLocation
from difflab.diagnose.anomalies import failures, needed
from difflab.diagnose.findings import AnomalyKind, call_text
from difflab.diagnose.node_origins import CombinedGraph
from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import DomainError, InputError, MethodTimeout, UnsupportedError
from difflab.graph.checks import require_flag
from difflab.graph.function import Function
from difflab.graph.ir import Graph
from difflab.graph.names import element_names
from difflab.lab.domain.box import box_of, evenly
from difflab.language import given_names, parse
from difflab.rounding.evaluation import evaluated
from difflab.rounding.local import rounding_errors

__all__ = [
    "Budget",
    "Contribution",
    "ErrorBudget",
    "OutputBudget",
    "Sweeps",
    "error_budget",
    "failed",
]

Array = NDArray[np.float64]
WORK = 20_000_000
"""Nodes times outputs times points above which only some of the outputs are budgeted."""
PROVED = 50_000
"""Elements of the graph and its sweeps up to which a budget is proved unless asked."""
SLACK = 1 + 1e-9
"""For the rounding of the sums of a budget."""
MOST = 2**31
"""A bound of numbers of points and of seeds."""
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
        What the terms of higher order add at most; infinite where that is not proved.
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


def function_of(what: str, f: Any, at: Any, over: Any, points: Any, seed: Any) -> Function:
    """Return the function of a public call, whose common arguments are checked.

    Raises
    ------
    InputError
        One of them is of another type; `what` is the call.
    """
    for name, value in (("at", {} if at is None else at), ("over", over)):
        if not isinstance(value, Mapping):
            raise InputError(
                f"{name} of {what} is a mapping of names, not {type(value).__name__}",
                hint="at={'x': 1.5}, over={'x': (0.1, 10)}",
            )
    for name, value, least in (("points", points, 1), ("seed", seed, 0)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value < MOST:
            raise InputError(
                f"{name} of {what} is an integer from {least} to 2^31 - 1, not {value!r}"
            )
    if isinstance(f, str):
        return parse(f, [*given_names(at), *over])
    if not isinstance(f, Function):
        raise InputError(
            f"{what} takes the text of a formula or a Function, not {type(f).__name__}",
            hint="record code at an example of its arguments: dl.trace(f, x)",
        )
    return f


def failed(graph: Graph, values: Sequence[Any], outputs: Sequence[int], dtype: str) -> DomainError:
    """Return the error that names the operation that made results not finite."""
    marks = needed(graph, values, outputs)
    for event in failures(graph, values, range(len(graph)), marks):
        row, place = graph.primitive(event.node), graph.place(event.node)
        call = call_text(row, event.operands)
        state = "overflows" if event.kind is AnomalyKind.OVERFLOW else f"is {event.result:g}"
        return place.error(DomainError, f"{call} {state} in {dtype}")
    return DomainError(f"a result is not finite in {dtype}")


def shown_point(function: Function, point: Array) -> str:
    """Return the values of the inputs at a point as text."""
    parts = zip(function.inputs, function.split(point), strict=True)
    return ", ".join(f"{name} = {np.array2string(part, threshold=3)}" for name, part in parts)


def placed_at(error: DomainError, after: str, before: str = "") -> DomainError:
    """Return an error whose message has more text."""
    return type(error)(
        f"{before}{error.message}{after}", text=error.text, span=error.span, hint=error.hint
    )


class Sweeps:
    """The reverse sweeps of a function over its rounding operations, built once."""

    def __init__(self, function: Function, form: FloatFormat) -> None:
        self.function = function.in_floats
        self.graph = self.function.graph
        self.combined = CombinedGraph(self.function, range(len(self.graph)))
        self.form = form
        self.formats = [form] * len(self.graph)
        self.double = [DOUBLE] * len(self.combined.graph)
        self.cells = [
            (node, index)
            for node, shape in zip(self.function.outputs, self.function.output_shapes, strict=True)
            for index in np.ndindex(*shape)
        ]

    def forward(self, point: Array) -> tuple[list[Any], list[Any]]:
        """Return values and bounds of rounding errors of all nodes."""
        inputs = dict(zip(self.function.input_nodes, self.function.split(point), strict=True))
        values = evaluated(self.graph, inputs, self.formats)
        if not all(np.all(np.isfinite(values[node])) for node in self.function.outputs):
            raise failed(self.graph, values, self.function.outputs, self.form.name)
        return values, rounding_errors(self.graph, values, self.formats)

    def seeds(self, output: int) -> dict[int, Array]:
        """Return the seed cotangents of one output number."""
        node, index = self.cells[output]
        found = {}
        for other, seed in self.combined.seeds.items():
            found[seed] = np.zeros(self.graph.shape(other))
            if other == node:
                found[seed][index] = 1.0
        return found

    def contributions(self, values: Sequence[Any], errors: Sequence[Any], output: int) -> Array:
        """Return |ā| δ of every node for one output number."""
        found = self.adjoints(values, output)
        result = np.zeros(len(self.graph))
        for node, bar in found.items():
            error = errors[node]
            if error.ndim == 0:
                result[node] = abs(float(bar)) * float(error) if error else 0.0
            elif np.any(error):
                with np.errstate(invalid="ignore"):
                    result[node] = np.sum(np.where(error > 0, np.abs(bar) * error, 0.0))
        # The adjoint of an operation whose derivative is infinite or undefined bounds nothing.
        return np.where(np.isnan(result), np.inf, result)

    def adjoints(self, values: Sequence[Any], output: int) -> dict[int, Any]:
        """Return ā of every node for one output number."""
        known = {**dict(enumerate(values)), **self.seeds(output)}
        found = evaluated(self.combined.graph, known, self.double)
        return {node: found[bar] for node, bar in self.combined.bars.items()}

    def value(self, values: Sequence[Any], output: int) -> float:
        """Return the computed number of an output."""
        node, index = self.cells[output]
        return float(np.broadcast_to(values[node], self.graph.shape(node))[index])


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
    nodes = len(sweeps.graph)
    total, largest, worst = np.zeros(nodes), np.zeros(nodes), -1.0
    found: tuple[int, list[Any], list[Any], list[OutputBudget]] = (0, [], [], [])
    for index, point in enumerate(sample):
        try:
            values, errors = sweeps.forward(point)
        except DomainError as error:
            before = "" if kind == "value" else f"the {kind} is not finite: "
            after = f" at {shown_point(function, point)}" if len(sample) > 1 else ""
            raise placed_at(error, after, before) from None
        numbers = np.array([sweeps.value(values, output) for output in chosen])
        units = form.spacing(np.where(numbers == 0, np.max(np.abs(numbers), initial=0), numbers))
        units = np.where(units <= form.spacing(0.0), form.spacing(1.0), units)
        parts = [sweeps.contributions(values, errors, output) for output in chosen]
        sizes = np.max([part / unit for part, unit in zip(parts, units, strict=True)], axis=0)
        total += sizes
        largest = np.maximum(largest, sizes)
        bounds = [float(np.sum(part)) for part in parts]
        height = max(bound / unit for bound, unit in zip(bounds, units, strict=True))
        if height > worst:
            names = element_names(function.output_names, function.output_shapes)
            budgets = [
                OutputBudget(names[output], number, bound, bound / unit)
                for output, number, bound, unit in zip(chosen, numbers, bounds, units, strict=True)
            ]
            worst, found = height, (index, values, errors, budgets)
    index, values, errors, budgets = found
    listed = tuple(_listed(sweeps, values, errors, total / len(sample), largest))
    bare = Budget(kind, sweeps.function, tuple(budgets), listed, count - len(chosen))
    order = 0 if kind == "value" else 1
    return _proved(bare, sweeps, original, sample[index], errors, chosen, order, prove), index


def _listed(
    sweeps: Sweeps, values: Sequence[Any], errors: Sequence[Any], means: Array, largest: Array
) -> Iterator[Contribution]:
    """Yield the contributions in order."""
    graph, whole = sweeps.graph, float(np.sum(means))
    for node in np.argsort(-means, kind="stable").tolist():
        if not means[node]:
            break
        row, site = graph.primitive(node), graph.place(node)
        unit = sweeps.form.spacing(np.asarray(values[node], np.float64))
        operands = [values[arg] for arg in graph.arguments(node)]
        text = "" if site.where else site.part
        yield Contribution(
            node,
            "constant" if row is None else row.name,
            text or call_text(row, operands or [values[node]]),
            site,
            float(means[node]),
            float(largest[node]),
            float(np.max(errors[node] / unit)),
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
    prove: bool | None,
) -> Budget:
    """Return the budget with what ball arithmetic proves of it."""
    size = sweeps.combined.graph.element_count() * len(chosen)
    if prove is False:
        return replace(budget, reason="not requested")
    if prove is None and size > PROVED:
        return replace(budget, reason=f"{size:,} elements: prove=True takes the time")
    try:
        from difflab.balls.limit import in_time
        from difflab.rounding.proof import SECONDS, exact_results, largest_adjoints
    except UnsupportedError as error:
        return replace(budget, reason=str(error))
    every = np.full(len(sweeps.cells), np.nan)
    every[list(chosen)] = [each.value for each in budget.outputs]
    given_point = point.tolist(), order, every, chosen
    try:
        actual, reason = in_time(exact_results, original, *given_point, timeout=SECONDS)
    except MethodTimeout as error:
        return replace(budget, reason=str(error))
    given = dict(zip(sweeps.function.input_nodes, sweeps.function.split(point), strict=True))
    wanted = {node: bar for node, bar in sweeps.combined.bars.items() if np.any(errors[node])}
    outputs = []
    for output, each, error_bound in zip(chosen, budget.outputs, actual, strict=True):
        known = {**given, **sweeps.seeds(output)}
        graph, results = sweeps.combined.graph, sweeps.function.outputs
        bars, doubt = largest_adjoints(graph, known, errors, wanted, results)
        reason = reason or doubt
        most = sum(float(np.sum(bar * errors[node])) for node, bar in bars.items())
        remainder = math.inf if doubt else max(most - each.bound, 0.0)
        outputs.append(replace(each, remainder=remainder, error=float(error_bound)))
    if not reason and not all(each.proved for each in outputs):
        reason = "the error exceeds the budget: a function is less accurate than documented"
    return replace(budget, outputs=tuple(outputs), reason=reason)

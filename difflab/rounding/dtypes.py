"""The cheapest dtypes of operations that keep value and gradient within a tolerance.

The budget states the cost in accuracy of an operation in each format, |ā| δ. For
a price μ of accuracy each operation takes the format that minimises its bits plus μ times that; the
smallest price whose assignment holds is found by bisection, and operations are then narrowed one by
one (the Lagrangian relaxation of a knapsack problem). An assignment holds if the graph, run
with the rounding of every operation, keeps the tolerance at the points, with a margin. The printed
code is run as well, and compared with mpmath. ADAPT (H. Menon et al., SC 2018) and CHEF-FP (G.
Singh et al., IPDPS 2023) choose by such a budget, PROMISE (S. Graillat et al., 2019) by trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat, format_of
from difflab.core.optional import require
from difflab.core.wording import significant
from difflab.errors import InputError, PointError, UnsupportedError
from difflab.graph.function import Function
from difflab.graph.names import element_names
from difflab.lab.domain.box import Box, box_of, evenly
from difflab.rounding.assignment import (
    DtypeAssignment,
    OperationDtype,
    Tolerance,
    compiled,
    dtype_code,
    joint,
    run,
    shares,
    truth,
)
from difflab.rounding.local import is_exact, rounding_errors
from difflab.rounding.sweeps import Sweeps, effect, failed, function_of, placed_at, shown_point

Array = NDArray[np.float64]
MARGIN = 0.5
"""The part of the tolerance that may be used at the points: between them errors may be larger."""
SAFE = 0.8
"""The part of it that the worst points may use that the searches find."""
SEARCHES = 2
"""Searches of worst points, from different random numbers, that an assignment must pass."""
SAMPLE = 1024
"""Points at which assignments are compared with float64."""
STEEPEST = 16
"""Points at which the sensitivities are computed, and worst points that are verified."""
WORK = 20_000_000
"""Elements of the graph times points above which fewer points are used."""
TRIALS = 400
"""Assignments that are tried one operation at a time."""
PRICES = 48
"""Steps of the bisection over the price, and the factor between the ends of its range."""


def cheapest_dtypes(
    f: str | Function,
    over: Mapping[str, tuple[float, float]],
    at: Mapping[str, Any] | None = None,
    *,
    tolerance: float,
    dtypes: Sequence[str] = ("float64", "float32", "float16"),
    floor: float | None = None,
    scale: Mapping[str, str] | None = None,
    points: int = SAMPLE,
    seed: int = 0,
) -> DtypeAssignment:
    """Return the assignment without a display; `difflab.cheapest_dtypes` documents it."""
    function = function_of("cheapest_dtypes", f, at, over, points, seed)
    if not (_is_number(tolerance) and 0 < tolerance < math.inf):
        raise InputError(f"tolerance is a positive number, not {tolerance!r}", hint="1e-6")
    if floor is not None and not (_is_number(floor) and 0 <= floor < math.inf):
        raise InputError(f"floor is a number from 0, not {floor!r}")
    if function.n == 0:
        raise InputError("the expression has no variable")
    if isinstance(dtypes, str) or not isinstance(dtypes, Sequence):
        raise InputError("dtypes is a list of names", hint="dtypes=['float64', 'float32']")
    if not (scale is None or isinstance(scale, Mapping)):
        raise InputError("scale is a mapping of names", hint="scale={'x': 'log'}")
    formats = sorted({DOUBLE, *map(format_of, dtypes)}, key=lambda form: form.width)
    if "bfloat16" in dtypes:
        require("ml_dtypes")  # which the printed code stores it with
    box, least = box_of(function, over, at, scale), None if floor is None else float(floor)
    search = _Search(function, box, formats, points, seed, float(tolerance), least)
    search.check()
    chosen = search.cheapest()
    return search.assignment(chosen, {name: (float(a), float(b)) for name, (a, b) in over.items()})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


class _Search:
    """The search for one function over one domain."""

    def __init__(
        self,
        function: Function,
        box: Box,
        formats: Sequence[FloatFormat],
        points: int,
        seed: int,
        tolerance: float,
        floor: float | None,
    ) -> None:
        self.original, self.real, self.box = function, joint(function), box
        self.function = self.real.in_floats
        self.graph = self.function.graph
        self.formats = list(formats)
        self.double = DOUBLE
        count = max(STEEPEST, min(points, WORK // self.graph.element_count()))
        self.points = box.points(evenly(len(box.moving), count, seed)[:count])
        self.draw = np.random.default_rng(seed)
        varies = self.graph.reached_from(self.function.input_nodes)
        self.weak = [not varies[node] for node in range(len(self.graph))]
        self.free = [node for node in range(len(self.graph)) if self._is_free(node)]
        self.sizes = {node: math.prod(self.graph.shape(node)) for node in self.free}
        self.tolerance = self._tolerance(tolerance, floor)

    def _is_free(self, node: int) -> bool:
        """Whether a node rounds, so that its dtype is chosen; others follow their operands."""
        row = self.graph.primitive(node)
        return not self.weak[node] and (row is None or not is_exact(row))

    # --- the tolerance --------------------------------------------------------------------------

    def _tolerance(self, relative: float, floor: float | None) -> Tolerance:
        """Return the errors that are allowed at points where value and gradient are finite."""
        _, self.reference = run(self.function, self.points, self.completed({}))
        finite = np.all(np.isfinite(self.reference), axis=1)
        if not np.all(finite):
            first = self.points[np.argmin(finite)]
            values, _ = run(self.function, first, self.completed({}))
            error = failed(self.graph, values, self.function.outputs, "float64")
            raise placed_at(error, f" at {shown_point(self.function, first)}")
        return Tolerance.over(relative, self.original.m, self.reference, floor)

    def check(self) -> None:
        """Raise `PointError` where float64 does not keep the tolerance."""
        part, worst, output = self._against_truth(self.points[: 4 * STEEPEST], self.completed({}))
        if part > 1:
            where, relative = shown_point(self.function, worst), self.tolerance.relative
            names = element_names(self.function.output_names, self.function.output_shapes)
            raise PointError(
                f"the tolerance {relative:g} is beyond float64: at {where} the error"
                f" of {names[output]} is {significant(part * relative, 3)} of its size",
                hint="allow more, or rewrite the function: difflab budget names the operations",
            )

    # --- assignments ----------------------------------------------------------------------------

    def completed(self, chosen: Mapping[int, FloatFormat]) -> list[FloatFormat | None]:
        """Return the format of every node: those that do not round follow their operands."""
        formats: list[FloatFormat | None] = []
        for node, (_, args) in enumerate(self.graph.rows()):
            if self.weak[node]:
                formats.append(None)
            elif node in self.sizes:
                formats.append(chosen.get(node, self.double))
            else:
                truths = self.graph.primitives[self.graph.opcode[node] - 2].truths
                known = [formats[arg] for k, arg in enumerate(args) if k not in truths]
                given = [each for each in known if each is not None]
                formats.append(max(given, key=lambda form: form.width, default=self.double))
        return formats

    @cached_property
    def costs(self) -> dict[int, Array]:
        """Error that each format of each node adds, as a fraction of the tolerance."""
        sweeps = Sweeps(self.function, self.double)
        costs = {node: np.zeros(len(self.formats)) for node in self.free}
        for point in self.points[:STEEPEST]:
            values, reference = run(self.function, point, [self.double] * len(self.graph))
            errors = [self._errors(values, form) for form in self.formats]
            for output, limit in enumerate(self.tolerance.allowed(reference[None])[0]):
                bars = sweeps.adjoints(values, output)
                for node in self.free:
                    effects = np.array([effect(bars.get(node, 0.0), each[node]) for each in errors])
                    costs[node] = np.maximum(costs[node], shares(effects, limit))
        for node, cost in costs.items():
            cost[[self.peaks[node] > form.largest for form in self.formats]] = math.inf
        return costs

    def _errors(self, values: Sequence[Any], form: FloatFormat) -> list[Array]:
        """Return bounds of the errors of all nodes in a format, the inputs' rounding included."""
        errors = rounding_errors(self.graph, values, [form] * len(self.graph))
        for node in self.function.input_nodes if form is not self.double else ():
            errors[node] = form.spacing(values[node]) / 2
        return errors

    @cached_property
    def peaks(self) -> dict[int, float]:
        """The largest absolute value of each node over the points."""
        values, _ = run(self.function, self.points, self.completed({}))
        return {node: float(np.max(np.abs(values[node]))) for node in self.free}

    def priced(self, price: float) -> dict[int, FloatFormat]:
        """Return the assignment in which every node minimises its bits plus its priced error."""
        bits = np.array([form.bits for form in self.formats])
        assignment = {}
        for node in self.free:
            with np.errstate(invalid="ignore"):
                total = bits * self.sizes[node] + price * self.costs[node]
            assignment[node] = self.formats[int(np.argmin(total))]
        return assignment

    def holds(self, chosen: Mapping[int, FloatFormat]) -> bool:
        """Whether the graph keeps the tolerance, with the margin, at the points."""
        _, results = run(self.function, self.points, self.completed(chosen))
        return bool(np.max(self.tolerance.parts(results, self.reference)) <= MARGIN)

    def cheapest(self) -> dict[int, FloatFormat]:
        """Return the cheapest assignment that is found and verified."""
        low, high = -20.0, 60.0  # of the price's binary logarithm
        if self.holds(self.priced(2.0**low)):
            high = low
        for _ in range(PRICES if high > low else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if self.holds(self.priced(2.0**middle)) else (middle, high)
        chosen = self.priced(2.0**high)
        if not self.holds(chosen):
            chosen = {}
        chosen = self.narrowed(chosen)
        while not self.verified(chosen):
            narrow = [node for node, form in chosen.items() if form is not self.double]
            if not narrow:
                break
            widened = max(narrow, key=lambda node: self.cost(node, chosen[node]))
            wider = self.formats[self.formats.index(chosen[widened]) + 1]
            chosen = {**chosen, widened: wider}
        return chosen

    def cost(self, node: int, form: FloatFormat) -> float:
        """Return the part of the tolerance that the rounding of a node may take."""
        return float(self.costs[node][self.formats.index(form)])

    def narrowed(self, chosen: dict[int, FloatFormat]) -> dict[int, FloatFormat]:
        """Return the assignment with operations narrowed one by one where that holds."""
        order = sorted(self.free, key=lambda node: float(self.costs[node][0]))
        for node in order[:TRIALS]:
            for form in self.formats:
                if form.bits >= chosen.get(node, self.double).bits:
                    break
                if math.isinf(self.cost(node, form)):
                    continue
                trial = {**chosen, node: form}
                if self.holds(trial):
                    chosen = trial
                    break
        return chosen

    # --- verification ---------------------------------------------------------------------------

    def verified(self, chosen: Mapping[int, FloatFormat]) -> bool:
        """Whether the assignment keeps the tolerance against mpmath, at the worst points too."""
        formats = self.completed(chosen)
        self.part = 0.0
        self.compared = 0
        for _ in range(SEARCHES):
            hardest = self._hardest(formats)
            part, worst, _ = self._against_truth(hardest, formats)
            self.compared += len(hardest)
            if part >= self.part:
                self.part, self.worst = part, worst
        return self.part <= SAFE

    def _hardest(self, formats: Sequence[FloatFormat | None]) -> Array:
        """Return points of the sample, those with the largest errors, and worse ones near them."""
        low, high = self.box.low, self.box.high
        hardest = self.points
        for radius in (0.1, 0.01, 0.001):
            worst = self._largest(hardest, formats)
            moves = self.draw.uniform(-radius, radius, (STEEPEST, *worst.shape)) * (high - low)
            near = np.clip(worst + moves, low, high).reshape(-1, worst.shape[1])
            hardest = np.concatenate([worst, near])
        return np.concatenate([self._largest(hardest, formats), self.points[: 2 * STEEPEST]])

    def _largest(self, points: Array, formats: Sequence[FloatFormat | None]) -> Array:
        """Return the points with the largest differences from float64."""
        _, reference = run(self.function, points, self.completed({}))
        _, results = run(self.function, points, formats)
        parts = np.max(self.tolerance.parts(results, reference), axis=1)
        worst: Array = points[np.argsort(-parts)[:STEEPEST]]
        return worst

    def _against_truth(
        self, points: Array, formats: Sequence[FloatFormat | None]
    ) -> tuple[float, Array, int]:
        """Return the largest error against mpmath, its point and its output number."""
        expected = np.array([truth(self.real, point) for point in points])
        parts = self.tolerance.parts(self._results(points, formats), expected)
        point, output = np.unravel_index(np.argmax(parts), parts.shape)
        return float(parts[point, output]), points[point], int(output)

    def _results(self, points: Array, formats: Sequence[FloatFormat | None]) -> Array:
        """Return the flattened outputs, of the printed code if there is any."""
        function = self._code(formats)[1]
        if function is None:
            return run(self.function, points, formats)[1]
        rows = []
        with np.errstate(all="ignore"):
            for point in points:
                outputs = function(*self.function.split(point))
                rows.append(np.concatenate([np.ravel(np.asarray(y, np.float64)) for y in outputs]))
        return np.array(rows)

    def _code(self, formats: Sequence[FloatFormat | None]) -> tuple[str, Callable[..., Any] | None]:
        try:
            code = dtype_code(self.function, formats)
        except UnsupportedError:
            return "", None
        return code, compiled(code)

    # --- the result -----------------------------------------------------------------------------

    def assignment(
        self, chosen: Mapping[int, FloatFormat], over: dict[str, tuple[float, float]]
    ) -> DtypeAssignment:
        """Return the result."""
        formats = self.completed(chosen)
        if self.part > 1:
            where, relative = shown_point(self.function, self.worst), self.tolerance.relative
            raise PointError(
                f"the tolerance {relative:g} does not hold at {where}, not even in float64",
                hint="difflab budget names the operations that lose the digits",
            )
        return DtypeAssignment(
            self.function,
            self.original,
            self.tolerance.relative,
            over,
            tuple(self._described(chosen)),
            self._code(formats)[0],
            self.part,
            len(self.points),
            self.compared,
            dict(zip(self.function.inputs, self.function.split(self.worst), strict=True)),
            tuple(formats),
        )

    def _described(self, chosen: Mapping[int, FloatFormat]) -> Iterator[OperationDtype]:
        graph = self.graph
        for node in self.free:
            form, row = chosen.get(node, self.double), graph.primitive(node)
            site = graph.place(node)
            text = graph.input_name(node) if row is None else site.part or row.name
            yield OperationDtype(
                node,
                "input" if row is None else row.name,
                text,
                site,
                form.name,
                (64 - form.bits) * self.sizes[node],
                self.cost(node, form),
                self._refused(node, chosen),
            )

    def _refused(self, node: int, chosen: Mapping[int, FloatFormat]) -> str:
        """Return why the next narrower format of a node does not do."""
        form = chosen.get(node, self.double)
        narrower = [each for each in self.formats if each.bits < form.bits]
        if not narrower:
            return ""
        cost = self.cost(node, narrower[-1])
        if self.peaks[node] > narrower[-1].largest:
            return f"overflows in {narrower[-1].name}: {significant(self.peaks[node], 3)}"
        if cost > MARGIN:
            return f"{narrower[-1].name} errs by {significant(cost, 3)} tolerances"
        return f"{narrower[-1].name} does not hold beside the others"

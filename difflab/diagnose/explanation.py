"""`explain`: operations that fail in a value or a gradient, and inputs with a zero gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.place import SourceLocation
from difflab.diagnose.anomalies import Event, doubtful, events
from difflab.diagnose.findings import AnomalyKind, Finding, ZeroGradient, call_text
from difflab.diagnose.node_origins import CombinedGraph
from difflab.diagnose.zero_gradients import flat_inputs
from difflab.errors import PointError
from difflab.graph.checks import require_function
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function
from difflab.graph.ir import Graph, packed_slices

BLOCK = 4_000_000
"""Maximum number of elements, over all nodes, in one block of points of a batch."""

TRIED = 64
"""Maximum number of points of a batch that are examined individually."""


@dataclass(frozen=True)
class Explanation:
    """Report of `explain`; without findings, no operation failed.

    Attributes
    ----------
    findings : tuple of Finding
        In evaluation order, those of the value before those of the gradient.
    flat : tuple of ZeroGradient
        The inputs whose gradient is exactly zero, or from which no path leads to the output.
    judged : bool
        Whether all cancellations were checked; a very large function is not evaluated with
        60 digits.
    points : int
        The number of points of a batch with a non-finite result.
    """

    findings: tuple[Finding, ...] = ()
    flat: tuple[ZeroGradient, ...] = ()
    judged: bool = True
    points: int = 0

    @property
    def ok(self) -> bool:
        """Whether no operation failed; a gradient may still be zero."""
        return not self.findings

    @property
    def first(self) -> Finding | None:
        """The first finding in evaluation order, or None."""
        return self.findings[0] if self.findings else None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report; the first finding shows its source location."""
        if self.ok:
            yield "no nan, infinity, overflow or total cancellation in value or gradient"
        for index, finding in enumerate(self.findings):
            yield finding.render() if index == 0 else f"then: {finding}"
        if self.points:
            yield f"{self.points:,} points of the batch have a non-finite result"
        if not self.judged:
            yield "cancellations were not checked: the function is too large for 60 digits"
        yield from map(str, self.flat)


def explain(function: Function, at: Mapping[str, Any] | Sequence[Any]) -> Explanation:
    """Find the operations that fail at a point, in the value or in the gradient.

    An operation fails when it returns nan or infinity for finite operands (at a pole, or by
    *overflow* where the exact value is finite), or when a sum is a *total cancellation*: it has
    no correct digit although its exact value, computed by evaluating the function with 60
    digits, is nonzero. Values in unselected branches are ignored. For a failure in the reverse
    sweep, the report names the forward operation whose derivative failed.

    Inputs from which no path leads to the output, and gradients that are exactly zero (a dead
    ReLU, a saturated sigmoid, an unselected branch, a step function), are reported with the
    operations whose derivative is zero. A function with several outputs is differentiated
    with one cotangent that has no zero element.

    Parameters
    ----------
    function : Function
        The function, with any inputs and outputs.
    at : mapping or sequence
        A value for each input, by name or in order; leading axes are batch axes.

    Returns
    -------
    Explanation
        The findings; ``str`` of it is the report.

    Raises
    ------
    PointError
        A value is missing, unknown or of the wrong shape.

    Examples
    --------
    >>> import difflab as dl
    >>> print(explain(dl.parse("1 + log(x - 3)"), {"x": 2}))
    log at column 5: log(-1) is nan (log needs x > 0)
      1 + log(x - 3)
          ^~~~~~~~~~
    >>> explain(dl.parse("sqrt(x)"), {"x": 0}).first.derivative_of
    'sqrt(0)'
    >>> print(explain(dl.parse("relu(w) + b"), {"w": -3.2, "b": 1}))
    no nan, infinity, overflow or total cancellation in value or gradient
    w: gradient exactly 0, blocked by relu(-3.2) at column 1: -3.2 ≤ 0
    """
    require_function(function, "explain")
    is_point = isinstance(at, Mapping | list | tuple)
    if not is_point and not (isinstance(at, np.ndarray) and at.ndim):
        raise PointError(
            f"explain requires a point, not {type(at).__name__}",
            hint='give the values by name, {"x": 2.0}, or in order, [2.0]',
        )
    named, ordered = (at, ()) if isinstance(at, Mapping) else ({}, at)
    arranged = function.arranged(ordered, named)
    values = [np.asarray(value, dtype=np.float64) for value in arranged]
    explainer = PointExplainer(function, range(len(function.inputs)), function.graph.place)
    batch = function.batch(values)
    with np.errstate(all="ignore"):
        return explainer.batched(values, batch) if batch else explainer.single(values, None)


class PointExplainer:
    """Explainer of one function, whose reverse sweep is built once for all points.

    Parameters
    ----------
    function : Function
    input_indices : iterable of int
        The inputs whose gradients are examined.
    site : callable
        Returns the source location of a node of the function.
    """

    def __init__(
        self,
        function: Function,
        input_indices: Iterable[int],
        site: Callable[[int], SourceLocation],
    ) -> None:
        self.function = function
        self.input_indices = tuple(input_indices)
        self.site = site
        self.backward = CombinedGraph(
            function, [function.input_nodes[i] for i in self.input_indices]
        )
        self.graph: Graph = self.backward.graph
        self.outputs = [*dict.fromkeys(function.outputs), *self.backward.bars.values()]

    def environment(self, values: Sequence[Any]) -> dict[int, Any]:
        """Return the values of all inputs: the function's, and the seed cotangents.

        Their elements differ, so that contributions of the outputs do not cancel by chance.
        """
        environment = dict(zip(self.function.input_nodes, values, strict=True))
        shapes = [self.function.graph.shape(number) for number in self.backward.seeds]
        seeds = zip(self.backward.seeds.values(), shapes, packed_slices(shapes), strict=True)
        for seed, shape, part in seeds:
            weights = 1.0 + np.arange(part.start, part.stop) * math.sqrt(0.5) % 1.0
            environment[seed] = weights.reshape(shape)[()]
        return environment

    def single(self, values: Sequence[Any], point: int | None) -> Explanation:
        """Return the explanation at one point; `point` is its index in a batch."""
        environment = self.environment(values)
        node_values = fold_all(self.graph, environment, ArrayInterpreter())
        made, judged = events(self.graph, node_values, self.outputs, environment)
        # The derivative of an operation that itself failed is no separate finding.
        failed = {event.node for event in made if event.kind is not AnomalyKind.CANCELLATION}
        fresh = (event for event in made if self.backward.origin(event.node) not in failed)
        findings = tuple(self.finding(event, node_values, point) for event in fresh)
        flat: tuple[ZeroGradient, ...] = ()
        if point is None:
            bars = self.gradients(node_values)
            flat = tuple(flat_inputs(self.function, values, bars, self.site))
        return Explanation(findings, flat, judged)

    def gradients(self, node_values: Sequence[Any]) -> dict[int, Any]:
        """Return the gradient with respect to each examined input; None where no path exists."""
        nodes, bars = self.function.input_nodes, self.backward.bars
        return {
            i: node_values[bars[nodes[i]]] if nodes[i] in bars else None for i in self.input_indices
        }

    def finding(self, event: Event, node_values: Sequence[Any], point: int | None) -> Finding:
        """Return an event as a finding about the function's own operations."""
        graph, node = self.graph, event.node
        origin = self.backward.origin(node)
        row = graph.primitive(node)
        source = node if origin is None else origin
        call = call_text(row, event.operands)
        if row is None and node in graph.names:
            call = f"the input '{graph.input_name(node)}'"
        forward = "" if origin is None else self._forward(source, event, node_values)
        return Finding(
            kind=event.kind,
            operation=row.name if row is not None else "",
            call=call,
            operands=event.operands,
            result=event.result,
            site=self.site(source),
            exact=event.exact,
            needs=row.defined if row is not None and origin is None else "",
            gradient=origin is not None,
            derivative_of=forward,
            inputs=() if origin is None else self._reached(node),
            element=event.element,
            point=point,
        )

    def _forward(self, source: int, event: Event, node_values: Sequence[Any]) -> str:
        """Return the forward operation with its operands, at the same element if shapes match."""
        row = self.graph.primitive(source)
        if row is None:
            return ""
        shape = np.shape(node_values[source])
        operands = [node_values[arg] for arg in self.graph.arguments(source)]
        if shape and len(event.element) == len(shape):
            operands = [
                each[event.element] if np.shape(each) == shape else each for each in operands
            ]
        return call_text(row, operands)

    def _reached(self, node: int) -> tuple[str, ...]:
        """Return the inputs whose gradients depend on a node."""
        reach = self.graph.reached_from([node])
        bars, function = self.backward.bars, self.function
        pairs = ((function.inputs[i], function.input_nodes[i]) for i in self.input_indices)
        return tuple(name for name, source in pairs if source in bars and reach[bars[source]])

    def batched(self, values: Sequence[Any], batch: tuple[int, ...]) -> Explanation:
        """Return the explanation at the first point of a batch that has a finding."""
        shapes = self.function.input_shapes
        size = math.prod(batch)
        flat = [
            np.broadcast_to(value, batch + shape).reshape((size, *shape))
            for value, shape in zip(values, shapes, strict=True)
        ]
        infinite, doubt, zeros = self._search(flat, size)
        best = Explanation()
        for point in [*np.flatnonzero(infinite), *np.flatnonzero(doubt & ~infinite)][:TRIED]:
            best = self.single([part[point] for part in flat], int(point))
            if best.findings:
                break
        still = list(self._flat_points(flat, zeros))
        return Explanation(best.findings, tuple(still), best.judged, int(infinite.sum()))

    def _search(
        self, flat: Sequence[NDArray[Any]], size: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[NDArray[np.bool_]]]:
        """Return masks of points with a non-finite result, a doubtful node, zero gradients."""
        infinite, doubt = np.zeros(size, bool), np.zeros(size, bool)
        zeros = [np.ones(part.shape, bool) for part in flat]
        step = max(BLOCK // max(self.graph.element_count(), 1), 1)
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            environment = self.environment([values[part] for values in flat])
            node_values = fold_all(self.graph, environment, ArrayInterpreter())
            for node in range(len(self.graph)):
                mask = doubtful(self.graph, node, node_values)
                if mask is not None:
                    doubt[part] |= self._by_point(mask, node, part.stop - start)
            for node in self.outputs:
                wrong = ~np.isfinite(node_values[node])
                infinite[part] |= self._by_point(wrong, node, part.stop - start)
            for i, bar in self.gradients(node_values).items():
                if bar is not None:
                    zeros[i][part] = np.broadcast_to(bar == 0, zeros[i][part].shape)
        return infinite, doubt, zeros

    def _by_point(self, mask: Any, node: int, count: int) -> Any:
        """Return at which points any element of a node's mask is true."""
        full = np.broadcast_to(mask, (count, *self.graph.shape(node)))
        return full.reshape(count, -1).any(axis=1)

    def _flat_points(
        self, flat: Sequence[NDArray[Any]], zeros: Sequence[NDArray[np.bool_]]
    ) -> Iterator[ZeroGradient]:
        """Yield the inputs with a zero gradient, each explained at the first such point."""
        for i, zero in enumerate(zeros):
            at = np.flatnonzero(zero.reshape(len(zero), -1).any(axis=1))
            if not len(at):
                continue
            values = [part[at[0]] for part in flat]
            bars = {i: np.where(zero[at[0]], 0.0, 1.0)}
            for one in flat_inputs(self.function, values, bars, self.site):
                whole = len(at) == len(zero) and not one.path
                yield one if whole else _of_points(one, len(at), int(at[0]))


def _of_points(one: ZeroGradient, points: int, point: int) -> ZeroGradient:
    return replace(one, points=points, point=point)

"""`explain`: what went wrong in a value or a gradient, and where no gradient arrives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.place import SourceLocation
from difflab.diagnose.anomalies import Event, doubtful, events
from difflab.diagnose.findings import Finding, Flat, Kind, call_text
from difflab.diagnose.node_origins import Backward
from difflab.diagnose.zero_gradients import flat_inputs
from difflab.errors import PointError
from difflab.graph.checks import require_function
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function
from difflab.graph.ir import Graph

__all__ = ["Explanation", "Run", "explain"]

LIMIT = 8
"""Findings that are kept."""

BLOCK = 4_000_000
"""Numbers that a block of points may fill while a batch is searched."""

TRIED = 64
"""Points of a batch that are looked into one by one."""


@dataclass(frozen=True)
class Explanation:
    """What was found: all in order where nothing was.

    Attributes
    ----------
    findings : tuple of Finding
        In the order of evaluation, the value before the gradient.
    flat : tuple of Flat
        The inputs whose gradient is exactly zero, or that no path joins to the output.
    judged : bool
        Whether all cancellations were judged; a very large function is not evaluated with
        many digits.
    points : int
        How many points of a batch have a result that is not finite.
    """

    findings: tuple[Finding, ...] = ()
    flat: tuple[Flat, ...] = ()
    judged: bool = True
    points: int = 0

    @property
    def ok(self) -> bool:
        """Whether no operation went wrong; a gradient may still be zero."""
        return not self.findings

    @property
    def first(self) -> Finding | None:
        """The operation that went wrong first."""
        return self.findings[0] if self.findings else None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the report, the first finding with its place marked."""
        if self.ok:
            yield "no nan, infinity, overflow or total cancellation in value or gradient"
        for place, finding in enumerate(self.findings):
            yield finding.render() if place == 0 else f"then: {finding}"
        if self.points:
            yield f"{self.points:,} points of the batch have a result that is not finite"
        if not self.judged:
            yield "cancellations were not judged: the function is too large for many digits"
        yield from map(str, self.flat)


def explain(function: Function, at: Mapping[str, Any] | Sequence[Any]) -> Explanation:
    """Find the first operation that went wrong at a point, in the value or in the gradient.

    An operation goes wrong when it makes a nan or an infinity of finite operands (at a pole,
    or by *overflow* where the true value is finite), or when a sum is a *total cancellation*:
    no digit of it is right although the true value, found by evaluating the function with 60
    digits, is not zero. What an untaken branch holds does not count. In the gradient, the
    reverse sweep's, the forward operation is named whose derivative it was.

    Inputs that no path joins to the output, and gradients that are exactly zero (a dead ReLU, a
    saturated sigmoid, an untaken branch, a step), are reported with the operation that the
    derivative does not get through. A function with several outputs is differentiated along
    one direction in which all of them count.

    Parameters
    ----------
    function : Function
        With any inputs and outputs.
    at : mapping or sequence
        A value for each input, or a batch of them by leading axes.

    Returns
    -------
    Explanation
        The findings, and its text by ``str``.

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
    known = isinstance(at, Mapping | list | tuple)
    if not known and not (isinstance(at, np.ndarray) and at.ndim):
        raise PointError(
            f"explain takes a point, not {type(at).__name__}",
            hint='values by name, {"x": 2.0}, or in order, [2.0]',
        )
    named, ordered = (at, ()) if isinstance(at, Mapping) else ({}, at)
    given = function.arranged(ordered, named)
    values = [np.asarray(value, dtype=np.float64) for value in given]
    run = Run(function, range(len(function.inputs)), function.graph.place)
    batch = function.batch(values)
    with np.errstate(all="ignore"):
        return run.batched(values, batch) if batch else run.single(values, None)


class Run:
    """One function with its reverse sweep, looked into at one point after another.

    Parameters
    ----------
    function : Function
    places : iterable of int
        The inputs whose gradients are looked at.
    site : callable
        Where a node of the function stands in the source.
    """

    def __init__(
        self, function: Function, places: Iterable[int], site: Callable[[int], SourceLocation]
    ) -> None:
        self.function = function
        self.places = tuple(places)
        self.site = site
        self.backward = Backward(function, [function.input_nodes[place] for place in self.places])
        self.graph: Graph = self.backward.graph
        self.outputs = [*dict.fromkeys(function.outputs), *self.backward.bars.values()]

    def environment(self, values: Sequence[Any]) -> dict[int, Any]:
        """Return the values of all inputs: the function's, and the cotangents to start from.

        Those of several outputs differ from each other, so that they do not cancel by chance.
        """
        known = dict(zip(self.function.input_nodes, values, strict=True))
        start = 0
        for number, seed in self.backward.seeds.items():
            shape = self.function.graph.shape(number)
            size = math.prod(shape)
            weights = 1.0 + np.arange(start, start + size) * math.sqrt(0.5) % 1.0
            known[seed] = weights.reshape(shape) if shape else weights[0]
            start += size
        return known

    def single(self, values: Sequence[Any], point: int | None) -> Explanation:
        """Return what is to be said of one point."""
        known = self.environment(values)
        found = fold_all(self.graph, known, ArrayInterpreter())
        made, judged = events(self.graph, found, self.outputs, known, LIMIT)
        # A derivative at a point where its own operation failed says nothing new.
        failed = {event.node for event in made if event.kind is not Kind.CANCELLATION}
        fresh = (event for event in made if self.backward.origin(event.node) not in failed)
        findings = tuple(self.finding(event, found, point) for event in fresh)
        flat: tuple[Flat, ...] = ()
        if point is None:
            bars = self.gradients(found)
            flat = tuple(flat_inputs(self.function, values, bars, self.site))
        return Explanation(findings, flat, judged)

    def gradients(self, found: Sequence[Any]) -> dict[int, Any]:
        """Return the gradient by every input looked at; None where no derivative flows."""
        nodes, bars = self.function.input_nodes, self.backward.bars
        return {
            place: found[bars[nodes[place]]] if nodes[place] in bars else None
            for place in self.places
        }

    def finding(self, event: Event, found: Sequence[Any], point: int | None) -> Finding:
        """Return an event in the words of the function."""
        graph, node = self.graph, event.node
        origin = self.backward.origin(node)
        row = graph.primitive(node)
        source = node if origin is None else origin
        call = call_text(row, event.operands)
        if row is None and node in graph.names:
            call = f"the input '{graph.input_name(node)}'"
        forward = "" if origin is None else self._forward(source, event, found)
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

    def _forward(self, source: int, event: Event, found: Sequence[Any]) -> str:
        """Return the forward operation with its operands, at the same number where there is one."""
        row = self.graph.primitive(source)
        if row is None:
            return ""
        shape = np.shape(found[source])
        operands = [found[arg] for arg in self.graph.arguments(source)]
        if shape and len(event.element) == len(shape):
            operands = [
                each[event.element] if np.shape(each) == shape else each for each in operands
            ]
        return call_text(row, operands)

    def _reached(self, node: int) -> tuple[str, ...]:
        """Return the inputs whose gradients depend on a node."""
        reach = self.graph.reached_from([node])
        bars, function = self.backward.bars, self.function
        pairs = ((function.inputs[i], function.input_nodes[i]) for i in self.places)
        return tuple(name for name, place in pairs if place in bars and reach[bars[place]])

    def batched(self, values: Sequence[Any], batch: tuple[int, ...]) -> Explanation:
        """Return what is to be said of the first point of a batch where something is."""
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
        """Return at which points a result is not finite, a node doubtful, a gradient zero."""
        infinite, doubt = np.zeros(size, bool), np.zeros(size, bool)
        zeros = [np.ones(part.shape, bool) for part in flat]
        numbers = sum(math.prod(self.graph.shape(node)) for node in range(len(self.graph)))
        step = max(BLOCK // max(numbers, 1), 1)
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            known = self.environment([values[part] for values in flat])
            found = fold_all(self.graph, known, ArrayInterpreter())
            for node in range(len(self.graph)):
                mask = doubtful(self.graph, node, found)
                if mask is not None:
                    doubt[part] |= self._by_point(mask, node, part.stop - start)
            for node in self.outputs:
                wrong = ~np.isfinite(found[node])
                infinite[part] |= self._by_point(wrong, node, part.stop - start)
            for place, bar in self.gradients(found).items():
                if bar is not None:
                    zeros[place][part] = np.broadcast_to(bar == 0, zeros[place][part].shape)
        return infinite, doubt, zeros

    def _by_point(self, mask: Any, node: int, count: int) -> Any:
        """Return at which points any number of a node's mask holds."""
        full = np.broadcast_to(mask, (count, *self.graph.shape(node)))
        return full.reshape(count, -1).any(axis=1)

    def _flat_points(
        self, flat: Sequence[NDArray[Any]], zeros: Sequence[NDArray[np.bool_]]
    ) -> Iterator[Flat]:
        """Yield the inputs whose gradient is zero at a point, explained at the first of them."""
        for place, zero in enumerate(zeros):
            at = np.flatnonzero(zero.reshape(len(zero), -1).any(axis=1))
            if not len(at):
                continue
            values = [part[at[0]] for part in flat]
            bars = {place: np.where(zero[at[0]], 0.0, 1.0)}
            for one in flat_inputs(self.function, values, bars, self.site):
                whole = len(at) == len(zero) and not one.path
                yield one if whole else _of_points(one, len(at), int(at[0]))


def _of_points(one: Flat, points: int, point: int) -> Flat:
    return replace(one, points=points, point=point)

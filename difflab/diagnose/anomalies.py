"""Detection of operations that return nan, infinity or an element without a correct digit.

Values in unselected branches are ignored: masks propagate from the outputs back to the elements
that they depend on, and only these are examined. The cost is linear in the size of the graph.
mpmath computes the values in the reals, within a time limit and without exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from difflab.balls.limit import in_process
from difflab.core.primitive import Elementwise, LinearMap, Primitive, Select
from difflab.diagnose.findings import AnomalyKind, operands_at
from difflab.graph.evaluate import fold
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.primitives import TABLE, add, matmul, subtract, sum_

SECONDS = 5.0
"""The time limit of mpmath."""


def computed(
    task: Callable[..., Any], rows: Iterable[Primitive], subject: Any, *arguments: Any
) -> Any:
    """Return ``task(subject, *arguments)``; None where mpmath raises or takes too long.

    Far outside a function's domain mpmath raises exceptions of many kinds, or adds series for
    minutes. Functions of `rows` that may do so are computed in a process, which can be stopped.

    Examples
    --------
    >>> computed(abs, [], -2)
    2
    >>> computed(abs, [], "text") is None
    True
    """
    try:
        if not any(map(_may_hang, rows)):
            return task(subject, *arguments)
        return in_process(task, subject, *arguments, timeout=SECONDS, grace=0.0)
    except Exception:  # `MethodTimeout`, or one of mpmath's of any kind
        return None


def _may_hang(row: Primitive) -> bool:
    """Whether mpmath computes a row by series whose length depends on the arguments."""
    return row.portable is not None or row.name.endswith("_remainder")


LIMIT = 8
"""Maximum number of events in a report."""

EXACT_DIGITS = 60
EXACT_LIMIT = 1_000_000
"""Maximum number of elements evaluated with 60 digits; above it no cancellation is checked."""

NEAR = 2.0**-26
"""Relative size at which a sum has lost half its digits; then all sums are checked."""

LOST = 0.5
"""Relative error from which no binary digit is correct."""

CANCELS = 0.125
"""Relative size above which a sum only propagates errors of its operands."""

SUMS = frozenset({add, subtract, sum_, matmul})
ElementMask = Any
"""Elements of a value: a bool for a scalar, else a boolean array."""


@dataclass(frozen=True)
class Event:
    """Failure of a node at one element of its value."""

    node: int
    kind: AnomalyKind
    element: tuple[int, ...]
    operands: tuple[Any, ...]
    result: float
    exact: float | None = None


def events(
    graph: Graph,
    values: Sequence[Any],
    outputs: Sequence[int],
    inputs: Mapping[int, Any],
) -> tuple[list[Event], bool]:
    """Return the first failures on which `outputs` depend, in evaluation order.

    Parameters
    ----------
    graph : Graph
        The computation.
    values : sequence
        The value of every node, at one point.
    outputs : sequence of int
        The result nodes; elements that no output depends on are ignored.
    inputs : mapping of int to value
        The inputs' values by node, for the evaluation with 60 digits.

    Returns
    -------
    list of Event, bool
        At most `LIMIT`, one per node, and whether every doubtful sum was checked: evaluation
        with 60 digits distinguishes cancellations from exact zeros, up to a size limit.
    """
    suspects = {
        node: mask
        for node in range(len(graph))
        if (mask := doubtful(graph, node, values)) is not None
    }
    if not suspects:
        return [], True
    marks = needed(graph, values, outputs)
    failed = list(islice(failures(graph, values, suspects, marks), LIMIT))
    lossy = any(
        marks[node] is not None and _any(mask & marks[node] & np.isfinite(values[node]))
        for node, mask in suspects.items()
    )
    sums = _finite_sums(graph, values, marks) if lossy else {}
    lost, judged = _cancellations(graph, values, sums, inputs)
    return sorted(failed + lost, key=lambda event: event.node)[:LIMIT], judged


def failures(
    graph: Graph, values: Sequence[Any], nodes: Iterable[int], marks: Sequence[ElementMask | None]
) -> Iterator[Event]:
    """Yield an event for each of `nodes` that returns nan or infinity for finite operands.

    Parameters
    ----------
    graph, values
        As in `events`.
    nodes : iterable of int
        The nodes to examine, in evaluation order.
    marks : sequence
        The masks that `needed` returns.
    """
    for node in nodes:
        mark = marks[node]
        wrong = False if mark is None else mark & ~np.isfinite(values[node])
        element = _origin(graph, node, values, wrong, marks) if _any(wrong) else None
        if element is not None:
            yield _event(graph, node, values, element)


def _finite_sums(
    graph: Graph, values: Sequence[Any], marks: Sequence[ElementMask | None]
) -> dict[int, ElementMask]:
    """Return the finite elements of every sum that an output depends on."""
    sums = {}
    for node in np.flatnonzero(graph.applies(*SUMS)).tolist():
        mark = marks[node]
        if mark is not None and _any(counts := mark & np.isfinite(values[node])):
            sums[node] = counts
    return sums


def doubtful(graph: Graph, node: int, values: Sequence[Any]) -> ElementMask | None:
    """Return the elements of a node that are not finite, or so small that digits were lost."""
    value = values[node]
    if graph.primitive(node) in SUMS:
        scale = _scale(graph, node, values)
        if not getattr(value, "ndim", 0):
            close = abs(value) <= NEAR * scale and 0 < scale < math.inf
            return True if close or not math.isfinite(value) else None
        close = (np.abs(value) <= NEAR * scale) & (scale > 0) & np.isfinite(scale)
        return _some(close | ~np.isfinite(value))
    if not getattr(value, "ndim", 0):
        return None if math.isfinite(value) else True
    return _some(~np.isfinite(value))


def _scale(graph: Graph, node: int, values: Sequence[Any]) -> Any:
    """Return the size of the terms of a sum, for each of its elements."""
    row, operands = graph.primitive(node), [values[arg] for arg in graph.arguments(node)]
    assert row is not None
    if len(row.signs) == 2:
        a, b = operands
        if not getattr(values[node], "ndim", 0):
            return max(abs(float(a)), abs(float(b)))
        return np.maximum(np.abs(a), np.abs(b))
    return row.computer(np)(*map(np.abs, operands), **graph.params(node))


def _any(mask: ElementMask) -> bool:
    return mask if type(mask) is bool else bool(np.any(mask))


def _some(mask: ElementMask) -> ElementMask | None:
    return mask if _any(mask) else None


def needed(graph: Graph, values: Sequence[Any], outputs: Sequence[int]) -> list[ElementMask | None]:
    """Return the elements of every node that the outputs depend on; None for no element."""
    marks: list[ElementMask | None] = [None] * len(graph)
    for node in outputs:
        marks[node] = np.ones(np.shape(values[node]), bool) if np.ndim(values[node]) else True
    rows = list(graph.rows())
    for node in range(len(graph) - 1, -1, -1):
        mark, (opcode, args) = marks[node], rows[node]
        if mark is None or opcode < FIRST_ROW:
            continue
        row = graph.primitives[opcode - FIRST_ROW]
        for position, arg in enumerate(args):
            share = _share(graph, row, node, position, args, mark, values)
            if share is not None:
                marks[arg] = share if marks[arg] is None else marks[arg] | share
    return marks


def _share(
    graph: Graph,
    row: Primitive,
    node: int,
    position: int,
    args: Sequence[int],
    mark: ElementMask,
    values: Sequence[Any],
) -> ElementMask | None:
    """Return the elements of one argument that the marked elements of a node depend on."""
    shape = getattr(values[args[position]], "shape", ())
    if isinstance(row.rule, LinearMap):
        shapes = tuple(np.shape(values[arg]) for arg in args)
        count = row.rule.transpose(mark * 1.0, position, shapes, **graph.params(node))
        return _some(np.asarray(count) != 0)
    if isinstance(row.rule, Select):
        mark = mark & _passes(row.rule, position, [values[arg] for arg in args])
    elif not isinstance(row.rule, Elementwise):
        return np.ones(shape, bool) if _any(mark) else None
    if not _any(mark):
        return None
    if not shape:
        return True
    return np.broadcast_to(mark, shape) if np.shape(mark) != shape else mark


def _passes(rule: Select, position: int, operands: list[Any]) -> ElementMask:
    """Return where a selection returns an argument, or depends on it as its condition.

    A selection among nans may select none of its arguments: then all of them count.
    """
    conditions = [None if c is None else np.asarray(c(*operands)) for c in rule.conditions]
    mine = conditions[position]
    if mine is None:
        return True
    held = [condition for condition in conditions if condition is not None]
    if len(held) == 1:
        return mine | np.isnan(operands[position])
    return mine | ~np.logical_or.reduce(np.broadcast_arrays(*held))


def _origin(
    graph: Graph,
    node: int,
    values: Sequence[Any],
    wrong: ElementMask,
    marks: Sequence[ElementMask | None],
) -> tuple[int, ...] | None:
    """Return the index of the first failed element whose operands are all finite."""
    row = graph.primitive(node)
    args = graph.arguments(node)
    if row is not None:
        for position, arg in enumerate(args):
            bad = ~np.isfinite(np.asarray(values[arg]))
            if not bad.any():
                continue
            if isinstance(row.rule, Select):
                bad = bad & _passes(row.rule, position, [values[each] for each in args])
            if isinstance(row.rule, Elementwise | Select):
                wrong = wrong & ~bad
            elif marks[arg] is not None and np.any(bad & marks[arg]):
                return None
    if not np.ndim(wrong):
        return () if wrong else None
    where = np.argwhere(wrong)
    return tuple(map(int, where[0])) if len(where) else None


def _event(graph: Graph, node: int, values: Sequence[Any], element: tuple[int, ...]) -> Event:
    """Return the event of a non-finite element with finite operands."""
    value, row = values[node], graph.primitive(node)
    result = float(value[element] if element else value)
    operands = operands_of(graph, node, values, element)
    kind = AnomalyKind.NAN if math.isnan(result) else AnomalyKind.INFINITE
    if kind is AnomalyKind.INFINITE and row is not None and _finite_exactly(row, operands):
        kind = AnomalyKind.OVERFLOW
    return Event(node, kind, element, operands, result)


def operands_of(
    graph: Graph, node: int, values: Sequence[Any], element: tuple[int, ...]
) -> tuple[Any, ...]:
    """Return the operands of one element, or whole arrays of a non-elementwise operation."""
    row = graph.primitive(node)
    operands = [values[arg] for arg in graph.arguments(node)] or [values[node]]
    if row is None or (isinstance(row.rule, Elementwise | Select) and row.shape is None):
        return operands_at(operands, element, np.shape(values[node]))
    return tuple(operands)


def _finite_exactly(row: Primitive, operands: Sequence[Any]) -> bool:
    """Whether an infinite result is finite in the reals: an overflow, not a pole."""
    finite = None
    picklable = row.name if TABLE.get(row.name) is row else row  # a row cannot be pickled
    if row.shape is None:
        finite = computed(_finite, [row], picklable, list(map(float, operands)))
    return not row.defined if finite is None else finite


def _finite(row: Primitive | str, operands: Sequence[float]) -> bool:
    import mpmath

    primitive = TABLE[row] if isinstance(row, str) else row
    value = MpmathInterpreter().operation(primitive)(*map(mpmath.mpf, operands))
    return bool(mpmath.isfinite(value))


def _cancellations(
    graph: Graph, values: Sequence[Any], sums: dict[int, ElementMask], inputs: Mapping[int, Any]
) -> tuple[list[Event], bool]:
    """Return the sums without a correct digit, compared with an evaluation with 60 digits."""
    if not sums:
        return [], True
    exact = _exact_values(graph, list(sums), inputs)
    if exact is None:
        return [], False
    made = []
    for (node, counts), right in zip(sums.items(), exact, strict=True):
        got = np.asarray(values[node])
        true = np.broadcast_to(np.asarray(right, dtype=object), got.shape)
        scale = np.broadcast_to(_scale(graph, node, values), got.shape)
        cancels = counts & (np.abs(got) <= CANCELS * scale) & np.isfinite(scale)
        for element in map(tuple, np.argwhere(np.broadcast_to(cancels, got.shape)).tolist()):
            result, target = float(got[element]), true[element]
            if _lost(result, target, float(scale[element])):
                operands = operands_of(graph, node, values, element)
                event = Event(
                    node, AnomalyKind.CANCELLATION, element, operands, result, float(target)
                )
                made.append(event)
                break
    return made, True


def _lost(result: float, target: Any, scale: float) -> bool:
    """Whether no digit of `result` is correct and the exact value is nonzero."""
    import mpmath

    if not mpmath.isfinite(target) or abs(target) <= scale * mpmath.mpf(10) ** (20 - EXACT_DIGITS):
        return False
    return bool(abs(result - target) >= LOST * abs(target))


def _exact_values(graph: Graph, nodes: list[int], inputs: Mapping[int, Any]) -> list[Any] | None:
    """Return the values of `nodes` with 60 digits; None where that would take too long."""
    pruned, targets = graph.pruned(nodes)
    if _element_count(pruned) > EXACT_LIMIT:
        return None
    names = {name: node for node, name in graph.names.items()}
    values = {
        node: np.asarray(inputs[names[name]], dtype=float) for node, name in pruned.names.items()
    }
    exact: list[Any] | None = computed(_exactly, pruned.primitives, pruned, values, targets)
    return exact


def _exactly(graph: Graph, values: Mapping[int, Any], targets: Sequence[int]) -> list[Any]:
    import mpmath

    exactly = np.frompyfunc(mpmath.mpf, 1, 1)
    with mpmath.workdps(EXACT_DIGITS):
        environment = {node: exactly(value) for node, value in values.items()}
        return fold(graph, environment, targets, MpmathInterpreter())


def _element_count(graph: Graph) -> int:
    """Return the number of elements of all nodes, matrix products counted by their terms."""
    total = graph.element_count()
    for node in np.flatnonzero(graph.applies(matmul)).tolist():
        first = graph.shape(graph.arguments(node)[0])
        total += math.prod(graph.shape(node)) * (first[-1] if first else 1)
    return total

"""Entries of a Jacobian, by the sweep direction or elimination order with fewest operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.engine.elimination import eliminate
from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.masked import resolved
from difflab.autodiff.engine.reverse import by_reverse
from difflab.autodiff.engine.squares import squares_once
from difflab.autodiff.engine.sweep import (
    ElementIndex,
    ElementPosition,
    Sweep,
    element_indices,
    element_origins,
    function_of,
    number_at,
    packed,
    spread,
    unit,
)
from difflab.errors import InputError
from difflab.graph.counts import operation_count
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.passes.operation_saving import doubled_last
from difflab.primitives import index, reshape

SweepMode = Literal["forward", "reverse", "auto"]
MODES = ("forward", "reverse", "auto")

TRIAL_LIMIT = 200_000
"""Operations up to which mode "auto" builds all Jacobians and counts; beyond it estimates."""


def entries(function: Function, mode: str) -> tuple[Sweep, Node]:
    """Return the m·n entries of the Jacobian, packed, by the sweeps that `mode` selects.

    The sweep's function is `function`, perhaps with its squares written alike.
    """
    check_mode(mode)
    function = squares_once(function)
    if mode == "reverse" or (mode == "auto" and not goes_forward(function)):
        return by_reverse(function)
    if mode == "forward":
        return _by_forward(function)
    if len(function.graph) * (function.n + function.m) > TRIAL_LIMIT:
        return _by_forward(function) if function.n <= function.m else by_reverse(function)
    trials = [by_reverse(function), _by_forward(function)]
    if min(function.n, function.m) > 1:
        # Elimination appends nodes that are folded away later; sweeps append few.
        limit = 3 * max(len(sweep.builder) for sweep, _ in trials) // 2
        shared = _by_elimination(function, limit)
        trials += [] if shared is None else [shared]
    return min(trials, key=_operations)


def check_mode(mode: str) -> None:
    """Raise `InputError` if `mode` is unknown."""
    if not isinstance(mode, str) or mode not in MODES:
        raise InputError(f"unknown mode {mode!r}", hint=f"one of {', '.join(MODES)}")


def _operations(trial_entries: tuple[Sweep, Node]) -> int:
    """Count the operations that a Jacobian's entries need together."""
    return operation_count(derived(*trial_entries, "trial", fewest=True))


def derived(sweep: Sweep, derivative: Node, name: str, *, fewest: bool) -> Function:
    """Freeze a derivative; where it shall have the fewest operations, powers of two go last."""
    whole = function_of(sweep, [derivative], [name])
    if not fewest:
        return whole
    kept = sweep.builder.graph().numbers_after([derivative.id])[: len(sweep.graph)]
    return doubled_last(whole, int((kept >= 0).sum()))


def elements(function: Function, indices: Iterable[int], names: Sequence[str]) -> Function:
    """Return a function whose outputs are single elements of the flattened outputs."""
    sweep = Sweep(function)
    origins = element_origins(sweep.builder, sweep.function.outputs)
    outputs = [number_at(sweep, *origins[k]).id for k in indices]
    return Function.build(sweep.builder, function.input_nodes, outputs, names)


def last_output_of(function: Function, positions: Iterable[int], shape: Shape) -> Function:
    """Return a function whose last output consists of some elements of its last output."""
    sweep = Sweep(function)
    *others, last = function.outputs
    origins = element_origins(sweep.builder, [last])
    flat = packed(sweep, [number_at(sweep, *origins[k]) for k in positions])
    whole: Node = reshape(flat, shape=shape, rank=1)
    return function_of(sweep, [*map(sweep.node, others), whole], function.output_names)


def _by_forward(function: Function) -> tuple[Sweep, Node]:
    """Run one forward sweep per input element."""
    sweep = Sweep(function)
    outputs = element_origins(sweep.builder, sweep.function.outputs)
    nodes = {number for number, _ in outputs}
    columns: list[list[Node]] = []
    for source, shape in zip(function.input_nodes, function.input_shapes, strict=True):
        for key in element_indices(shape):
            dots = push_forward(sweep, {source: unit(sweep, shape, key)}, nodes)
            columns.append(_numbers(sweep, dots, outputs))
    numbers = [column[row] for row in range(len(outputs)) for column in columns]
    return sweep, packed(sweep, numbers)


def _by_elimination(function: Function, limit: int) -> tuple[Sweep, Node] | None:
    """Eliminate vertices; None where that is not for this graph, or takes more than `limit`."""
    sweep = Sweep(function)
    outputs = element_origins(sweep.builder, sweep.function.outputs)
    if any(key != () for _, key in outputs):
        return None
    nodes = [number for number, _ in outputs]
    rows = eliminate(sweep, _input_elements(sweep), nodes, limit)
    if rows is None:
        return None
    builder, zero = sweep.builder, sweep.constant(0)
    numbers = [
        sweep.node(resolved(builder, row[column])) if column in row else zero
        for row in rows
        for column in range(function.n)
    ]
    return sweep, packed(sweep, numbers)


def _input_elements(sweep: Sweep) -> dict[int, int]:
    """Return the column of every node that is a number of an input, by itself or by an index."""
    function, first = sweep.function, 0
    columns: dict[int, int] = {}
    positions: dict[int, NDArray[np.int64]] = {}
    for node, shape in zip(function.input_nodes, function.input_shapes, strict=True):
        positions[node] = first + np.arange(math.prod(shape)).reshape(shape)
        if shape == ():
            columns[node] = first
        first += math.prod(shape)
    for node in np.flatnonzero(sweep.graph.applies(index)).tolist():
        (array,) = sweep.args(node)
        if array in positions and sweep.graph.shape(node) == ():
            columns[node] = int(positions[array][sweep.graph.params(node)["key"]])
    return columns


def _numbers(sweep: Sweep, tangents: dict[int, Node], origins: list[ElementPosition]) -> list[Node]:
    """Return the tangents of output elements."""
    zero = sweep.constant(0)
    parts_of: dict[int, dict[ElementIndex, ElementPosition]] = {}
    numbers = []
    for number, key in origins:
        dot = tangents.get(number)
        if dot is None or key == ():
            numbers.append(zero if dot is None else dot)
            continue
        if number not in parts_of:
            whole = spread(dot, sweep.builder.shape(number))
            positions = element_origins(sweep.builder, [whole.id])
            parts_of[number] = dict(zip(element_indices(whole.shape), positions, strict=True))
        numbers.append(number_at(sweep, *parts_of[number][key]))
    return numbers

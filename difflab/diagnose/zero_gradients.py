"""Inputs without a path to the output, and gradients that are exactly zero.

A zero gradient is traced by a forward sweep: a unit tangent starts at the input, and the
operations are reported whose tangent is zero although an operand's tangent is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.sweep import Sweep, fresh_inputs
from difflab.core.place import SourceLocation
from difflab.core.primitive import Elementwise, Primitive, Select
from difflab.diagnose.findings import (
    GradientBlock,
    ZeroGradient,
    call_text,
    number_text,
    operands_at,
)
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function, evaluate
from difflab.graph.ir import Graph
from difflab.graph.node import Node
from difflab.primitives import add, subtract, sum_

EXPLAINED = 4
"""Inputs traced by a forward sweep each; further zero gradients are reported without a reason."""

BLOCKS = 3
"""Operations reported for each input."""

EXACT_DIGITS = 400
SUMS = frozenset({add, subtract, sum_})
"""Operations in which contributions can cancel."""


def flat_inputs(
    function: Function,
    values: Sequence[Any],
    gradients: Mapping[int, Any],
    site: Callable[[int], SourceLocation],
) -> Iterator[ZeroGradient]:
    """Yield the inputs with an exactly zero gradient, and the operations that make it zero.

    Parameters
    ----------
    function : Function
    values : sequence
        One value per input, at one point.
    gradients : mapping
        The gradients by input index; None for an input without a path to the output.
    site : callable
        Returns the source location of a node of the function.
    """
    joined = function.graph.needed_for(function.outputs)
    followed = 0
    for index, bar in gradients.items():
        name, node = function.inputs[index], function.input_nodes[index]
        shape = function.input_shapes[index]
        zero = np.broadcast_to(True if bar is None else np.asarray(bar) == 0, shape)
        elements = np.argwhere(zero)
        if not len(elements):
            continue
        element = tuple(map(int, elements[0]))
        if not joined[node]:
            yield ZeroGradient(name, False, len(elements), max(zero.size, 1))
            continue
        blocks: tuple[GradientBlock, ...] = ()
        path = True
        if followed < EXPLAINED:
            followed += 1
            blocks, path = _followed(function, values, joined, index, element, site)
        yield ZeroGradient(name, path, len(elements), max(zero.size, 1), element, blocks=blocks)


def _followed(
    function: Function,
    values: Sequence[Any],
    joined: bytearray,
    index: int,
    element: tuple[int, ...],
    site: Callable[[int], SourceLocation],
) -> tuple[tuple[GradientBlock, ...], bool]:
    """Return the operations at which the unit tangent of one input element becomes zero.

    The flag is False where only data movement discards it: the element is not used.
    """
    sweep = Sweep(function)
    source = function.input_nodes[index]
    shape = function.input_shapes[index]
    (seed,) = fresh_inputs(sweep, [function.inputs[index]], [shape], "_dot")
    dots = push_forward(sweep, {source: seed}, range(len(function.graph)))
    graph, _ = sweep.builder.freeze(range(len(sweep.builder)))
    unit = np.zeros(shape)
    unit[element] = 1.0
    environment = dict(zip(function.input_nodes, values, strict=True)) | {seed.id: unit}
    node_values = fold_all(graph, environment, ArrayInterpreter())
    moving = bytearray(len(function.graph))
    for number, dot in dots.items():
        moving[number] = bool(np.any(node_values[dot.id] != 0))
    ends = [
        number
        for number, (_, args) in enumerate(function.graph.rows())
        if joined[number] and not moving[number] and any(moving[arg] for arg in args)
    ]
    rows = [(number, function.graph.primitive(number)) for number in ends]
    real = [(number, row) for number, row in rows if row is not None and not row.structural]
    smooth = [(number, row) for number, row in real if not row.boolean] or real
    tangents = {number: node_values[dot.id] for number, dot in dots.items()}
    blocks = tuple(
        _block(function.graph, number, row, node_values, tangents, moving, site(number))
        for number, row in smooth[:BLOCKS]
    )
    arrives = any(moving[number] for number in function.outputs)
    return blocks, bool(blocks) or arrives


def _block(
    graph: Graph,
    number: int,
    row: Primitive,
    node_values: Sequence[Any],
    tangents: dict[int, Any],
    moving: bytearray,
    site: SourceLocation,
) -> GradientBlock:
    """Return the record of an operation that makes a tangent zero."""
    args = graph.arguments(number)
    operands = tuple(node_values[arg] for arg in args)
    live = [position for position, arg in enumerate(args) if moving[arg]]
    shape = np.shape(node_values[number])
    if shape and row.shape is None and isinstance(row.rule, Elementwise | Select):
        tangent = np.broadcast_to(tangents[args[live[0]]], shape)
        element = tuple(map(int, np.argwhere(tangent != 0)[0]))
        operands = operands_at(operands, element, shape)
    cancels = row in SUMS
    why = "the contributions cancel" if cancels else reason(row, operands, live[0])
    return GradientBlock(row.name, call_text(row, operands), why, site)


def reason(row: Primitive, operands: Sequence[Any], position: int) -> str:
    """Return why the derivative of a primitive with respect to one operand is zero.

    Examples
    --------
    >>> from difflab.primitives import relu, floor, tanh
    >>> reason(relu, [-3.2], 0), reason(floor, [1.5], 0)
    ('-3.2 ≤ 0', 'piecewise constant, its derivative is 0')
    >>> reason(tanh, [400.0], 0)
    'saturated, its derivative 1.5e-347 is 0 in floating point'
    """
    selects = isinstance(row.rule, Select)
    if row.zero_slope and (selects or not _slope(row, operands, position, np.float64)):
        texts = [number_text(operand) for operand in operands]
        other = texts[1 - position] if len(texts) == 2 else ""
        return row.zero_slope.format(*texts, other=other)
    if row.boolean:
        return "a comparison, its derivative is 0"
    if not isinstance(row.rule, Elementwise) or any(map(np.ndim, operands)):
        return "its derivative is 0 at this point"
    if row.rule.maps[position] is None:
        return "piecewise constant, its derivative is 0"
    if _slope(row, operands, position, np.float64):
        return "the product of the derivatives underflows"
    import mpmath

    with mpmath.workdps(EXACT_DIGITS):
        exact = _slope(row, operands, position, mpmath.mpf)
        if exact and mpmath.isfinite(exact):
            shown = mpmath.nstr(exact, 2)
            return f"saturated, its derivative {shown} is 0 in floating point"
    return "its derivative is 0 at this point"


def _slope(
    row: Primitive, operands: Sequence[Any], position: int, number: Callable[[float], Any]
) -> Any:
    """Return the derivative with respect to one operand, computed in the arithmetic `number`."""
    assert isinstance(row.rule, Elementwise)
    rule_map = row.rule.maps[position]
    assert rule_map is not None
    builder = Builder()
    nodes = [Node(builder, builder.input(f"a{k}")) for k in range(len(operands))]
    slope = rule_map(Node(builder, builder.constant(1)), row(*nodes), *nodes)
    one = Function.build(builder, [node.id for node in nodes], [slope.id], ["slope"])
    try:
        (value,) = evaluate(one, [number(float(operand)) for operand in operands])
    except UnsupportedError:
        return 0
    return value

"""Where a derivative stops: inputs without a path to the output, and gradients exactly zero.

A gradient that is zero at a point is followed forward: a unit tangent starts at the input, and
the operations are named whose own tangent is zero although an operand's is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.sweep import Sweep, fresh_inputs
from difflab.core.place import SourceLocation
from difflab.core.primitive import Elementwise, Primitive, Select
from difflab.diagnose.findings import Block, Flat, call_text, number_text, operands_at
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function, evaluate
from difflab.graph.ir import Graph
from difflab.graph.node import Node
from difflab.primitives import add, clip, maximum, minimum, multiply, relu, subtract, sum_, where

__all__ = ["flat_inputs", "reason"]

EXPLAINED = 4
"""Inputs that are followed forward, each a sweep; of others it is only said that they are zero."""

BLOCKS = 3
EXACT_DIGITS = 400
SUMS = frozenset({add, subtract, sum_})
"""Operations in which contributions can cancel."""


def flat_inputs(
    function: Function,
    values: Sequence[Any],
    gradients: Mapping[int, Any],
    site: Callable[[int], SourceLocation],
) -> Iterator[Flat]:
    """Yield the inputs with a gradient that is exactly zero, and what stops it.

    Parameters
    ----------
    function : Function
    values : sequence
        One value per input, at one point.
    gradients : mapping
        The gradients to look at by the inputs' places; None where no derivative flows.
    site : callable
        Where a node of the function stands in the source.
    """
    joined = function.graph.needed_for(function.outputs)
    followed = 0
    for place, bar in gradients.items():
        name, node = function.inputs[place], function.input_nodes[place]
        shape = function.input_shapes[place]
        zero = np.broadcast_to(True if bar is None else np.asarray(bar) == 0, shape)
        places = np.argwhere(zero)
        if not len(places):
            continue
        element = tuple(map(int, places[0]))
        if not joined[node]:
            yield Flat(name, False, len(places), max(zero.size, 1))
            continue
        blocks: tuple[Block, ...] = ()
        path = True
        if followed < EXPLAINED:
            followed += 1
            blocks, path = _followed(function, values, joined, place, element, site)
        yield Flat(name, path, len(places), max(zero.size, 1), element, blocks=blocks)


def _followed(
    function: Function,
    values: Sequence[Any],
    joined: bytearray,
    place: int,
    element: tuple[int, ...],
    site: Callable[[int], SourceLocation],
) -> tuple[tuple[Block, ...], bool]:
    """Return the operations at which a unit tangent of one number of an input ends.

    The second is False where all of it ends in moves: the number is not used.
    """
    sweep = Sweep(function)
    source = function.input_nodes[place]
    shape = function.input_shapes[place]
    (seed,) = fresh_inputs(sweep, [function.inputs[place]], [shape], "_dot")
    dots = push_forward(sweep, {source: seed}, range(len(function.graph)))
    graph, _ = sweep.builder.freeze(range(len(sweep.builder)))
    unit = np.zeros(shape)
    unit[element] = 1.0
    known = dict(zip(function.input_nodes, values, strict=True)) | {seed.id: unit}
    found = fold_all(graph, known, ArrayInterpreter())
    moving = bytearray(len(function.graph))
    for number, dot in dots.items():
        moving[number] = bool(np.any(found[dot.id] != 0))
    ends = [
        number
        for number, (_, args) in enumerate(function.graph.rows())
        if joined[number] and not moving[number] and any(moving[arg] for arg in args)
    ]
    rows = [(number, function.graph.primitive(number)) for number in ends]
    real = [(number, row) for number, row in rows if row is not None and not row.structural]
    smooth = [(number, row) for number, row in real if not row.boolean] or real
    tangents = {number: found[dot.id] for number, dot in dots.items()}
    blocks = tuple(
        _block(function.graph, number, row, found, tangents, moving, site(number))
        for number, row in smooth[:BLOCKS]
    )
    arrives = any(moving[number] for number in function.outputs)
    return blocks, bool(blocks) or arrives


def _block(
    graph: Graph,
    number: int,
    row: Primitive,
    found: Sequence[Any],
    tangents: dict[int, Any],
    moving: bytearray,
    site: SourceLocation,
) -> Block:
    """Describe an operation that a tangent does not get through."""
    args = graph.arguments(number)
    operands = tuple(found[arg] for arg in args)
    live = [position for position, arg in enumerate(args) if moving[arg]]
    shape = np.shape(found[number])
    if shape and row.shape is None and isinstance(row.rule, Elementwise | Select):
        tangent = np.broadcast_to(tangents[args[live[0]]], shape)
        element = tuple(map(int, np.argwhere(tangent != 0)[0]))
        operands = operands_at(operands, element, shape)
    cancels = row in SUMS
    why = "the contributions cancel" if cancels else reason(row, operands, live[0])
    return Block(row.name, call_text(row, operands), why, site)


def reason(row: Primitive, operands: Sequence[Any], position: int) -> str:
    """Return why the derivative of a row by one of its operands is zero.

    Examples
    --------
    >>> from difflab.primitives import relu, floor, tanh
    >>> reason(relu, [-3.2], 0), reason(floor, [1.5], 0)
    ('-3.2 ≤ 0', 'a step, its derivative is 0')
    >>> reason(tanh, [400.0], 0)
    'saturated, its derivative 1.5e-347 is 0 in floating point'
    """
    said = SAID.get(row)
    if said is not None:
        return said(operands, position)
    if row.boolean:
        return "a comparison, its derivative is 0"
    if not isinstance(row.rule, Elementwise) or any(map(np.ndim, operands)):
        return "its derivative is 0 there"
    if row.rule.maps[position] is None:
        return "a step, its derivative is 0"
    if _slope(row, operands, position, np.float64):
        return "the product of the derivatives underflows"
    import mpmath

    with mpmath.workdps(EXACT_DIGITS):
        exact = _slope(row, operands, position, mpmath.mpf)
        if exact and mpmath.isfinite(exact):
            shown = mpmath.nstr(exact, 2)
            return f"saturated, its derivative {shown} is 0 in floating point"
    return "its derivative is 0 there"


SAID: dict[Primitive, Callable[[Sequence[Any], int], str]] = {
    relu: lambda operands, _: f"{number_text(operands[0])} ≤ 0",
    where: lambda operands, _: "the other branch is taken",
    maximum: lambda operands, position: f"{number_text(operands[1 - position])} is passed on",
    minimum: lambda operands, position: f"{number_text(operands[1 - position])} is passed on",
    clip: lambda operands, _: "a bound is passed on",
    multiply: lambda operands, position: (
        f"a factor is {number_text(operands[1 - position])}"
        if not operands[1 - position]
        else "the product underflows"
    ),
}


def _slope(
    row: Primitive, operands: Sequence[Any], position: int, number: Callable[[float], Any]
) -> Any:
    """Return the derivative of a row by one operand, computed with one kind of numbers."""
    assert isinstance(row.rule, Elementwise)
    rule_map = row.rule.maps[position]
    assert rule_map is not None
    builder = Builder()
    nodes = [Node(builder, builder.input(f"a{place}")) for place in range(len(operands))]
    slope = rule_map(Node(builder, builder.constant(1)), row(*nodes), *nodes)
    one = Function.build(builder, [node.id for node in nodes], [slope.id], ["slope"])
    try:
        (found,) = evaluate(one, [number(float(operand)) for operand in operands])
    except UnsupportedError:
        return 0
    return found

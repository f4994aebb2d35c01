"""A function of one example as a function of a stack of examples, graph to graph.

Elementwise rows take stacks as they are; rows that move data are told of the leading axis;
any other row is applied to one example after the other. May import `graph`, `primitives`,
`core`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW
from difflab.graph.node import Node
from difflab.primitives import broadcast, index, pack, reshape, scatter, sum_

__all__ = ["batched", "stacked", "unstacked"]

Shape = tuple[int, ...]
Arg = tuple[Node, bool]
Rule = Callable[[int, list[Arg], dict[str, Any]], Node]


def batched(function: Function, mapped: Sequence[bool], size: int) -> Function:
    r"""Return `function` of stacks of `size` examples along new leading axes.

    Parameters
    ----------
    function : Function
        Of one example.
    mapped : sequence of bool
        For each input whether it is a stack; the others are the same in every example.
    size : int
        How many examples.

    Returns
    -------
    Function
        Every output has a leading axis of `size`.

    Examples
    --------
    >>> import difflab as dl
    >>> f = batched(dl.parse("x: [2]; s: []\ns*sum(x)"), (False, True), 3)
    >>> f.inputs, f.input_shapes
    (('s', 'x'), ((), (3, 2)))
    >>> f(10.0, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).tolist()
    [30.0, 70.0, 110.0]
    """
    graph = function.graph
    builder = Builder()
    copies: list[Arg] = [(Node(builder, 0), False)] * len(graph)
    inputs = []
    for number, is_mapped in zip(function.input_nodes, mapped, strict=True):
        shape = graph.shape(number)
        node = builder.input(graph.input_name(number), (size, *shape) if is_mapped else shape)
        inputs.append(node)
        copies[number] = (Node(builder, node), is_mapped)
    for number, (opcode, args) in enumerate(graph.rows()):
        if opcode == CONSTANT:
            copies[number] = (Node(builder, builder.constant(*graph.constants[number])), False)
        elif opcode >= FIRST_ROW:
            operands = [copies[arg] for arg in args]
            row = graph.primitives[opcode - FIRST_ROW]
            copies[number] = _applied(row, size, operands, graph.params(number))
    outputs = []
    for number in function.outputs:
        value, is_mapped = copies[number]
        stack = value if is_mapped else _copied(value, size, graph.shape(number))
        outputs.append(stack.id)
    return Function.build(builder, inputs, outputs, function.output_names, function.structure)


def _applied(row: Primitive, size: int, args: list[Arg], params: dict[str, Any]) -> Arg:
    """Apply a row to operands some of which are stacks."""
    if not any(is_mapped for _, is_mapped in args):
        return row(*(node for node, _ in args), **params), False
    if row.shape is None:
        return row(*(node for node, _ in args), **params), True
    rule = _RULES.get(row)
    if rule is not None:
        return rule(size, args, params), True
    examples = [
        row(*(node[example] if is_mapped else node for node, is_mapped in args), **params)
        for example in range(size)
    ]
    return stacked(examples), True


def stacked(parts: Sequence[Node], axis: int = 0) -> Node:
    """Return values of one shape along a new axis."""
    shape = parts[0].shape
    before = tuple((0, size, 1) for size in shape[:axis])
    after = tuple((0, size, 1) for size in shape[axis:])
    keys = tuple((*before, place, *after) for place in range(len(parts)))
    whole = (*shape[:axis], len(parts), *shape[axis:])
    result: Node = scatter(*parts, keys=keys, shape=whole)
    return result


def unstacked(whole: Node, axis: int) -> list[Node]:
    """Return the values along an axis, one by one."""
    before = (slice(None),) * axis
    return [whole[(*before, place)] for place in range(whole.shape[axis])]


def _copied(node: Node, size: int, shape: Shape) -> Node:
    """Return `size` copies of one value."""
    result: Node = broadcast(node, shape=(size, *shape), rank=len(shape))
    return result


def _broadcast(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    ((node, _),) = args
    shape: Shape = params["shape"]
    core = node.shape[1:]
    opened = (size, *(1,) * (len(shape) - len(core)), *core)
    aligned = reshape(node, shape=opened, rank=node.ndim)
    result: Node = broadcast(aligned, shape=(size, *shape), rank=len(opened))
    return result


def _reshape(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    ((node, _),) = args
    result: Node = reshape(node, shape=(size, *params["shape"]), rank=node.ndim)
    return result


def _index(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    ((node, _),) = args
    result: Node = index(node, key=((0, size, 1), *params["key"]), rank=node.ndim)
    return result


def _sum(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    ((node, _),) = args
    result: Node = sum_(node, axes=params["axes"], rank=node.ndim)
    return result


def _scatter(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    parts = [node if is_mapped else _copied(node, size, node.shape) for node, is_mapped in args]
    keys = tuple(((0, size, 1), *key) for key in params["keys"])
    result: Node = scatter(*parts, keys=keys, shape=(size, *params["shape"]))
    return result


def _pack(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    parts: list[Node] = []
    keys: list[tuple[Any, ...]] = []
    start = 0
    for (node, is_mapped), rank in zip(args, params["ranks"], strict=True):
        stack = node if is_mapped else _copied(node, size, node.shape)
        count = math.prod(stack.shape[1:])
        if rank == 0:
            keys.append(((0, size, 1), start))
        else:
            keys.append(((0, size, 1), (start, start + count, 1)))
            stack = reshape(stack, shape=(size, count), rank=stack.ndim)
        parts.append(stack)
        start += count
    result: Node = scatter(*parts, keys=tuple(keys), shape=(size, start))
    return result


_RULES: dict[Primitive, Rule] = {
    broadcast: _broadcast,
    index: _index,
    pack: _pack,
    reshape: _reshape,
    scatter: _scatter,
    sum_: _sum,
}

"""A function of one example as a function of a stack of examples, graph to graph.

Elementwise rows take stacks as they are, and rows of arrays, which count their axes from the
end, get parameters for one more leading axis. A custom row has a rule, or is applied to the
examples one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from difflab.core.devices import JAX, module_of
from difflab.core.primitive import Custom, Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Params, Shape
from difflab.graph.node import Node
from difflab.graph.rewrite import Args, rewrite
from difflab.primitives import (
    TABLE,
    broadcast,
    index,
    matmul,
    pack,
    replace,
    reshape,
    scatter,
    solve,
    transpose,
)

__all__ = ["Arg", "applied", "batched", "packed_stacks", "stacks", "with_axis_at"]

Arg = tuple[Node, bool]
BatchingRule = Callable[[int, list[Arg], dict[str, Any]], Node]


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
    stacks = graph.reached_from(
        [node for node, is_mapped in zip(function.input_nodes, mapped, strict=True) if is_mapped]
    )
    builder, known = Builder(graph.source), dict[int, int]()
    for node in function.input_nodes:
        shape = graph.shape(node)
        name = graph.input_name(node)
        known[node] = builder.input(name, (size, *shape) if stacks[node] else shape)
    all_args = [args for _, args in graph.rows()]

    def on_stacks(
        builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        if not stacks[node] or row.shape is None:
            return None
        operands = [
            (Node(builder, arg), bool(stacks[old]))
            for arg, old in zip(args, all_args[node], strict=True)
        ]
        return applied(row, size, operands, dict(params)).id

    copied = rewrite(graph, builder, on_stacks, known=known)
    outputs = [
        copied[node]
        if stacks[node]
        else _copied(Node(builder, copied[node]), size, graph.shape(node)).id
        for node in function.outputs
    ]
    inputs = list(known.values())
    return Function.build(builder, inputs, outputs, function.output_names, function.structure)


def applied(row: Primitive, size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    """Apply a row that is not elementwise to operands some of which are stacks."""
    rule = _RULES.get(row)
    if rule is not None:
        return rule(size, args, params)
    if isinstance(row.rule, Custom) and row.rule.batched is not None:
        stack: Node = row.rule.batched(size, args)
        return stack
    if row in _LEADING:
        whole: Node = row(*stacks(size, args), **_deeper(row, size, params))
        return whole
    return _stacked(
        [
            row(*(node[example] if is_mapped else node for node, is_mapped in args), **params)
            for example in range(size)
        ]
    )


def with_axis_at(value: Any, source: int, target: int) -> Any:
    """Return a value with one axis moved, counted from the first; an array is contiguous then."""
    if not hasattr(value, "__difflab_apply__"):
        xp = module_of(value)
        moved = xp.moveaxis(value, source, target)
        return moved if xp.__name__ == JAX else xp.ascontiguousarray(moved)  # JAX has no strides
    order = [axis - value.ndim for axis in range(value.ndim) if axis != source]
    order.insert(target, source - value.ndim)
    return transpose(value, axes=tuple(order)) if source != target else value


def _stacked(parts: Sequence[Node]) -> Node:
    """Return values of one shape along a new leading axis."""
    shape = parts[0].shape
    rest = tuple((0, size, 1) for size in shape)
    keys = tuple((place, *rest) for place in range(len(parts)))
    result: Node = scatter(*parts, keys=keys, shape=(len(parts), *shape))
    return result


def _copied(node: Node, size: int, shape: Shape) -> Node:
    """Return `size` copies of one value."""
    result: Node = broadcast(node, shape=(size, *shape), rank=len(shape))
    return result


def stacks(size: int, args: list[Arg]) -> list[Node]:
    """Return every operand as a stack."""
    return [node if is_mapped else _copied(node, size, node.shape) for node, is_mapped in args]


def _deeper(row: Primitive, size: int, params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters for values of one more axis, the first."""
    deeper, whole = dict(params), (0, size, 1)
    if "rank" in params:
        deeper["rank"] = params["rank"] + 1
    if row is transpose:
        deeper["axes"] = (-1 - len(params["axes"]), *params["axes"])
    elif row is index:
        deeper["key"] = (whole, *params["key"])
    elif row is scatter:
        deeper["keys"] = tuple((whole, *key) for key in params["keys"])
    if row is reshape or row is scatter:
        deeper["shape"] = (size, *params["shape"])
    return deeper


def _matmul(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    """Multiply matrices; a vector is a matrix of one row or column."""
    joined = _joined(args, params["ranks"])
    if joined is not None:
        return joined
    a, b = stacks(size, args)
    row, column = (rank == 1 for rank in params["ranks"])
    a = a.reshape(size, 1, *a.shape[1:]) if row else a
    b = b.reshape(*b.shape, 1) if column else b
    depth = max(a.ndim, b.ndim)
    a, b = (_opened(node, size, depth) for node in (a, b))
    product: Node = matmul(a, b, ranks=(depth, depth))
    shape = product.shape
    kept = shape[:-2] + (() if row else shape[-2:-1]) + (() if column else shape[-1:])
    shaped: Node = product.reshape(kept)
    return shaped


def _joined(args: list[Arg], ranks: tuple[int, int]) -> Node | None:
    """Return a stack times one matrix or vector as a single product; None of other operands."""
    (a, a_mapped), (b, b_mapped) = args
    if max(ranks) > 2 or a_mapped is b_mapped:
        return None
    if b_mapped:
        if ranks[1] == 2:
            return None
        a, b = b, a if ranks[0] == 1 else transpose(a, axes=(-1, -2))
    rows = a.reshape(-1, a.shape[-1]) if a.ndim == 3 else a
    product: Node = matmul(rows, b, ranks=(2, b.ndim))
    shaped: Node = product.reshape(*a.shape[:-1], *b.shape[1:])
    return shaped


def _opened(node: Node, size: int, depth: int) -> Node:
    """Return stacks of matrices with as many axes as the others."""
    opened: Node = node.reshape(size, *(1,) * (depth - node.ndim), *node.shape[1:])
    return opened


def _solve(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    a, b = stacks(size, args)
    depth = a.ndim
    if params["ranks"][1] > 1:
        whole: Node = solve(a, b, ranks=(depth, b.ndim))
        return whole
    columns = solve(a, b.reshape(*b.shape, 1), ranks=(depth, b.ndim + 1))
    found: Node = columns.reshape(b.shape)
    return found


def _broadcast(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    ((node, _),) = args
    shape: Shape = params["shape"]
    core = node.shape[1:]
    opened = (size, *(1,) * (len(shape) - len(core)), *core)
    aligned = reshape(node, shape=opened, rank=node.ndim)
    result: Node = broadcast(aligned, shape=(size, *shape), rank=len(opened))
    return result


def _pack(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    return packed_stacks(stacks(size, args), params["ranks"])


def packed_stacks(values: Sequence[Node], ranks: Sequence[int]) -> Node:
    """Return stacks of values of these ranks as one stack of packed vectors."""
    parts: list[Node] = []
    keys: list[tuple[Any, ...]] = []
    size, start = values[0].shape[0], 0
    for stack, rank in zip(values, ranks, strict=True):
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


def _replace(size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    """Replace a part of each array; a number of each is spread over its part."""
    x, part = stacks(size, args)
    key, (rank, own) = ((0, size, 1), *params["key"]), params["ranks"]
    whole: Node = index(x, key=key, rank=rank + 1)
    if own + 1 < whole.ndim:
        part = _opened(part, size, whole.ndim)
        part = broadcast(part, shape=whole.shape, rank=whole.ndim)
    result: Node = replace(x, part, key=key, ranks=(rank + 1, whole.ndim))
    return result


_RULES: dict[Primitive, BatchingRule] = {
    broadcast: _broadcast,
    matmul: _matmul,
    pack: _pack,
    replace: _replace,
    solve: _solve,
}
_LEADING = frozenset(TABLE.values()) - _RULES.keys()
"""Rows whose kernels take leading axes, and whose parameters `_deeper` returns."""

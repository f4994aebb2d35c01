"""A function of one example as a function of a stack of examples, graph to graph.

Elementwise rows take stacks as they are, and rows of arrays, which count their axes from the
end, get parameters for one more leading axis. A custom row has a rule, or is applied to the
examples one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from difflab.core.apply import JAX, module_of
from difflab.core.primitive import Custom, Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Params
from difflab.graph.node import Node
from difflab.graph.rewrite import Args, rewrite
from difflab.primitives import TABLE, scatter, transpose
from difflab.primitives.structure import Arg, copies, stacks

__all__ = ["Arg", "applied", "batched", "with_axis_at"]


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
        copied[node] if stacks[node] else copies(Node(builder, copied[node]), size).id
        for node in function.outputs
    ]
    inputs = list(known.values())
    return Function.build(builder, inputs, outputs, function.output_names, function.structure)


def applied(row: Primitive, size: int, args: list[Arg], params: dict[str, Any]) -> Node:
    """Apply a row that is not elementwise to operands some of which are stacks."""
    custom = row.rule.batched if isinstance(row.rule, Custom) else None
    rule = row.stacked or custom
    if rule is not None:
        stack: Node = rule(size, args, **params)
        return stack
    if row in _LEADING:
        deeper = {"rank": params["rank"] + 1} if "rank" in params else {}
        whole: Node = row(*stacks(size, args), **{**params, **deeper})
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
    keys = tuple((index, *rest) for index in range(len(parts)))
    result: Node = scatter(*parts, keys=keys, shape=(len(parts), *shape))
    return result


_LEADING = frozenset(TABLE.values())
"""Rows whose kernels take leading axes; of their parameters only `rank` counts these."""

"""Tangent and cotangent of primitives that mix array elements, one argument at a time.

Such a primitive states a tangent map ``(t, y, *args) -> ẏ``, which is linear in t. The map is
recorded once for given shapes; its transpose is the reverse sweep over the recorded graph, from
ẏ back to t, so that forward and reverse cannot disagree. Both are appended for every node that
needs them (the idea of transposing linearised programs: Radul et al., POPL 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from difflab.autodiff.engine.masked import Masked, both, resolved
from difflab.autodiff.engine.recipe import recorded_rule
from difflab.autodiff.engine.sweep import Sweep, spread
from difflab.core.primitive import ByArgument, Transpose
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.ir import FIRST_ROW, INPUT, Params, Shape
from difflab.graph.node import Node
from difflab.primitives import not_equal, sum_

ArgumentShapes = tuple[Shape, ...]
PullBack = Callable[[Sweep, Mapping[int, Node], Sequence[int]], dict[int, Masked]]
REMEMBERED = 4096
"""Maximum number of recorded maps in the cache."""


def pushed(
    sweep: Sweep, number: int, rule: ByArgument, position: int, dot: Masked
) -> Masked | None:
    """Return the contribution of one argument's tangent to that of node `number`."""
    entry = rule.entries[position]
    if entry is None:
        return None
    args = sweep.args(number)
    shapes = tuple(map(sweep.graph.shape, args))
    t = spread(sweep.node(resolved(sweep.builder, dot)), shapes[position])
    if isinstance(entry, Transpose):
        operands = [sweep.node(arg) for arg in args]
        operands[position] = t
        row = sweep.graph.primitives[sweep.opcode[number] - FIRST_ROW]
        y_dot = row(*operands, **sweep.graph.params(number)).id
    else:
        recorded = recorded_tangent(
            entry, position, _params(sweep, number), shapes, sweep.graph.shape(number)
        )
        (y_dot,) = _stamp(sweep.builder, recorded, [t.id, number, *args])
    mask = anywhere(sweep, dot.mask, sweep.graph.shape(number))
    return Masked(y_dot, mask, clean=rule.is_product)


def pulled(
    sweep: Sweep, number: int, rule: ByArgument, position: int, y_bar: Masked, pull_back: PullBack
) -> Masked | None:
    """Return the contribution of node `number`'s cotangent to that of one argument."""
    entry = rule.entries[position]
    if entry is None:
        return None
    args = sweep.args(number)
    shapes = tuple(map(sweep.graph.shape, args))
    t = spread(sweep.node(resolved(sweep.builder, y_bar)), sweep.graph.shape(number))
    # A product keeps zeros; other maps may have singular slopes.
    ends = rule.is_product and sweep.resolves and sweep.opcode[args[position]] == INPUT
    mask = None if ends else anywhere(sweep, y_bar.mask, shapes[position])
    if isinstance(entry, Transpose):
        operands = map(sweep.node, args)
        bar: Node = entry.map(t, *operands, **sweep.graph.params(number))
        return Masked(bar.id, mask, clean=rule.is_product)
    recorded = cotangent(
        entry, position, _params(sweep, number), shapes, sweep.graph.shape(number), pull_back
    )
    value, *chosen = _stamp(sweep.builder, recorded, [t.id, number, *args])
    if not chosen:
        return Masked(value, mask)
    return Masked(value, both(sweep.builder, mask, chosen[0]), clean=mask is None)


def any_of(mask: Node, shape: Shape) -> Node:
    """Return a mask of `shape` that holds where any element of `mask` does.

    Every element of the result may depend on every element of the operand.
    """
    counted = mask * 1
    if counted.ndim:
        axes = tuple(range(-counted.ndim, 0))
        counted = sum_(counted, axes=axes, rank=counted.ndim)
    held: Node = not_equal(spread(counted, shape), 0)
    return held


def anywhere(sweep: Sweep, mask: int | None, shape: Shape) -> int | None:
    """Return `any_of` a mask; None for no mask."""
    return None if mask is None else any_of(sweep.node(mask), shape).id


def _params(sweep: Sweep, number: int) -> Params:
    graph = sweep.graph
    return graph.param_table[graph.param_ids[number]]


@lru_cache(REMEMBERED)
def recorded_tangent(
    entry: Callable[..., Any], position: int, params: Params, shapes: ArgumentShapes, shape: Shape
) -> Function:
    """Record a tangent map as a function of t, y and the arguments."""
    more = dict(params)
    return recorded_rule(
        lambda *slots: spread(entry(*slots, **more), shape), (shapes[position], shape, *shapes)
    )


@lru_cache(REMEMBERED)
def cotangent(
    entry: Callable[..., Any],
    position: int,
    params: Params,
    shapes: ArgumentShapes,
    shape: Shape,
    pull_back: PullBack,
) -> Function:
    """Transpose a tangent map: a function of ȳ, y and the arguments.

    Its outputs are the cotangent and, where it has one, its mask.
    """
    sweep = Sweep(recorded_tangent(entry, position, params, shapes, shape), resolves=False)
    source, *others = sweep.function.input_nodes
    seed = Node(sweep.builder, sweep.builder.input("y_bar", shape))
    bar = pull_back(sweep, {sweep.function.outputs[0]: seed}, [source])[source]
    value = spread(sweep.node(resolved(sweep.builder, bar)), shapes[position]).id
    outputs = [value] if bar.mask is None else [value, bar.mask]
    names = ["bar", "mask"][: len(outputs)]
    return Function.build(sweep.builder, [seed.id, *others], outputs, names)


def _stamp(builder: Builder, recorded: Function, inputs: Sequence[int]) -> list[int]:
    """Append a recorded map, applied to `inputs`; return its outputs."""
    pairs = zip(inputs, recorded.input_shapes, strict=True)
    return inline(recorded, builder, [builder.spread(node, shape) for node, shape in pairs])

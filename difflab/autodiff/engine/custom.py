"""The sweeps through custom functions: the user's own rules, for all arguments at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from difflab.autodiff.engine.argumentwise import anywhere
from difflab.autodiff.engine.masked import Masked, either, resolved
from difflab.autodiff.engine.sweep import Sweep, spread
from difflab.core.primitive import Custom
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.node import Node


def goes_forward(function: Function) -> bool:
    """Whether every custom function in the graph has a forward rule."""
    rules = [row.rule for row in function.graph.primitives]
    return not any(isinstance(rule, Custom) and isinstance(rule.jvp, str) for rule in rules)


def pushed_all(sweep: Sweep, number: int, rule: Custom, dots: Sequence[Masked | None]) -> Masked:
    """Return the tangent of a custom node; arguments without tangent have zeros."""
    if isinstance(rule.jvp, str):
        raise UnsupportedError(rule.jvp)
    args = sweep.args(number)
    tangents = []
    for arg, dot in zip(args, dots, strict=True):
        node = sweep.constant(0) if dot is None else sweep.node(resolved(sweep.builder, dot))
        tangents.append(spread(node, sweep.graph.shape(arg)))
    y_dot: Node = rule.jvp(tangents, sweep.node(number), *map(sweep.node, args))
    shape = sweep.graph.shape(number)
    masks = [anywhere(sweep, dot.mask, shape) for dot in dots if dot is not None]
    return Masked(spread(y_dot, shape).id, either(sweep.builder, masks))


def pulled_all(
    sweep: Sweep, number: int, rule: Custom, y_bar: Masked, active: Sequence[int]
) -> Iterable[tuple[int, Masked]]:
    """Yield the arguments of a custom node that a derivative flows to, with their cotangents."""
    if isinstance(rule.vjp, str):
        raise UnsupportedError(rule.vjp)
    args = sweep.args(number)
    seed = spread(sweep.node(resolved(sweep.builder, y_bar)), sweep.graph.shape(number))
    more = {"wanted": [bool(active[arg]) for arg in args]} if rule.selective else {}
    bars = rule.vjp(seed, sweep.node(number), *map(sweep.node, args), **more)
    for arg, bar in zip(args, bars, strict=True):
        if bar is not None and active[arg]:
            shape = sweep.graph.shape(arg)
            yield arg, Masked(spread(bar, shape).id, anywhere(sweep, y_bar.mask, shape))

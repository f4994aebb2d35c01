"""Loops that take the same steps become one: a value's, and the one that keeps its history."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.control import Loop
from difflab.graph.custom.rows import packed
from difflab.graph.function import Function
from difflab.graph.ir import Graph, Params
from difflab.graph.node import Node
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import composed, inlined, rewritten
from difflab.primitives import index


def steps_once(function: Function) -> Function:
    """Merge loops that have the same steps into one, and return the results of all of them.

    Reverse mode appends a loop that also returns the residuals. Where the value of the
    loop itself is wanted, too, both carry the same over the same arrays.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x: dl.fori_loop(0, 50, lambda i, y: y * x, x), 2.0)
    >>> both = dl.value_and_gradient(f)
    >>> loops = lambda g: int(g.graph.matching(lambda row: row.name == "scan").sum())
    >>> loops(both), loops(steps_once(both))
    (3, 2)
    """
    graph = function.graph
    if not any(isinstance(row.holds, Loop) for row in graph.primitives):
        return function
    parts: dict[int, _LoopPart] = {}
    for nodes in _candidates(graph).values():
        for group in _groups(graph, nodes):
            parts |= _parts(graph, group)
    return rewritten(function, _Rewriting(graph, parts).rule) if parts else function


@dataclass(frozen=True)
class _LoopPart:
    """The outputs of a loop as a part of the outputs of a merged loop.

    Attributes
    ----------
    loop : Loop
        The merged loop.
    carried : int
        The elements of the carries, which begin both.
    start, stop : int
        Where the results of the loop lie in the results of the merged one.
    """

    loop: Loop
    carried: int
    start: int
    stop: int

    def moved(self, key: int | tuple[int, int, int]) -> int | tuple[int, int, int] | None:
        """Return an index, or a range on one side of the carries' end, in the merged loop."""
        first, last = (key, key) if isinstance(key, int) else (key[0], key[1] - 1)
        if isinstance(key, tuple) and (key[2] < 0 or first < self.carried <= last):
            return None
        if first < self.carried:
            return key
        by = self.start - self.carried
        return key + by if isinstance(key, int) else (first + by, last + 1 + by, key[2])


def _candidates(graph: Graph) -> dict[Any, list[int]]:
    """Return the loops of equally many steps with the same arguments."""
    candidates: dict[Any, list[int]] = defaultdict(list)
    for node in graph.matching(lambda row: isinstance(row.holds, Loop)).nonzero()[0].tolist():
        loop = _loop(graph, node)
        key = graph.arguments(node), loop.carries, loop.arrays, loop.steps, loop.reverse
        candidates[key].append(node)
    return candidates


def _groups(graph: Graph, nodes: Sequence[int]) -> list[list[int]]:
    """Return those among loops of the same arguments that carry the same."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    builder = Builder()
    shapes = _loop(graph, nodes[0]).body.input_shapes
    inputs = [Node(builder, builder.input(f"x{k}", shape)) for k, shape in enumerate(shapes)]
    for node in nodes if len(nodes) > 1 else ():
        loop = _loop(graph, node)
        carries = inlined(loop.body, inputs)[: loop.carries]
        groups[tuple([carry.id for carry in carries])].append(node)
    return [group for group in groups.values() if len(group) > 1]


def _parts(graph: Graph, group: Sequence[int]) -> dict[int, _LoopPart]:
    """Merge loops that carry the same."""
    loops = [_loop(graph, node) for node in group]
    first, *_ = loops
    count = first.carries

    def step(nodes: list[Node]) -> list[Node]:
        after = [inlined(loop.body, nodes) for loop in loops]
        return [*after[0][:count], *(result for each in after for result in each[count:])]

    merged = Loop(
        composed(step, first.body.input_shapes), count, first.arrays, first.steps, first.reverse
    )
    carried = stop = sum(map(math.prod, first.output_shapes[:count]))
    parts = {}
    for node, loop in zip(group, loops, strict=True):
        start, stop = stop, stop + sum(map(math.prod, loop.output_shapes[count:]))
        parts[node] = _LoopPart(merged, carried, start, stop)
    return parts


def _loop(graph: Graph, node: int) -> Loop:
    """Return the loop that a node holds."""
    loop: Loop = graph.primitive(node).holds  # type: ignore[union-attr]
    return loop


class _Rewriting:
    """Replaces loops by parts of merged ones."""

    def __init__(self, graph: Graph, parts: dict[int, _LoopPart]) -> None:
        self.graph = graph
        self.parts = parts
        self.wholes: dict[int, Node] = {}

    def rule(
        self, builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        """Rule of `rewrite`: replace a loop, and read its results where they are now."""
        if node in self.parts:
            part = self.parts[node]
            assert row.holding is not None
            whole = Node(builder, builder.emit(row.holding(part.loop), args))
            self.wholes[node] = whole
            joined: Node = packed([whole[: part.carried], whole[part.start : part.stop]])
            return joined.id
        if row is not index or self.graph.arguments(node)[0] not in self.parts:
            return None
        (source,) = self.graph.arguments(node)
        key = self.parts[source].moved(dict(params)["key"][0])
        if key is None:
            return None
        return builder.emit(index, (self.wholes[source].id,), (("key", (key,)), ("rank", 1)))

"""Loops with a condition and their reverse sweeps, unrolled to the turns taken at a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import zeros
from difflab.core.primitive import Params, Primitive
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.composition import inlined
from difflab.graph.control import WhileLoop, WhileLoopVjp
from difflab.graph.custom.rows import packed
from difflab.graph.evaluate import ArrayInterpreter, Fold
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.node import Node
from difflab.graph.passes.expansion import expanded
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.primitives import where

__all__ = ["LARGEST_TURNS", "SPARE_TURNS", "Unrolled", "unrolled"]

LARGEST_TURNS = 200
"""Most turns of a loop at the point."""
SPARE_TURNS = 2
"""Turns that are written out beyond those at the point, for points nearby."""


@dataclass(frozen=True)
class Unrolled:
    """A function without loops that have a condition.

    Attributes
    ----------
    function : Function
        Equal to the original where no loop takes more turns than were written out; nan elsewhere.
    turns : list of int
        How many turns of each loop were written out.
    """

    function: Function
    turns: list[int]


def unrolled(function: Function, point: Mapping[str, Any]) -> Unrolled:
    """Write out loops with a condition: turns that are not taken are branches not taken.

    Raises
    ------
    InputError
        A loop takes more than `LARGEST_TURNS` at the point.

    Examples
    --------
    >>> import difflab as dl
    >>> found = unrolled(dl.parse("iterate(y = x; while y > 1; y/2)"), {"x": 8.0})
    >>> found.turns, [float(found.function(x)) for x in (8.0, 3.0, 33.0)]
    ([5], [1.0, 0.75, nan])
    """
    turns: list[int] = []
    opened = expanded(function)
    while any(_loop_of(row) is not None for row in opened.graph.primitives):
        counted = _Counted(opened.graph)
        Fold(opened.graph, opened.outputs, counted)(
            {
                node: point[name]
                for node, name in zip(opened.input_nodes, opened.inputs, strict=True)
            }
        )
        turns += counted.turns
        opened = expanded(rewritten(opened, partial(_written_out, iter(counted.turns))))
    return Unrolled(opened, turns)


class _Counted(ArrayInterpreter):
    """Values at one point, and how many turns of each loop to write out, in the loops' order."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.turns: list[int] = []

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel, which counts if it is a loop."""
        loop = _loop_of(primitive)
        if loop is None:
            return super().operation(primitive)
        return lambda *values: self._results(loop, primitive.holds, values)

    def _results(self, loop: WhileLoop, holds: Any, values: Sequence[Any]) -> Any:
        """Return the results of a loop or a sweep, as the vector that its node holds."""
        inputs = values[: len(loop.input_shapes)]
        visited = islice(loop.visited(ArrayInterpreter(), inputs, ()), LARGEST_TURNS + 2)
        turns = sum(1 for _ in visited) - 1
        if turns > LARGEST_TURNS:
            raise InputError(
                f"the page follows up to {LARGEST_TURNS} turns of a loop, and at this point it"
                " takes more",
                text=self.graph.text,
                span=self.graph.span(self._loop(len(self.turns))),
                hint="difflab trace shows operations on arrays and loops",
            )
        self.turns.append(turns + SPARE_TURNS)
        found = holds.run(ArrayInterpreter(), values, ())
        return np.concatenate([np.ravel(part) for part in found])

    def _loop(self, number: int) -> int:
        """Return the node of a loop."""
        rows = self.graph.primitives
        loops = [k for k, row in enumerate(rows) if _loop_of(row) is not None]
        found: int = np.flatnonzero(np.isin(self.graph.opcode - FIRST_ROW, loops))[number].item()
        return found


def _loop_of(row: Primitive) -> WhileLoop | None:
    """Return the loop of a row that is one, or the reverse sweep of one."""
    loop = row.holds.loop if isinstance(row.holds, WhileLoopVjp) else row.holds
    return loop if isinstance(loop, WhileLoop) else None


def _written_out(
    turns: Iterator[int],
    builder: Builder,
    node: int,
    row: Primitive,
    args: Args,
    params: Params,
) -> int | None:
    """Append the turns of a loop; after the last one its condition must not hold."""
    loop = _loop_of(row)
    if loop is None:
        return None
    count, nodes = len(loop.output_shapes), [Node(builder, arg) for arg in args]
    constants, bars = nodes[count : len(loop.input_shapes)], nodes[len(loop.input_shapes) :]
    values, conditions = [nodes[:count]], inlined(loop.test, nodes[: len(loop.input_shapes)])
    for _ in range(next(turns)):
        after = inlined(loop.body, [*values[-1], *constants])
        values.append(_chosen(conditions[-1], after, values[-1]))
        conditions += inlined(loop.test, [*values[-1], *constants])
    found = values[-1]
    if isinstance(row.holds, WhileLoopVjp):
        found = [*bars, *zeros(builder, loop.constants)]
        for value, going in list(zip(values, conditions, strict=True))[-2::-1]:
            earlier = inlined(row.holds.back, [*found, *value, *constants])
            found = _chosen(going, earlier, found)
    last: Node = packed([where(conditions[-1], np.nan, part) for part in found])
    return last.id


def _chosen(going: Node, after: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """Return what a turn leaves, or what was before it if it is not taken."""
    return [where(going, new, old) for new, old in zip(after, before, strict=True)]

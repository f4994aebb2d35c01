"""Loops and branches opened at a point: every turn that is taken, and the branch that is chosen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from difflab.core.primitive import Params, Primitive
from difflab.core.wording import counted
from difflab.drawing import ALL
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.control import (
    Branches,
    Checkpoint,
    Control,
    Loop,
    WhileLoop,
    WhileLoopVjp,
)
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function, evaluate_all, inline
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.node import Node, as_nodes
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten

__all__ = ["LARGEST", "with_turns"]

LARGEST = 20_000
"""Most operations of a function whose loops are opened."""


def with_turns(
    function: Function, values: Sequence[Any], opened: Collection[str], on: ArrayInterpreter
) -> tuple[Function, set[int]]:
    """Return the function at a point with turns in place of loops, and the loops' locations.

    Its derivatives at the point are those of the function: a branch is the one that is chosen, and
    a loop takes the turns that it takes there.

    Parameters
    ----------
    function : Function
    values : sequence of arrays
        The values of its inputs.
    opened : collection of str
        The rows that are opened by name, or `difflab.drawing.ALL`.
    on : ArrayInterpreter
        What evaluates the function.

    Raises
    ------
    InputError
        There are more than `LARGEST` operations.

    Examples
    --------
    >>> from difflab.language import parse
    >>> f = parse("iterate(y = x; while y < 9; y*y)")
    >>> str(with_turns(f, [np.asarray(2.0)], {"all"}, ArrayInterpreter())[0])
    'x*x*(x*x)'
    """
    loops: set[int] = set()

    def in_turns(
        builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        if not _opens(row, opened):
            return outputs.get(builder.emit(row, args, params)) if outputs else None
        loops.add(builder.span)
        turns = _Turns(builder, on, row.name)
        arguments = [found[arg] for arg in function.graph.arguments(node)]
        results = turns.outputs(row.holds, [Node(builder, arg) for arg in args], arguments)
        single = getattr(row.holds, "single", False)
        whole: Node = packed(results, single)
        parts = unpacked(whole, row.holds.output_shapes, single)
        outputs.update({part.id: made.id for part, made in zip(parts, results, strict=True)})
        return whole.id

    while _has_closed(function.graph, opened):
        outputs: dict[int, int] = {}  # of what unpacks an opened loop: the output itself
        found = evaluate_all(function, values, on)
        function = rewritten(function, in_turns)  # the turns of a loop may have loops
    return function, loops


def _has_closed(graph: Graph, opened: Collection[str]) -> bool:
    codes = np.unique(graph.opcode).tolist()
    return any(
        _opens(graph.primitives[code - FIRST_ROW], opened) for code in codes if code >= FIRST_ROW
    )


def _opens(row: Primitive, opened: Collection[str]) -> bool:
    return row.holds is not None and not {row.name, ALL}.isdisjoint(opened)


class _Turns:
    """Appends the turns of a control node to a graph."""

    def __init__(self, builder: Builder, on: ArrayInterpreter, name: str) -> None:
        self.builder, self.on, self.name = builder, on, name

    def outputs(self, control: Control, args: list[Node], values: Sequence[Any]) -> list[Node]:
        """Return the outputs, given the arguments and their values at the point."""
        if isinstance(control, Loop):
            return self._loop(control, args)
        if isinstance(control, Branches):
            return self._step(control.true if values[0] else control.false, args[1:])
        if isinstance(control, WhileLoop):
            return self._visited(control, args, values)[-1]
        if isinstance(control, WhileLoopVjp):
            return self._back(control, args, values)
        assert isinstance(control, Checkpoint)
        return self._step(control.function, args)

    def _step(self, function: Function, args: Sequence[Node]) -> list[Node]:
        if len(self.builder) + len(function.graph) > LARGEST:
            raise InputError(
                f"{self.name!r} has too many turns to be opened here: a trace opens functions of at"
                f" most {counted(LARGEST, 'operation')}",
                hint="leave it closed, or trace fewer turns",
            )
        made = inline(function, self.builder, [arg.id for arg in args])
        return [Node(self.builder, node) for node in made]

    def _loop(self, loop: Loop, args: list[Node]) -> list[Node]:
        end = loop.carries + loop.arrays
        carry, looped, constants = args[: loop.carries], args[loop.carries : end], args[end:]
        turns: list[list[Node]] = []
        order = range(loop.steps)
        for number in reversed(order) if loop.reverse else order:
            found = self._step(loop.body, [*carry, *[each[number] for each in looped], *constants])
            carry = found[: loop.carries]
            turns.append(found[loop.carries :])
        shapes = loop.output_shapes[loop.carries :]
        parts = zip(*(reversed(turns) if loop.reverse else turns), strict=True)
        stacks = [np.stack(part) for part in parts] or [np.zeros(shape) for shape in shapes]
        return as_nodes(self.builder, [*carry, *stacks])

    def _visited(
        self, loop: WhileLoop, args: list[Node], values: Sequence[Any]
    ) -> list[list[Node]]:
        """Return the values that the loop carries before each of its turns and after the last."""
        count = len(loop.output_shapes)
        visited = [args[:count]]
        for _, going in loop.visited(self.on, values, ()):
            if going:
                visited.append(self._step(loop.body, [*visited[-1], *args[count:]]))
        return visited

    def _back(self, sweep: WhileLoopVjp, args: list[Node], values: Sequence[Any]) -> list[Node]:
        inputs = len(sweep.output_shapes)
        constants = args[len(sweep.loop.output_shapes) : inputs]
        zeros = as_nodes(self.builder, [np.zeros(shape) for shape in sweep.loop.constants])
        found = [*args[inputs:], *zeros]
        for value in self._visited(sweep.loop, args[:inputs], values[:inputs])[-2::-1]:
            found = self._step(sweep.back, [*found, *value, *constants])
        return found

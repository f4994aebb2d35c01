"""Lines of a trace: the operations of each, with loops and branches opened at a point."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.core.primitive import Params, Primitive
from difflab.core.wording import counted
from difflab.drawing import ALL
from difflab.drawing.compositions import Composition, compositions
from difflab.drawing.order import evaluation_order
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.calls import call_name
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
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph
from difflab.graph.node import Node, as_nodes
from difflab.graph.passes.expansion import applied_rows
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten

SHOWN_TERMS = 6
"""Arguments or terms that a text lists."""


@dataclass(frozen=True, slots=True)
class Line:
    """The operations of one line of a trace.

    Attributes
    ----------
    nodes : tuple of int
        The operations, in an order in which they can be computed.
    called : str
        The call whose operations they are; empty for an operation of its own.
    arguments : tuple of int
        Inputs and operations outside that a call needs, in the order in which it needs them.
    results : tuple of int
        The operations whose values are needed outside; each has a step in the trace.
    call : str
        The calls that the line is in, as of `difflab.graph.calls.call_name`.
    """

    nodes: tuple[int, ...]
    called: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    call: str


def lines_of(
    function: Function, opened: Collection[str] | None, loops: Collection[int]
) -> list[Line]:
    """Return the lines of a trace, in an order of evaluation.

    Parameters
    ----------
    function : Function
    opened : collection of str, optional
        The names of the calls that are opened, or `difflab.drawing.ALL`; by default all are.
    loops : collection of int
        The locations at which the function's loops were opened.

    Examples
    --------
    >>> from difflab.language import parse
    >>> f = parse("x: [3]; sum(layer_norm(x)^2)")
    >>> [(line.called, len(line.nodes)) for line in lines_of(f, (), ())]
    [('layer_norm', 11), ('', 1), ('', 1)]
    """
    order = evaluation_order(function)
    closed: list[Composition] = []
    if opened is not None and ALL not in opened:
        closed = [
            each
            for each in compositions(function, order, opened)
            if not _is_loop(function, each, loops)
        ]
    return _ordered(function, order, closed)


def _is_loop(function: Function, composition: Composition, loops: Collection[int]) -> bool:
    """Whether a composition is an opened loop, listed at its call."""
    graph = function.graph
    spans = {int(graph.spans[node]) for node in composition.nodes}
    return spans <= set(loops) and composition.name not in _callers(function, composition.nodes[0])


def _callers(function: Function, node: int) -> list[str]:
    call = function.graph.source.call(int(function.graph.spans[node]))
    return [] if call is None else [each.name for each in call.path]


def _ordered(function: Function, order: Sequence[int], closed: Sequence[Composition]) -> list[Line]:
    """Return the lines sorted by their distance from the inputs."""
    graph = function.graph
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    box_of = {node: position for position, each in enumerate(closed) for node in each.nodes}
    groups: dict[int, list[int]] = {}
    for node in sorted(operations):
        # One operation of its own is keyed below zero.
        groups.setdefault(box_of.get(node, -1 - node), []).append(node)
    used = _used_outside(function, operations, box_of)
    lines = [
        _line(function, nodes, closed[key].name if key >= 0 else "", used)
        for key, nodes in groups.items()
    ]
    return _by_level(graph, lines)


def _used_outside(
    function: Function, operations: Sequence[int], box_of: dict[int, int]
) -> set[int]:
    """Return the nodes that are outputs or arguments of operations of another line."""
    graph = function.graph
    used = set(function.outputs)
    for node in operations:
        own = box_of.get(node, -1 - node)
        used |= {arg for arg in graph.arguments(node) if box_of.get(arg, -1 - arg) != own}
    return used


def _line(function: Function, nodes: list[int], called: str, used: set[int]) -> Line:
    graph, own = function.graph, set(nodes)
    needed = dict.fromkeys(arg for node in nodes for arg in graph.arguments(node))
    outside = tuple(arg for arg in needed if arg not in own and graph.opcode[arg] != CONSTANT)
    around = call_name(graph.source.call(int(graph.spans[nodes[0]])))
    if called:
        names = _callers(function, nodes[0])
        around = " › ".join(names[: names.index(called)] if called in names else names)
    results = tuple(node for node in nodes if node in used) or (nodes[-1],)
    return Line(tuple(nodes), called, outside, results, around)


def _by_level(graph: Graph, lines: Sequence[Line]) -> list[Line]:
    """Sort by the longest path of lines from an input; without recursion, linear in the graph."""
    line_of = {node: position for position, line in enumerate(lines) for node in line.nodes}
    users: list[list[int]] = [[] for _ in lines]
    waiting: list[int] = []
    for position, line in enumerate(lines):
        needed = {line_of[arg] for arg in line.arguments if arg in line_of}
        waiting.append(len(needed))
        for each in needed:
            users[each].append(position)
    level = [int(any(graph.arguments(node) for node in line.nodes)) for line in lines]
    ready = [position for position, count in enumerate(waiting) if not count]
    for position in ready:  # grows while it is walked
        for user in users[position]:
            level[user] = max(level[user], level[position] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return [lines[position] for position in sorted(range(len(lines)), key=level.__getitem__)]


def call_text(name: str, arguments: Sequence[str]) -> str:
    """Return a call as it is written, the last one of many arguments behind "…".

    Examples
    --------
    >>> call_text("gate", ["v₋₁", "v₀"])
    'gate(v₋₁, v₀)'
    """
    return f"{name}({', '.join(_listed(arguments))})"


def sum_text(terms: Sequence[str]) -> str:
    """Return a sum as it is written, the last one of many terms behind "…"."""
    return " + ".join(_listed(terms))


def _listed(texts: Sequence[str]) -> list[str]:
    if len(texts) <= SHOWN_TERMS:
        return list(texts)
    return [*texts[: SHOWN_TERMS - 2], "…", texts[-1]]


LARGEST = 20_000
"""Most operations of a function whose loops are opened."""


def with_turns(
    function: Function, values: Sequence[Any], opened: Collection[str], on: ArrayInterpreter
) -> tuple[Function, set[int]]:
    """Return the function at a point with its loops unrolled, and the loops' locations.

    Its derivatives at the point are those of the function: a branch is the selected one, and
    a loop has as many iterations as it has there.

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
        arguments = [evaluated[arg] for arg in function.graph.arguments(node)]
        results = turns.outputs(row.holds, [Node(builder, arg) for arg in args], arguments)
        single = getattr(row.holds, "single", False)
        whole: Node = packed(results, single)
        parts = unpacked(whole, row.holds.output_shapes, single)
        outputs.update({part.id: made.id for part, made in zip(parts, results, strict=True)})
        return whole.id

    while any(_opens(row, opened) for row in applied_rows(function.graph)):
        outputs: dict[int, int] = {}  # of what unpacks an opened loop: the output itself
        evaluated = evaluate_all(function, values, on)
        function = rewritten(function, in_turns)  # the turns of a loop may have loops
    return function, loops


def _opens(row: Primitive, opened: Collection[str]) -> bool:
    return row.holds is not None and not {row.name, ALL}.isdisjoint(opened)


class _Turns:
    """Appends the iterations of a control node to a graph."""

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
        iterations: list[list[Node]] = []
        order = range(loop.steps)
        for number in reversed(order) if loop.reverse else order:
            after = self._step(loop.body, [*carry, *[each[number] for each in looped], *constants])
            carry = after[: loop.carries]
            iterations.append(after[loop.carries :])
        shapes = loop.output_shapes[loop.carries :]
        parts = zip(*(reversed(iterations) if loop.reverse else iterations), strict=True)
        stacks = [np.stack(part) for part in parts] or [np.zeros(shape) for shape in shapes]
        return as_nodes(self.builder, [*carry, *stacks])

    def _visited(
        self, loop: WhileLoop, args: list[Node], values: Sequence[Any]
    ) -> list[list[Node]]:
        """Return the values that the loop carries before each iteration and after the last."""
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
        bars = [*args[inputs:], *zeros]
        for value in self._visited(sweep.loop, args[:inputs], values[:inputs])[-2::-1]:
            bars = self._step(sweep.back, [*bars, *value, *constants])
        return bars

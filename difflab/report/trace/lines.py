"""Lines of a trace: an operation each, or all operations of a call that is not opened."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from difflab.drawing import ALL
from difflab.drawing.compositions import Composition, compositions
from difflab.drawing.order import evaluation_order
from difflab.graph.calls import call_name
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph

__all__ = ["Line", "call_text", "lines_of", "sum_text"]

LISTED = 6
"""Arguments or terms that a text lists."""


@dataclass(frozen=True, slots=True)
class Line:
    """The operations that one line of a trace stands for.

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
    """Whether a composition is an opened loop, which stands where it was called."""
    graph = function.graph
    spans = {int(graph.spans[node]) for node in composition.nodes}
    return spans <= set(loops) and composition.name not in _callers(function, composition.nodes[0])


def _callers(function: Function, node: int) -> list[str]:
    call = function.graph.source.call(int(function.graph.spans[node]))
    return [] if call is None else [each.name for each in call.path]


def _ordered(function: Function, order: Sequence[int], closed: Sequence[Composition]) -> list[Line]:
    """Return the lines by level: first what needs inputs only, then what needs that."""
    graph = function.graph
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    box_of = {node: place for place, each in enumerate(closed) for node in each.nodes}
    groups: dict[int, list[int]] = {}
    for node in sorted(operations):
        # One operation of its own is keyed below zero.
        groups.setdefault(box_of.get(node, -1 - node), []).append(node)
    used = _used_outside(function, operations, box_of)
    found = [
        _line(function, nodes, closed[key].name if key >= 0 else "", used)
        for key, nodes in groups.items()
    ]
    return _by_level(graph, found)


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
    line_of = {node: place for place, line in enumerate(lines) for node in line.nodes}
    users: list[list[int]] = [[] for _ in lines]
    waiting: list[int] = []
    for place, line in enumerate(lines):
        needed = {line_of[arg] for arg in line.arguments if arg in line_of}
        waiting.append(len(needed))
        for each in needed:
            users[each].append(place)
    level = [int(any(graph.arguments(node) for node in line.nodes)) for line in lines]
    ready = [place for place, count in enumerate(waiting) if not count]
    for place in ready:  # grows while it is walked
        for user in users[place]:
            level[user] = max(level[user], level[place] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return [lines[place] for place in sorted(range(len(lines)), key=level.__getitem__)]


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
    if len(texts) <= LISTED:
        return list(texts)
    return [*texts[: LISTED - 2], "…", texts[-1]]

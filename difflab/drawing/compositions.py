"""Compositions: the operations of one call, drawn as one box unless it is opened.

A call of a function of the user's, of a layer, or of a function of the package that consists of
several operations, such as a layer normalisation, is a composition. Calls nest: an opened one shows
the operations and the calls in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from difflab.core.place import SourceLocation
from difflab.core.primitive import Custom, Primitive
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.described import roles
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.node import Node
from difflab.primitives import TABLE


def opens(row: Primitive | None) -> bool:
    """Whether an operation consists of functions that can be shown."""
    if row is None:
        return False
    return row.holds is not None or (isinstance(row.rule, Custom) and row.expansion is not None)


def inside(graph: Graph, node: int) -> list[tuple[str, Function]]:
    """Return the functions that an operation consists of, each with its role.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x: dl.fori_loop(0, 3, lambda i, y: y * x, 1.0), 2.0)
    >>> [role for role, step in inside(f.graph, len(f.graph) - 2)]
    ['step']
    """
    row = graph.primitive(node)
    if row is None or not opens(row):
        return []
    return [("forward", _recorded(graph, node, row))] if row.holds is None else roles(row.holds)


def _recorded(graph: Graph, node: int, row: Primitive) -> Function:
    """Return a custom function as primitive operations."""
    assert row.expansion is not None
    builder = Builder()
    shapes = [graph.shape(arg) for arg in graph.arguments(node)]
    inputs = [builder.input(f"x{position}", shape) for position, shape in enumerate(shapes, 1)]
    result = row.expansion(*[Node(builder, number) for number in inputs])
    return Function.build(builder, inputs, [result.id], ["y"])


_CALLED = re.compile(r"(?:\w+\.)*([^\W\d]\w*)\(")


@dataclass(frozen=True, slots=True)
class Composition:
    """The operations that one box stands for, and the name of the called function."""

    name: str
    nodes: list[int]


@dataclass(frozen=True, slots=True)
class _Level:
    """One call on the way to an operation; `key` tells calls of the same name apart."""

    key: object
    name: str


Opened = Callable[[str, int], bool]
"""Whether a composition is opened, by its name and the number of compositions around it."""


def openable(function: Function) -> frozenset[str]:
    """Return the names that can be opened: compositions, and primitives that hold functions.

    Examples
    --------
    >>> from difflab.language import parse
    >>> sorted(openable(parse("x: [3]; sum(layer_norm(iterate(y = x; 40 times; sin(y)))^2)")))
    ['layer_norm', 'scan']
    """
    names: set[str] = set()
    seen: set[int] = set()
    pending = [function]
    while pending:
        graph = pending.pop().graph
        if id(graph) in seen:
            continue
        seen.add(id(graph))
        nodes = range(len(graph))
        names |= {level.name for path in _paths(graph, nodes).values() for level in path}
        for row, node in {graph.primitive(node): node for node in nodes}.items():
            if row is not None and opens(row):
                names.add(row.name)
                pending += [inner for _, inner in inside(graph, node)]
    return frozenset(names)


def compositions(
    function: Function, order: Sequence[int], opened: Collection[str]
) -> list[Composition]:
    """Return the compositions that are boxes if those named in `opened` are opened.

    Examples
    --------
    >>> from difflab.language import parse
    >>> f = parse("x: [3]; sum(layer_norm(x)^2)")
    >>> [(each.name, len(each.nodes)) for each in compositions(f, range(len(f.graph)), ())]
    [('layer_norm', 11)]
    """
    paths = _paths(function.graph, order)
    clusters = _clusters(function.graph, order, paths, lambda name, _: name in opened)
    return [each for each in clusters if len(each.nodes) > 1]


def fitting(function: Function, order: Sequence[int], limit: int) -> list[Composition] | None:
    """Return the compositions of the most detailed picture of at most `limit` boxes.

    None if there is no such picture of at least two boxes.
    """
    paths = _paths(function.graph, order)
    deepest = max(map(len, paths.values()), default=0)
    for depth in range(deepest - 1, -1, -1):
        opened = _to(depth)
        if _least(function.graph, order, paths, opened) > limit:
            continue
        clusters = _clusters(function.graph, order, paths, opened)
        if 1 < len(clusters) <= limit:
            return [each for each in clusters if len(each.nodes) > 1]
    return None


def _to(depth: int) -> Opened:
    """Return the predicate that opens compositions down to a depth."""
    return lambda _, level: level < depth


def _paths(graph: Graph, order: Sequence[int]) -> dict[int, tuple[_Level, ...]]:
    """Return for each location of operations the calls that lead to it, outermost first.

    One operation alone is no composition, nor are those that unpack the results of a loop.
    """
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    holding = {int(graph.spans[node]) for node in operations if opens(graph.primitive(node))}
    paths = {}
    for span, count in Counter(graph.spans[operations].tolist()).items():
        call = graph.source.call(span)
        path = [] if call is None else [_Level(each, each.name) for each in call.path]
        name = _called(graph.source.place(span))
        own = call is None or not call.of_layer
        if own and name and count > 1 and name not in TABLE and span not in holding:
            path.append(_Level(span, name))
        paths[span] = tuple(path)
    return paths


def _called(location: SourceLocation) -> str:
    """Return the function that is called at a location; empty if it is something else."""
    part = location.part.strip()
    match = _CALLED.match(part)
    if match is None or not part.endswith(")"):
        return ""
    depth = 0
    for position in range(match.end() - 1, len(part)):
        depth += (part[position] in "([{") - (part[position] in ")]}")
        if depth == 0:
            return match[1] if position == len(part) - 1 else ""
    return ""


def _closed(path: Sequence[_Level], opened: Opened) -> _Level | None:
    """Return the outermost call that is not opened."""
    for number, level in enumerate(path):
        if not opened(level.name, number):
            return level
    return None


def _least(
    graph: Graph, order: Sequence[int], paths: dict[int, tuple[_Level, ...]], opened: Opened
) -> int:
    """Return a lower bound of the number of boxes."""
    closed = {span: _closed(path, opened) for span, path in paths.items()}
    keys = {level.key for level in closed.values() if level is not None}
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    single = {span for span, level in closed.items() if level is None}
    return len(keys) + sum(span in single for span in graph.spans[operations].tolist())


def _clusters(
    graph: Graph, order: Sequence[int], paths: dict[int, tuple[_Level, ...]], opened: Opened
) -> list[Composition]:
    """Partition the operations into boxes, between which no arrows go round in a circle.

    An operation that depends on its composition by way of other boxes, as those of a reverse
    sweep do, begins another box of the same name.
    """
    closed = {span: _closed(path, opened) for span, path in paths.items()}
    boxes: list[Composition] = []
    before: list[int] = []  # bit b of before[a]: box a depends on box b
    box_of: dict[int, int] = {}
    latest: dict[object, int] = {}
    for node in sorted(node for node in order if graph.opcode[node] >= FIRST_ROW):
        level = closed[int(graph.spans[node])]
        below = {box_of[a] for a in graph.arguments(node) if a in box_of}
        needed = 0
        for box in below:
            needed |= before[box] | 1 << box
        here = None if level is None else latest.get(level.key)
        if here is None or any(before[box] >> here & 1 for box in below - {here}):
            here = len(boxes)
            boxes.append(Composition("" if level is None else level.name, []))
            before.append(0)
            if level is not None:
                latest[level.key] = here
        boxes[here].nodes.append(node)
        box_of[node] = here
        new = needed & ~(before[here] | 1 << here)
        if new:
            before[here] |= new
            for box, mask in enumerate(before):
                if mask >> here & 1:
                    before[box] |= new
    return _without_shared(graph, boxes, box_of)


def _without_shared(
    graph: Graph, boxes: list[Composition], box_of: dict[int, int]
) -> list[Composition]:
    """Give constant arrays that several boxes use, such as shared weights, boxes of their own."""
    shared: set[int] = set()
    for node, box in box_of.items():
        for argument in graph.arguments(node):
            if not graph.arguments(argument) and box_of.get(argument, box) != box:
                shared.add(argument)
    kept = [
        Composition(each.name, [node for node in each.nodes if node not in shared])
        for each in boxes
    ]
    return [each for each in kept if each.nodes] + [Composition("", [node]) for node in shared]


ALL = "all"
"""What opens everything."""
NONE = "none"
"""What closes everything."""


def opened(function: Function, names: str | Iterable[str]) -> frozenset[str]:
    """Return the names that are opened: none, `ALL`, or those of something that opens.

    Raises
    ------
    InputError
        Nothing has one of the names, or `ALL` or ``"none"`` is not the only one.

    Examples
    --------
    >>> from difflab.language import parse
    >>> f = parse("x: [3]; sum(layer_norm(x))")
    >>> opened(f, "layer_norm"), opened(f, "none")
    (frozenset({'layer_norm'}), frozenset())
    """
    asked = frozenset([names] if isinstance(names, str) else names)
    choices = openable(function)
    for name in sorted(asked - {ALL, NONE} - choices):
        raise InputError(
            f"nothing in the graph that can be opened is called {name!r}",
            hint=f"choose from {', '.join([ALL, NONE, *sorted(choices)])}",
        )
    if len(asked) > 1 and asked & {ALL, NONE}:
        raise InputError(
            f"{', '.join(sorted(asked))} cannot be opened together",
            hint=f"give names, or {ALL!r}, or {NONE!r}",
        )
    return asked - {NONE}

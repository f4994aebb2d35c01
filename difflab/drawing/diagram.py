"""The boxes and arrows of a function: one box per node, or a summary of a large graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from difflab.drawing.collapse import collapse, counts
from difflab.drawing.inside import explained, inside, opens, size
from difflab.drawing.model import Box, BoxKind, Diagram, DiagramEdge, one_line
from difflab.drawing.order import (
    compact,
    constant_text,
    evaluation_order,
    key_text,
    levels,
    output_labels,
    short,
    subscript,
    trace_names,
)
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive
    from difflab.graph.function import Function
    from difflab.graph.ir import Graph

__all__ = ["argument_labels", "diagram", "glyph"]

FULL = 80
PANELS = 12
"""Most functions inside the operations of one graph that are drawn."""


def diagram(
    function: Function,
    values: Sequence[Any] | None = None,
    *,
    cotangents: Mapping[int, Any] | None = None,
    title: str | None = None,
    limit: int = FULL,
    depth: int = 0,
) -> Diagram:
    """Return the boxes and arrows of a function; a large graph is summarised.

    Parameters
    ----------
    function : Function
    values : sequence, optional
        The value of every node of the graph, to be shown in the boxes; None where unknown.
    cotangents : mapping, optional
        The cotangents of nodes (`difflab.diagnose.node_cotangents`). With them, the arrows carry
        the numbers: values forward, cotangents back.
    title : str, optional
        The heading; the function's own text where it is not given.
    limit : int
        The most boxes that are drawn one by one.
    depth : int
        How many levels of functions inside operations are drawn as well: the steps of loops,
        branches, and custom functions.

    Returns
    -------
    Diagram

    Examples
    --------
    >>> from difflab.language import parse
    >>> picture = diagram(parse("x*y - x"))
    >>> [box.lines[0] for box in picture.boxes[:4]]
    ['x', 'y', '×', '−']
    """
    level = levels(function.graph)
    order = evaluation_order(function, level)
    heading = one_line((function.text or "") if title is None else title)
    if len(order) + len(function.outputs) > limit:
        picture = collapse(function, order, level, heading)
    else:
        picture = _full(function, order, level, values, heading)
        if values is not None and cotangents is not None:
            picture = _carrying(picture, function, order, values, cotangents)
    return replace(picture, parts=_parts(function, order, limit, depth)) if depth else picture


def _parts(
    function: Function, order: Sequence[int], limit: int, depth: int
) -> tuple[tuple[str, Diagram], ...]:
    """Draw the functions inside operations, those of equal operations once."""
    graph = function.graph
    names = trace_names(function, order)
    parts: list[tuple[str, Diagram]] = []
    shown: set[Primitive] = set()
    for node in order:
        row = graph.primitive(node)
        if row is None or row in shown or len(parts) >= PANELS:
            continue
        shown.add(row)
        for role, inner in inside(graph, node):
            turns = f", {size(row)}" if size(row) else ""
            heading = f"{subscript(names[node])} = {row.name}: {role}{turns}"
            part = diagram(inner, title="", limit=limit, depth=depth - 1)
            meaning = " · ".join(filter(None, (part.subtitle, explained(row))))
            parts.append((heading, replace(part, subtitle=meaning)))
    return tuple(parts)


def _carrying(
    picture: Diagram,
    function: Function,
    order: Sequence[int],
    values: Sequence[Any],
    cotangents: Mapping[int, Any],
) -> Diagram:
    """Return a full picture with the numbers at the arrows in place of the boxes."""
    graph = function.graph
    names = trace_names(function, order)
    nodes = [node for node in order if graph.opcode[node] == INPUT]
    nodes += [node for node in order if graph.opcode[node] >= FIRST_ROW]
    positions = [
        position
        for position, box in enumerate(picture.boxes)
        if box.kind not in (BoxKind.CONSTANT, BoxKind.OUTPUT)
    ]
    boxes = list(picture.boxes)
    for node, position in zip(nodes, positions, strict=True):
        bar = cotangents.get(node)
        boxes[position] = replace(
            boxes[position],
            caption=one_line(subscript(names[node]), 24),
            value="" if values[node] is None else compact(values[node]),
            bar="" if bar is None else compact(bar),
        )
    y = one_line(output_labels(function)[0], 24) if function.m == 1 else "(sum of the outputs)"
    legend = f"at an arrow: value v, below it the derivative v̄ = ∂{y}/∂v"
    return replace(picture, boxes=tuple(boxes), legend=legend)


def _full(
    function: Function,
    order: list[int],
    level: list[int],
    values: Sequence[Any] | None,
    heading: str,
) -> Diagram:
    """Draw every node that the outputs need, in evaluation order.

    A constant is drawn at each operation that uses it: the arrows of a shared box would cross the
    whole picture.
    """
    graph = function.graph
    names = trace_names(function, order)
    uses = [
        (argument, node, label)
        for node in order
        for argument, label in zip(graph.arguments(node), argument_labels(graph, node), strict=True)
    ]
    uses += [(node, -1 - position, "") for position, node in enumerate(function.outputs)]
    literals = dict.fromkeys((a, user) for a, user, _ in uses if graph.opcode[a] == CONSTANT)
    inputs = [node for node in order if graph.opcode[node] == INPUT]
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    boxes = [_box(graph, node, names, values) for node in inputs]
    boxes += [_box(graph, node, names, values) for node, _ in literals]
    boxes += [_box(graph, node, names, values) for node in operations]
    for name, node in zip(output_labels(function), function.outputs, strict=True):
        known = values is not None and values[node] is not None
        caption = f"= {short(values[node])}" if values is not None and known else ""
        value = subscript(names[node])
        tip = f"output {one_line(name)}" + (f" = {value}" if value != name else "")
        boxes.append(Box(BoxKind.OUTPUT, (one_line(name, 24),), caption, tip))
    outputs = [-1 - position for position in range(len(function.outputs))]
    number: dict[object, int] = {
        key: box for box, key in enumerate([*inputs, *literals, *operations, *outputs])
    }
    edges = [
        DiagramEdge(number[node if node in number else (node, user)], number[user], label)
        for node, user, label in uses
    ]
    late = tuple(number[key] for key in literals)
    return Diagram(heading, counts(function, order, level), tuple(boxes), tuple(edges), late)


def _box(graph: Graph, node: int, names: dict[int, str], values: Sequence[Any] | None) -> Box:
    """Return the box of one node; its caption is the node's name in the evaluation trace."""
    code = int(graph.opcode[node])
    name = one_line(subscript(names[node]), 24)
    if code == CONSTANT:
        return Box(BoxKind.CONSTANT, (names[node],), tip=f"constant {constant_text(graph, node)}")
    value = None if values is None else values[node]
    caption = name if value is None else f"{name} = {short(value)}"
    if code == INPUT:
        label = one_line(graph.input_name(node), 24)
        return Box(BoxKind.INPUT, (label,), caption, f"input {label}: {caption}")
    primitive = graph.primitive(node)
    arguments = ", ".join(one_line(subscript(names[a]), 24) for a in graph.arguments(node)[:8])
    title = "" if primitive is None else primitive.name
    lines: tuple[str, ...] = (glyph(primitive, graph.params(node)),)
    kind = BoxKind.MOVE if primitive is not None and primitive.structural else BoxKind.OPERATION
    if primitive is not None and opens(primitive):
        kind = BoxKind.COARSE
        lines += (size(primitive),) if size(primitive) else ()
    return Box(kind, lines, caption, f"{name} = {title}({arguments})")


def glyph(primitive: Primitive | None, params: dict[str, Any] | None = None) -> str:
    """Return the sign that stands for an operation in a picture."""
    if primitive is None:
        return "?"
    if primitive.name == "index" and params:
        return one_line(key_text(params["key"]), 16)
    return primitive.glyph


def argument_labels(graph: Graph, node: int) -> tuple[str, ...]:
    """Return a mark for every argument where their order matters, else empty texts."""
    primitive, count = graph.primitive(node), len(graph.arguments(node))
    if primitive is None or count < 2 or primitive.commutative:
        return ("",) * count
    return primitive.roles or tuple(str(position + 1) for position in range(count))

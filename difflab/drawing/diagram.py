"""The boxes and arrows of a function: one box per node, or a summary of a large graph.

The boxes of a summary are such as "1,024 × multiply", and its arrows have counts.
Few levels: one box for each primitive on each level. Many levels: one box for a band of
levels, listing its primitives. Either way the picture holds some dozens of boxes, and a
graph of a million nodes is summarised in seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.core.wording import counted
from difflab.drawing.boxes import Boxes
from difflab.drawing.compositions import ALL, Composition, compositions, fitting, inside
from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge, one_line
from difflab.drawing.order import (
    compact,
    evaluation_order,
    levels,
    output_labels,
    subscript,
    trace_names,
)
from difflab.graph.described import arguments, length
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph

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
    open: Collection[str] | None = None,
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
    open : collection of str, optional
        The names of the compositions and of the loops that are opened; ``{"all"}`` opens all. By
        default loops are closed, and compositions are open as far as the picture stays within
        `limit`.

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
    groups = _grouped(function, order, limit, open)
    drawn = len(order) + len(function.outputs) - sum(len(each.nodes) - 1 for each in groups)
    if drawn > limit:
        picture = collapse(function, order, level, heading)
    else:
        boxes = Boxes(function, order, groups, values)
        picture = boxes.picture(heading, counts(function, order, level))
        if values is not None and cotangents is not None:
            picture = _carrying(picture, function, boxes, values, cotangents)
    if not depth and not open:
        return picture
    return replace(picture, parts=_parts(function, order, limit, depth, open))


def _grouped(
    function: Function, order: Sequence[int], limit: int, open: Collection[str] | None
) -> list[Composition]:
    """Return the compositions that are drawn as one box each."""
    if open is not None:
        return [] if ALL in open else compositions(function, order, open)
    leaves = sum(function.graph.opcode[node] == INPUT for node in order) + len(function.outputs)
    if len(order) + len(function.outputs) <= limit:
        return []
    return fitting(function, order, limit - leaves) or []


def _parts(
    function: Function,
    order: Sequence[int],
    limit: int,
    depth: int,
    open: Collection[str] | None,
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
        if not depth and not {row.name, ALL} & set(open or ()):
            continue
        shown.add(row)
        for role, inner in inside(graph, node):
            repeated = f", {length(row.holds)}" if length(row.holds) else ""
            heading = f"{subscript(names[node])} = {row.name}: {role}{repeated}"
            part = diagram(inner, title="", limit=limit, depth=max(depth - 1, 0), open=open)
            meaning = " · ".join(filter(None, (part.subtitle, arguments(row.holds))))
            parts.append((heading, replace(part, subtitle=meaning)))
    return tuple(parts)


def _carrying(
    picture: Diagram,
    function: Function,
    drawn: Boxes,
    values: Sequence[Any],
    cotangents: Mapping[int, Any],
) -> Diagram:
    """Return a full picture with values at the arrows instead of in the boxes."""
    boxes = list(picture.boxes)
    for position, node in drawn.carriers.items():
        bar = cotangents.get(node)
        boxes[position] = replace(
            boxes[position],
            caption=one_line(subscript(drawn.names[node]), 24),
            value="" if values[node] is None else compact(values[node]),
            bar="" if bar is None else compact(bar),
        )
    y = one_line(output_labels(function)[0], 24) if function.m == 1 else "(sum of the outputs)"
    legend = f"at an arrow: value v, below it the derivative v̄ = ∂{y}/∂v"
    return replace(picture, boxes=tuple(boxes), legend=legend)


GROUPS = 40
BANDS = 12
LISTED = 5
SINGLE = 6

Ints = NDArray[np.int64]


def counts(function: Function, order: Sequence[int], level: Sequence[int]) -> str:
    """Return the line under the title: inputs, operations, outputs and depth."""
    graph = function.graph
    nodes = np.asarray(order, dtype=np.int64)
    costly = (graph.opcode >= FIRST_ROW) & ~graph.structural_rows()
    depth = max((level[node] for node in function.outputs), default=0)
    return " · ".join(
        [
            counted(len(function.inputs), "input"),
            counted(int(costly[nodes].sum()), "operation"),
            counted(len(function.outputs), "output"),
            f"depth {depth:,}",
        ]
    )


def collapse(function: Function, order: Sequence[int], level: Sequence[int], title: str) -> Diagram:
    """Summarise a graph into boxes of equal primitives on equal levels.

    Parameters
    ----------
    function : Function
    order : sequence of int
        Its needed nodes.
    level : sequence of int
        The longest path to every node.
    title : str

    Returns
    -------
    Diagram
        At most some fifty boxes, whatever the size of the graph; every arrow carries the
        number of uses it stands for.
    """
    graph = function.graph
    nodes = np.asarray(order, dtype=np.int64)
    heights = np.asarray(level, dtype=np.int64)
    opcode = graph.opcode.astype(np.int64)
    operations = nodes[opcode[nodes] >= FIRST_ROW]
    key = heights[operations] * (len(graph.primitives) + FIRST_ROW) + opcode[operations]
    if len(np.unique(key)) > GROUPS:
        depth = int(heights.max(initial=1))
        key = (heights[operations] - 1) * min(BANDS, depth) // depth
    boxes, group = _leaves(function, nodes[opcode[nodes] == CONSTANT])
    distinct, which = np.unique(key, return_inverse=True)
    group[operations] = which + len(boxes)
    ends = np.cumsum(np.bincount(which, minlength=len(distinct)))[:-1]
    for members in np.split(operations[np.argsort(which, kind="stable")], ends):
        boxes.append(_box(graph, members, opcode, heights))
    edges = _edges(graph, group, len(boxes))
    _add_outputs(function, boxes, edges, group)
    late = tuple(i for i, box in enumerate(boxes) if box.kind is BoxKind.CONSTANT)
    return Diagram(title, counts(function, order, level), tuple(boxes), tuple(edges), late)


def _leaves(function: Function, constants: Ints) -> tuple[list[DiagramBox], Ints]:
    """Return the boxes of inputs and constants, and the group of each node."""
    group = np.full(len(function.graph), -1, dtype=np.int64)
    boxes: list[DiagramBox] = []
    names = [one_line(name, 20) for name in function.inputs[:SINGLE]]
    inputs = list(function.input_nodes)
    if len(inputs) <= SINGLE:
        group[inputs] = range(len(inputs))
        boxes += [
            DiagramBox(BoxKind.INPUT, (name,), tip=f"input {name}", nodes=(node,))
            for name, node in zip(names, inputs, strict=True)
        ]
    else:
        group[inputs] = 0
        caption = f"{names[0]} … {one_line(function.inputs[-1], 20)}"
        many = (counted(len(inputs), "input"),)
        boxes.append(DiagramBox(BoxKind.INPUT, many, caption, caption, nodes=tuple(inputs)))
    if len(constants):
        group[constants] = len(boxes)
        many = (counted(len(constants), "constant"),)
        boxes.append(DiagramBox(BoxKind.CONSTANT, many, nodes=tuple(constants.tolist())))
    return boxes, group


def _box(graph: Graph, members: Ints, opcode: Ints, level: Ints) -> DiagramBox:
    """Describe the members of one group: how many of which primitive, on which levels."""
    tally = np.bincount(opcode[members])
    ranked = sorted(((int(tally[code]), int(code)) for code in np.flatnonzero(tally)), reverse=True)
    lines = [f"{count:,} × {graph.primitives[code - FIRST_ROW].name}" for count, code in ranked]
    tip = ", ".join(lines)
    if len(members) == 1:
        lines = [graph.primitives[ranked[0][1] - FIRST_ROW].name]
    if len(lines) > LISTED:
        rest = sum(count for count, _ in ranked[LISTED - 1 :])
        lines[LISTED - 1 :] = [f"{rest:,} × {len(ranked) - LISTED + 1} others"]
    low, high = int(level[members].min()), int(level[members].max())
    caption = f"level {low:,}" if low == high else f"levels {low:,} – {high:,}"
    kind = BoxKind.SUMMARY if len(members) > 1 else BoxKind.OPERATION
    nodes = tuple(members.tolist())
    return DiagramBox(kind, tuple(lines), caption, f"{caption}: {tip}", nodes=nodes)


def _edges(graph: Graph, group: Ints, groups: int) -> list[DiagramEdge]:
    """Count the uses between every two groups; uses inside a group are not drawn."""
    target = group[np.repeat(np.arange(len(graph)), np.diff(graph.starts))]
    source = group[graph.args]
    between = (target >= 0) & (source != target)
    pairs, tally = np.unique(source[between] * groups + target[between], return_counts=True)
    return [
        DiagramEdge(pair // groups, pair % groups, f"{count:,}", count)
        for pair, count in zip(pairs.tolist(), tally.tolist(), strict=True)
    ]


def _add_outputs(
    function: Function, boxes: list[DiagramBox], edges: list[DiagramEdge], group: Ints
) -> None:
    """Append the outputs, one box each if there are few."""
    names, nodes = output_labels(function), function.outputs
    if len(nodes) <= SINGLE:
        for name, node in zip(names, nodes, strict=True):
            edges.append(DiagramEdge(int(group[node]), len(boxes)))
            boxes.append(
                DiagramBox(BoxKind.OUTPUT, (one_line(name, 20),), tip=f"output {one_line(name)}")
            )
        return
    sources, tally = np.unique(group[list(nodes)], return_counts=True)
    edges += [
        DiagramEdge(source, len(boxes), f"{count:,}", count)
        for source, count in zip(sources.tolist(), tally.tolist(), strict=True)
    ]
    caption = f"{one_line(names[0], 20)} … {one_line(names[-1], 20)}"
    boxes.append(DiagramBox(BoxKind.OUTPUT, (counted(len(nodes), "output"),), caption, caption))

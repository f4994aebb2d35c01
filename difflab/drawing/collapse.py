"""Summaries of large graphs: boxes such as "1,024 × multiply", and arrows with their counts.

Few levels: one box for each primitive on each level. Many levels: one box for a band of
levels, listing its primitives. Either way the picture holds some dozens of boxes, and a
graph of a million nodes is summarised in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from difflab.core.wording import counted
from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge, one_line
from difflab.drawing.order import output_labels
from difflab.graph.ir import CONSTANT, FIRST_ROW

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.graph.ir import Graph


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

"""The boxes and arrows of a function: one box per node, or a summary of a large graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from difflab.drawing.boxes import Boxes
from difflab.drawing.collapse import collapse, counts
from difflab.drawing.compositions import ALL, Composition, compositions, fitting, inside
from difflab.drawing.model import Diagram, one_line
from difflab.drawing.order import (
    compact,
    evaluation_order,
    levels,
    output_labels,
    subscript,
    trace_names,
)
from difflab.graph.described import arguments, length
from difflab.graph.ir import INPUT

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive
    from difflab.graph.function import Function


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
            turns = f", {length(row.holds)}" if length(row.holds) else ""
            heading = f"{subscript(names[node])} = {row.name}: {role}{turns}"
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

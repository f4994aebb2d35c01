"""The picture of a page: boxes and arrows of `difflab.drawing`, with room for changing numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from difflab.drawing import BoxKind, Diagram, diagram
from difflab.drawing.layout import XY, Arrow, Placement, place
from difflab.drawing.model import DiagramBox, one_line
from difflab.drawing.scene import text_width
from difflab.drawing.svg import path
from difflab.graph.function import Function

__all__ = ["picture"]

LABEL, SMALL = 15.0, 12.0
NUMBER = " = −0.95892"
"""The longest number in a box, but for those with an exponent of three digits."""
WIDEST = 1500.0
"""A picture wider than this runs downwards."""


def picture(
    function: Function, index: Mapping[int, int], names: Mapping[int, str]
) -> dict[str, Any]:
    """Return the boxes, arrows and size of the graph of a function of numbers.

    Parameters
    ----------
    function : Function
    index : mapping of int to int
        The number of each node on the page.
    names : mapping of int to str
        The name of each node.

    Examples
    --------
    >>> import difflab as dl
    >>> drawn = picture(dl.parse("x*x"), {0: 0, 1: 1}, {0: "x", 1: "v1"})
    >>> [box["lines"] for box in drawn["boxes"]], [arrow["place"] for arrow in drawn["arrows"]]
    ([['x'], ['×'], ['y']], [0, 1, None])
    """
    drawn = diagram(function, title="")
    sizes = [_size(box, names.get((*box.nodes, -1)[0], "")) for box in drawn.boxes]
    ends = [(edge.source, edge.target) for edge in drawn.edges]
    lead = 26.0
    placement = place(sizes, ends, late=drawn.late, layer_gap=44.0 + lead, lead=lead)
    horizontal = placement.width <= WIDEST
    if not horizontal:
        spacing = 16.0 + max((text_width(edge.label, SMALL) for edge in drawn.edges), default=2.0)
        placement = place(
            sizes, ends, late=drawn.late, horizontal=False, port_spacing=spacing, lead=22.0
        )
    return {
        "width": round(placement.width, 1),
        "height": round(placement.height, 1),
        "horizontal": horizontal,
        "summary": drawn.subtitle,
        "boxes": _boxes(drawn, placement, index),
        "arrows": _arrows(function, drawn, placement, index),
        "trunks": [
            [before, path(curve)]
            for before, (_, curve) in zip(placement.trunk_before, placement.trunks, strict=True)
        ],
        "dots": [[round(x, 1), round(y, 1)] for x, y in placement.junctions],
    }


def _size(box: DiagramBox, name: str) -> XY:
    wide = max(text_width(line, LABEL) for line in box.lines)
    if box.kind is BoxKind.CONSTANT:
        return max(wide + 18.0, 34.0), 30.0
    if _collapsed(box):
        return max(wide, text_width(box.caption, SMALL)) + 24.0, 34.0 + 20.0 * len(box.lines)
    numbers = text_width(one_line(name, 24) + NUMBER, SMALL) + 14.0
    return max(wide + 24.0, numbers), 66.0 if box.kind is not BoxKind.OUTPUT else 50.0


def _collapsed(box: DiagramBox) -> bool:
    """Whether a box stands for several nodes, whose numbers have no room in it."""
    return len(box.nodes) > 1


def _boxes(drawn: Diagram, placement: Placement, index: Mapping[int, int]) -> list[dict[str, Any]]:
    found = []
    for box, (x, y), (width, height) in zip(
        drawn.boxes, placement.centres, placement.sizes, strict=True
    ):
        found.append(
            {
                "kind": str(box.kind),
                "lines": list(box.lines),
                "caption": box.caption if _collapsed(box) else "",
                "tip": box.tip,
                "nodes": _runs(sorted(index[node] for node in box.nodes)),
                "at": [round(v, 1) for v in (x, y, width, height)],
            }
        )
    return found


def _runs(numbers: list[int]) -> list[list[int]]:
    """Return sorted numbers as the first and the number of those that follow each other."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def _arrows(
    function: Function, drawn: Diagram, placement: Placement, index: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Return the arrows, each with the argument that it is, where its ends are single nodes."""
    seen: Counter[tuple[int, int]] = Counter()
    arrows: list[Arrow] = sorted(placement.arrows, key=lambda arrow: arrow.edge)
    found = []
    for arrow in arrows:
        edge = drawn.edges[arrow.edge]
        source, target = (drawn.boxes[end].nodes for end in (edge.source, edge.target))
        place_: int | None = None
        if len(source) == 1 and len(target) == 1:
            uses = [k for k, a in enumerate(function.graph.arguments(target[0])) if a == source[0]]
            place_ = uses[seen[edge.source, edge.target]]
            seen[edge.source, edge.target] += 1
        curve = arrow.curve
        found.append(
            {
                "ends": [edge.source, edge.target],
                "place": place_,
                "label": edge.label,
                "trunk": placement.arrow_before[arrow.edge],
                "path": path(curve),
                "tip": [round(v, 1) for v in curve.end],
            }
        )
    return found

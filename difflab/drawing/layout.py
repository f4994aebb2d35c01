"""Layered layout: coordinates and curves for boxes of given sizes and their arrows.

Boxes are placed so that every arrow points forward, few cross and none runs
through a box (Sugiyama, Tagawa & Toda 1981).
Arrows that leave one box share a trunk, which splits where they branch: fan-out stays visible
and a box used a hundred times does not draw a hundred parallel lines. Iterative throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from difflab.drawing.network import Net, align, layers, network, offsets, order

XY = tuple[float, float]

BOX_GAP = 22.0
"""Distance between the boxes of a layer."""


class Curve(NamedTuple):
    """A straight lead from `start`, a cubic Bézier and a straight lead to `end`.

    Attributes
    ----------
    start, leave, enter, end : XY
        The lead runs from `start` to `leave`, the curve from `leave` to `enter` with
        tangents along the main direction, the second lead from `enter` to `end`.
    first, second : XY
        The two inner control points of the curve.
    """

    start: XY
    leave: XY
    first: XY
    second: XY
    enter: XY
    end: XY


@dataclass(frozen=True)
class Arrow:
    """The arrow of one edge, an index in the input, and the point where it touches its target."""

    edge: int
    tip: XY
    curve: Curve


@dataclass(frozen=True)
class Placement:
    """Centres of the boxes, the trunks, the arrows and the size of the whole.

    Attributes
    ----------
    centres : list of XY
        One per box.
    sizes : list of XY
        Width and height of every box, grown where its arrows need room.
    trunks : list of (int, Curve)
        Shared parts of arrows, each with the box it comes from.
    arrows : list of Arrow
        Last parts of arrows, one per edge.
    junctions : list of XY
        Points at which arrows of one source branch.
    width, height : float
    trunk_before : list of (int or None)
        For every trunk the one it continues; None at the box.
    arrow_before : mapping of int to (int or None)
        The same for the arrow of every edge.
    """

    centres: list[XY]
    sizes: list[XY]
    trunks: list[tuple[int, Curve]]
    arrows: list[Arrow]
    junctions: list[XY]
    width: float
    height: float
    trunk_before: list[int | None]
    arrow_before: dict[int, int | None]


def place(
    sizes: Sequence[XY],
    edges: Sequence[tuple[int, int]],
    *,
    late: Sequence[int] = (),
    horizontal: bool = True,
    layer_gap: float = 52.0,
    port_spacing: float = 17.0,
    lead: float = 12.0,
) -> Placement:
    """Place boxes in layers and route the arrows between them.

    Parameters
    ----------
    sizes : sequence of (width, height)
    edges : sequence of (source, target)
        With source < target; several edges may join the same two boxes.
    late : sequence of int
        Boxes to draw just before their first use.
    horizontal : bool
        Layers follow each other to the right, otherwise downwards.
    layer_gap, port_spacing : float
        Distances between layers and between arrow heads.
    lead : float
        Length of the straight end of an arrow, where its head and its mark are drawn.

    Returns
    -------
    Placement
        Coordinates from (0, 0) to (width, height), y downwards.

    Examples
    --------
    >>> placement = place([(40, 20), (40, 20)], [(0, 1)])
    >>> placement.centres
    [(20.0, 10.0), (112.0, 10.0)]
    """
    heads = [0] * len(sizes)
    for _, target in edges:
        heads[target] += 1
    main = [float(w if horizontal else h) for w, h in sizes]
    cross = [
        max(float(h if horizontal else w), port_spacing * heads[box])
        for box, (w, h) in enumerate(sizes)
    ]
    net = network(layers(len(sizes), edges, late), cross, edges)
    order(net)
    offset = offsets(net, len(edges), port_spacing)
    position = align(net, BOX_GAP, offset)
    low = min((p - 0.5 * s for p, s in zip(position, net.size, strict=True)), default=0.0)
    position = [p - low for p in position]
    port = [position[target] + offset[edge] for edge, (_, target) in enumerate(edges)]
    begin, finish = _columns(net, main, position, port, layer_gap)
    return _Router(net, main, position, port, begin, finish, horizontal, lead).placement()


@dataclass(frozen=True)
class _Router:
    """Conversion of layers and positions to points, curves and the size of the picture."""

    net: Net
    main: list[float]
    position: list[float]
    port: list[float]
    begin: list[float]
    finish: list[float]
    horizontal: bool
    lead: float

    def placement(self) -> Placement:
        """Return everything that was placed."""
        net, position = self.net, self.position
        trunks, arrows = [], []
        into: dict[int, int] = {}  # the trunk that ends in a bend
        for start, end, edge in net.links:
            if edge < 0:
                into[end] = len(into)
                trunks.append((net.owner[start], self.curve(start, end, position[end])))
            else:
                curve = self.curve(start, end, self.port[edge])
                arrows.append(Arrow(edge, curve.end, curve))
        parting = [vertex for vertex, ends in enumerate(net.after) if len(ends) > 1]
        depth = self.finish[-1] if self.finish else 0.0
        breadth = max((p + 0.5 * s for p, s in zip(position, net.size, strict=True)), default=0.0)
        return Placement(
            [self.point(self.middle(box), position[box]) for box in range(net.boxes)],
            [self.point(self.main[box], net.size[box]) for box in range(net.boxes)],
            trunks,
            arrows,
            [self.point(self.finish[net.layer[v]], position[v]) for v in parting],
            *self.point(depth, breadth),
            [into.get(start) for start, _, edge in net.links if edge < 0],
            {edge: into.get(start) for start, _, edge in net.links if edge >= 0},
        )

    def point(self, along: float, across: float) -> XY:
        """Return a point of the picture."""
        return (along, across) if self.horizontal else (across, along)

    def middle(self, vertex: int) -> float:
        """Return the middle of a vertex's layer."""
        level = self.net.layer[vertex]
        return 0.5 * (self.begin[level] + self.finish[level])

    def curve(self, start: int, end: int, across: float) -> Curve:
        """Return the part of an arrow between two neighbouring layers."""
        net, y = self.net, self.position[start]
        leave, to = self.finish[net.layer[start]], self.begin[net.layer[end]]
        from_, enter = self.begin[net.layer[start]], to
        if start < net.boxes:
            from_ = self.middle(start) + 0.5 * self.main[start]
        if end < net.boxes:
            enter, to = to - self.lead, self.middle(end) - 0.5 * self.main[end]
        half = 0.5 * (leave + enter)
        corners = (from_, y), (leave, y), (half, y), (half, across), (enter, across), (to, across)
        return Curve(*(self.point(*corner) for corner in corners))


def _columns(
    net: Net, main: list[float], position: list[float], port: list[float], layer_gap: float
) -> tuple[list[float], list[float]]:
    """Return the start and end of each layer; the gap before it grows with steep arrows."""
    breadth = [0.0] * len(net.order)
    for box in range(net.boxes):
        breadth[net.layer[box]] = max(breadth[net.layer[box]], main[box])
    steep = [0.0] * len(net.order)
    for start, end, edge in net.links:
        rise = abs(position[start] - (port[edge] if edge >= 0 else position[end]))
        steep[net.layer[end]] = max(steep[net.layer[end]], rise)
    begin, finish, cursor = [], [], 0.0
    for level, width in enumerate(breadth):
        cursor += layer_gap + min(0.18 * steep[level], 90.0) if level else 0.0
        begin.append(cursor)
        cursor += width
        finish.append(cursor)
    return begin, finish

"""A diagram with coordinates and sizes: rectangles, curves, arrow heads and texts, in pixels.

SVG and PNG draw the same scene, so they show the same picture. The width of a text is
estimated, generously, since the viewer's fonts are unknown.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from math import log10

from difflab.drawing.layout import XY, Curve, Placement, place
from difflab.drawing.model import BoxKind, Diagram, DiagramBox, one_line
from difflab.drawing.network import layers


@dataclass(frozen=True)
class BoxShape:
    """The rectangle and the kind of a box, from which its outline follows."""

    kind: BoxKind
    x: float
    y: float
    width: float
    height: float
    tip: str = ""
    heat: float = 0.0


@dataclass(frozen=True)
class Outline:
    """One rectangle of a box's outline, its corners rounded by `radius`."""

    kind: BoxKind
    x: float
    y: float
    width: float
    height: float
    radius: float
    dashed: bool = False


def outlines(shape: BoxShape) -> list[Outline]:
    """Return the rectangles of a box: kinds are distinguished by shape, without colour."""
    kind, x, y, width, height = shape.kind, shape.x, shape.y, shape.width, shape.height
    radius = 0.5 * min(height, 44.0)
    if kind is BoxKind.CONSTANT:
        return [Outline(kind, x, y, width, height, 0.0, dashed=True)]
    if kind in (BoxKind.OPERATION, BoxKind.MOVE):
        return [Outline(kind, x, y, width, height, min(9.0, radius))]
    if kind is BoxKind.COARSE:
        inner = Outline(kind, x + 3, y + 3, width - 6, height - 6, 2.0)
        return [Outline(kind, x, y, width, height, 4.0), inner]
    if kind is BoxKind.SUMMARY:
        behind = Outline(kind, x + 4, y + 4, width, height, 5.0)
        return [behind, Outline(kind, x, y, width, height, 5.0)]
    outer = Outline(kind, x, y, width, height, radius)
    if kind is BoxKind.INPUT:
        return [outer]
    return [outer, Outline(kind, x + 3, y + 3, width - 6, height - 6, max(radius - 3, 0.0))]


@dataclass(frozen=True)
class ArrowLine:
    """A curve with its leads, drawn `width` wide."""

    curve: Curve
    width: float


@dataclass(frozen=True)
class SceneText:
    """One line of text; `anchor` is start, middle or end, `y` the middle of the letters."""

    text: str
    x: float
    y: float
    size: float
    role: str
    anchor: str = "middle"


@dataclass(frozen=True)
class PanelFrame:
    """The frame around the function inside an operation."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Scene:
    """Everything that is drawn, back to front.

    The heads of arrows are triangles; dots are points at which the arrows of one node branch.
    """

    width: float
    height: float
    title: str
    description: str
    lines: list[ArrowLine] = field(default_factory=list)
    heads: list[tuple[XY, XY, XY]] = field(default_factory=list)
    dots: list[XY] = field(default_factory=list)
    shapes: list[BoxShape] = field(default_factory=list)
    texts: list[SceneText] = field(default_factory=list)
    panels: list[PanelFrame] = field(default_factory=list)


MARGIN = 24.0
LABEL, SMALL, TITLE = 15.0, 11.0, 17.0
LINE = 20.0
NARROWEST = 460.0
PAD = 16.0
PAIR = 2 * SMALL + 10.0  # the height of a value with its cotangent below
# A picture wider than this is turned, so that it is scrolled down and not sideways.
WIDEST = 1500.0
NAMES = {
    BoxKind.INPUT: "input",
    BoxKind.CONSTANT: "constant",
    BoxKind.OPERATION: "operation",
    BoxKind.MOVE: "moves data",
    BoxKind.OUTPUT: "output",
    BoxKind.COARSE: "consists of functions",
    BoxKind.SUMMARY: "many operations",
}


def text_width(text: str, size: float) -> float:
    """Return an estimate, on the large side, of the width of `text` in pixels.

    Examples
    --------
    >>> text_width("mm", 10) > text_width("ii", 10)
    True
    """
    return size * sum(map(_advance, text))


def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in "iIjlt.,:;|!'()[] fr":
        return 0.42
    if character in "mwMW@%—…":
        return 0.98
    return 0.74 if character.isupper() else 0.63


def _tails(picture: Diagram, horizontal: bool) -> list[float]:
    """Return the length of the straight piece of arrow behind each box that carries its values.

    In a horizontal picture it has one length in each layer, so that its boxes stay aligned.
    """
    wide = [
        14.0 + max(text_width(text, SMALL) for text in (box.value, box.bar))
        if box.value or box.bar
        else 0.0
        for box in picture.boxes
    ]
    if not horizontal:
        return wide
    ends = [(edge.source, edge.target) for edge in picture.edges]
    layer = layers(len(picture.boxes), ends, picture.late)
    longest: dict[int, float] = {}
    for length, level in zip(wide, layer, strict=True):
        longest[level] = max(longest.get(level, 0.0), length)
    return [longest.get(level, 0.0) for level in layer]


def _reserved(box: DiagramBox, tail: float, horizontal: bool) -> XY:
    """Return the size of a box together with the piece of arrow behind it."""
    width, height = _size(box)
    if not tail:
        return width, height
    if horizontal:
        return width + tail, max(height, PAIR)
    return max(width, 2 * tail), height + PAIR


def _size(box: DiagramBox) -> XY:
    """Return the size that a box needs for its texts."""
    wide = max(text_width(line, LABEL) for line in box.lines)
    width = max(wide, text_width(box.caption, SMALL)) + 22
    height = LINE * len(box.lines) + 12 + (15 if box.caption else 0)
    if box.kind in (BoxKind.INPUT, BoxKind.OUTPUT):
        width += 10
    return max(width, 30.0 if box.kind is BoxKind.CONSTANT else 46.0), height


def scene(picture: Diagram) -> Scene:
    """Lay a diagram out and return everything to draw.

    Examples
    --------
    >>> from difflab.drawing.model import DiagramEdge
    >>> boxes = (DiagramBox(BoxKind.INPUT, ("x",)), DiagramBox(BoxKind.OUTPUT, ("y",)))
    >>> drawn = scene(Diagram("y = x", "", boxes, (DiagramEdge(0, 1),)))
    >>> len(drawn.shapes) - 2, len(drawn.heads)  # the key below shows both kinds once more
    (2, 1)
    """
    layout = _laid_out(picture)
    panels = [(heading, part, _laid_out(part)) for heading, part in picture.panels()]
    header = 74.0
    wide = [
        2 * PAD
        + max(inside.placement.width, text_width(heading, LABEL), text_width(part.subtitle, SMALL))
        for heading, part, inside in panels
    ]
    inner = max(layout.placement.width, _key_width(picture), NARROWEST, *wide)
    drawn = Scene(
        width=inner + 2 * MARGIN,
        height=header + layout.placement.height + 62.0,
        title=picture.title,
        description=picture.subtitle,
    )
    left = MARGIN + 0.5 * (inner - layout.placement.width)
    _draw(drawn, picture, layout, (left, header))
    for (heading, part, inside), width in zip(panels, wide, strict=True):
        top, height = drawn.height - 36.0, inside.placement.height + 2 * PAD + 40.0
        drawn.panels.append(PanelFrame(MARGIN, top, width, height))
        x = MARGIN + PAD
        drawn.texts.append(SceneText(heading, x, top + 20, LABEL, "label", "start"))
        drawn.texts.append(SceneText(part.subtitle, x, top + 38, SMALL, "caption", "start"))
        _draw(drawn, part, inside, (x, top + PAD + 40.0))
        drawn.height += height + 18.0
    _frame(drawn, picture, inner)
    return drawn


@dataclass(frozen=True)
class _Layout:
    """Where the boxes of a picture are, each with the piece of arrow behind it."""

    placement: Placement
    pairs: list[tuple[DiagramBox, float]]
    horizontal: bool


def _laid_out(picture: Diagram) -> _Layout:
    """Place the boxes from left to right or, where that is too wide, downwards."""
    pairs = list(zip(picture.boxes, _tails(picture, True), strict=True))
    sizes = [_reserved(box, tail, True) for box, tail in pairs]
    ends = [(edge.source, edge.target) for edge in picture.edges]
    widest = max((text_width(edge.label, SMALL) for edge in picture.edges), default=0.0)
    lead = 14.0 + widest if widest else 12.0
    placement = place(sizes, ends, late=picture.late, layer_gap=40.0 + lead, lead=lead)
    if placement.width <= WIDEST:
        return _Layout(placement, pairs, True)
    pairs = list(zip(picture.boxes, _tails(picture, False), strict=True))
    sizes = [_reserved(box, tail, False) for box, tail in pairs]
    spacing = max(18.0, widest + 16)
    placement = place(
        sizes, ends, late=picture.late, horizontal=False, port_spacing=spacing, lead=22.0
    )
    return _Layout(placement, pairs, False)


def _draw(drawn: Scene, picture: Diagram, layout: _Layout, by: XY) -> None:
    """Draw the arrows and the boxes of a picture, moved."""
    placement = layout.placement
    _arrows(drawn, picture, placement, by, layout.horizontal)
    for (box, tail), (x, y), size in zip(
        layout.pairs, placement.centres, placement.sizes, strict=True
    ):
        fitted = _fitted(drawn, box, tail, (x + by[0], y + by[1]), size, layout.horizontal)
        _draw_box(drawn, box, *fitted)


def _fitted(
    drawn: Scene, box: DiagramBox, tail: float, centre: XY, size: XY, horizontal: bool
) -> tuple[XY, XY]:
    """Draw the piece of arrow that carries values; return the box's own centre and size."""
    if not tail:
        return centre, size
    x, y = centre
    own = _size(box)
    if horizontal:
        end = x + 0.5 * size[0]
        if box.kind is not BoxKind.OUTPUT:
            drawn.lines.append(_straight((end - tail, y), (end, y)))
        _numbers(drawn, box, (end - tail + 7, y - 0.5 * SMALL - 3, y + 0.5 * SMALL + 3))
        return (x - 0.5 * tail, y), (own[0], size[1])
    end = y + 0.5 * size[1]
    if box.kind is not BoxKind.OUTPUT:
        drawn.lines.append(_straight((x, end - PAIR), (x, end)))
    middle = end - 0.5 * PAIR
    _numbers(drawn, box, (x + 6, middle - 0.5 * SMALL - 1, middle + 0.5 * SMALL + 1))
    return (x, y - 0.5 * PAIR), (own[0], size[1] - PAIR)


def _numbers(drawn: Scene, box: DiagramBox, at: tuple[float, float, float]) -> None:
    """Write value and cotangent at their heights; values that are not finite are highlighted."""
    x, *heights = at
    for text, y, role in zip((box.value, box.bar), heights, ("value", "bar"), strict=True):
        if text:
            bad = "nan" in text or "inf" in text
            drawn.texts.append(SceneText(text, x, y, SMALL, "bad" if bad else role, "start"))


def _straight(start: XY, end: XY) -> ArrowLine:
    return ArrowLine(Curve(start, start, start, end, end, end), _thickness(1))


def _moved(curve: Curve, by: XY) -> Curve:
    return Curve(*((x + by[0], y + by[1]) for x, y in curve))


def _arrows(drawn: Scene, picture: Diagram, placement: Placement, by: XY, horizontal: bool) -> None:
    """Draw trunks, arrows, their heads and the marks of the arguments."""
    flow = [0] * len(picture.boxes)
    for edge in picture.edges:
        flow[edge.source] += edge.count - 1
    for owner, curve in placement.trunks:
        drawn.lines.append(ArrowLine(_moved(curve, by), _thickness(1 + flow[owner])))
    for arrow in placement.arrows:
        edge = picture.edges[arrow.edge]
        curve = _moved(arrow.curve, by)
        x, y = curve.end
        width = _thickness(edge.count)
        across = 3.6 + 0.5 * width
        if horizontal:
            base, label = x - 9, SceneText(edge.label, x - 12, y - 7, SMALL, "mark", "end")
            points = ((x, y), (base, y - across), (base, y + across))
            end = (base, y)
        else:
            base, label = y - 9, SceneText(edge.label, x + 5, y - 17, SMALL, "mark", "start")
            points = ((x, y), (x - across, base), (x + across, base))
            end = (x, base)
        drawn.lines.append(ArrowLine(curve._replace(end=end), width))
        drawn.heads.append(points)
        if edge.label:
            drawn.texts.append(label)
    drawn.dots += [(x + by[0], y + by[1]) for x, y in placement.junctions]


def _thickness(count: int) -> float:
    return 1.4 + 0.7 * log10(max(count, 1))


def _draw_box(drawn: Scene, box: DiagramBox, centre: XY, size: XY) -> None:
    (x, y), (width, height) = centre, size
    drawn.shapes.append(
        BoxShape(box.kind, x - 0.5 * width, y - 0.5 * height, width, height, box.tip, box.heat)
    )
    total = LINE * len(box.lines) + (15 if box.caption else 0)
    cursor = y - 0.5 * total + 0.5 * LINE
    for line in box.lines:
        drawn.texts.append(SceneText(line, x, cursor, LABEL, "label"))
        cursor += LINE
    if box.caption:
        drawn.texts.append(SceneText(box.caption, x, cursor - 3, SMALL, "caption"))


def _kinds(picture: Diagram) -> list[BoxKind]:
    pictures = [picture, *(part for _, part in picture.panels())]
    present = {box.kind for each in pictures for box in each.boxes}
    return [kind for kind in BoxKind if kind in present]


def _key_width(picture: Diagram) -> float:
    return sum(52 + text_width(NAMES[kind], SMALL) for kind in _kinds(picture))


def _frame(drawn: Scene, picture: Diagram, inner: float) -> None:
    """Write the title and the counts above the picture and the key of the shapes below it."""
    width = int(inner / (0.6 * TITLE))
    drawn.texts.append(
        SceneText(one_line(picture.title, width), MARGIN, 28, TITLE, "title", "start")
    )
    drawn.texts.append(SceneText(picture.subtitle, MARGIN, 50, 12.0, "caption", "start"))
    if picture.legend:
        drawn.height += 20
        drawn.texts.append(
            SceneText(picture.legend, MARGIN, drawn.height - 44, SMALL, "caption", "start")
        )
    x, y = MARGIN, drawn.height - 22
    for kind in _kinds(picture):
        drawn.shapes.append(BoxShape(kind, x, y - 7, 24, 14))
        drawn.texts.append(SceneText(NAMES[kind], x + 31, y, SMALL, "caption", "start"))
        x += 52 + text_width(NAMES[kind], SMALL)

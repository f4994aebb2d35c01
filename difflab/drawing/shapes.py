"""What a scene consists of: outlines of boxes, lines, arrow heads, frames and texts, in pixels."""

from __future__ import annotations

from dataclasses import dataclass, field

from difflab.drawing.layout import XY, Curve
from difflab.drawing.model import BoxKind

__all__ = [
    "ArrowLine",
    "BoxShape",
    "Dot",
    "Head",
    "Outline",
    "PanelFrame",
    "Scene",
    "SceneText",
    "outlines",
]


@dataclass(frozen=True)
class BoxShape:
    """The rectangle and the kind of a box, from which its outline follows."""

    kind: BoxKind
    x: float
    y: float
    width: float
    height: float
    tip: str = ""


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
class Head:
    """The head of an arrow: a triangle."""

    points: tuple[XY, XY, XY]


@dataclass(frozen=True)
class Dot:
    """A point at which the arrows of one node branch."""

    centre: XY


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
    """Everything that is drawn, back to front."""

    width: float
    height: float
    title: str
    description: str
    lines: list[ArrowLine] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    shapes: list[BoxShape] = field(default_factory=list)
    texts: list[SceneText] = field(default_factory=list)
    panels: list[PanelFrame] = field(default_factory=list)

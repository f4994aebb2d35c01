"""Pictures of graphs: SVG and PNG without Graphviz, DOT and Mermaid as text.

`diagram` turns a function into boxes and arrows (a large graph into a summary of some
dozens), and a writer draws them. A `Drawing` has all formats.
"""

from __future__ import annotations

from difflab.drawing.compositions import ALL, openable, opened
from difflab.drawing.diagram import diagram
from difflab.drawing.markup import ENDINGS, WRITERS, Drawing, dot, mermaid
from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge
from difflab.drawing.png import png
from difflab.drawing.svg import svg

__all__ = [
    "ALL",
    "ENDINGS",
    "WRITERS",
    "BoxKind",
    "Diagram",
    "DiagramBox",
    "DiagramEdge",
    "Drawing",
    "diagram",
    "dot",
    "mermaid",
    "openable",
    "opened",
    "png",
    "svg",
]

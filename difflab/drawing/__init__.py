"""Pictures of graphs: SVG and PNG without Graphviz, DOT and Mermaid as text.

`diagram` turns a function into boxes and arrows (a large graph into a summary of some
dozens), and a writer draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from difflab.drawing.diagram import diagram
from difflab.drawing.dot import dot
from difflab.drawing.mermaid import mermaid
from difflab.drawing.model import Box, BoxKind, Diagram, DiagramEdge
from difflab.drawing.png import png
from difflab.drawing.svg import svg

__all__ = [
    "WRITERS",
    "Box",
    "BoxKind",
    "Diagram",
    "DiagramEdge",
    "diagram",
    "dot",
    "mermaid",
    "png",
    "svg",
]

WRITERS: Mapping[str, Callable[[Diagram], str | bytes]] = MappingProxyType(
    {"svg": svg, "png": png, "dot": dot, "mermaid": mermaid}
)

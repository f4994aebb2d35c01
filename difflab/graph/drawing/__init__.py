"""Pictures of graphs: SVG and PNG without Graphviz, DOT and Mermaid as text.

`diagram` turns a function into boxes and arrows (a large graph into a summary of some
dozens), and a writer draws them. May import `difflab.graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from difflab.graph.drawing.diagram import diagram
from difflab.graph.drawing.dot import dot
from difflab.graph.drawing.mermaid import mermaid
from difflab.graph.drawing.model import Box, Diagram, Edge, Kind
from difflab.graph.drawing.png import png
from difflab.graph.drawing.svg import svg

__all__ = ["WRITERS", "Box", "Diagram", "Edge", "Kind", "diagram", "dot", "mermaid", "png", "svg"]

WRITERS: Mapping[str, Callable[[Diagram], str | bytes]] = MappingProxyType(
    {"svg": svg, "png": png, "dot": dot, "mermaid": mermaid}
)

"""Pictures of graphs: SVG and PNG without Graphviz, DOT and Mermaid as text.

`diagram` turns a function into boxes and arrows (a large graph into a summary of some
dozens), and a writer draws them. A `Drawing` has all formats.
"""

from __future__ import annotations

from difflab.drawing.compositions import ALL as ALL
from difflab.drawing.compositions import openable as openable
from difflab.drawing.compositions import opened as opened
from difflab.drawing.diagram import diagram as diagram
from difflab.drawing.markup import ENDINGS as ENDINGS
from difflab.drawing.markup import WRITERS as WRITERS
from difflab.drawing.markup import Drawing as Drawing
from difflab.drawing.markup import dot as dot
from difflab.drawing.markup import mermaid as mermaid
from difflab.drawing.model import BoxKind as BoxKind
from difflab.drawing.model import Diagram as Diagram
from difflab.drawing.model import DiagramBox as DiagramBox
from difflab.drawing.model import DiagramEdge as DiagramEdge
from difflab.drawing.png import png as png
from difflab.drawing.svg import svg as svg

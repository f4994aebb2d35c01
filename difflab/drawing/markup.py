"""`Drawing`: a picture of a graph in every format, among them DOT, Graphviz's, and Mermaid."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log10
from pathlib import Path
from types import MappingProxyType

from difflab.core.system import write_whole
from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge, carried
from difflab.drawing.png import png
from difflab.drawing.svg import HEAT_LINE, LIGHT, svg
from difflab.errors import InputError, printable

DOT_SHAPES = {
    BoxKind.INPUT: 'shape=box, style="rounded,filled"',
    BoxKind.CONSTANT: 'shape=box, style="dashed,filled"',
    BoxKind.OPERATION: 'shape=ellipse, style="filled"',
    BoxKind.MOVE: 'shape=box, style="rounded,filled"',
    BoxKind.OUTPUT: 'shape=box, style="rounded,filled", peripheries=2',
    BoxKind.COARSE: 'shape=component, style="filled"',
    BoxKind.SUMMARY: 'shape=box3d, style="filled"',
}


def dot(picture: Diagram) -> str:
    r"""Return a diagram as a DOT digraph.

    Parameters
    ----------
    picture : Diagram

    Returns
    -------
    str

    Examples
    --------
    >>> print(dot(Diagram('say "x"', "", (DiagramBox(BoxKind.INPUT, ("x",)),), ())).splitlines()[1])
      label="say \"x\"\n";
    """
    lines = [
        "digraph difflab {",
        f"  label={_quoted(picture.title, picture.subtitle)};",
        '  labelloc=t; rankdir=LR; fontname="Helvetica"; bgcolor="white";',
        '  node [fontname="Helvetica", penwidth=1.4];',
        f'  edge [fontname="Helvetica", fontsize=10, color="{LIGHT["line"]}"];',
        *picture.lines("n", _dot_node, _dot_edge),
    ]
    for number, (heading, part) in enumerate(picture.panels(), 1):
        lines += [
            f"  subgraph cluster_{number} {{",
            f"  label={_quoted(heading, part.subtitle)};",
            f'  style="dashed,rounded"; color="{LIGHT["coarse line"]}";',
            *part.lines(f"p{number}n", _dot_node, _dot_edge),
            "  }",
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*lines: str) -> str:
    """Return lines as one DOT string; nothing in them can end it or act as an escape."""
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _dot_node(name: str, box: DiagramBox) -> str:
    label = _quoted(*box.lines, *([box.caption] if box.caption else []))
    fill, stroke = LIGHT[box.kind], LIGHT[f"{box.kind} line"]
    tip = f", tooltip={_quoted(box.tip)}" if box.tip else ""
    colors = f'fillcolor="{fill}", color="{stroke}"'
    if box.heat:
        colors = (
            f'fillcolor="{fill}", color="{LIGHT["bad"]}", penwidth={1.4 + HEAT_LINE * box.heat:.1f}'
        )
    return f"  {name} [label={label}, {DOT_SHAPES[box.kind]}, {colors}{tip}];"


def _dot_edge(edge: DiagramEdge, source: DiagramBox, stem: str) -> str:
    label = [line for line in (edge.label, *carried(source)) if line]
    mark = f"label={_quoted(*label)}, " if label else ""
    width = 1.0 + 0.5 * log10(max(edge.count, 1))
    return f"  {stem}{edge.source} -> {stem}{edge.target} [{mark}penwidth={width:.2f}];"


MERMAID_SHAPES = {
    BoxKind.INPUT: '(["{}"])',
    BoxKind.CONSTANT: '["{}"]',
    BoxKind.OPERATION: '("{}")',
    BoxKind.MOVE: '("{}")',
    BoxKind.OUTPUT: '((("{}")))',
    BoxKind.COARSE: '[/"{}"/]',
    BoxKind.SUMMARY: '[["{}"]]',
}


def mermaid(picture: Diagram) -> str:
    """Return a diagram as a Mermaid flow chart.

    Parameters
    ----------
    picture : Diagram

    Returns
    -------
    str

    Examples
    --------
    >>> print(mermaid(Diagram("x", "", (DiagramBox(BoxKind.INPUT, ("<x>",)),), ())).splitlines()[4])
        n0(["#60;x#62;"]):::input
    """
    lines = [
        "---",
        f"title: {json.dumps(printable(picture.title), ensure_ascii=False)}",
        "---",
        "flowchart LR",
        *picture.lines("n", _mermaid_node, _mermaid_edge),
    ]
    panels = picture.panels()
    for number, (heading, part) in enumerate(panels, 1):
        lines += [
            f'    subgraph p{number}["{_escaped(heading)}"]',
            *part.lines(f"p{number}n", _mermaid_node, _mermaid_edge),
        ]
        lines.append("    end")
    boxes = [box for each in (picture, *(part for _, part in panels)) for box in each.boxes]
    for kind in sorted({box.kind for box in boxes}):
        fill, stroke, ink = LIGHT[kind], LIGHT[f"{kind} line"], LIGHT["ink"]
        dashes = ",stroke-dasharray:4 3" if kind is BoxKind.CONSTANT else ""
        lines.append(f"    classDef {kind} fill:{fill},stroke:{stroke},color:{ink}{dashes}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return text with every sign as a character code: Mermaid reads Markdown and HTML."""
    return "".join(
        character if character.isalnum() or character == " " or not character.isascii()
        else f"#{ord(character)};"
        for character in printable(text)
    )  # fmt: skip


def _mermaid_node(name: str, box: DiagramBox) -> str:
    lines = [*box.lines, *([box.caption] if box.caption else [])]
    label = "<br/>".join(_escaped(line) for line in lines)
    node = f"    {name}{MERMAID_SHAPES[box.kind].format(label)}:::{box.kind}"
    if not box.heat:
        return node
    width = 1.4 + HEAT_LINE * box.heat
    return f"{node}\n    style {name} stroke:{LIGHT['bad']},stroke-width:{width:.1f}px"


def _mermaid_edge(edge: DiagramEdge, source: DiagramBox, stem: str) -> str:
    label = [_escaped(line) for line in (edge.label, *carried(source)) if line]
    mark = f'|"{"<br/>".join(label)}"|' if label else ""
    arrow = "==>" if edge.count > 1 else "-->"
    return f"    {stem}{edge.source} {arrow}{mark} {stem}{edge.target}"


WRITERS: Mapping[str, Callable[[Diagram], str | bytes]] = MappingProxyType(
    {"svg": svg, "png": png, "dot": dot, "mermaid": mermaid}
)
ENDINGS: Mapping[str, str] = MappingProxyType(
    {
        ".svg": "svg",
        ".png": "png",
        ".dot": "dot",
        ".gv": "dot",
        ".mmd": "mermaid",
        ".mermaid": "mermaid",
    }
)
"""The format of a file, by the ending of its name."""


@dataclass(frozen=True, eq=False, repr=False)
class Drawing:
    """The picture of a graph, which shows itself in a notebook.

    Attributes
    ----------
    diagram : Diagram
        Its boxes and arrows.

    Examples
    --------
    >>> import difflab as dl
    >>> drawing = dl.parse("x*y").draw()
    >>> drawing.dot().splitlines()[0]
    'digraph difflab {'
    >>> drawing.svg().startswith("<svg")
    True
    """

    diagram: Diagram

    def svg(self) -> str:
        """Return an SVG document."""
        return svg(self.diagram)

    def png(self) -> bytes:
        """Return a PNG file."""
        return png(self.diagram)

    def dot(self) -> str:
        """Return text in DOT, the language of Graphviz."""
        return dot(self.diagram)

    def mermaid(self) -> str:
        """Return a Mermaid flow chart, which code hosts draw inside Markdown."""
        return mermaid(self.diagram)

    def save(self, path: str | Path) -> None:
        """Write a file in the format of its ending: .svg, .png, .dot, .gv, .mmd or .mermaid.

        Raises
        ------
        InputError
            The name has another ending, or the file cannot be written.
        """
        path = Path(path)
        form = ENDINGS.get(path.suffix.lower())
        if form is None:
            raise InputError(
                f"cannot tell the format of the picture from {str(path)!r}",
                hint=f"end the name in {', '.join(ENDINGS)}",
            )
        content = WRITERS[form](self.diagram)
        write_whole({path: content.encode() if isinstance(content, str) else content})

    def _repr_svg_(self) -> str:
        """Return the picture that notebooks display."""
        return self.svg()

    def __repr__(self) -> str:
        of = f" of {self.diagram.title}" if self.diagram.title else ""
        return f"<drawing{of}: {self.diagram.subtitle}>"

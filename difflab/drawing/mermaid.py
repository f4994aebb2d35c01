"""A diagram as Mermaid text, which code hosts and notebooks draw inside Markdown."""

from __future__ import annotations

import json

from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge, carried
from difflab.drawing.svg import LIGHT
from difflab.errors import printable

__all__ = ["mermaid"]

SHAPES = {
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
        *picture.lines("n", _node, _edge),
    ]
    panels = picture.panels()
    for number, (heading, part) in enumerate(panels, 1):
        lines += [
            f'    subgraph p{number}["{_escaped(heading)}"]',
            *part.lines(f"p{number}n", _node, _edge),
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


def _node(name: str, box: DiagramBox) -> str:
    lines = [*box.lines, *([box.caption] if box.caption else [])]
    label = "<br/>".join(_escaped(line) for line in lines)
    return f"    {name}{SHAPES[box.kind].format(label)}:::{box.kind}"


def _edge(edge: DiagramEdge, source: DiagramBox, stem: str) -> str:
    label = [_escaped(line) for line in (edge.label, *carried(source)) if line]
    mark = f'|"{"<br/>".join(label)}"|' if label else ""
    arrow = "==>" if edge.count > 1 else "-->"
    return f"    {stem}{edge.source} {arrow}{mark} {stem}{edge.target}"

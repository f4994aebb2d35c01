"""A diagram as DOT, the language of Graphviz."""

from __future__ import annotations

from math import log10

from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge, carried
from difflab.drawing.svg import LIGHT
from difflab.errors import printable

__all__ = ["dot"]

SHAPES = {
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
        *picture.lines("n", _node, _edge),
    ]
    for number, (heading, part) in enumerate(picture.panels(), 1):
        lines += [
            f"  subgraph cluster_{number} {{",
            f"  label={_quoted(heading, part.subtitle)};",
            f'  style="dashed,rounded"; color="{LIGHT["coarse line"]}";',
            *part.lines(f"p{number}n", _node, _edge),
            "  }",
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*lines: str) -> str:
    """Return lines as one DOT string; nothing in them can end it or act as an escape."""
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _node(name: str, box: DiagramBox) -> str:
    label = _quoted(*box.lines, *([box.caption] if box.caption else []))
    fill, stroke = LIGHT[box.kind], LIGHT[f"{box.kind} line"]
    tip = f", tooltip={_quoted(box.tip)}" if box.tip else ""
    return (
        f'  {name} [label={label}, {SHAPES[box.kind]}, fillcolor="{fill}", color="{stroke}"{tip}];'
    )


def _edge(edge: DiagramEdge, source: DiagramBox, stem: str) -> str:
    label = [line for line in (edge.label, *carried(source)) if line]
    mark = f"label={_quoted(*label)}, " if label else ""
    width = 1.0 + 0.5 * log10(max(edge.count, 1))
    return f"  {stem}{edge.source} -> {stem}{edge.target} [{mark}penwidth={width:.2f}];"

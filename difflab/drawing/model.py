"""Content of a picture of a graph, without coordinates and colours.

Every writer (SVG, PNG, DOT, Mermaid) draws this and nothing else, so all pictures of a
function agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from difflab.core.wording import joined
from difflab.errors import printable


class BoxKind(StrEnum):
    """Role of a box; every kind has its own shape and colour."""

    INPUT = "input"
    CONSTANT = "constant"
    OPERATION = "operation"
    MOVE = "move"
    OUTPUT = "output"
    COARSE = "coarse"
    SUMMARY = "summary"


@dataclass(frozen=True)
class DiagramBox:
    """One box: a node of the graph, an output, or a summary of many nodes.

    Attributes
    ----------
    kind : BoxKind
    lines : tuple of str
        The text in it.
    caption : str
        Small print below: the name in the evaluation trace, the value.
    tip : str
        The tooltip.
    value, bar : str
        Texts on the arrows that leave it: its value and its cotangent.
    nodes : tuple of int
        The nodes of the graph that it stands for; none for an output.
    heat : float
        How strongly it is marked, from 0 to 1: a wash of colour and a thicker line.
    """

    kind: BoxKind
    lines: tuple[str, ...]
    caption: str = ""
    tip: str = ""
    value: str = ""
    bar: str = ""
    nodes: tuple[int, ...] = ()
    heat: float = 0.0


@dataclass(frozen=True)
class DiagramEdge:
    """An arrow between two boxes, `source` < `target`; it stands for `count` uses.

    `label` is the position of the argument, where exchanging arguments changes the result.
    """

    source: int
    target: int
    label: str = ""
    count: int = 1


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows with a title; `late` boxes are drawn just before their first use.

    `legend` explains the numbers at the arrows. `parts` are the functions inside its operations,
    each with a heading.
    """

    title: str
    subtitle: str
    boxes: tuple[DiagramBox, ...]
    edges: tuple[DiagramEdge, ...]
    late: tuple[int, ...] = ()
    legend: str = ""
    parts: tuple[tuple[str, Diagram], ...] = ()

    def lines(
        self,
        stem: str,
        node: Callable[[str, DiagramBox], str],
        edge: Callable[[DiagramEdge, DiagramBox, str], str],
    ) -> list[str]:
        """Return the lines of boxes and arrows in a language; names of boxes begin with `stem`."""
        return [
            *(node(f"{stem}{number}", box) for number, box in enumerate(self.boxes)),
            *(edge(each, self.boxes[each.source], stem) for each in self.edges),
        ]

    def panels(self) -> list[tuple[str, Diagram]]:
        """Return the opened functions and those opened inside them, in reading order."""
        panels: list[tuple[str, Diagram]] = []
        pending = list(reversed(self.parts))
        while pending:
            heading, part = pending.pop()
            panels.append((heading, part))
            role = heading.partition(",")[0]
            pending += [(f"{role} › {inner}", below) for inner, below in reversed(part.parts)]
        return panels


def carried(box: DiagramBox) -> list[str]:
    """Return the values on an arrow from `box`, as lines of text beside it."""
    lines = [f"v = {box.value}"] if box.value else []
    return lines + ([f"v̄ = {box.bar}"] if box.bar else [])


def one_line(text: str, width: int = 200) -> str:
    r"""Return `text` on one line of at most `width` characters, controls shown as escapes.

    Examples
    --------
    >>> one_line("a = 1\n a*x")
    'a = 1; a*x'
    >>> one_line("abcdefgh", 5)
    'abcd…'
    """
    line = printable(joined(text[: 4 * width + 100]))
    return line if len(line) <= width else line[: width - 1] + "…"

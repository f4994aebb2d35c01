"""`Drawing`: a picture of a graph, in every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from difflab.core.files import write_whole
from difflab.drawing.markup import dot, mermaid
from difflab.drawing.model import Diagram
from difflab.drawing.png import png
from difflab.drawing.svg import svg
from difflab.errors import InputError

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

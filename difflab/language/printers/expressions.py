"""The common part of all printers: expressions from the forms of the primitives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from difflab.core.primitive import Primitive
from difflab.language.printers.forms import ANYTHING, ATOM, NEGATIVE, TemplateForm
from difflab.language.printers.view import PrintedGraph
from difflab.language.printers.writer import Part, write

__all__ = ["ExpressionPrinter"]


class ExpressionPrinter(ABC):
    """Printer of the expressions of one graph in one notation.

    Parameters
    ----------
    view : PrintedGraph
        The graph to print.

    Attributes
    ----------
    names : dict of int to str
        The nodes that are written as a name.
    """

    brackets = ("(", ")")

    def __init__(self, view: PrintedGraph) -> None:
        self.view = view
        self.graph = view.graph
        self.names: dict[int, str] = {}

    @abstractmethod
    def form(self, row: Primitive) -> TemplateForm:
        """Return the printed form of a primitive."""

    @abstractmethod
    def number(self, value: float, name: str | None) -> str:
        """Return a constant."""

    def expression(self, node: int) -> str:
        """Return the expression of a node."""
        return write([(node, ANYTHING)], self.names, self.describe, self.brackets)

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        """Return the parts and the precedence of a node."""
        row = self.view.rows[node]
        if row is None:
            written = self.number(*self.graph.constants[node])
            return [written], NEGATIVE if written.startswith("-") else ATOM
        form = self.form(row)
        children = self.view.children[node]
        return [p if isinstance(p, str) else (children[p[0]], p[1]) for p in form.parts], form.level

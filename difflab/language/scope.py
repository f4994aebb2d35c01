"""The names of a program: the node of each, and which may be assigned a value."""

from __future__ import annotations

import math

from difflab.errors import ParseError
from difflab.graph.builder import Builder
from difflab.graph.rewrite import label
from difflab.language.complaints import TextSpan, reserved, shown
from difflab.language.lexer import clean_name
from difflab.primitives import by_spelling

__all__ = ["CONSTANTS", "KEYWORDS", "Scope"]

CONSTANTS = {"pi": ("pi", math.pi), "π": ("pi", math.pi), "e": ("e", math.e)}
KEYWORDS = frozenset({"and", "or", "not"})


class Scope:
    """Map from names to nodes, filled as the program is read.

    Parameters
    ----------
    text : str
        The program.
    builder : Builder
        The builder that creates inputs and constants.

    Attributes
    ----------
    spellings : dict of str to int
        Nodes by the name *as written*, so that a repeated name costs one look-up.
    nodes : dict of str to int
        Nodes of inputs and variables by their names.
    """

    __slots__ = ("_assigned", "_first", "builder", "nodes", "spellings", "text")

    def __init__(self, text: str, builder: Builder) -> None:
        self.text = text
        self.builder = builder
        self.spellings: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self._assigned: set[str] = set()
        self._first: dict[str, TextSpan] = {}

    def resolve(self, name: str, span: TextSpan, target: str | None) -> int:
        """Return the node of `name`; create an input if the name is new."""
        node = self.nodes.get(name)
        if node is None:
            if name in CONSTANTS:
                known, value = CONSTANTS[name]
                node = self.builder.constant(value, known, span)
            elif name == target:
                message = f"'{shown(name)}' is defined in terms of itself"
                raise ParseError(message, text=self.text, span=span)
            else:
                node = self.nodes[name] = self.builder.input(name, (), span)
                self._first[name] = span
        self.spellings[self.text[slice(*span)]] = node
        return node

    def declare(self, span: TextSpan, shape: tuple[int, ...]) -> None:
        """Create the input named at `span`, of the given shape."""
        name = self.new_name(span)
        self.nodes[name] = self.builder.input(name, shape, span)
        self._first[name] = span
        self._assigned.add(name)

    def assign(self, span: TextSpan, node: int) -> None:
        """Assign `node` to the name at `span`."""
        name = clean_name(self.text, *span)
        self.nodes[name] = self.spellings[self.text[slice(*span)]] = node
        label(self.builder, node, name)
        self._assigned.add(name)

    def new_name(self, span: TextSpan) -> str:
        """Return the name at `span`, checked to be free.

        Raises
        ------
        ParseError
            If it is reserved, defined before, or used before.
        """
        name = clean_name(self.text, *span)
        if name in CONSTANTS:
            _, value = CONSTANTS[name]
            raise reserved(self.text, span, name, f"the constant {value:.6g}…")
        if name in by_spelling:
            raise reserved(self.text, span, name, "a function")
        if name in self._assigned:
            message = f"'{shown(name)}' is defined twice"
            hint = "use a new name for the new value"
            raise ParseError(message, text=self.text, span=span, hint=hint)
        if name in self.nodes:
            message = f"'{shown(name)}' is used before it is defined"
            hint = f"move the line that defines '{shown(name)}' up"
            raise ParseError(message, text=self.text, span=self._first[name], hint=hint)
        return name

    def variable(self, span: TextSpan, node: int) -> str | None:
        """Return the name if the text at `span` is exactly an input or a variable, else None."""
        written = self.text[slice(*span)]
        if self.spellings.get(written) != node:
            return None
        name = clean_name(self.text, *span)
        return name if name in self.nodes else None

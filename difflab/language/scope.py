"""The names of a program: the node of each, and which may be assigned a value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from difflab.errors import ParseError
from difflab.graph.builder import Builder
from difflab.graph.rewrite import label
from difflab.language.calls import CALLS, CLAUSED
from difflab.language.complaints import TextSpan, reserved, shown
from difflab.language.lexer import clean_name
from difflab.primitives import by_spelling

CONSTANTS = {"pi": ("pi", math.pi), "π": ("pi", math.pi), "e": ("e", math.e)}
KEYWORDS = frozenset({"and", "or", "not"})
RESERVED = frozenset({*CONSTANTS, *(name for name, row in by_spelling.items() if row.reserved)})
"""The names of constants and functions that are variables only if they are declared or given."""
_FUNCTIONS = frozenset({*by_spelling, *CALLS, *(call.name for call in CLAUSED)})


def given_names(*points: object) -> list[str]:
    """Return the names to which points give values; none for points that are no mappings.

    Examples
    --------
    >>> given_names({"e": 1.6e-19}, None, {"x": (0, 1)})
    ['e', 'x']
    """
    return [
        name
        for point in points
        if isinstance(point, Mapping)
        for name in point
        if isinstance(name, str)
    ]


class Scope:
    """Map from names to nodes, filled as the program is read.

    Parameters
    ----------
    text : str
        The program.
    builder : Builder
        The builder that creates inputs and constants.
    variables : iterable of str
        Names that are variables although the language reserves them.

    Attributes
    ----------
    spellings : dict of str to int
        Nodes by the name *as written*, so that a repeated name costs one look-up. Not those of
        variables named like a function, which means the function where it is called.
    nodes : dict of str to int
        Nodes of inputs and variables by their names.
    variables : set of str
        The reserved names that are variables here.
    undeclared : list of str
        Those that were used without a declaration, in the order of their first use.
    """

    __slots__ = (
        "_assigned",
        "_first",
        "_hiding",
        "builder",
        "nodes",
        "spellings",
        "text",
        "undeclared",
        "variables",
    )

    def __init__(self, text: str, builder: Builder, variables: Iterable[str] = ()) -> None:
        self.text = text
        self.builder = builder
        self.spellings: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self.variables: set[str] = {*variables} & RESERVED
        self.undeclared: list[str] = []
        self._assigned: set[str] = set()
        self._first: dict[str, TextSpan] = {}
        self._hiding: dict[str, int] = {}

    def constant(self, name: str) -> bool:
        """Return whether a name is a constant here."""
        return name in CONSTANTS and name not in self.variables

    def resolve(self, name: str, span: TextSpan, target: str | None) -> int:
        """Return the node of `name`; create an input if the name is new."""
        node = self.nodes.get(name)
        if node is None:
            if self.constant(name):
                known, value = CONSTANTS[name]
                node = self.builder.constant(value, known, span)
                self.constant_used(name, span)
            elif name == target:
                message = f"'{shown(name)}' is defined in terms of itself"
                raise ParseError(message, text=self.text, span=span)
            else:
                node = self.nodes[name] = self.builder.input(name, (), span)
                self._first[name] = span
                if name in self.variables:
                    self.undeclared.append(name)
        self._spelled(name, span, node)
        return node

    def _spelled(self, name: str, span: TextSpan, node: int) -> None:
        """Keep the node of a name as written."""
        known = self._hiding if name in _FUNCTIONS else self.spellings
        known[self.text[slice(*span)]] = node

    def constant_used(self, name: str, span: TextSpan) -> None:
        """Keep where a constant is used first."""
        self._first.setdefault(name, span)

    def declare(self, span: TextSpan, shape: tuple[int, ...], *, hides: bool = False) -> None:
        """Create the input named at `span`, of the given shape; `hides`: also a reserved name."""
        name = self.new_name(span, hides=hides)
        if name in RESERVED:
            self.variables.add(name)
        self.nodes[name] = self.builder.input(name, shape, span)
        self._first[name] = span
        self._assigned.add(name)

    def assign(self, span: TextSpan, node: int) -> None:
        """Assign `node` to the name at `span`."""
        name = clean_name(self.text, *span)
        self.nodes[name] = node
        self._spelled(name, span, node)
        label(self.builder, node, name)
        self._assigned.add(name)

    def new_name(self, span: TextSpan, *, hides: bool = False) -> str:
        """Return the name at `span`, checked to be free, or reserved if it `hides` a meaning.

        Raises
        ------
        ParseError
            If it is reserved, defined before, or used before.
        """
        name = clean_name(self.text, *span)
        if name in RESERVED and not hides:
            _, value = CONSTANTS.get(name, (name, None))
            what = "a function" if value is None else f"the constant {value:.6g}…"
            raise reserved(self.text, span, name, what)
        if name in self._assigned:
            message = f"'{shown(name)}' is defined twice"
            hint = "use a new name for the new value"
            raise ParseError(message, text=self.text, span=span, hint=hint)
        if name in self.nodes or (name in self._first and self.constant(name)):
            message = f"'{shown(name)}' is used before it is defined"
            hint = f"move the line that defines '{shown(name)}' up"
            raise ParseError(message, text=self.text, span=self._first[name], hint=hint)
        return name

    def variable(self, span: TextSpan, node: int) -> str | None:
        """Return the name if the text at `span` is exactly an input or a variable, else None."""
        written = self.text[slice(*span)]
        if self.spellings.get(written, self._hiding.get(written)) != node:
            return None
        name = clean_name(self.text, *span)
        return name if name in self.nodes else None

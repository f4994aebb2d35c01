"""A loop that is being read: its clauses, its names and its values so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from difflab.graph.builder import Builder
from difflab.language.complaints import TextSpan
from difflab.language.scope import Scope

__all__ = ["Clause", "LoopScope", "OpenLoop"]


class Clause(Enum):
    """What is being read."""

    BINDINGS = "the first values"
    WHILE = "the condition"
    DEFINITION = "a definition"
    VALUES = "the next values"
    COTANGENTS = "the cotangents of the last values"


class LoopScope(Scope):
    """Names of a step: its own, and those around it, which become constants of the loop."""

    __slots__ = ("around", "captured", "target")

    def __init__(self, text: str, builder: Builder, around: Scope, target: str | None) -> None:
        super().__init__(text, builder, around.variables)
        self.around = around
        self.target = target
        self.captured: dict[int, int] = {}

    def resolve(self, name: str, span: TextSpan, target: str | None) -> int:
        """Return the node of `name`; a name of the program around it becomes an input."""
        if name not in self.nodes and not self.constant(name) and name != target:
            outer = self.around.resolve(name, span, self.target)
            node = self.builder.input(name, self.around.builder.shape(outer), span)
            self.nodes[name], self._first[name] = node, span
            self.captured[node] = outer
        return super().resolve(name, span, target)

    def constant_used(self, name: str, span: TextSpan) -> None:
        """Keep it in the text around the loop, too."""
        super().constant_used(name, span)
        self.around.constant_used(name, span)


@dataclass
class OpenLoop:
    """A loop that is being read.

    Attributes
    ----------
    start : int
        Where the call begins.
    names, looped, firsts : list
        Of each binding its name, whether it goes over an array, and its first value or array.
    around : tuple
        The state of the parser outside.
    """

    start: int
    clause: Clause = Clause.BINDINGS
    names: list[TextSpan] = field(default_factory=list)
    looped: list[bool] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    around: tuple[Builder, Scope, dict[str, int], dict[str, int], str | None] | None = None
    steps: int | None = None
    test: int | None = None
    reverse: bool = False
    at_head: bool = True
    defined: TextSpan = (0, 0)

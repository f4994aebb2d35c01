"""What a rule of stabilisation is: what it finds, what it writes, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.node import Node
from difflab.stabilisation.matching import GraphPattern

__all__ = ["Rule"]

NodeFunction = Callable[..., Node]


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite.

    Attributes
    ----------
    plain, stable : str
        What it finds and what it writes, for people.
    why : str
        What goes wrong with the plain form.
    example : str
        A program of the language to which it applies.
    danger : mapping of str to float or list
        A point where the example's plain form, or its derivative, is wrong.
    pattern, replacement : callable or None
        The same for the machine, with the same parameters; None where a function of
        `stabilise` does it.
    rows : tuple of Primitive
        The operations at which a rule without a pattern looks.
    """

    plain: str
    stable: str
    why: str
    example: str
    danger: Mapping[str, Any]
    pattern: NodeFunction | None = None
    replacement: NodeFunction | None = None
    rows: tuple[Primitive, ...] = ()

    @property
    def name(self) -> str:
        """The rule in one line."""
        return f"{self.plain} → {self.stable}"

    @cached_property
    def compiled(self) -> GraphPattern | None:
        """The pattern as a graph."""
        return None if self.pattern is None else GraphPattern(self.pattern)

    @property
    def roots(self) -> tuple[Primitive, ...]:
        """The operations at which the rule can apply."""
        return self.rows if self.compiled is None else self.compiled.rows

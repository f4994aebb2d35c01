"""A stabilisation rule: the pattern, the replacement, and the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.node import Node
from difflab.stabilisation.matching import GraphPattern

__all__ = ["NodeFunction", "Rule"]

NodeFunction = Callable[..., Node]


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite rule.

    Attributes
    ----------
    plain, stable : str
        The pattern and the replacement, as readable text.
    why : str
        What fails in the plain form.
    example : str
        A program of the language to which the rule applies.
    danger : mapping of str to float or list
        A point at which the plain form of `example`, or its derivative, is wrong.
    pattern, replacement : callable or None
        The pattern and the replacement as functions of the same parameters; None if the rule
        is implemented in `difflab.stabilisation.rewriting`.
    rows : tuple of Primitive
        The primitives to which a rule without a pattern can apply.
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
        """The primitives to which the rule can apply."""
        return self.rows if self.compiled is None else self.compiled.rows

"""A derivative rule recorded once and appended for every node that applies the primitive.

Calling a rule's map for each of a million nodes would take most of the time. A map is called
once, on placeholder inputs, and its operations are stored as steps over numbered slots: t, y,
the arguments, then the map's constants and results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.ir import Number
from difflab.graph.node import Node

__all__ = ["Template", "template"]


@dataclass(frozen=True, slots=True)
class Template:
    """The steps of one map ``(t, y, *args) -> t · ∂y/∂arg``."""

    constants: tuple[tuple[Number, str | None], ...]
    """Values and names."""
    steps: tuple[tuple[Primitive, tuple[int, ...]], ...]
    result: int
    taken: frozenset[int]
    """The slots that the result depends on, apart from t and the map's constants."""

    def stamp(self, builder: Builder, t: int, y: int, args: list[int]) -> int:
        """Append the steps for the cotangent or tangent `t` of node `y`; return the result."""
        slots = [t, y, *args, *(builder.constant(*pair) for pair in self.constants)]
        for primitive, operands in self.steps:
            slots.append(builder.emit(primitive, [slots[operand] for operand in operands]))
        return slots[self.result]


@cache
def template(rule_map: Callable[..., Any], arity: int) -> Template:
    """Record `rule_map` for a primitive of `arity` arguments."""
    builder = Builder()
    names = ("t", "y", *(f"a{position}" for position in range(arity)))
    slot_of = {builder.input(name): slot for slot, name in enumerate(names)}
    placeholders = [Node(builder, node) for node in slot_of]
    result = rule_map(*placeholders)
    numbers = []
    for node, pair in builder.constants.items():
        slot_of[node] = len(slot_of)
        numbers.append(pair)
    steps = []
    for node in range(len(builder)):
        row = builder.primitive(node)
        if row is not None:
            operands = tuple(slot_of[arg] for arg in builder.arguments(node))
            slot_of[node] = len(slot_of)
            steps.append((row, operands))
    found = {slot_of[node] for node in _below(builder, result.id)}
    return Template(
        tuple(numbers),
        tuple(steps),
        slot_of[result.id],
        frozenset(found & set(range(1, len(names)))),
    )


def _below(builder: Builder, node: int) -> set[int]:
    """Return a node and all nodes that it depends on."""
    found = {node}
    for below in range(node, -1, -1):
        if below in found:
            found.update(builder.arguments(below))
    return found

"""A tangent or cotangent together with the condition under which it counts.

Untaken branches contribute exactly zero. Where a primitive passes one of its arguments on
(`where`, `max`, …), what belongs to the others is not multiplied by zero, which would make
0 · ∞ = nan of a singular derivative beside it. It goes on unchanged together with its *mask*,
the condition under which it counts, and is replaced by zero where the mask does not hold once
it has arrived.

What a value is, is the writer's business: a graph's `Builder` writes nodes, the eager tensors'
writer computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from difflab.core.primitive import Primitive
from difflab.primitives import add, logical_and, logical_or, scatter, where

__all__ = ["DerivativeWriter", "Masked", "accumulate", "both", "either", "resolved"]

V = Any
"""A node's number in a graph, or a value."""


class DerivativeWriter(Protocol):
    """What derivatives are written with."""

    def emit(self, primitive: Primitive, args: Sequence[V], params: Any = ()) -> V:
        """Write an operation."""

    def constant(self, value: int) -> V:
        """Write a number."""

    def primitive(self, node: V) -> Primitive | None:
        """Return the row that `node` applies, `scatter` being the one that matters."""

    def arguments(self, node: V) -> tuple[V, ...]:
        """Return what a `scatter` scatters."""

    def params(self, node: V) -> dict[str, Any]:
        """Return where it goes."""

    def shape(self, node: V) -> tuple[int, ...]:
        """Return the shape of the array it goes to."""


class Masked(NamedTuple):
    """A derivative, and the mask under which it counts (None: always).

    A `clean` one is already zero where its mask does not hold. The mask goes along all the
    same, for the product with a singular slope that may follow.
    """

    value: V
    mask: V | None = None
    clean: bool = False


def resolved(writer: DerivativeWriter, part: Masked) -> V:
    """Return a derivative as a node that is zero where its mask does not hold."""
    if part.mask is None or part.clean:
        return part.value
    return writer.emit(where, (part.mask, part.value, writer.constant(0)))


def accumulate(writer: DerivativeWriter, parts: list[Masked]) -> Masked:
    """Add up what arrives at a node; contributions under one mask stay under it."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].mask
    if all(_same(part.mask, first) for part in parts):
        clean = all(part.clean for part in parts)
        return Masked(_sum(writer, [part.value for part in parts]), first, clean)
    total = _sum(writer, [resolved(writer, part) for part in parts])
    return Masked(total, either(writer, [part.mask for part in parts]), clean=True)


def both(writer: DerivativeWriter, mask: V | None, condition: V) -> V:
    """Return the mask of a branch inside a branch."""
    return condition if mask is None else writer.emit(logical_and, (mask, condition))


def either(writer: DerivativeWriter, masks: list[V | None]) -> V | None:
    """Return the mask of a sum: where any of its terms counts."""
    known = [mask for mask in masks if mask is not None]
    if len(known) < len(masks):
        return None
    union = known[0]
    for mask in known[1:]:
        union = writer.emit(logical_or, (union, mask))
    return union


def _same(mask: V | None, other: V | None) -> bool:
    """Whether two masks are one: the same node, or the same object."""
    return mask is other or (type(mask) is int and mask == other)


def _sum(writer: DerivativeWriter, terms: list[V]) -> V:
    """Add derivatives; those of parts of an array are gathered into one scatter."""
    whole = [term for term in terms if writer.primitive(term) is not scatter]
    if len(terms) - len(whole) > 1:
        scattered = [term for term in terms if writer.primitive(term) is scatter]
        terms = [*whole, _gathered(writer, scattered)]
    total = terms[0]
    for term in terms[1:]:
        total = writer.emit(add, (total, term))
    return total


def _gathered(writer: DerivativeWriter, terms: list[V]) -> V:
    """Merge scatters into arrays of one shape; parts with the same key are added first."""
    parts: dict[Any, V] = {}
    for term in terms:
        keys = writer.params(term)["keys"]
        for part, key in zip(writer.arguments(term), keys, strict=True):
            parts[key] = writer.emit(add, (parts[key], part)) if key in parts else part
    params = (("keys", tuple(parts)), ("shape", writer.shape(terms[0])))
    return writer.emit(scatter, tuple(parts.values()), params)

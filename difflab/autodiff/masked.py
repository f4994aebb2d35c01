"""A tangent or cotangent together with the condition under which it counts.

Untaken branches contribute exactly zero. Where a primitive passes one of its arguments on
(`where`, `max`, …), what belongs to the others is not multiplied by zero, which would make
0 · ∞ = nan of a singular derivative beside it. It goes on unchanged together with its *mask*,
the condition under which it counts, and is replaced by zero where the mask does not hold once
it has arrived. May import `graph`, `primitives`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from difflab.graph.builder import Builder
from difflab.primitives import add, logical_and, logical_or, scatter, where

__all__ = ["Masked", "accumulate", "both", "either", "resolved"]


class Masked(NamedTuple):
    """A derivative, and the mask under which it counts (None: always); both are nodes.

    A `clean` one is already zero where its mask does not hold. The mask goes along all the
    same, for the product with a singular slope that may follow.
    """

    value: int
    mask: int | None = None
    clean: bool = False


def resolved(builder: Builder, part: Masked) -> int:
    """Return a derivative as a node that is zero where its mask does not hold."""
    if part.mask is None or part.clean:
        return part.value
    return builder.emit(where, (part.mask, part.value, builder.constant(0)))


def accumulate(builder: Builder, parts: list[Masked]) -> Masked:
    """Add up what arrives at a node; contributions under one mask stay under it."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].mask
    if all(part.mask == first for part in parts):
        clean = all(part.clean for part in parts)
        return Masked(_sum(builder, [part.value for part in parts]), first, clean)
    total = _sum(builder, [resolved(builder, part) for part in parts])
    return Masked(total, either(builder, [part.mask for part in parts]), clean=True)


def both(builder: Builder, mask: int | None, condition: int) -> int:
    """Return the mask of a branch inside a branch."""
    return condition if mask is None else builder.emit(logical_and, (mask, condition))


def either(builder: Builder, masks: list[int | None]) -> int | None:
    """Return the mask of a sum: where any of its terms counts."""
    known = [mask for mask in masks if mask is not None]
    if len(known) < len(masks):
        return None
    union = known[0]
    for mask in known[1:]:
        union = builder.emit(logical_or, (union, mask))
    return union


def _sum(builder: Builder, terms: list[int]) -> int:
    """Add derivatives; those of parts of an array are gathered into one scatter."""
    whole = [term for term in terms if builder.primitive(term) is not scatter]
    if len(terms) - len(whole) > 1:
        scattered = [term for term in terms if builder.primitive(term) is scatter]
        terms = [*whole, _gathered(builder, scattered)]
    total = terms[0]
    for term in terms[1:]:
        total = builder.emit(add, (total, term))
    return total


def _gathered(builder: Builder, terms: list[int]) -> int:
    """Merge scatters into arrays of one shape; parts with the same key are added first."""
    parts: dict[Any, int] = {}
    for term in terms:
        keys = builder.params(term)["keys"]
        for part, key in zip(builder.arguments(term), keys, strict=True):
            parts[key] = builder.emit(add, (parts[key], part)) if key in parts else part
    params = (("keys", tuple(parts)), ("shape", builder.shape(terms[0])))
    return builder.emit(scatter, tuple(parts.values()), params)

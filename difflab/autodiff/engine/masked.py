"""Tangents and cotangents with a mask: the condition under which they apply.

Untaken branches contribute exactly zero. Where a primitive selects one of its arguments
(`where`, `max`, …), the derivatives of the others are not multiplied by zero, since a singular
derivative would then give 0 · ∞ = nan. They are propagated unchanged together with a *mask*, and
are replaced by zero, where the mask is false, at the end.

Values are those of a `DerivativeWriter`: nodes for a graph's `Builder`, arrays for tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from difflab.core.primitive import Primitive
from difflab.primitives import (
    add,
    logical_and,
    logical_or,
    multiply,
    negative,
    not_equal,
    scatter,
    subtract,
    where,
)

V = Any
"""A node's number in a graph, or a value."""


class DerivativeWriter(Protocol):
    """The operations by which derivatives are computed or recorded."""

    def emit(self, primitive: Primitive, args: Sequence[V], params: Any = ()) -> V:
        """Apply a primitive."""

    def constant(self, value: int) -> V:
        """Return a constant."""

    def primitive(self, node: V) -> Primitive | None:
        """Return the primitive that `node` applies; only `scatter` matters."""

    def arguments(self, node: V) -> tuple[V, ...]:
        """Return the arguments of a `scatter`."""

    def params(self, node: V) -> dict[str, Any]:
        """Return the parameters of a `scatter`."""

    def shape(self, node: V) -> tuple[int, ...]:
        """Return the shape of the result of a `scatter`."""


@dataclass(slots=True, eq=False)
class Masked:
    """A derivative and its mask; None where it applies everywhere.

    A `clean` derivative is already zero where its mask is false. The mask is kept because a
    product with a singular slope may follow.

    A contribution without a mask may wait for its sum: it is −value where it is `negated`, and
    the array with that `element`, a key and a shape, and zeros. The sum needs neither of them.
    """

    value: V
    mask: V | None = None
    clean: bool = False
    negated: bool = False
    element: tuple[Any, tuple[int, ...]] | None = None


def resolved(writer: DerivativeWriter, part: Masked) -> V:
    """Return a derivative, written out, that is zero where its mask is false."""
    value = part.value
    if part.negated:
        value = writer.emit(negative, (value,))
    if part.element is not None:
        key, shape = part.element
        value = writer.emit(scatter, (value,), (("keys", (key,)), ("shape", shape)))
    if part.mask is None or part.clean:
        return value
    return writer.emit(where, (part.mask, part.value, writer.constant(0)))


def moved(writer: DerivativeWriter, part: Masked, move: Callable[[V], V], *, final: bool) -> Masked:
    """Apply a linear map that may mix elements to a derivative, and to its mask unless it is final.

    Masked elements are set to zero before; the mask of the result includes the elements to which
    any unmasked element contributes.
    """
    value = move(resolved(writer, part))
    if part.mask is None or final:
        return Masked(value)
    counts = move(writer.emit(multiply, (part.mask, writer.constant(1))))
    return Masked(value, writer.emit(not_equal, (counts, writer.constant(0))), clean=True)


def accumulate(writer: DerivativeWriter, parts: list[Masked]) -> Masked:
    """Add the contributions to a node; contributions with the same mask keep it.

    Those of parts of an array are gathered into one scatter.
    """
    if len(parts) == 1:
        return parts[0]
    mask, shared, clean = parts[0].mask, True, True
    for part in parts:
        clean = clean and part.clean
        # The same node, or the same object.
        if part.mask is not mask and (type(mask) is not int or part.mask != mask):
            shared = False
    terms = parts if shared else [Masked(resolved(writer, part)) for part in parts]
    whole: list[Masked] = []
    scattered: list[Masked] = []
    for term in terms:
        of_array = not term.negated and writer.primitive(term.value) is scatter
        (scattered if of_array or term.element is not None else whole).append(term)
    if len(scattered) > 1:
        terms = [*whole, _gathered(writer, scattered)]
    elif scattered:
        terms = [term if term.element is None else Masked(resolved(writer, term)) for term in terms]
    total, negated = terms[0].value, terms[0].negated
    for term in terms[1:]:
        if term.negated is negated:
            total = writer.emit(add, (total, term.value))
        else:
            operands = (term.value, total) if negated else (total, term.value)
            total, negated = writer.emit(subtract, operands), False
    if shared:
        return Masked(total, mask, clean, negated)
    return Masked(total, either(writer, [part.mask for part in parts]), clean=True)


def both(writer: DerivativeWriter, mask: V | None, condition: V) -> V:
    """Return the mask of a branch inside a branch."""
    return condition if mask is None else writer.emit(logical_and, (mask, condition))


def either(writer: DerivativeWriter, masks: list[V | None]) -> V | None:
    """Return the mask of a sum, which holds where that of any term does."""
    present = [mask for mask in masks if mask is not None]
    if len(present) < len(masks):
        return None
    union = present[0]
    for mask in present[1:]:
        union = writer.emit(logical_or, (union, mask))
    return union


def _gathered(writer: DerivativeWriter, terms: list[Masked]) -> Masked:
    """Merge scatters into arrays of one shape; parts with the same key are added first."""
    parts: dict[Any, Masked] = {}
    for term in terms:
        if term.element is not None:
            key, shape = term.element
            pairs = [(key, Masked(term.value, negated=term.negated))]
        else:
            keys, shape = writer.params(term.value)["keys"], writer.shape(term.value)
            pairs = list(zip(keys, map(Masked, writer.arguments(term.value)), strict=True))
        for key, part in pairs:
            parts[key] = accumulate(writer, [parts[key], part]) if key in parts else part
    values = tuple([resolved(writer, part) for part in parts.values()])
    params = (("keys", tuple(parts)), ("shape", shape))
    return Masked(writer.emit(scatter, values, params))

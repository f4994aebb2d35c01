"""Sums of many terms, written as nested additions."""

from __future__ import annotations

from collections import Counter

from difflab.graph.algebra import signs
from difflab.graph.builder import Builder
from difflab.graph.ir import Params
from difflab.primitives import add, negative, pack, subtract

NEAR = 8
"""Largest number of terms that are searched for a cancelling pair, which bounds the time."""

PACKED: Params = (("axes", (-1,)), ("rank", 1))
"""The parameters of a reduction of the vector that `GraphSums.packed` returns."""

SignedTerm = tuple[int, int]


class GraphSums:
    """The terms of the sums of one graph.

    An addition whose only use is another addition is part of that sum, so every addition belongs
    to one sum and all sums together are linear in the size of the graph.

    Parameters
    ----------
    builder : Builder
        The graph under construction.

    Attributes
    ----------
    uses : Counter of int
        The number of uses of each node of `builder` in the finished graph.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.uses: Counter[int] = Counter()

    def terms(self, node: int) -> list[int]:
        """Return the terms of the sum `node`, from left to right; `node` itself if it is no sum.

        Examples
        --------
        >>> builder = Builder()
        >>> x, y, z = map(builder.input, "xyz")
        >>> sums = GraphSums(builder)
        >>> part = builder.emit(add, (x, y))
        >>> sums.uses[part] = 1
        >>> sums.terms(builder.emit(add, (part, z))) == [x, y, z]
        True
        """
        builder, terms, pending = self.builder, [], [node]
        while pending:
            part = pending.pop()
            within = part == node or self.uses[part] == 1
            if within and signs(builder, part) == (1, 1):
                pending += builder.arguments(part)[::-1]
            else:
                terms.append(part)
        return terms

    def packed(self, terms: list[int]) -> int | None:
        """Return the vector of `terms`; None if one of them is an array."""
        if any(self.builder.shape(term) for term in terms):
            return None
        return self.builder.emit(pack, terms, (("ranks", (0,) * len(terms)),))


def signed_terms(builder: Builder, node: int) -> list[SignedTerm]:
    """Return the last terms, at most `NEAR`, of a nested sum or difference, with their signs.

    Examples
    --------
    >>> builder = Builder()
    >>> x, y, z = map(builder.input, "xyz")
    >>> node = builder.emit(subtract, (builder.emit(add, (x, y)), z))
    >>> signed_terms(builder, node) == [(1, x), (1, y), (-1, z)]
    True
    """
    terms: list[SignedTerm] = []
    pending = [(1, node)]
    while pending:
        sign, part = pending.pop()
        inner = signs(builder, part)
        if inner and len(terms) + len(pending) + len(inner) <= NEAR:
            operands = builder.arguments(part)
            pending += [(sign * own, each) for own, each in zip(inner, operands, strict=True)]
        elif part in builder.constants and builder.constants[part][0] < 0:
            terms.append((-sign, builder.constant(-builder.constants[part][0])))
        else:
            terms.append((sign, part))
    return terms[::-1]


def signed_total(builder: Builder, terms: list[SignedTerm]) -> int:
    """Return the node of a sum of signed terms, from left to right."""
    (sign, total), *others = terms
    if sign < 0:
        total = builder.emit(negative, (total,))
    for sign, term in others:
        total = builder.emit(add if sign > 0 else subtract, (total, term))
    return total

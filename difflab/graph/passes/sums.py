"""Sums of many terms: what an addition adds up when its operands are additions, too.

May import `builder`, `primitives`.
"""

from __future__ import annotations

from collections import Counter

from difflab.graph.builder import Builder
from difflab.primitives import add, pack

__all__ = ["Sums"]


class Sums:
    """The terms of the sums of one graph.

    An addition that only another addition takes is a part of it, so every addition is a part
    of one sum and all sums together are as long as the graph.

    Parameters
    ----------
    builder : Builder
        The graph under construction.

    Attributes
    ----------
    uses : Counter of int
        How often the finished graph takes each node of `builder`.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.uses: Counter[int] = Counter()

    def terms(self, node: int) -> list[int]:
        """Return what `node` adds up, from left to right; itself where it adds nothing.

        Examples
        --------
        >>> builder = Builder()
        >>> x, y, z = map(builder.input, "xyz")
        >>> sums = Sums(builder)
        >>> part = builder.emit(add, (x, y))
        >>> sums.uses[part] = 1
        >>> sums.terms(builder.emit(add, (part, z))) == [x, y, z]
        True
        """
        builder, found, pending = self.builder, [], [node]
        while pending:
            part = pending.pop()
            within = part == node or self.uses[part] == 1
            if within and builder.primitive(part) is add:
                pending += builder.arguments(part)[::-1]
            else:
                found.append(part)
        return found

    def total(self, terms: list[int]) -> int:
        """Return the node of the sum of `terms`, added from left to right."""
        result = terms[0]
        for term in terms[1:]:
            result = self.builder.emit(add, (result, term))
        return result

    def packed(self, terms: list[int]) -> int | None:
        """Return the vector of `terms`; None where one of them is an array."""
        if any(self.builder.shape(term) for term in terms):
            return None
        return self.builder.emit(pack, terms, (("ranks", (0,) * len(terms)),))

"""Roots of sums of squares, which overflow or vanish long before the root does.

May import `builder`, `matching`, `sums`, `primitives`.
"""

from __future__ import annotations

from difflab.graph.builder import Builder
from difflab.graph.passes.matching import number, square_root_of
from difflab.graph.passes.sums import Sums
from difflab.primitives import absolute, hypot, matmul, norm, sum_

__all__ = ["root_of_squares"]

ALL = (("axes", (-1,)), ("rank", 1))


def root_of_squares(builder: Builder, sums: Sums, node: int) -> int | None:
    """Return √node without squares, where `node` is a sum of squares; else None.

    Parameters
    ----------
    builder : Builder
        The graph under construction.
    sums : Sums
        Its sums.
    node : int
        What the root is taken of.

    Examples
    --------
    >>> from difflab.primitives import multiply
    >>> builder = Builder()
    >>> x = builder.input("x")
    >>> square = builder.emit(multiply, (x, x))
    >>> builder.primitive(root_of_squares(builder, Sums(builder), square))
    <primitive absolute>
    """
    roots = []
    for term in sums.terms(node):
        root = _root(builder, term)
        if root is None:
            return None
        roots.append(root)
    if all(number(builder, root) is not None for root in roots):
        return None
    if len(roots) == 1:
        positive = builder.primitive(roots[0]) is norm
        return roots[0] if positive else builder.emit(absolute, roots)
    packed = sums.packed(roots) if len(roots) > 2 else None
    if packed is not None:
        return builder.emit(norm, (packed,), ALL)
    total = roots[0]
    for root in roots[1:]:
        total = builder.emit(hypot, (total, root))
    return total


def _root(builder: Builder, term: int) -> int | None:
    """Return b, or the norm of an array, where `term` is b² or a sum of squares along axes."""
    row = builder.primitive(term)
    if row is matmul and builder.shape(term) == ():
        left, right = builder.arguments(term)
        return builder.emit(norm, (left,), ALL) if left == right else None
    if row is not sum_:
        return square_root_of(builder, term)
    inner = square_root_of(builder, builder.arguments(term)[0])
    if inner is None or builder.shape(inner) != builder.shape(builder.arguments(term)[0]):
        return None
    return builder.emit(norm, (inner,), tuple(sorted(builder.params(term).items())))

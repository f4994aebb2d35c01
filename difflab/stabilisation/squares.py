"""Stable forms of roots of sums of squares and of the variance."""

from __future__ import annotations

import math

from difflab.graph.algebra import degrees
from difflab.graph.builder import Builder
from difflab.graph.node import Node
from difflab.primitives import absolute, hypot, matmul, norm, sum_
from difflab.primitives.structure import spread_over
from difflab.stabilisation.matching import number, square_root_of
from difflab.stabilisation.sums import PACKED, GraphSums


def root_of_squares(builder: Builder, sums: GraphSums, node: int) -> int | None:
    """Return √node without squares if `node` is a sum of squares; else None.

    Parameters
    ----------
    builder : Builder
        The graph under construction.
    sums : GraphSums
        The sums of that graph.
    node : int
        The operand of the root.

    Examples
    --------
    >>> from difflab.primitives import multiply
    >>> builder = Builder()
    >>> x = builder.input("x")
    >>> square = builder.emit(multiply, (x, x))
    >>> builder.primitive(root_of_squares(builder, GraphSums(builder), square))
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
        return builder.emit(norm, (packed,), PACKED)
    total = roots[0]
    for root in roots[1:]:
        total = builder.emit(hypot, (total, root))
    return total


def _root(builder: Builder, term: int) -> int | None:
    """Return b, or the norm of an array, if `term` is b² or a sum of squares along axes."""
    row = builder.primitive(term)
    if row is matmul and builder.shape(term) == ():
        left, right = builder.arguments(term)
        return builder.emit(norm, (left,), PACKED) if left == right else None
    if row is not sum_:
        return square_root_of(builder, term)
    inner = square_root_of(builder, builder.arguments(term)[0])
    if inner is None or builder.shape(inner) != builder.shape(builder.arguments(term)[0]):
        return None
    return builder.emit(norm, (inner,), tuple(sorted(builder.params(term).items())))


def variance(builder: Builder, node: int) -> int | None:
    """Return ``mean(x²) - mean(x)²`` as the mean of (x - mean(x))²; None for anything else.

    If x is far from 0, the two means are nearly equal (Chan, Golub & LeVeque, 1983).
    """
    minuend, square = builder.arguments(node)
    mean = square_root_of(builder, square)
    if mean is None or degrees(builder, minuend) != (1, -1):
        return None
    total, size = builder.arguments(minuend)
    if builder.primitive(total) is not sum_ or degrees(builder, mean) != (1, -1):
        return None
    (squares,) = builder.arguments(total)
    x = square_root_of(builder, squares)
    params = builder.params(total)
    plain = None if x is None else builder.emit(sum_, (x,), tuple(sorted(params.items())))
    if x is None or builder.arguments(mean) != (plain, size):
        return None
    number_of = math.prod(builder.shape(x)[axis] for axis in params["axes"])
    if number(builder, size) != number_of or builder.shape(x) != builder.shape(squares):
        return None
    values = Node(builder, x)
    centred = values - spread_over(Node(builder, mean), values.shape, params["axes"])
    mean_square: Node = sum_(centred * centred, **params) / number_of
    return mean_square.id

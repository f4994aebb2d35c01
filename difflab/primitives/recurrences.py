r"""Recurrences of the derivatives along a curve, of the rows that state one.

A recurrence ``(k, y, *args)`` returns the derivative :math:`y_k = y^{(k)}(t)` from
:math:`y_0 \dots y_{k-1}` and the derivatives of the arguments, by Leibniz's rule
:math:`(ab)_k = \sum_j \binom{k}{j} a_j b_{k-j}` applied to an equation that defines y (Griewank &
Walther, *Evaluating Derivatives*, 2nd ed., §13.2). It takes O(k) operations. Derivatives that are
known to be zero are None; a constant argument is its number. Those of all other rows follow from
their derivative rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

__all__ = [
    "Term",
    "Terms",
    "exponentials",
    "leibniz",
    "logarithm",
    "minus",
    "plus",
    "powers",
    "product",
    "products",
    "quotient",
    "reciprocal",
    "root",
]

Term = Any
"""A node or number; None where it is zero."""
Terms = Sequence[Term]


def plus(a: Term, b: Term) -> Term:
    """Return a + b."""
    return b if a is None else a if b is None else a + b


def minus(a: Term, b: Term) -> Term:
    """Return a − b."""
    return a if b is None else -b if a is None else a - b


def leibniz(k: int, a: Terms, b: Terms, first: int = 0, last: int = 0) -> Term:
    r"""Return :math:`\sum_j \binom{k}{j} a_j b_{k-j}` over j from `first` to k − `last`."""
    total = None
    for j in range(first, k + 1 - last):
        if a[j] is not None and b[k - j] is not None:
            term, weight = a[j] * b[k - j], comb(k, j)
            total = plus(total, term if weight == 1 else weight * term)
    return total


def product(k: int, y: Terms, a: Terms, b: Terms) -> Term:
    """Return the derivative of y = a·b."""
    return leibniz(k, a, b)


def quotient(k: int, y: Terms, a: Terms, b: Terms) -> Term:
    """Return the derivative of y = a / b, from b·y = a."""
    rest = minus(a[k], leibniz(k, b, [*y, None], first=1))
    return None if rest is None else rest / b[0]


def reciprocal(k: int, y: Terms, x: Terms) -> Term:
    """Return the derivative of y = 1/x, from x·y = 1."""
    rest = leibniz(k, x, [*y, None], first=1)
    return None if rest is None else -(rest * y[0])


def root(k: int, y: Terms, x: Terms) -> Term:
    """Return the derivative of y = √x, from y·y = x."""
    rest = minus(x[k], leibniz(k, [*y, None], [*y, None], first=1, last=1))
    return None if rest is None else rest * (0.5 / y[0])


def logarithm(slope: Callable[[Any], Any]) -> Callable[..., Term]:
    """Return the recurrence of y = ln x, from x·y′ = x′; `slope` is 1/x for x > 0."""

    def term(k: int, y: Terms, x: Terms) -> Term:
        rest = minus(x[k], leibniz(k - 1, x, [*y[1:], None], first=1))
        return None if rest is None else rest * slope(x[0])

    return term


def exponentials(k: int, first: Term, w: Terms) -> list[Term]:
    """Return the derivatives of y = eʷ up to order k, with `first` = y₀, from y′ = w′·y."""
    derivatives = [first]
    for i in range(1, k + 1):
        derivatives.append(leibniz(i - 1, w[1:], derivatives))
    return derivatives


def powers(k: int, first: Term, x: Terms, p: Any) -> list[Term]:
    """Return the derivatives of y = xᵖ up to order k, with `first` = y₀ and a constant p."""
    if isinstance(p, int | float) and float(p).is_integer() and p >= 0:
        return [first, *_multiplied(k, x, int(p))[1:]]  # also where x₀ = 0
    derivatives = [first]
    for i in range(1, k + 1):  # from x·y′ = p·y·x′
        grown, behind = (
            leibniz(i - 1, x[1:], derivatives),
            leibniz(i - 1, x, [*derivatives[1:], None], first=1),
        )
        total = minus(None if grown is None else p * grown, behind)
        derivatives.append(None if total is None else total / x[0])
    return derivatives


def _multiplied(k: int, x: Terms, p: int) -> list[Term]:
    """Return the derivatives of a product of p factors x."""
    if p < 2:
        return list(x[: k + 1]) if p else [1, *[None] * k]
    half = _multiplied(k, x, p // 2)
    square = products(k, half, half)
    return square if p % 2 == 0 else products(k, square, x)


def products(k: int, a: Terms, b: Terms) -> list[Term]:
    """Return the derivatives of a·b up to order k."""
    return [leibniz(i, a, b) for i in range(k + 1)]

r"""Recurrences of Taylor coefficients, of the rows that state one.

A recurrence ``(k, y, *args)`` returns the coefficient :math:`y_k` of
:math:`y(t) = \sum_k y_k t^k` from :math:`y_0 \dots y_{k-1}` and the coefficients of the
arguments (Griewank & Walther, *Evaluating Derivatives*, 2nd ed., table 13.1). It takes O(k)
operations. Coefficients that are known to be zero are None; a constant argument is its number.
The series of all other rows follow from their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "Coefficient",
    "Coefficients",
    "exponentials",
    "logarithm",
    "plus",
    "powers",
    "product",
    "products",
    "quotient",
    "reciprocal",
    "root",
]

Coefficient = Any
"""A node or number; None where it is zero."""
Coefficients = Sequence[Coefficient]


def plus(a: Coefficient, b: Coefficient) -> Coefficient:
    """Return a + b."""
    return b if a is None else a if b is None else a + b


def _minus(a: Coefficient, b: Coefficient) -> Coefficient:
    return a if b is None else -b if a is None else a - b


def product(
    k: int, y: Coefficients, a: Coefficients, b: Coefficients, first: int = 0, last: int = 0
) -> Coefficient:
    r"""Return :math:`\sum_j a_j b_{k-j}` over j from `first` to k − `last`."""
    total = None
    for j in range(first, k + 1 - last):
        if a[j] is not None and b[k - j] is not None:
            total = plus(total, a[j] * b[k - j])
    return total


def quotient(k: int, y: Coefficients, a: Coefficients, b: Coefficients) -> Coefficient:
    """Return the coefficient of y = a / b, from b·y = a."""
    rest = _minus(a[k], product(k, y, b, [*y, None], first=1))
    return None if rest is None else rest / b[0]


def reciprocal(k: int, y: Coefficients, x: Coefficients) -> Coefficient:
    """Return the coefficient of y = 1/x, from x·y = 1."""
    rest = product(k, y, x, [*y, None], first=1)
    return None if rest is None else -(rest * y[0])


def root(k: int, y: Coefficients, x: Coefficients) -> Coefficient:
    """Return the coefficient of y = √x, from y·y = x."""
    rest = _minus(x[k], product(k, y, [*y, None], [*y, None], first=1, last=1))
    return None if rest is None else rest * (0.5 / y[0])


def logarithm(slope: Callable[[Any], Any]) -> Callable[..., Coefficient]:
    """Return the recurrence of y = ln x, from x·y′ = x′; `slope` is 1/x for x > 0."""

    def coefficient(k: int, y: Coefficients, x: Coefficients) -> Coefficient:
        weighted = [None if c is None else j * c for j, c in enumerate(y)]
        behind = product(k, y, [*weighted, None], x, first=1, last=1)
        rest = _minus(x[k], None if behind is None else behind / k)
        return None if rest is None else rest * slope(x[0])

    return coefficient


def powers(k: int, first: Coefficient, x: Coefficients, p: Any) -> list[Coefficient]:
    """Return the coefficients of y = xᵖ up to order k, with `first` = y₀ and a constant p."""
    if isinstance(p, int | float) and float(p).is_integer() and p >= 0:
        return [first, *_multiplied(k, x, int(p))[1:]]  # also where x₀ = 0
    found = [first]
    for i in range(1, k + 1):  # from x·y′ = p·y·x′
        weighted = [None if c is None else ((p + 1) * j - i) * c for j, c in enumerate(x[: i + 1])]
        total = product(i, (), weighted, [*found, None], first=1)
        found.append(None if total is None else total / (i * x[0]))
    return found


def _multiplied(k: int, x: Coefficients, p: int) -> list[Coefficient]:
    """Return the coefficients of a product of p factors x."""
    if p < 2:
        return list(x[: k + 1]) if p else [1, *[None] * k]
    half = _multiplied(k, x, p // 2)
    square = products(k, half, half)
    return square if p % 2 == 0 else products(k, square, x)


def products(k: int, a: Coefficients, b: Coefficients) -> list[Coefficient]:
    """Return the coefficients of a·b up to order k."""
    return [product(i, (), a, b) for i in range(k + 1)]


def exponentials(k: int, first: Coefficient, w: Coefficients) -> list[Coefficient]:
    """Return the coefficients of y = eʷ up to order k, with `first` = y₀, from y′ = w′·y."""
    found = [first]
    for i in range(1, k + 1):
        weighted = [None if c is None else j * c for j, c in enumerate(w[: i + 1])]
        total = product(i, (), weighted, [*found, None], first=1)
        found.append(None if total is None else total / i)
    return found

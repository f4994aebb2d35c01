"""Rows whose first arguments are whole numbers, such as the order of polygamma."""

from __future__ import annotations

from difflab.core.primitive import Primitive

__all__ = ["orders"]


def orders(row: Primitive) -> int:
    """Return how many arguments are constants: their box of samples is a single number."""
    return sum(low == high for low, high in row.samples)

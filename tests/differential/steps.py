"""Programs of steps: each applies a named operation to values before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

__all__ = ["Steps", "computed", "drawn"]

Steps = tuple[tuple[Any, ...], ...]
"""The names of operations, each with numbers that choose its operands."""


def drawn(names: Iterable[str], most: int, numbers: int = 2) -> st.SearchStrategy[Steps]:
    """Return a strategy of up to `most` steps."""
    number = st.integers(0, 19)
    step = st.tuples(st.sampled_from(list(names)), *[number] * numbers)
    return st.lists(step, min_size=1, max_size=most).map(tuple)


def computed(
    steps: Steps, values: Sequence[Any], operation: Callable[[str, Any, Any], Any]
) -> list[Any]:
    """Return the values, and what each step computes of two that its numbers choose."""
    found = list(values)
    for name, i, j in steps:
        found.append(operation(name, found[-1 - i % len(found)], found[-1 - j % len(found)]))
    return found

"""Hypothesis strategies: expressions of the language, points of functions, trees and shapes.

`inside` and `around_kinks` draw points of a given function. Every argument of a function in a
random expression is mapped into the sampling interval of its primitive, so an expression is
defined, and away from its kinks, at every point. Requires Hypothesis, which the `test` extra
installs.

Examples
--------
>>> from hypothesis import given
>>> from difflab.testing.strategies import cases
>>> @given(cases(("x", "y")))
... def test(case):
...     text, point = case
...     assert set(point) == {"x", "y"}
>>> test()
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.primitives import TABLE
from difflab.testing.suites.domain_points import around_kinks, inside

__all__ = [
    "around_kinks",
    "arrays",
    "cases",
    "expressions",
    "inside",
    "points",
    "shapes",
    "trees",
]

_TOTAL = ("add", "subtract", "multiply")  # defined for all operands
_RANGE = 2.0


def points(names: Sequence[str] = ("x", "y")) -> st.SearchStrategy[dict[str, float]]:
    """Return a strategy for points: a value between -2 and 2 for each name."""
    return st.fixed_dictionaries(dict.fromkeys(names, _value()))


def expressions(names: Sequence[str] = ("x", "y"), max_leaves: int = 10) -> st.SearchStrategy[str]:
    """Return a strategy for expressions of the language in the variables `names`.

    Parameters
    ----------
    names : sequence of str
        The variables; an expression need not use all of them.
    max_leaves : int
        The largest number of variables and constants in an expression.
    """
    return _expressions(tuple(names), max_leaves)


# Building the strategy takes longer than many a test that draws from it.
@cache
def _expressions(names: tuple[str, ...], max_leaves: int) -> st.SearchStrategy[str]:
    constants = st.integers(-40, 40).map(lambda k: _number(k / 8))
    return st.recursive(st.sampled_from(names) | constants, _larger, max_leaves=max_leaves)


def cases(
    names: Sequence[str] = ("x", "y"), max_leaves: int = 10
) -> st.SearchStrategy[tuple[str, dict[str, float]]]:
    """Return a strategy for an expression that uses every name, and a point."""
    whole = expressions(names, max_leaves).map(lambda text: " + ".join([f"({text})", *names]))
    return st.tuples(whole, points(names))


def shapes(max_dims: int = 3, max_side: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Return a strategy for shapes of arrays; they shrink to that of a scalar, ``()``."""
    return st.lists(st.integers(1, max_side), max_size=max_dims).map(tuple)


def arrays(
    shape: tuple[int, ...] | st.SearchStrategy[tuple[int, ...]] | None = None,
) -> st.SearchStrategy[NDArray[np.float64]]:
    """Return a strategy for float64 arrays between -2 and 2, which shrink to zeros.

    Parameters
    ----------
    shape : tuple of int or strategy, optional
        The shape, or a strategy for it; by default `shapes`.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(arrays((2,)), lambda array: array.max() >= 1)
    array([0., 1.])
    """
    if isinstance(shape, tuple):
        size = int(np.prod(shape))
        flat = st.lists(_value(), min_size=size, max_size=size)
        return flat.map(lambda values: np.array(values, dtype=np.float64).reshape(shape))
    return (shapes() if shape is None else shape).flatmap(arrays)


def trees(
    leaves: st.SearchStrategy[Any] | None = None, max_leaves: int = 6
) -> st.SearchStrategy[Any]:
    """Return a strategy for trees of arguments: leaves, lists, tuples and dictionaries of them.

    Parameters
    ----------
    leaves : strategy, optional
        By default `arrays`.
    max_leaves : int
        The largest number of leaves.
    """
    return st.recursive(
        arrays() if leaves is None else leaves,
        lambda parts: st.one_of(
            st.lists(parts, min_size=1, max_size=3),
            st.lists(parts, min_size=1, max_size=3).map(tuple),
            st.dictionaries(st.sampled_from(("a", "b", "c")), parts, min_size=1),
        ),
        max_leaves=max_leaves,
    )


def _value() -> st.SearchStrategy[float]:
    floats = st.floats(-_RANGE, _RANGE, allow_subnormal=False)
    return floats.map(lambda value: round(value, 6) + 0.0)


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    rows = [row for row in TABLE.values() if usable(row)]
    return st.one_of(*(_applied(row, parts) for row in rows), _chosen(parts))


def usable(row: Primitive) -> bool:
    """Return whether a primitive can be part of a formula that methods are judged on.

    The language has it, operands can be mapped to its domain, and it is no cast, whose derivative
    is a convention.
    """
    has_syntax = bool(row.names or row.infix) and not row.dtype
    return has_syntax and bool(row.samples) and not row.boolean and not row.truths


def _applied(row: Primitive, parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    if row.name in _TOTAL:
        operands = [parts for _ in row.samples]
    else:
        operands = [parts.map(partial(mapped, low=low, high=high)) for low, high in row.samples]
    return st.tuples(*operands).map(lambda texts: spelled(row, texts))


def _chosen(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(parts, parts, parts).map(
        lambda texts: f"where(({texts[0]}) < 0.3, {texts[1]}, {texts[2]})"
    )


def mapped(text: str, low: float, high: float) -> str:
    """Return an expression of `text` whose value lies between `low` and `high`."""
    if low == high:
        return _number(low)
    middle, half = (low + high) / 2, (high - low) / 2
    return f"({_number(middle)} + {_number(half)}*sin({text}))"


def spelled(row: Primitive, texts: tuple[str, ...]) -> str:
    """Return a primitive applied to expressions."""
    if row.names:
        return f"{row.names[0]}({', '.join(texts)})"
    if row.arity == 1:
        return f"({row.infix}({texts[0]}))"
    return f"(({texts[0]}) {row.infix} ({texts[1]}))"


def _number(value: float) -> str:
    return repr(value) if value >= 0 else f"({value!r})"

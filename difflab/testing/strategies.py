"""Hypothesis strategies: random expressions of the language, and points where they are smooth.

Every argument of a function is mapped into the sampling interval of its primitive, so an
expression is defined, and away from its kinks, at every point. Requires Hypothesis, which the
`test` extra installs.

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
from functools import partial

from hypothesis import strategies as st

from difflab.core.primitive import Primitive
from difflab.primitives import TABLE

__all__ = ["cases", "expressions", "points"]

_TOTAL = ("add", "subtract", "multiply")  # defined for all operands
_RANGE = 2.0


def points(names: Sequence[str] = ("x", "y")) -> st.SearchStrategy[dict[str, float]]:
    """Return a strategy for points: a value between -2 and 2 for each name."""
    value = st.floats(-_RANGE, _RANGE, allow_subnormal=False).map(lambda v: round(v, 6) + 0.0)
    return st.fixed_dictionaries(dict.fromkeys(names, value))


def expressions(names: Sequence[str] = ("x", "y"), max_leaves: int = 10) -> st.SearchStrategy[str]:
    """Return a strategy for expressions of the language in the variables `names`.

    Parameters
    ----------
    names : sequence of str
        The variables; an expression need not use all of them.
    max_leaves : int
        The largest number of variables and constants in an expression.
    """
    constants = st.integers(-40, 40).map(lambda k: _number(k / 8))
    leaves = st.sampled_from(list(names)) | constants
    return st.recursive(leaves, _larger, max_leaves=max_leaves)


def cases(
    names: Sequence[str] = ("x", "y"), max_leaves: int = 10
) -> st.SearchStrategy[tuple[str, dict[str, float]]]:
    """Return a strategy for an expression that uses every name, and a point."""
    whole = expressions(names, max_leaves).map(lambda text: " + ".join([f"({text})", *names]))
    return st.tuples(whole, points(names))


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    rows = [row for row in TABLE.values() if _usable(row)]
    return st.one_of(*(_applied(row, parts) for row in rows), _chosen(parts))


def _usable(row: Primitive) -> bool:
    """Return whether the language has the primitive and operands can be mapped to its domain."""
    spelled = bool(row.names or row.infix)
    return spelled and bool(row.samples) and not row.boolean and not row.truths


def _applied(row: Primitive, parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    if row.name in _TOTAL:
        operands = [parts for _ in row.samples]
    else:
        operands = [parts.map(partial(_mapped, low=low, high=high)) for low, high in row.samples]
    return st.tuples(*operands).map(lambda texts: _spelled(row, texts))


def _chosen(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(parts, parts, parts).map(
        lambda texts: f"where(({texts[0]}) < 0.3, {texts[1]}, {texts[2]})"
    )


def _mapped(text: str, low: float, high: float) -> str:
    """Return an expression of `text` whose value lies between `low` and `high`."""
    middle, half = (low + high) / 2, (high - low) / 2
    return f"({_number(middle)} + {_number(half)}*sin({text}))"


def _spelled(row: Primitive, texts: tuple[str, ...]) -> str:
    if row.names:
        return f"{row.names[0]}({', '.join(texts)})"
    if row.arity == 1:
        return f"({row.infix}({texts[0]}))"
    return f"(({texts[0]}) {row.infix} ({texts[1]}))"


def _number(value: float) -> str:
    return repr(value) if value >= 0 else f"({value!r})"

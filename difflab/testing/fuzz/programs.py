"""Random programs and points: operations inside and at the edges of their domains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from difflab.primitives import TABLE
from difflab.testing.strategies import larger, spelled, usable

__all__ = ["Program", "programs"]

_CONSTANTS = ("2", "1", "0.5", "3", "0", "(-1)", "1.5", "(-0.5)", "10", "1e-8", "40", "1e8", "pi")
_COORDINATES = (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, -2.0, 10.0, -0.5, 1e-8, 40.0, -40.0, 1e8, 1e-160)
_REDUCTIONS = ("sum", "prod", "mean", "norm", "max", "min", "logsumexp")
_LEAVES = 6


@dataclass(frozen=True)
class Program:
    """A program of the language and a point.

    Attributes
    ----------
    text : str
        The program.
    point : dict
        A float, or a list of three, for each name; unused names are left out when it runs.
    """

    text: str
    point: dict[str, Any]


def programs() -> st.SearchStrategy[Program]:
    """Return a strategy for programs in x, y and an array v of three elements.

    Some operands are mapped into the domain of their operation and others are not, so that a
    point may also lie on a kink, close to an edge or where intermediate results are extreme.
    """
    coordinate = st.sampled_from(_COORDINATES) | st.floats(-4.0, 4.0).map(lambda v: round(v, 6))
    vector = st.lists(coordinate, min_size=3, max_size=3)
    point = st.fixed_dictionaries({"x": coordinate, "y": coordinate, "v": vector})
    return st.builds(Program, _scalars() | _reduced(), point)


def _scalars() -> st.SearchStrategy[str]:
    return _expressions(("x", "y"))


def _reduced() -> st.SearchStrategy[str]:
    reductions = st.sampled_from(_REDUCTIONS)
    parts = st.tuples(reductions, _expressions(("v", "x")))
    return parts.map(lambda texts: f"v: [3]; {texts[0]}({texts[1]} + 0*v)")


def _expressions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    leaves = st.sampled_from([*names, *_CONSTANTS])
    return st.recursive(leaves, _grown, max_leaves=_LEAVES)


def _grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # The first argument of a row such as polygamma is a whole number, not an expression.
    rows = [
        row
        for row in TABLE.values()
        if usable(row) and row.shape is None and row.samples[0][0] < row.samples[0][1]
    ]
    plain = (
        st.tuples(*[parts] * len(row.samples)).map(lambda texts, row=row: spelled(row, texts))  # type: ignore[misc]
        for row in rows
    )
    return st.one_of(*plain) | larger(parts)

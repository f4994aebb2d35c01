"""Random programs and points: operations inside and at the edges of their domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab.core.primitive import Primitive
from difflab.primitives import TABLE
from difflab.testing.strategies import mapped, spelled, usable

_CONSTANTS = ("2", "1", "0.5", "3", "0", "(-1)", "1.5", "(-0.5)", "10", "1e-8", "40", "1e8", "pi")
_COORDINATES = (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, -2.0, 10.0, -0.5, 1e-8, 40.0, -40.0, 1e8, 1e-160)
_REDUCTIONS = ("sum", "prod", "mean", "norm", "max", "min", "logsumexp")
_OPERATIONS = 7


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


_ROWS = [
    row
    for row in TABLE.values()
    # The first argument of a row such as polygamma is a whole number, not an expression.
    if usable(row) and row.shape is None and row.samples[0][0] < row.samples[0][1]
]
_PICKS = 32
"""Numbers below it stand for an operand: a name, a constant or an earlier result."""
_NAMES, _NUMBERS = 8, 14
_STEP = st.tuples(
    st.integers(0, len(_ROWS) - 1), st.integers(0, _PICKS - 1), st.integers(0, _PICKS - 1)
)
_COORDINATE = st.sampled_from(_COORDINATES) | st.floats(-4.0, 4.0).map(lambda v: round(v, 6))


COMMON = tuple(
    row
    for row in _ROWS
    if hasattr(np, row.name) or row.name in ("erf", "relu", "sigmoid", "softplus", "xlogy")
)
"""The rows that nearly every package has."""


@st.composite
def programs(draw: st.DrawFn, rows: Sequence[Primitive] = tuple(_ROWS)) -> Program:
    """Return a program of some rows in x and y, or in an array v of three elements and x.

    Some operands are mapped into the domain of their operation and others are not, so that a
    point may also lie on a kink, close to an edge or where intermediate results are extreme. The
    operations are drawn as numbers, which shrinks in few steps.
    """
    reduction = draw(st.sampled_from((*[""] * len(_REDUCTIONS), *_REDUCTIONS)))
    values = ["v", "x"] if reduction else ["x", "y"]
    for which, first, second in draw(st.lists(_STEP, min_size=1, max_size=_OPERATIONS)):
        row = rows[which % len(rows)]
        picks = (first, second, (first + second) % _PICKS)  # rows have at most three operands
        operands = [_operand(pick, values) for pick in picks]
        if (first + second) % 2:
            sides = zip(operands, row.samples, strict=False)
            operands = [mapped(text, low, high) for text, (low, high) in sides]
        values.append(spelled(row, tuple(operands[: len(row.samples)])))
    point = {
        "x": draw(_COORDINATE),
        "y": draw(_COORDINATE),
        "v": draw(st.lists(_COORDINATE, min_size=3, max_size=3)),
    }
    text = f"v: [3]; {reduction}({values[-1]} + 0*v)" if reduction else values[-1]
    return Program(text, point)


def _operand(pick: int, values: list[str]) -> str:
    if pick < _NAMES:
        return values[pick % 2]
    if pick < _NUMBERS:
        return _CONSTANTS[pick % len(_CONSTANTS)]
    return values[-1 - pick % min(len(values), 3)]

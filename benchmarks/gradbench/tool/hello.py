"""hello: the square of a number, and its derivative."""

from __future__ import annotations

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, compiled
from difflab.execute.point_calls import FEWEST_CALLS

__all__ = ["FUNCTIONS", "square"]


def square(x: float) -> float:
    """Return x²."""
    return x * x


FUNCTIONS: FunctionsByName = {
    "square": lambda x: compiled(square, float(x), output=float, rehearsals=FEWEST_CALLS),
    "double": lambda x: compiled(dl.grad(square), float(x), output=float, rehearsals=FEWEST_CALLS),
}
"""Each is evaluated once: it is rehearsed until machine code takes its calls."""

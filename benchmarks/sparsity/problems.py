"""Functions with sparse Jacobians, written once over slices, sums and concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROBLEMS", "Operations", "true_pattern", "values"]

POINTS = 3
"""Random points at which the true pattern is read."""
STEP = 1e-30
"""Of complex steps: the imaginary part is the derivative, exactly 0 where there is none."""


@dataclass(frozen=True)
class Operations:
    """What a package calls the functions of the problems.

    Attributes
    ----------
    concat : callable
        Joins a list of vectors.
    total : callable
        Sums a vector, as a vector of one element.
    sin : callable
        The sine of a vector.
    """

    concat: Callable[[Sequence[Any]], Any]
    total: Callable[[Any], Any]
    sin: Callable[[Any], Any]


Problem = Callable[[Operations, Any, int], Any]


def _band(ops: Operations, x: Any, n: int) -> Any:
    return x[: n - 2] - 2.0 * x[1 : n - 1] ** 2 + x[2:n]


def _arrow(ops: Operations, x: Any, n: int) -> Any:
    return ops.concat([ops.total(x**2), ops.sin(x[1:n]) * x[: n - 1]])


def _grid(ops: Operations, x: Any, n: int) -> Any:
    """The five-point stencil in the inner points of a square."""
    side, rows = isqrt(n), []
    for start in range(side, (side - 1) * side, side):
        here = slice(start + 1, start + side - 1)
        left, right = slice(start, start + side - 2), slice(start + 2, start + side)
        above = slice(start + 1 - side, start - 1)
        below = slice(start + 1 + side, start + 2 * side - 1)
        rows.append(4.0 * ops.sin(x[here]) - x[left] - x[right] - x[above] - x[below])
    return ops.concat(rows)


def _blocks(ops: Operations, x: Any, n: int) -> Any:
    """Products of four neighbours each."""
    return x[0:n:4] * x[1:n:4] * x[2:n:4] * x[3:n:4]


def _cancelling(ops: Operations, x: Any, n: int) -> Any:
    """A product is added and subtracted again, so that its derivatives are 0."""
    product = x[1:n] * x[: n - 1]
    return product + x[1:n] ** 2 - product


PROBLEMS: dict[str, Problem] = {
    "band": _band,
    "arrow": _arrow,
    "grid": _grid,
    "blocks": _blocks,
    "cancelling": _cancelling,
}

NUMPY = Operations(np.concatenate, lambda x: np.sum(x)[None], np.sin)


def values(name: str, x: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a problem by NumPy."""
    found: NDArray[Any] = PROBLEMS[name](NUMPY, x, len(x))
    return found


@cache
def true_pattern(name: str, n: int) -> NDArray[np.bool_]:
    """Return which entries of the Jacobian differ from 0 at a random point, by complex steps.

    Examples
    --------
    >>> true_pattern("band", 4).astype(int).tolist()
    [[1, 1, 1, 0], [0, 1, 1, 1]]
    """
    draw = np.random.default_rng(n)
    points = draw.uniform(0.5, 1.5, (POINTS, n))
    pattern: NDArray[np.bool_] = np.any([jacobian(name, x) != 0 for x in points], axis=0)
    return pattern


def jacobian(name: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the dense Jacobian at a point, by complex steps."""
    steps = x + 1j * STEP * np.eye(len(x))
    return np.stack([values(name, row).imag / STEP for row in steps], axis=1)

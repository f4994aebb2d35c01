"""det: a determinant by expansion along minors, all ℓ! products of it.

The first rows are expanded by nested loops, one for each row, and the minors that remain by arrays
over all minors of a size. So the graph grows with ℓ, not with ℓ!. The module `shared_det` computes
the same with equal minors shared, which is another algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "determinant", "functions_of"]

ARRAYS = 8
"""The largest matrix whose minors are expanded by arrays."""
DIRECT = 3
"""The largest matrix whose minors are expanded one by one."""


def determinant(matrix: Any) -> Any:
    """Return the determinant of an ``(m, m)`` matrix, expanded along its first row."""
    m = len(matrix)
    if m <= ARRAYS:
        return _expanded([[np.reshape(cell, (1,)) for cell in row] for row in matrix])[0]

    def term(total: Any, column: Any) -> tuple[Any, None]:
        element, others = column
        return total + element * determinant(matrix[1:] @ others), None

    # The columns of the identity other than j, for each j, select those of the minor.
    others = np.stack([np.delete(np.eye(m), j, axis=1) for j in range(m)])
    total, _ = dl.scan(term, 0.0, (_signs(m) * matrix[0], others))
    return total


def _expanded(rows: Sequence[Sequence[Any]]) -> Any:
    """Return the determinants of many matrices, given vectors of their elements."""
    first, *rest = rows
    m = len(first)
    if m == 1:
        return first[0]
    if m <= DIRECT:
        minors = [_expanded([_without(row, j) for row in rest]) for j in range(m)]
        return sum(
            sign * a * minor for sign, a, minor in zip(_signs(m), first, minors, strict=True)
        )
    # All minors, those without column 0 first, as one vector for each of their elements.
    columns = [list(zip(*[_without(row, j) for j in range(m)], strict=True)) for row in rest]
    found = _expanded([[np.concatenate(column) for column in row] for row in columns])
    weights = np.stack([sign * a for sign, a in zip(_signs(m), first, strict=True)])
    return np.sum(weights * np.reshape(found, weights.shape), axis=0)


def _without(row: Sequence[Any], j: int) -> list[Any]:
    return [*row[:j], *row[j + 1 :]]


def _signs(m: int) -> Any:
    return 1.0 - 2.0 * (np.arange(m) % 2)


def _matrix(question: Any) -> Any:
    return np.reshape(question["A"], (question["ell"], question["ell"]))


def functions_of(determinant: Callable[[Any], Any]) -> FunctionsByName:
    """Return the eval's functions, for one way to compute a determinant."""

    def primal(question: Any) -> Prepared:
        return compiled(determinant, _matrix(question), output=float)

    def gradient(question: Any) -> Prepared:
        def flat(found: Any) -> Any:
            return found.ravel().tolist()

        return compiled(dl.grad(determinant), _matrix(question), output=flat)

    return {"primal": primal, "gradient": gradient}


FUNCTIONS: FunctionsByName = functions_of(determinant)

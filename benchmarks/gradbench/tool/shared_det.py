"""det with equal minors shared: 2^ℓ minors instead of ℓ! products.

Expansion along minors meets each minor of the last rows many times; here it is computed once. This
is another algorithm than the one that GradBench asks for, so the tool uses it only on request:
``python -m benchmarks gradbench-tool --shared-minors``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks.gradbench.tool.det import functions_of
from benchmarks.gradbench.tool.repeats import FunctionsByName

__all__ = ["FUNCTIONS", "determinant"]


def determinant(matrix: Any) -> Any:
    """Return the determinant of an ``(m, m)`` matrix, expanded along its first row."""
    m = len(matrix)

    @cache
    def minor(columns: tuple[int, ...]) -> Any:
        """Return the determinant of some columns of the last rows."""
        row = matrix[m - len(columns)]
        if len(columns) == 1:
            return row[columns[0]]
        total: Any = 0.0
        for place, column in enumerate(columns):
            term = row[column] * minor((*columns[:place], *columns[place + 1 :]))
            total = total - term if place % 2 else total + term
        return total

    return minor(tuple(range(m)))


FUNCTIONS: FunctionsByName = functions_of(determinant)

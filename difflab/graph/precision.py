"""The dtype of a traced value, by NumPy's rules for its operands.

A graph holds numbers without a dtype. Those of traced code have one, so that ``x.dtype`` and the
results of transforms are NumPy's: it belongs to the `Node` that the code holds, and the graph does
not keep it. Values are computed in float64 all the same; a number is rounded to float32 where the
code casts it (`primitives.casts`), and where a transform returns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from difflab.core.primitive import ByArgument, Primitive

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Precision(IntEnum):
    """The precision of a number; that of a result is the largest of its operands'."""

    WEAK = 0  # a Python number, which takes the dtype of what it is combined with
    SINGLE = 1
    DOUBLE = 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays of this precision."""
        return FLOAT32 if self is Precision.SINGLE else FLOAT64


WEAK, SINGLE, DOUBLE = Precision


def precision_of(value: Any) -> Precision:
    """Return the precision of a number, an array, a tensor or a traced value.

    Examples
    --------
    >>> [precision_of(value).name for value in (0.5, np.float32(0.5), np.ones(2), np.array([True]))]
    ['WEAK', 'SINGLE', 'DOUBLE', 'WEAK']
    """
    precision = getattr(value, "precision", None)
    if type(precision) is Precision:
        return precision
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return WEAK if isinstance(value, int | float) else DOUBLE
    if dtype == FLOAT32:
        return SINGLE
    return WEAK if dtype == np.bool_ else DOUBLE


def joint(row: Primitive, operands: Sequence[Any]) -> Precision:
    """Return the precision of the result of an operation; indices have no part in it."""
    if row.dtype:
        return SINGLE if row.dtype == "float32" else DOUBLE
    if isinstance(row.rule, ByArgument):
        operands = [part for part, entry in zip(operands, row.rule.entries, strict=True) if entry]
    return max(map(precision_of, operands))


def in_precision(value: Any, precision: Precision) -> Any:
    """Return a result that was computed in float64 in the dtype of its precision.

    Tensors have the dtype in which they were computed, and truth values stay as they are.
    """
    if hasattr(value, "of_precision"):
        return value.of_precision(precision)
    if precision is not SINGLE or getattr(value, "dtype", None) != FLOAT64:
        return value
    if hasattr(value, "__difflab_apply__"):
        return value
    with np.errstate(over="ignore", under="ignore"):
        return value.astype(FLOAT32)

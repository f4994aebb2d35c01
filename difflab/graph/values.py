"""Arguments of a function, and their dtypes: scalars, arrays and carriers.

Values of a graph have no dtype. Those of traced code have one, so that ``x.dtype`` and the
results of transforms are NumPy's: it belongs to the `Node` that the code holds, and the graph does
not keep it. Values are computed in float64 all the same; a number is rounded to float32 where the
code casts it (`primitives.casts`), and where a transform returns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from difflab.core.apply import as_floats
from difflab.core.conversions import as_numbers, as_reals
from difflab.core.primitive import ByArgument, Primitive
from difflab.errors import PointError
from difflab.graph.ir import Shape
from difflab.graph.pytree import flatten

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Precision(IntEnum):
    """The precision of a number; that of a result is the largest of its operands'."""

    WEAK = 0  # a Python scalar, which adapts to the dtype of the other operand
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


_PLAIN = (float, int, np.floating, np.integer, np.bool_)


def first_carrier(values: Sequence[Any]) -> Any:
    """Return the first value that records operations: a node, a tensor; None if there is none."""
    return next((value for value in values if hasattr(value, "__difflab_apply__")), None)


def in_dtype_of(inputs: Any, results: Sequence[Any]) -> list[Any]:
    """Return the results of a function, in float32 if all arrays that it was given are."""
    precision = max(map(precision_of, flatten(inputs)[0]), default=DOUBLE)
    return [in_precision(result, precision) for result in results]


def checked_value(value: Any, name: str, shape: Shape) -> Any:
    """Return `value` as a float64 array, or unchanged if it belongs to another library."""
    if type(value) is not float:
        value = as_numbers(value, f"the value of '{name}'", PointError)
    if isinstance(value, float | int):
        value = np.float64(value)
    elif isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "biu" or _holds_floats(value):
            value = value.astype(np.float64)
    else:
        value = as_floats(value)
    kind = getattr(getattr(value, "dtype", None), "kind", "O")
    if kind == "V":  # of a library with dtypes of its own, such as JAX's bfloat16
        as_reals(value, f"the value of '{name}'", PointError)
    if kind not in "fcO" or not are_numbers(value):
        raise PointError(f"the value of '{name}' is not a number")
    check_shape(tuple(getattr(value, "shape", ())), name, shape)
    return value


def check_shape(actual: Shape, name: str, shape: Shape) -> None:
    """Raise `PointError` unless a value's shape is a batch of the input's."""
    if actual[len(actual) - len(shape) :] != shape or len(actual) < len(shape):
        raise PointError(
            f"the input '{name}' has the shape {shape}, but its value has the shape {actual}",
            hint="batch axes come first",
        )


def _holds_floats(value: Any) -> bool:
    """Whether an object array holds only Python and NumPy scalars."""
    return value.dtype == object and all(isinstance(entry, _PLAIN) for entry in value.flat)


def are_numbers(value: Any) -> bool:
    """Whether a value, or all entries of an array of objects, can be computed with."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return all(hasattr(type(entry), "__rtruediv__") for entry in value.flat)
    return hasattr(type(value), "__rtruediv__")

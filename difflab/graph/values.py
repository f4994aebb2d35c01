"""Values that a function is called on: numbers, arrays, and carriers that record operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.core.conversions import as_numbers, as_reals
from difflab.core.devices import as_floats
from difflab.errors import PointError
from difflab.graph.ir import Shape
from difflab.graph.precision import DOUBLE, in_precision, precision_of
from difflab.graph.pytree import flatten

_PLAIN = (float, int, np.floating, np.integer, np.bool_)


def first_carrier(values: Sequence[Any]) -> Any:
    """Return the first value that records operations: a node, a tensor; None if there is none."""
    return next((value for value in values if hasattr(value, "__difflab_apply__")), None)


def in_dtype_of(given: Any, results: Sequence[Any]) -> list[Any]:
    """Return the results of a function, in float32 if all arrays that it was given are."""
    precision = max(map(precision_of, flatten(given)[0]), default=DOUBLE)
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


def check_shape(found: Shape, name: str, shape: Shape) -> None:
    """Raise `PointError` unless a value's shape is a batch of the input's."""
    if found[len(found) - len(shape) :] != shape or len(found) < len(shape):
        raise PointError(
            f"the input '{name}' has the shape {shape}, but its value has the shape {found}",
            hint="batch axes come first",
        )


def _holds_floats(value: Any) -> bool:
    """Whether an object array holds only numbers of Python and NumPy."""
    return value.dtype == object and all(isinstance(entry, _PLAIN) for entry in value.flat)


def are_numbers(value: Any) -> bool:
    """Whether a value, or all entries of an array of objects, can be computed with."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return all(hasattr(type(entry), "__rtruediv__") for entry in value.flat)
    return hasattr(type(value), "__rtruediv__")

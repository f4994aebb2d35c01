"""Conversion of a compiled function's arguments and results: float64 arrays, Python floats.

The keyword ``out`` gives arrays that the results are written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers
from difflab.errors import InputError, PointError, UnsupportedError
from difflab.execute.lower.ops import FLOAT
from difflab.graph.ir import Shape
from difflab.graph.pytree import flatten, leaf_paths


def common_shape(values: Sequence[Any], dtype: np.dtype[Any] = FLOAT) -> Shape | None:
    """Return the common shape of arrays of `dtype`, mixed with floats; None for anything else.

    Such arguments need no conversion, no check and no search for a device.

    Examples
    --------
    >>> common_shape([np.ones(3), np.zeros(3), 2.0])
    (3,)
    >>> common_shape([np.ones(3), np.ones(1)]) is common_shape([2.0, 3.0]) is None
    True
    """
    shape: Shape | None = None
    for value in values:
        if value.__class__ is float:
            continue
        if value.__class__ is not np.ndarray or value.dtype != dtype:
            return None
        if shape is None:
            shape = value.shape
        elif value.shape != shape:
            return None
    return shape or None


def plain_numbers(values: Sequence[Any]) -> list[float] | None:
    """Return Python scalars as floats; None for other types, and if one would be rounded.

    Examples
    --------
    >>> plain_numbers([1, 2.5]), plain_numbers([2**53 + 1]), plain_numbers([np.ones(2)])
    ([1.0, 2.5], None, None)
    """
    for value in values:
        if not isinstance(value, float | int):
            return None
    try:
        floats = [float(value) for value in values]
    except OverflowError:
        return None
    return floats if floats == list(values) else None


def real(value: Any, dtype: np.dtype[Any] = FLOAT) -> NDArray[Any]:
    """Return `value` as an array of a real dtype.

    Raises
    ------
    PointError
        Its dtype is not real.

    Examples
    --------
    >>> real([1, 2])
    array([1., 2.])
    """
    if type(value) is np.ndarray and value.dtype == dtype:
        own: NDArray[Any] = value
        return own
    array = host_numbers(value, "an argument of compiled code", PointError)
    if array.dtype.kind not in "fiub":
        raise PointError(
            f"compiled functions accept real numbers, not {array.dtype}",
            hint="call the Function itself",
        )
    return array.astype(dtype, copy=False)


def plain_number(value: Any) -> Any:
    """Return a scalar as a Python number, as the target for one point does.

    Examples
    --------
    >>> plain_number(np.array(2.0))
    2.0
    """
    return value.item() if np.ndim(value) == 0 else value


def written(results: Any, out: Any) -> Any:
    """Write results to arrays of the same structure, shapes and dtypes, and return those.

    All arrays are checked before one is written.

    Raises
    ------
    InputError
        The arrays have another structure, or one of them has another shape or dtype, is read-only,
        or is contiguous neither in C's order nor as the result is.
    UnsupportedError
        The results are not numeric: the function was called with tensors, nodes of a graph, or
        arrays of another library.

    Examples
    --------
    >>> value, gradient = np.empty(()), np.empty(2)
    >>> written((3.0, np.ones(2)), (value, gradient))
    (array(3.), array([1., 1.]))
    >>> written(3.0, np.empty(1))
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: out has the shape (1,), and the result is a number
    hint: pass an array such as np.empty(())
    """
    if type(results) is tuple and type(out) is tuple and len(results) == len(out):
        pairs = list(zip(results, out, strict=True))
    else:
        pairs = [(results, out)]
    for value, array in pairs:
        if not _is_usual(value, array):
            _check_all(results, out)
            pairs = list(zip(flatten(results)[0], flatten(out)[0], strict=True))
            break
    for value, array in pairs:
        array[...] = value
    return out


def _is_usual(value: Any, array: Any) -> Any:
    """Return whether a float or float64 array can be written to an array: the test that is fast."""
    if type(array) is not np.ndarray or array.dtype is not FLOAT or not array.flags.carray:
        return False
    if type(value) is float:
        return array.shape == ()
    return type(value) is np.ndarray and value.dtype is FLOAT and value.shape == array.shape


def _check_all(results: Any, out: Any) -> None:
    """Raise an error if results cannot be written to arrays; see `written`."""
    values, structure = flatten(results)
    arrays, own = flatten(out)
    if any(not isinstance(value, np.ndarray | np.generic | float | int) for value in values):
        raise UnsupportedError("out= takes results that are numbers or arrays of NumPy")
    if own != structure:
        raise InputError(
            f"out is {own}, and the results are {structure}",
            hint="pass an array for each result, in a structure as the call returns",
        )
    for array, value, path in zip(arrays, values, leaf_paths(structure), strict=True):
        _check(array, np.asarray(value), f"out{path}")


def _check(array: Any, value: np.ndarray[Any, Any], name: str) -> None:
    """Raise `InputError` if a result cannot be written to the given output array."""
    wanted = f"np.empty({value.shape}{'' if value.dtype == float else f', np.{value.dtype}'})"
    hint = f"pass an array such as {wanted}"
    if not isinstance(array, np.ndarray):
        raise InputError(f"{name} is of type {type(array).__name__}, not an array", hint=hint)
    if array.shape != value.shape:
        shown = f"has the shape {value.shape}" if value.shape else "is a number"
        raise InputError(f"{name} has the shape {array.shape}, and the result {shown}", hint=hint)
    if array.dtype != value.dtype:
        raise InputError(
            f"{name} has the dtype {array.dtype.str}, and the result {value.dtype.str}", hint=hint
        )
    if not array.flags.c_contiguous and array.strides != value.strides:
        raise InputError(f"{name} is not contiguous in C's order", hint=hint)
    if not array.flags.writeable:
        raise InputError(f"{name} is read-only", hint=hint)

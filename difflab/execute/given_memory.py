"""The keyword ``out`` of compiled functions: results written to arrays that the caller gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab.errors import InputError, UnsupportedError
from difflab.execute.lower.ops import FLOAT
from difflab.graph.pytree import flatten, leaf_paths


def written(results: Any, out: Any) -> Any:
    """Write results to arrays of the same structure, shapes and dtypes, and return those.

    All arrays are checked before one is written.

    Raises
    ------
    InputError
        The arrays have another structure, or one of them has another shape or dtype, is read-only,
        or is contiguous neither in C's order nor as the result is.
    UnsupportedError
        The results are no numbers: the function was called with tensors, nodes of a graph, or
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
    """Raise `InputError` if a result cannot be written to what was given for it."""
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

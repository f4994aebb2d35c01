"""Conversion and validation of the arguments of array functions, and of indexing keys."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.core.conversions import as_numbers
from difflab.core.place import at_users_line
from difflab.core.primitive import Shape
from difflab.errors import IndexingError, InputError, ShapeError

Array = Any
Axis = int | Sequence[int] | None
OPERAND = "an operand of an array function"
KINDS = "biufc"
"""NumPy's dtype kinds of numbers."""


def mismatch(message: str, hint: str | None = None) -> ShapeError:
    """Return a `ShapeError` that points at the user's line of Python."""
    return at_users_line(ShapeError, message, hint)


def shape_of(x: Array) -> Shape:
    """Return the shape of a scalar, an array or a traced value."""
    shape = getattr(x, "shape", None)
    return np.shape(_numbers(x)) if shape is None else tuple(shape)


def as_array(x: Any) -> Array:
    """Convert lists to an array; scalars and values with a shape are returned unchanged.

    Raises
    ------
    InputError
        The value is not numeric.

    Examples
    --------
    >>> as_array([1, 2])
    array([1., 2.])
    """
    kind = type(x)
    if kind is float or hasattr(kind, "__difflab_apply__"):
        return x
    if not hasattr(x, "shape"):
        return _numbers(x) if isinstance(x, list | tuple | range) else _numbers(x)[()]
    x = as_numbers(x, OPERAND)
    if getattr(getattr(x, "dtype", None), "kind", "f") not in KINDS:
        raise _no_numbers(x)
    return x


def _numbers(x: Any) -> np.ndarray[Any, Any]:
    """Return a scalar or a list of scalars as an array, real or complex."""
    array = np.asarray(as_numbers(list(x) if isinstance(x, range) else x, OPERAND))
    if array.dtype.kind not in KINDS:
        raise _no_numbers(x)
    return array if array.dtype.kind == "c" else array.astype(float)


def _no_numbers(x: Any) -> InputError:
    kinds = {type(part) for part in x} if isinstance(x, list | tuple) else {type(x)}
    names = " and ".join(sorted(kind.__name__ for kind in kinds))
    return at_users_line(
        InputError,
        f"an array function takes numbers and arrays of numbers, not {names}",
        "a list must have rows of equal length",
    )


def normalized_axes(name: str, axis: Axis, shape: Shape) -> tuple[int, ...]:
    """Return axes as sorted negative integers; all axes if `axis` is None.

    Raises
    ------
    ShapeError
        An axis is out of range, repeated, or not an integer.
    """
    rank = len(shape)
    if axis is None:
        return tuple(range(-rank, 0))
    wanted = as_integers(name, "axis", axis)
    outside = [entry for entry in wanted if not -rank <= entry < rank]
    if outside:
        raise mismatch(f"{name} along axis {outside[0]} of the shape {shape}")
    axes = sorted(entry % rank - rank for entry in wanted)
    if len(set(axes)) < len(axes):
        raise mismatch(f"{name} got a repeated axis: {wanted}")
    return tuple(axes)


def kept_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return a shape whose `axes`, counted from the end, have size 1.

    Examples
    --------
    >>> kept_axes((2, 3, 4), (-3, -1))
    (1, 3, 1)
    """
    return tuple([1 if k - len(shape) in axes else size for k, size in enumerate(shape)])


def normalized_axis(name: str, axis: int, shape: Shape) -> int:
    """Return one axis as a negative integer."""
    if axis is None:
        raise mismatch(f"{name} needs an axis")
    return normalized_axes(name, as_integer(name, "axis", axis), shape)[0]


def as_integers(name: str, what: str, given: int | Sequence[int]) -> tuple[int, ...]:
    """Return an integer or a sequence of integers as a tuple.

    Examples
    --------
    >>> as_integers("reshape", "shape", 3), as_integers("reshape", "shape", [2, -1])
    ((3,), (2, -1))
    """
    try:
        return (operator.index(given),)  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        return tuple([operator.index(entry) for entry in given])  # type: ignore[union-attr]
    except TypeError:
        raise mismatch(
            f"{what} of {name} is an integer or a tuple of integers, not {brief_repr(given)}"
        ) from None


def as_integer(name: str, what: str, given: int, least: int | None = None) -> int:
    """Return an integer that is at least `least`.

    Examples
    --------
    >>> as_integer("conv2d", "stride", 2, 1)
    2
    """
    try:
        number = operator.index(given)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        raise mismatch(f"{what} of {name} is {wanted}, not {brief_repr(given)}")
    return number


def as_float(name: str, what: str, given: float) -> float:
    """Return a scalar setting as a float."""
    if isinstance(given, int | float | np.number):
        return float(given)
    raise mismatch(f"{what} of {name} is a number, not {brief_repr(given)}")


def as_indices(name: str, places: Any) -> np.ndarray[Any, Any]:
    """Return indices as an array of integers.

    Examples
    --------
    >>> as_indices("take", [2, 0])
    array([2, 0])
    """
    try:
        indices = np.asarray(places)
    except (TypeError, ValueError):
        indices = np.array(None)
    if indices.dtype.kind not in "iu" and not (indices.size == 0 and indices.dtype.kind == "f"):
        kind = type(places).__name__ if indices.dtype.kind == "O" else str(indices.dtype)
        raise mismatch(f"{name} needs integers as indices, not {kind}")
    return indices.astype(np.int64)


def brief_repr(value: Any) -> str:
    """Return a short representation of a value for messages."""
    text = repr(value) if isinstance(value, int | float | str | tuple | list) else ""
    return text if 0 < len(text) < 40 else type(value).__name__


# --- keys of integers and slices -----------------------------------------------------------------


def static_key(key: Any, shape: Shape) -> tuple[Any, ...]:
    """Return an indexing key with one entry per axis, slices as ``(start, stop, step)``.

    Parameters
    ----------
    key : int, slice, Ellipsis or tuple of them
        As between NumPy's brackets.
    shape : tuple of int
        The shape that is indexed.

    Raises
    ------
    IndexingError
        An index is out of bounds, or there are too many.

    Examples
    --------
    >>> static_key((slice(1, None), -1), (4, 3))
    ((1, 4, 1), 2)
    """
    entries = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [entry for entry in entries if entry is Ellipsis]:
        place = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
        missing = len(shape) - (len(entries) - 1)
        entries[place : place + 1] = [slice(None)] * missing
    entries += [slice(None)] * (len(shape) - len(entries))
    if len(entries) > len(shape):
        raise at_users_line(IndexingError, f"{len(entries)} indices for the shape {shape}")
    return tuple(_static_entry(entry, axis, shape) for axis, entry in enumerate(entries))


def _static_entry(entry: Any, axis: int, shape: Shape) -> Any:
    """Return one axis's entry, bounds checked."""
    size = shape[axis]
    if isinstance(entry, slice):
        try:
            chosen = range(*entry.indices(size))
        except (TypeError, ValueError) as error:
            raise at_users_line(
                IndexingError,
                f"no slice of axis {axis} of the shape {shape}: {error}",
                "starts, stops and steps are integers or None, and a step is not 0",
            ) from None
        stop: int | None = chosen.stop if chosen.stop >= 0 else None
        return (chosen.start, stop, chosen.step)
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        position = int(entry)
        if not -size <= position < size:
            raise at_users_line(
                IndexingError,
                f"index {position} is outside axis {axis} of the shape {shape}",
                f"indices go from {-size} to {size - 1}" if size else "the axis is empty",
            )
        return position % size
    raise at_users_line(
        IndexingError,
        f"{type(entry).__name__} is not a valid index: use static integers and slices",
        "numpy.take takes lists of integers, numpy.where selects by truth values",
    )

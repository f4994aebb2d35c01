"""What users give array functions, checked: values, axes, sizes and whole numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.core.place import at_users_line
from difflab.core.primitive import Shape
from difflab.errors import InputError, ShapeError

__all__ = [
    "Array",
    "Axis",
    "Shape",
    "counted",
    "integers",
    "mismatch",
    "number",
    "one_axis",
    "shape_of",
    "shown",
    "sizes",
    "valued",
    "whole",
]

Array = Any
Axis = int | Sequence[int] | None
KINDS = "biufc"
"""NumPy's kinds of numbers."""


def mismatch(message: str, hint: str | None = None) -> ShapeError:
    """Return the error about shapes that do not fit, at the user's line of Python."""
    return at_users_line(ShapeError, message, hint)


def shape_of(x: Array) -> Shape:
    """Return the shape of a number, an array or a traced value."""
    found = getattr(x, "shape", None)
    return np.shape(_numbers(x)) if found is None else tuple(found)


def valued(x: Any) -> Array:
    """Return lists of numbers as an array, and numbers and what has a shape as they are.

    Raises
    ------
    InputError
        These are no numbers.

    Examples
    --------
    >>> valued([1, 2])
    array([1., 2.])
    """
    kind = type(x)
    if kind is float or hasattr(kind, "__difflab_apply__"):
        return x
    if not hasattr(x, "shape"):
        return _numbers(x) if isinstance(x, list | tuple | range) else _numbers(x)[()]
    if getattr(getattr(x, "dtype", None), "kind", "f") not in KINDS:
        raise _no_numbers(x)
    return x


def _numbers(x: Any) -> np.ndarray[Any, Any]:
    try:
        found = np.asarray(x)
        return found if found.dtype.kind in "c" else np.asarray(found, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise _no_numbers(x) from None


def _no_numbers(x: Any) -> InputError:
    kinds = {type(part) for part in x} if isinstance(x, list | tuple) else {type(x)}
    found = " and ".join(sorted(kind.__name__ for kind in kinds))
    return at_users_line(
        InputError,
        f"an array function takes numbers and arrays of numbers, not {found}",
        "lists are taken where their rows have one length",
    )


def counted(name: str, axis: Axis, shape: Shape) -> tuple[int, ...]:
    """Return axes as sorted negative numbers; all of them where `axis` is None.

    Raises
    ------
    ShapeError
        There is no such axis, or it is given twice, or is no integer.
    """
    rank = len(shape)
    if axis is None:
        return tuple(range(-rank, 0))
    wanted = sizes(name, "axis", axis)
    outside = [entry for entry in wanted if not -rank <= entry < rank]
    if outside:
        raise mismatch(f"{name} along axis {outside[0]} of the shape {shape}")
    found = sorted(entry % rank - rank for entry in wanted)
    if len(set(found)) < len(found):
        raise mismatch(f"{name} takes an axis twice: {wanted}")
    return tuple(found)


def one_axis(name: str, axis: int, shape: Shape) -> int:
    """Return one axis as a negative number."""
    if axis is None:
        raise mismatch(f"{name} needs an axis")
    return counted(name, whole(name, "axis", axis), shape)[0]


def sizes(name: str, what: str, given: int | Sequence[int]) -> tuple[int, ...]:
    """Return an integer, or several, as a tuple of integers.

    Examples
    --------
    >>> sizes("reshape", "shape", 3), sizes("reshape", "shape", [2, -1])
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
            f"{what} of {name} is an integer or a tuple of integers, not {shown(given)}"
        ) from None


def whole(name: str, what: str, given: int, least: int | None = None) -> int:
    """Return an integer, which is not below the least that is allowed.

    Examples
    --------
    >>> whole("conv2d", "stride", 2, 1)
    2
    """
    try:
        found = operator.index(given)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        wanted = "an integer" if least is None else f"an integer from {least} on"
        raise mismatch(f"{what} of {name} is {wanted}, not {shown(given)}")
    return found


def number(name: str, what: str, given: float) -> float:
    """Return a setting that is one number."""
    if isinstance(given, int | float | np.number):
        return float(given)
    raise mismatch(f"{what} of {name} is a number, not {shown(given)}")


def integers(name: str, places: Any) -> np.ndarray[Any, Any]:
    """Return positions as an array of integers.

    Examples
    --------
    >>> integers("take", [2, 0])
    array([2, 0])
    """
    try:
        found = np.asarray(places)
    except (TypeError, ValueError):
        found = np.array(None)
    if found.dtype.kind not in "iu" and not (found.size == 0 and found.dtype.kind == "f"):
        kind = type(places).__name__ if found.dtype.kind == "O" else str(found.dtype)
        raise mismatch(f"{name} needs whole numbers as places, not {kind}")
    return found.astype(np.int64)


def shown(value: Any) -> str:
    """Return how a message shows what was given."""
    text = repr(value) if isinstance(value, int | float | str | tuple | list) else ""
    return text if 0 < len(text) < 40 else type(value).__name__

"""Conversion of a compiled function's arguments and results: float64 arrays, Python floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers
from difflab.errors import PointError
from difflab.execute.lower.ops import FLOAT
from difflab.graph.ir import Shape


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
    """Return Python's numbers as floats; None for anything else, and if one would be rounded.

    Examples
    --------
    >>> plain_numbers([1, 2.5]), plain_numbers([2**53 + 1]), plain_numbers([np.ones(2)])
    ([1.0, 2.5], None, None)
    """
    for value in values:
        if not isinstance(value, float | int):
            return None
    try:
        found = [float(value) for value in values]
    except OverflowError:
        return None
    return found if found == list(values) else None


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

"""NumPy object arrays of nodes, in which operations on arrays are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.core.primitive import Shape

__all__ = ["along", "boxed"]


def boxed(elements: Sequence[Any], shape: Shape) -> Any:
    """Return an object array; NumPy must not look into its elements."""
    array = np.empty(len(elements), dtype=object)
    for place, element in enumerate(elements):
        array[place] = element
    return array.reshape(shape)


def along(axis: int, compute: Callable[..., Sequence[Any]], *arrays: Any) -> Any:
    """Apply a function of lists of elements along an axis of arrays; it returns one list."""
    moved = [np.moveaxis(array, axis, -1) for array in arrays]
    lead = moved[0].shape[:-1]
    lines = [compute(*(array[at].tolist() for array in moved)) for at in np.ndindex(lead)]
    size = len(lines[0]) if lines else 0
    found = boxed([element for line in lines for element in line], (*lead, size))
    return np.moveaxis(found, -1, axis)

"""Rows that move balls into arrays.

NumPy's kernels would make arrays of arrays of one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab.balls.jets import jet
from difflab.primitives.structure import decoded

__all__ = ["pack", "scatter"]


def pack(*parts: Any, ranks: tuple[int, ...]) -> Any:
    """Return numbers and the elements of arrays as one vector."""
    flat: list[Any] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            flat += part.ravel().tolist()
        else:
            flat.append(part)
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found


def scatter(*parts: Any, keys: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Return an array of zeros, with the parts added at their keys."""
    found = np.empty(shape, dtype=object)
    found.fill(jet(0))
    for part, key in zip(parts, keys, strict=True):
        where = decoded(key)
        found[where] = found[where] + part
    return found

"""Rows that move balls into arrays.

NumPy's kernels would make arrays of arrays of one number.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from difflab.balls.jets import jet
from difflab.primitives.structure import decoded

__all__ = ["pack", "scatter"]


def pack(*parts: Any, ranks: tuple[int, ...]) -> Any:
    """Return numbers and the elements of arrays as one vector."""
    flat = (part.ravel().tolist() if isinstance(part, np.ndarray) else [part] for part in parts)
    return np.fromiter(chain.from_iterable(flat), dtype=object)


def scatter(*parts: Any, keys: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Return an array of zeros, with the parts added at their keys."""
    found = np.full(shape, jet(0), dtype=object)
    for part, key in zip(parts, keys, strict=True):
        where = decoded(key)
        found[where] = found[where] + part
    return found

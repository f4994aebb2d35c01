"""Parts of arrays that lists of indices choose, and changes of parts by ``.at``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab.arrays.updates import Updates

Shape = tuple[int, ...]

CHANGES = ("set", "add", "multiply")


def lists(shape: Shape, k: int) -> Any:
    """Return a key of a list of indices for each axis, some elements more than once."""
    return tuple(np.array([k % size, 0, -1, k % size]) for size in shape)


def drawn_lists(draw: Any, shapes: Sequence[Shape]) -> Any:
    """Draw a list of indices for each of some axes, as many for each; None for no elements."""
    shape = shapes[0][: draw(st.integers(1, 3))]
    if not shape or not math.prod(shape):
        return None
    count = draw(st.integers(1, 4))
    return tuple(
        tuple(draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count)))
        for size in shape
    )


def drawn_change(draw: Any, shapes: Sequence[Shape]) -> Any:
    """Draw a change, and rows without repetitions; None for no elements."""
    if not shapes[0] or not shapes[0][0]:
        return None
    rows = st.sets(st.integers(0, shapes[0][0] - 1), min_size=1, max_size=4)
    return draw(st.sampled_from(CHANGES)), tuple(draw(rows))


def key_of(shape: Shape, k: int) -> Any:
    """Return a key that names no element twice, of any kind."""
    size = shape[0]
    keys: list[Any] = [
        np.unique([k % size, size - 1]),
        slice(None, None, 2),
        (Ellipsis, -1),
        np.arange(size) != k % size,
        tuple(np.arange(min(shape))[:: -1 if axis % 2 else 1] for axis in range(len(shape))),
    ]
    return keys[k % len(keys)]


def changed(xp: Any, a: Any, key: Any, name: str, part: Any) -> Any:
    """Change a part by ``.at``; libraries without it select from the whole by a mask."""
    if hasattr(a, "at"):
        options = {} if isinstance(a.at, Updates) else {"unique_indices": True}
        return getattr(a.at[key], name)(part, **options)
    order, chosen = np.zeros(a.shape, np.int64), np.zeros(a.shape, np.bool_)
    chosen[key] = True
    order[key] = np.arange(math.prod(part.shape)).reshape(part.shape)
    flat = xp.concatenate([xp.reshape(part, (-1,)), np.zeros(1)])
    wide = xp.reshape(flat[order.ravel()], a.shape)
    return xp.where(chosen, {"set": wide, "add": a + wide, "multiply": a * wide}[name], a)

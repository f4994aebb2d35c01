"""The row that replaces a part of an array: ``x.at[key].set(part)`` and assignments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Shape, linear
from difflab.primitives.piecewise import where
from difflab.primitives.structure import (
    Arg,
    Array,
    Key,
    as_array,
    broadcast,
    common_batch,
    decoded,
    index,
    opened,
    placed,
    scatter,
    stacks,
    sum_,
)

__all__ = ["replace"]


def chosen(key: Key, shape: Shape) -> Array:
    """Return the truth values that hold at the elements that a stored key selects.

    Examples
    --------
    >>> chosen(((0, 3, 2),), (3,)).tolist()
    [True, False, True]
    """
    mask = np.zeros(shape, dtype=bool)
    mask[decoded(key)] = True
    return mask


def _replace(xp: ModuleType, x: Array, part: Array, *, key: Key, ranks: tuple[int, int]) -> Array:
    dtype = _joint(x, part) if xp is np else None
    x, part = as_array(xp, x), as_array(xp, part)
    shape = x.shape[x.ndim - ranks[0] :]
    axes = sum(isinstance(entry, tuple) for entry in key)
    if xp is not np:
        marks = xp.asarray(chosen(key, shape))
        if ranks[1] == 0:  # one number
            opened = part.reshape(part.shape + (1,) * ranks[0])
            # Not every library's where has the derivative of an argument that it broadcasts.
            return xp.where(marks, opened * xp.ones(shape, dtype=x.dtype), x)
        out = xp.zeros(part.shape[: part.ndim - axes] + shape, dtype=part.dtype)
        return xp.where(marks, placed(xp, out, decoded(key), part), x)
    if ranks[1] < axes:  # one number
        part = part.reshape(part.shape + (1,) * axes)
    out = np.empty(common_batch(xp, (x, part), (ranks[0], axes)) + shape, dtype)
    out[...] = x
    out[(..., *decoded(key))] = part
    return out


def _replacer(xp: ModuleType, *, key: Key, ranks: tuple[int, int]) -> Callable[..., Array]:
    """Return `_replace` for values without batch axes; with NumPy the key is decoded once."""
    if xp is not np:
        return partial(_replace, xp, key=key, ranks=ranks)
    places = (..., *decoded(key))

    def replaced(x: Array, part: Array) -> Array:
        out = np.array(x, _joint(x, part), order="C")
        out[places] = part
        return out

    return replaced


def _joint(x: Array, part: Any) -> Any:
    """Return the common dtype, to which Python scalars adapt; object if a value is not numeric.

    Examples
    --------
    >>> _joint(np.zeros(2, np.float32), 1.0), _joint(np.zeros(2, object), object())
    (dtype('float32'), dtype('O'))
    """
    try:
        return np.result_type(x, part)
    except TypeError:  # an expression, a ball
        return np.dtype(object)


def _cotangent(
    t: Any, position: int, shapes: tuple[Shape, ...], *, key: Key, ranks: tuple[int, int]
) -> Any:
    """Return the cotangent of the array, 0 where it is replaced, or of its new part."""
    if position == 0:
        return replace(t, 0, key=key, ranks=(ranks[0], 0))
    part = index(t, key=key, rank=ranks[0])
    rank = len(part.shape)
    if rank == ranks[1]:
        return part
    return sum_(part, axes=tuple(range(-rank, 0)), rank=rank)


def _selection(x: Any, part: Any, *, key: Key, ranks: tuple[int, int]) -> Any:
    """Return the same values by a selection."""
    whole = scatter(part, keys=(key,), shape=x.shape) if ranks[1] else part
    return where(chosen(key, x.shape), whole, x)


def _replace_stack(size: int, args: list[Arg], *, key: Key, ranks: tuple[int, int]) -> Any:
    """Replace a part of each array; a number of each is spread over its part."""
    (x, part), key = stacks(size, args), ((0, size, 1), *key)
    whole = index(x, key=key, rank=ranks[0] + 1)
    if ranks[1] + 1 < whole.ndim:
        part = broadcast(opened(part, whole.ndim), shape=whole.shape, rank=whole.ndim)
    return replace(x, part, key=key, ranks=(ranks[0] + 1, whole.ndim))


# `part` has the shape of x[key], or is one number; `ranks` are those of the two.
replace: Primitive = Primitive(
    name="replace",
    kernel=_replace,
    rule=linear(_cotangent, selects=(0,)),
    arity=2,
    structural=True,
    sympy=None,
    shape=lambda shapes, *, key, ranks: shapes[0],
    expansion=_selection,
    unbatched=_replacer,
    stacked=_replace_stack,
)

"""Rows that draw random numbers, a deterministic function of a key.

The generator is counter-based: number k of a key is a hash of the key and of k, by Threefry-2x32
with 20 rounds. Nothing is kept between calls, so a draw is pure like every other row, and a
replay, a checkpoint and another target draw the same numbers. Numbers and keys are those of
`jax.random` for float64.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, *Parallel random numbers: as easy as
1, 2, 3* (2011).
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import special_functions
from difflab.core.primitive import Primitive, Shape, elementwise

__all__ = ["random_keys", "random_normal", "random_uniform"]

Array = Any

WORD = 2**32
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
FRACTION_BITS = 52
DISCARDED = 12
"""Of the 64 bits of a draw, so that `FRACTION_BITS` are left."""


def hashed(xp: ModuleType, key: Array, size: int) -> tuple[Array, Array]:
    """Return the two words that Threefry makes of 0, 1, …, size − 1, along a new last axis.

    Examples
    --------
    >>> [int(word[0]) for word in hashed(np, np.array([0.0, 0.0]), 1)]  # Random123's first vector
    [1797259609, 2579123966]
    """
    words = xp.where(xp.isfinite(key), xp.floor(key), 0.0) % WORD
    first, second = (words[..., part, None].astype(xp.uint32) for part in (0, 1))
    keys = (first, second, first ^ second ^ xp.asarray(PARITY, dtype=xp.uint32))
    x, y = first, second + xp.arange(size, dtype=xp.uint32)
    x = x + xp.zeros_like(y)
    for group in range(5):
        for bits in ROTATIONS[group % 2]:
            x = x + y
            y = x ^ (y << bits | y >> (32 - bits))
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + xp.asarray(group + 1, dtype=xp.uint32)
    return x, y


def _keys(xp: ModuleType, key: Array, *, count: int) -> Array:
    return xp.stack(hashed(xp, key, count), axis=-1).astype(xp.float64)


def _uniform(xp: ModuleType, key: Array, *, shape: Shape) -> Array:
    """Return multiples of 2⁻⁵² from 0 to below 1."""
    high, low = hashed(xp, key, math.prod(shape))
    bits = high.astype(xp.float64) * 2.0 ** (32 - DISCARDED)
    bits = bits + (low >> DISCARDED).astype(xp.float64)
    return (bits * 2.0**-FRACTION_BITS).reshape(key.shape[:-1] + shape)


def _normal(xp: ModuleType, key: Array, *, shape: Shape) -> Array:
    """Return √2·erf⁻¹(v) for v between −1 and 1, symmetric about 0; v is exact."""
    v = 2.0 * _uniform(xp, key, shape=shape) - (1.0 - 2.0**-53)
    return math.sqrt(2.0) * special_functions(xp).erfinv(v)


def whole_key(key: Array) -> np.ndarray[Any, Any]:
    """Return keys of any dtype as float64, which represents their words exactly."""
    return np.asarray(key).astype(np.float64)


def _exact(library: Any, key: Array, shape: Shape) -> Array:
    """Return the uniform draws as values of `library`; float64 represents them exactly."""
    return np.frompyfunc(library.mpf, 1, 1)(_uniform(np, whole_key(key), shape=shape))


def _exact_normal(mp: Any, key: Array, *, shape: Shape) -> Array:
    v = 2 * _exact(mp, key, shape) - (1 - mp.mpf(2) ** -53)
    return mp.sqrt(2) * np.frompyfunc(mp.erfinv, 1, 1)(v)


def _drawn_shape(shapes: tuple[Shape, ...], *, shape: Shape) -> Shape:
    return shapes[0][:-1] + shape


def _drawn_brackets(whole: Shape, *, shape: Shape) -> str:
    return str(list(shape)) if shape else ""


random_keys: Primitive = Primitive(
    name="random_keys",
    kernel=_keys,
    ulps=0.0,
    rule=elementwise(None),
    mpmath=lambda mp, key, *, count: np.frompyfunc(mp.mpf, 1, 1)(
        _keys(np, whole_key(key), count=count)
    ),
    brackets=lambda shape, *, count: f"[{count}]",
    analytic=False,
    shape=lambda shapes, *, count: (*shapes[0][:-1], count, 2),
)
random_uniform: Primitive = Primitive(
    name="random_uniform",
    kernel=_uniform,
    rule=elementwise(None),
    mpmath=lambda mp, key, *, shape: _exact(mp, key, shape),
    brackets=_drawn_brackets,
    analytic=False,
    shape=_drawn_shape,
)
random_normal: Primitive = Primitive(
    name="random_normal",
    kernel=_normal,
    rule=elementwise(None),
    mpmath=_exact_normal,
    brackets=_drawn_brackets,
    analytic=False,
    shape=_drawn_shape,
)

"""Rows of two vectors: their convolution, and the correlation of one with parts of the other.

Each is the transpose of the other, in both arguments. Axes before the last one, which both have,
and batch axes before those, are stacks.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, bilinear

__all__ = ["convolve", "correlate"]

Array = Any


def _windows(xp: ModuleType, a: Array, v: Array) -> Array:
    """Return the product of `v` with every part of `a` of its length."""
    size = v.shape[-1]
    count = a.shape[-1] - size + 1
    places = xp.asarray((np.arange(count)[:, None] + np.arange(size)).ravel())
    parts = xp.take(a, places, axis=-1).reshape((*a.shape[:-1], count, size))
    return xp.matmul(parts, v[..., None])[..., 0]


def _convolve(xp: ModuleType, a: Array, v: Array) -> Array:
    if xp is np and a.ndim == v.ndim == 1:
        return np.convolve(a, v)
    margin = xp.zeros((*a.shape[:-1], v.shape[-1] - 1), dtype=a.dtype)
    return _windows(xp, xp.concatenate([margin, a, margin], axis=-1), _turned(xp, v))


def _correlate(xp: ModuleType, a: Array, v: Array) -> Array:
    if xp is np and a.ndim == v.ndim == 1:
        return np.convolve(a, v[::-1], "valid")  # `np.correlate` would conjugate complex steps
    return _windows(xp, a, v)


def _turned(xp: ModuleType, v: Array) -> Array:
    return xp.take(v, xp.asarray(np.arange(v.shape[-1])[::-1].copy()), axis=-1)


convolve: Primitive = Primitive(
    name="convolve",
    kernel=_convolve,
    rule=bilinear(lambda t, a, v: correlate(t, v), lambda t, a, v: correlate(t, a)),
    flint="convolve",
    shape=lambda shapes: (*shapes[0][:-1], shapes[0][-1] + shapes[1][-1] - 1),
)
correlate: Primitive = Primitive(
    name="correlate",
    kernel=_correlate,
    rule=bilinear(lambda t, a, v: convolve(t, v), lambda t, a, v: correlate(a, t)),
    flint="correlate",
    shape=lambda shapes: (*shapes[0][:-1], shapes[0][-1] - shapes[1][-1] + 1),
)

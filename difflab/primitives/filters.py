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


def _convolve(xp: ModuleType, a: Array, v: Array) -> Array:
    if xp is np and a.ndim == v.ndim == 1:
        return np.convolve(a, v)
    last = a.shape[-1] - 1
    places = np.arange(last + v.shape[-1])[:, None] - np.arange(v.shape[-1])
    inside = (places >= 0) & (places <= last)
    parts = a[..., xp.asarray(np.clip(places, 0, last))]
    if xp is np and v.dtype.kind in "fc" and np.isfinite(v).all():
        parts[..., ~inside] = 0.0
        return np.matmul(parts, v[..., None])[..., 0]
    # Zeros around `a` would be multiplied by infinities.
    return xp.sum(xp.where(xp.asarray(inside), parts * v[..., None, :], 0.0), axis=-1)


def _correlate(xp: ModuleType, a: Array, v: Array) -> Array:
    if xp is np and a.ndim == v.ndim == 1:
        return np.convolve(a, v[::-1], "valid")  # `np.correlate` would conjugate complex steps
    places = np.arange(a.shape[-1] - v.shape[-1] + 1)[:, None] + np.arange(v.shape[-1])
    return xp.matmul(a[..., xp.asarray(places)], v[..., None])[..., 0]


convolve: Primitive = Primitive(
    name="convolve",
    kernel=_convolve,
    rule=bilinear(lambda t, a, v: correlate(t, v), lambda t, a, v: correlate(t, a)),
    shape=lambda shapes: (*shapes[0][:-1], shapes[0][-1] + shapes[1][-1] - 1),
)
correlate: Primitive = Primitive(
    name="correlate",
    kernel=_correlate,
    rule=bilinear(lambda t, a, v: convolve(t, v), lambda t, a, v: correlate(a, t)),
    shape=lambda shapes: (*shapes[0][:-1], shapes[0][-1] - shapes[1][-1] + 1),
)

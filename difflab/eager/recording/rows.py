"""Rows that only the tape has: casts, zeros, and masks for rows that mix elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab.core.devices import sent_to
from difflab.core.primitive import Primitive, elementwise, linear

cast: Primitive = Primitive(
    name="cast",
    arity=1,
    kernel=lambda xp, x, *, dtype: x.astype(dtype, copy=False),
    rule=linear(lambda t, position, shapes, *, dtype: t),  # the sweep casts to the edge's dtype
    structural=True,
    shape=lambda shapes, *, dtype: shapes[0],
)

copied: Primitive = Primitive(
    name="copied",
    arity=1,
    kernel=lambda xp, x: np.array(x, order="C")[()] if xp is np else xp.array(x),
    rule=linear(lambda t, position, shapes: t),
    structural=True,
    shape=lambda shapes: shapes[0],
)

# A copy on another device: `home` and `origin` are the array modules of the two.
sent: Primitive = Primitive(
    name="sent",
    arity=1,
    kernel=lambda xp, x, *, home, origin: sent_to(home, x),
    rule=linear(lambda t, position, shapes, *, home, origin: sent(t, home=origin, origin=home)),
    structural=True,
    shape=lambda shapes, *, home, origin: shapes[0],
)


def _zeros(xp: Any, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    return xp.zeros(shape, dtype)


zeros: Primitive = Primitive(
    name="zeros",
    arity=0,
    kernel=_zeros,
    rule=elementwise(),
    structural=True,
    shape=lambda shapes, *, shape, dtype: shape,
)

# `broadcast` for masks, which keeps truth values.
widened: Primitive = Primitive(
    name="widened",
    arity=1,
    kernel=lambda xp, mask, *, shape: xp.broadcast_to(mask, shape),
    rule=elementwise(None),
    boolean=True,
    truths=(0,),
    structural=True,
    shape=lambda shapes, *, shape: shape,
)
# The mask of elements that depend on all elements of a masked array: true everywhere or nowhere.
reached: Primitive = Primitive(
    name="reached",
    arity=1,
    kernel=lambda xp, mask, *, shape: xp.broadcast_to(mask.any(), shape),
    rule=elementwise(None),
    boolean=True,
    truths=(0,),
    structural=True,
    shape=lambda shapes, *, shape: shape,
)

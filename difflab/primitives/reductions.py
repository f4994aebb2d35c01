"""Rows that reduce or mix elements along axes: prod, max, norm, logsumexp, softmax.

Each takes `axes`, counted from the end because batch axes lead, and the core `rank` it was
built for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, elementwise, tangent
from difflab.primitives.exponential import exp
from difflab.primitives.movement import concatenate, transpose
from difflab.primitives.piecewise import greater, where
from difflab.primitives.structure import (
    index,
    picked,
    reduced_shape,
    reshape,
    spread_over,
    sum_,
    unless_last,
)

__all__ = [
    "argmax",
    "is_maximum",
    "log_softmax",
    "logsumexp",
    "max_",
    "min_",
    "norm",
    "prod",
    "softmax",
]

Array = Any
Axes = tuple[int, ...]

BACKWARDS = (slice(None, None, -1),)
NEGLIGIBLE = -1_000_000
"""Exponents below this are zero in mpmath at any working precision in use."""


def _weighted(weight: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tangent map ẏ = Σ w·ẋ of a reduction whose slopes are ``weight(y, x, axes)``."""

    def slope(t: Any, y: Any, x: Any, *, axes: Axes, rank: int) -> Any:
        return sum_(t * weight(spread_over(y, x.shape, axes), x, axes), axes=axes, rank=rank)

    return slope


# --- products ---------------------------------------------------------------------------------


def _others(y: Any, x: Any, axes: Axes) -> Any:
    """Return for each element the product of the others, without division.

    Products of pairs, of pairs of pairs and so on up a tree; then down again, where the missing
    factor of a node is that of its parent times the neighbour. Linear in the number of elements,
    and correct where some are zero.
    """
    rank = len(x.shape)
    order = tuple(a for a in range(-rank, 0) if a not in axes) + axes
    lead = tuple(x.shape[axis] for axis in order[: rank - len(axes)])
    size = math.prod(x.shape[axis] for axis in axes)
    flat = reshape(transpose(x, axes=order), shape=(*lead, size), rank=rank)
    levels = [flat]
    while levels[-1].shape[-1] > 2:
        levels.append(_paired(levels[-1]))
    top = levels.pop()
    lacking = _every(top, 1, None, -1) if top.shape[-1] == 2 else top**0
    for level in reversed(levels):
        lacking = _unpaired(lacking, level)
    whole = reshape(lacking, shape=tuple(x.shape[a] for a in order), rank=len(lead) + 1)
    return transpose(whole, axes=tuple(order.index(a) - rank for a in range(-rank, 0)))


def _every(x: Any, start: int, stop: int | None, step: int) -> Any:
    key = (*((0, size, 1) for size in x.shape[:-1]), (start, stop, step))
    return index(x, key=key, rank=len(x.shape))


def _paired(x: Any) -> Any:
    """Multiply neighbours; the last of an odd number stays."""
    size = x.shape[-1]
    even = size - size % 2
    pairs = _every(x, 0, even, 2) * _every(x, 1, even, 2)
    if even == size:
        return pairs
    return concatenate(pairs, _every(x, even, size, 1), axis=-1, rank=len(x.shape))


def _unpaired(lacking: Any, level: Any) -> Any:
    """Return the missing factor of each element of a level, from those of the pairs."""
    size, rank = level.shape[-1], len(level.shape)
    even = size - size % 2
    above = _every(lacking, 0, even // 2, 1)
    opened = (*level.shape[:-1], even // 2, 1)
    sides = [
        reshape(above * _every(level, start, even, 2), shape=opened, rank=rank) for start in (1, 0)
    ]
    both = concatenate(*sides, axis=-1, rank=rank + 1)
    flat = reshape(both, shape=(*level.shape[:-1], even), rank=rank + 1)
    if even == size:
        return flat
    last = _every(lacking, even // 2, even // 2 + 1, 1)
    return concatenate(flat, last, axis=-1, rank=rank)


# --- extremes ---------------------------------------------------------------------------------


def _is_maximum(xp: ModuleType, x: Array, *, axes: Axes, rank: int) -> Array:
    """Mark the last maximum along `axes`."""
    places = tuple(range(-len(axes), 0))
    moved = xp.moveaxis(x, axes, places)
    flat = moved.reshape((*moved.shape[: x.ndim - len(axes)], -1))
    size = flat.shape[-1]
    last = size - 1 - xp.argmax(picked(xp, flat, BACKWARDS), axis=-1)
    marks = xp.arange(size) == last[..., None]
    return xp.moveaxis(marks.reshape(moved.shape), places, axes)


def _largest(t: Any, y: Any, x: Any, *, axes: Axes, rank: int) -> Any:
    chosen = is_maximum(x, axes=axes, rank=rank)
    return sum_(where(chosen, t, 0), axes=axes, rank=rank)


def _smallest(t: Any, y: Any, x: Any, *, axes: Axes, rank: int) -> Any:
    chosen = is_maximum(-x, axes=axes, rank=rank)
    return sum_(where(chosen, t, 0), axes=axes, rank=rank)


def _folded(name: str) -> Callable[..., Any]:
    """Return SymPy's Max or Min over the axes."""

    def fold(sympy: Any, x: Array, *, axes: Axes, rank: int) -> Array:
        for axis in sorted(axes):
            x = np.frompyfunc(getattr(sympy, name), 2, 1).reduce(x, axis=axis)
        return x

    return fold


# --- norms and exponentials -------------------------------------------------------------------


def _norm(xp: ModuleType, x: Array, *, axes: Axes, rank: int) -> Array:
    """√Σx² without overflow or underflow of the squares: a power of two scales exactly."""
    scale = xp.max(xp.abs(xp.real(x)), axis=axes, keepdims=True)
    scale = xp.where((scale == 0) | ~xp.isfinite(scale), 1.0, scale)
    scale = xp.exp2(xp.floor(xp.log2(scale)))
    root = xp.sqrt(xp.sum((x / scale) ** 2, axis=axes))
    return root * scale.reshape(root.shape)


def _direction(y: Any, x: Any, axes: Axes) -> Any:
    """x/‖x‖, and 0 at the origin."""
    return where(y == 0, 0, x / y)


def _shifted(xp: ModuleType, x: Array, axes: Axes) -> tuple[Array, Array]:
    """Return the maximum m along the axes, and eˣ⁻ᵐ."""
    top = xp.max(xp.real(x), axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0.0)
    return top, xp.exp(x - top)


def _logsumexp(xp: ModuleType, x: Array, *, axes: Axes, rank: int) -> Array:
    """Log Σeˣ without overflow; accurate also where the sum is close to 1."""
    top, parts = _shifted(xp, x, axes)
    total = xp.sum(parts, axis=axes)
    return xp.log(total) + top.reshape(total.shape)


def _softmax(xp: ModuleType, x: Array, *, axes: Axes, rank: int) -> Array:
    """eˣ/Σeˣ without overflow."""
    _, parts = _shifted(xp, x, axes)
    return parts / xp.sum(parts, axis=axes, keepdims=True)


def _log_softmax(xp: ModuleType, x: Array, *, axes: Axes, rank: int) -> Array:
    """Log softmax(x): subtracting the maximum first leaves no large terms."""
    top, parts = _shifted(xp, x, axes)
    return (x - top) - xp.log(xp.sum(parts, axis=axes, keepdims=True))


def _exact_shifted(library: Any, x: Array, axes: Axes) -> tuple[Array, Array]:
    """Return a shift m and eˣ⁻ᵐ in exact arithmetic; the shift is 0 for SymPy's expressions."""
    if hasattr(library, "Symbol"):
        return 0 * np.sum(x, axis=axes, keepdims=True), np.frompyfunc(library.exp, 1, 1)(x)
    exp = np.frompyfunc(lambda v: library.zero if v < NEGLIGIBLE else library.exp(v), 1, 1)
    top = np.max(x, axis=axes, keepdims=True)
    return top, exp(x - top)


def _exact_logsumexp(library: Any, x: Array, *, axes: Axes, rank: int) -> Array:
    top, parts = _exact_shifted(library, x, axes)
    return np.frompyfunc(library.log, 1, 1)(np.sum(parts, axis=axes)) + np.sum(top, axis=axes)


def _exact_log_softmax(library: Any, x: Array, *, axes: Axes, rank: int) -> Array:
    top, parts = _exact_shifted(library, x, axes)
    total = np.sum(parts, axis=axes, keepdims=True)
    return (x - top) - np.frompyfunc(library.log, 1, 1)(total)


def _exact_softmax(library: Any, x: Array, *, axes: Axes, rank: int) -> Array:
    _, parts = _exact_shifted(library, x, axes)
    return parts / np.sum(parts, axis=axes, keepdims=True)


def _exact_norm(library: Any, x: Array, *, axes: Axes, rank: int) -> Array:
    return np.frompyfunc(library.sqrt, 1, 1)(np.sum(x * x, axis=axes))


def _centred(t: Any, shares: Any, large: Any, *, axes: Axes, rank: int) -> Any:
    """Return t − Σ pᵢtᵢ, where the shares p sum to 1 and `large` marks one above ½, if any is.

    Both terms are first computed relative to the t of that share. Otherwise 1 − p cancels, and is 0
    where p rounds to 1.
    """

    def total(terms: Any) -> Any:
        return spread_over(sum_(terms, axes=axes, rank=rank), t.shape, axes)

    relative = t - total(where(large, t, 0))
    return relative - total(shares * relative)


def _softmax_slope(t: Any, y: Any, x: Any, *, axes: Axes, rank: int) -> Any:
    return y * _centred(t, y, greater(y, 0.5), axes=axes, rank=rank)


def _log_softmax_slope(t: Any, y: Any, x: Any, *, axes: Axes, rank: int) -> Any:
    return _centred(t, exp(y), greater(y, -math.log(2)), axes=axes, rank=rank)


# --- the rows ---------------------------------------------------------------------------------


prod: Primitive = Primitive(
    name="prod",
    kernel=lambda xp, x, *, axes, rank: xp.prod(x, axis=axes),
    rule=tangent(_weighted(_others)),
    shape=reduced_shape,
    empty=1.0,
)
max_: Primitive = Primitive(
    name="max",
    kernel=lambda xp, x, *, axes, rank: xp.max(x, axis=axes),
    ulps=0.0,
    rule=tangent(_largest),
    sympy=_folded("Max"),
    mpmath=None,
    flint="largest",
    convention="of one array: at a tie the derivative of its last number",
    analytic=False,
    shape=reduced_shape,
)
min_: Primitive = Primitive(
    name="min",
    kernel=lambda xp, x, *, axes, rank: xp.min(x, axis=axes),
    ulps=0.0,
    rule=tangent(_smallest),
    sympy=_folded("Min"),
    mpmath=None,
    flint="smallest",
    convention="of one array: at a tie the derivative of its last number",
    analytic=False,
    shape=reduced_shape,
)
# Where the derivative of `max` flows.
is_maximum: Primitive = Primitive(
    name="is_maximum",
    kernel=_is_maximum,
    ulps=0.0,
    rule=elementwise(None),
    analytic=False,
    boolean=True,
    shape=lambda shapes, *, axes, rank: shapes[0],
)
argmax: Primitive = Primitive(
    name="argmax",
    kernel=lambda xp, x, *, axes, rank: xp.argmax(x, axis=axes[0]) * 1.0,
    ulps=0.0,
    rule=elementwise(None),
    convention="derivative 0",
    analytic=False,
    shape=reduced_shape,
    dtype="float64",
)
norm: Primitive = Primitive(
    name="norm",
    kernel=_norm,
    rule=tangent(_weighted(_direction)),
    sympy=_exact_norm,
    convention="derivative 0 at the origin",
    shape=reduced_shape,
    empty=0.0,
)
logsumexp: Primitive = Primitive(
    name="logsumexp",
    kernel=_logsumexp,
    rule=tangent(_weighted(lambda y, x, axes: softmax(x, axes=axes, rank=len(x.shape)))),
    sympy=_exact_logsumexp,
    shape=reduced_shape,
    empty=-math.inf,
)
softmax: Primitive = Primitive(
    name="softmax",
    kernel=_softmax,
    rule=tangent(_softmax_slope),
    brackets=unless_last,
    sympy=_exact_softmax,
    shape=lambda shapes, *, axes, rank: shapes[0],
)
log_softmax: Primitive = Primitive(
    name="log_softmax",
    kernel=_log_softmax,
    rule=tangent(_log_softmax_slope),
    brackets=unless_last,
    sympy=_exact_log_softmax,
    shape=lambda shapes, *, axes, rank: shapes[0],
)

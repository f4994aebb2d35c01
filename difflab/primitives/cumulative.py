"""Rows that accumulate along an axis: running sums and products, linear recurrences, sums.

The linear recurrence :math:`y_0 = b_0`, :math:`y_i = a_{i-1} y_{i-1} + b_i` is closed under
differentiation: its tangent map is the recurrence with the same coefficients, and its transpose
is the recurrence that starts at the other end. The derivative of a running product is a linear
recurrence whose coefficients are the factors, without a division, so that it holds at zeros.

These rows take `axes`, the one axis counted from the end, and the core `rank` they were built for.
`sum_in_order` adds many terms along the last axis, rounded as a chain of additions rounds them.
Batch axes lead.
"""

from __future__ import annotations

import math
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import PYTORCH
from difflab.core.primitive import Primitive, Shape, Transpose, linear, tangent
from difflab.primitives.movement import concatenate
from difflab.primitives.structure import broadcast, counted, index, reshape, scatter, unless_last

__all__ = ["cumprod", "cumsum", "linear_recurrence", "sum_in_order"]


Array = Any
Axes = tuple[int, ...]

STEP, LINE, ELEMENT = 2_000, 10_000, 7
"""Nanoseconds for a step of many lines at once, and for a call of BLAS and its elements."""

# --- parts along an axis ----------------------------------------------------------------------


def _key(shape: tuple[int, ...], axis: int, entry: tuple[Any, ...]) -> tuple[Any, ...]:
    key: list[Any] = [(0, size, 1) for size in shape]
    key[axis] = entry
    return tuple(key)


def _reversed(x: Any, axis: int) -> Any:
    key = _key(x.shape, axis, (x.shape[axis] - 1, None, -1))
    return index(x, key=key, rank=len(x.shape))


def _but_last(x: Any, axis: int) -> Any:
    return index(x, key=_key(x.shape, axis, (0, x.shape[axis] - 1, 1)), rank=len(x.shape))


def _but_first(x: Any, axis: int) -> Any:
    return index(x, key=_key(x.shape, axis, (1, x.shape[axis], 1)), rank=len(x.shape))


# --- kernels ----------------------------------------------------------------------------------


def _linear_recurrence(xp: ModuleType, a: Array, b: Array, *, axes: Axes, rank: int) -> Array:
    """Compute element after element; on a device by doubling, where that gives the same."""
    batch = np.broadcast_shapes(a.shape[: a.ndim - rank], b.shape[: b.ndim - rank])
    a, b = (
        xp.moveaxis(
            part
            if tuple(part.shape[: part.ndim - rank]) == batch
            else xp.broadcast_to(part, batch + tuple(part.shape[part.ndim - rank :])),
            axes[0],
            -1,
        )
        for part in (a, b)
    )
    compute = COMPUTED.get(xp.__name__, _on_a_device)
    return xp.moveaxis(compute(xp, a, b), -1, axes[0])


def _in_order(xp: ModuleType, a: Array, b: Array) -> Array:
    """Compute line by line or step by step, whichever takes fewer calls, along the last axis."""
    dtype, size, lines = np.result_type(a, b), b.shape[-1], math.prod(b.shape[:-1])
    by_line = dtype.char in "fdFD" and lines * (LINE + ELEMENT * size) < STEP * size
    # BLAS may skip products with zero, which are nan where a coefficient is not finite.
    if by_line and np.isfinite(a).all():
        return _solved(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    out = np.empty((size, *b.shape[:-1]), dtype=dtype)
    steps, terms = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    if size:
        out[0] = terms[0]
    for place in range(1, size):
        out[place] = steps[place - 1] * out[place - 1] + terms[place]
    return np.moveaxis(out, 0, -1)


def _solved(a: Array, b: Array) -> Array:
    """Solve each line's triangular system, with ones on its diagonal and −a below it."""
    from scipy.linalg.blas import get_blas_funcs

    (solve,) = get_blas_funcs(("tbsv",), dtype=b.dtype)
    size = b.shape[-1]
    band = np.zeros((size, 2), dtype=b.dtype)
    out = np.array(b, order="C")
    for coefficients, line in zip(a.reshape(-1, size - 1), out.reshape(-1, size), strict=True):
        np.negative(coefficients, out=band[:-1, 1])
        solve(1, band.T, line, lower=1, diag=1, overwrite_x=1)
    return out


def _in_steps(xp: ModuleType, a: Array, b: Array) -> Array:
    """Compute step by step; each calls the library."""
    if not b.shape[-1]:
        return b
    solution = [b[..., 0]]
    for place in range(1, b.shape[-1]):
        solution.append(a[..., place - 1] * solution[-1] + b[..., place])
    return xp.stack(solution, axis=-1)


def _scanned(xp: ModuleType, a: Array, b: Array) -> Array:
    """Compute step by step, in a loop that JAX compiles."""
    if not b.shape[-1]:
        return b
    scan = import_module("jax.lax").scan
    steps, terms = (xp.moveaxis(x.astype(xp.result_type(a, b)), -1, 0) for x in (a, b))

    def step(y: Array, of_step: tuple[Array, Array]) -> tuple[Array, Array]:
        y = of_step[0] * y + of_step[1]
        return y, y

    later = scan(step, terms[0], (steps, terms[1:]))[1]
    return xp.moveaxis(xp.concatenate([terms[:1], later]), 0, -1)


def _on_a_device(xp: ModuleType, a: Array, b: Array) -> Array:
    """Compute by a parallel prefix scan, where that equals the sequential recurrence."""
    if math.prod(a.shape) and _in_range(xp, a, b):
        scanned = _doubled(xp, a, b)
        if xp.all(xp.isfinite(scanned)):
            return scanned
    return _in_steps(xp, a, b)


def _in_range(xp: ModuleType, a: Array, b: Array) -> bool:
    """Whether products of coefficients neither overflow nor lose digits that the results have.

    The logarithm of aᵢ⋯aⱼ is the difference of two sums of logarithms. Products of
    coefficients up to 1 that underflow are subnormal in the results, unless terms are large.
    """
    sizes, kind = xp.abs(a), np.finfo(b.dtype)
    if xp.max(sizes) <= 1 and xp.max(xp.abs(b)) * b.shape[-1] * kind.eps < 1:
        return True
    sums = xp.cumsum(xp.log2(xp.where(sizes == 0, 1.0, sizes)), axis=-1)
    above, below = xp.max(sums, axis=-1), xp.min(sums, axis=-1)
    spread = xp.maximum(above, 0.0) - xp.minimum(below, 0.0)
    return bool(xp.max(spread) < 0.9 * kind.maxexp)


def _doubled(xp: ModuleType, a: Array, b: Array) -> Array:
    """Compute y = A y[before] + B for 1, 2, 4, … elements before, until none is left."""
    reach, size = 1, b.shape[-1]
    while reach < size:
        late = a * b[..., : size - reach] + b[..., reach:]
        b = xp.concatenate([b[..., :reach], late], axis=-1)
        a = a[..., reach:] * a[..., : max(a.shape[-1] - reach, 0)]
        reach *= 2
    return b


COMPUTED = {"numpy": _in_order, "jax.numpy": _scanned, PYTORCH: _in_steps}
"""By the array module. Where JAX traces and PyTorch vectorizes, nothing can depend on numbers."""


# --- derivatives ------------------------------------------------------------------------------


def _coefficient_slope(t: Any, y: Any, a: Any, b: Any, *, axes: Axes, rank: int) -> Any:
    """ẏᵢ = aᵢ₋₁ ẏᵢ₋₁ + ȧᵢ₋₁ yᵢ₋₁."""
    (axis,), shape = axes, b.shape
    terms = t * _but_last(y, axis)
    spread = scatter(terms, keys=(_key(shape, axis, (1, shape[axis], 1)),), shape=shape)
    return linear_recurrence(a, spread, axes=axes, rank=rank)


def _backward(t: Any, a: Any, b: Any, *, axes: Axes, rank: int) -> Any:
    """b̄ᵢ = ȳᵢ + aᵢ b̄ᵢ₊₁."""
    (axis,) = axes
    adjoint = linear_recurrence(_reversed(a, axis), _reversed(t, axis), axes=axes, rank=rank)
    return _reversed(adjoint, axis)


def _cumprod_slope(t: Any, y: Any, x: Any, *, axes: Axes, rank: int) -> Any:
    """ẏᵢ = xᵢ ẏᵢ₋₁ + yᵢ₋₁ ẋᵢ."""
    (axis,) = axes
    if x.shape[axis] < 2:
        return t
    first = index(x, key=_key(x.shape, axis, (0, 1, 1)), rank=rank)
    before = concatenate(first**0, _but_last(y, axis), axis=axis, rank=rank)  # 1 in x's dtype
    return linear_recurrence(_but_first(x, axis), t * before, axes=axes, rank=rank)


# --- the rows ---------------------------------------------------------------------------------


def _running(shape: tuple[int, ...], *, axes: Axes, rank: int) -> str:
    """Return the axis, which the language implies of a vector only."""
    return "" if rank == 1 else counted(axes, rank)


cumsum: Primitive = Primitive(
    name="cumsum",
    kernel=lambda xp, x, *, axes, rank: xp.cumsum(x, axis=axes[0]),
    rule=linear(
        lambda t, position, shapes, *, axes, rank: _reversed(
            cumsum(_reversed(t, axes[0]), axes=axes, rank=rank), axes[0]
        )
    ),
    brackets=_running,
    shape=lambda shapes, *, axes, rank: shapes[0],
)
cumprod: Primitive = Primitive(
    name="cumprod",
    kernel=lambda xp, x, *, axes, rank: xp.cumprod(x, axis=axes[0]),
    rule=tangent(_cumprod_slope),
    brackets=_running,
    shape=lambda shapes, *, axes, rank: shapes[0],
)
linear_recurrence: Primitive = Primitive(
    name="linear_recurrence",
    kernel=_linear_recurrence,
    rule=tangent(_coefficient_slope, Transpose(_backward)),
    brackets=unless_last,
    shape=lambda shapes, *, axes, rank: shapes[1],
)


# --- sums in a fixed order -----------------------------------------------------------------------

Places = tuple[tuple[int, int, int], ...]
"""For each part the start, stop and step of its terms' indices in the sum."""


def _sum_in_order(xp: ModuleType, *parts: Array, places: Places, length: int) -> Array:
    """Add up along the last axis, from the first term to the last.

    `xp.sum` adds in pairs, which rounds differently, and a running sum writes every partial sum
    out. Differences cannot be rearranged, so ``((t₁ - (-t₂)) - (-t₃)) - …`` is a plain loop.
    Libraries other than NumPy add in their own order.
    """
    if xp is not np:
        return sum(xp.sum(part, axis=-1) for part in parts)
    lead = np.broadcast_shapes(*(np.shape(part)[:-1] for part in parts))
    negated = np.empty((*lead, length), dtype=np.result_type(*parts))
    for part, indices in zip(parts, places, strict=True):
        _negate(part, negated[..., slice(*indices)])
    first = negated[..., :1]
    _negate(first, first)
    return np.subtract.reduce(negated, axis=-1)


def _negate(x: Array, out: Array) -> None:
    """Write -x. NumPy 2.4's `negative` misreads elements 64 bytes apart where `out` has gaps."""
    np.multiply(x, -1.0, out=out)


def _shape(shapes: tuple[Shape, ...], *, places: Places, length: int) -> Shape:
    return np.broadcast_shapes(*(shape[:-1] for shape in shapes))


def _transposed(
    t: Any, position: int, shapes: tuple[Shape, ...], *, places: Places, length: int
) -> Any:
    """Copy a cotangent to every term."""
    shape = shapes[position]
    rank = len(shape)
    return broadcast(reshape(t, shape=(*shape[:-1], 1), rank=rank - 1), shape=shape, rank=rank)


def _located(
    position: int, *, places: Places, length: int
) -> tuple[tuple[Any, ...], tuple[int]] | None:
    place = places[position]
    whole = range(*slice(*place).indices(length)) == range(length)
    return None if whole else ((place,), (length,))


sum_in_order: Primitive = Primitive(
    name="sum_in_order",
    located=_located,
    arity=None,
    kernel=_sum_in_order,
    rule=linear(_transposed),
    shape=_shape,
)

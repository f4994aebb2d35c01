"""NumPy's differences, integrals and running totals along an axis, products, and polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.arrays.counterparts.joining import broadcast_shape
from difflab.arrays.counterparts.layout import cut, move_axis
from difflab.arrays.given import (
    Axis,
    as_array,
    as_integer,
    as_integers,
    mismatch,
    normalized_axes,
    normalized_axis,
    shape_of,
)
from difflab.core.ownership import shared


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    a = as_array(a)
    if not shape_of(a):
        raise mismatch("diff takes an array, not a scalar")
    along = normalized_axis("diff", axis, a.shape)
    times = as_integer("diff", "n", n, 0)
    if times == 0:
        return shared(a)
    parts = [_beside(part, a, along) for part in (prepend,) if part is not None] + [a]
    parts += [_beside(part, a, along) for part in (append,) if part is not None]
    a = arrays.concatenate(parts, along)
    for _ in range(times):
        a = cut(a, along, 1) - cut(a, along, None, -1)
    return a


def _beside(part: Any, a: Any, along: int) -> Any:
    """Return the padding before or after an array; a scalar is repeated."""
    part = as_array(part)
    if shape_of(part):
        return part
    shape = list(a.shape)
    shape[along] = 1
    return arrays.broadcast_to(part, shape)


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    steps = _diff(arrays.reshape(ary, -1))
    parts = [None if part is None else arrays.reshape(part, -1) for part in (to_begin, to_end)]
    return arrays.concatenate([x for x in (parts[0], steps, parts[1]) if x is not None])


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = as_array(y)
    along = normalized_axis("trapezoid", axis, shape_of(y))
    if x is None:
        step = dx
    elif len(shape_of(as_array(x))) == 1:
        step = _diff(x)
        step = arrays.reshape(step, (*shape_of(step), *(1,) * (-1 - along)))
    else:
        step = _diff(x, axis=along)
    return arrays.sum(step * (cut(y, along, 1) + cut(y, along, None, -1)) / 2.0, along)


# --- gradient ------------------------------------------------------------------------------------


def _gradient(f: Any, *varargs: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    f = as_array(f)
    rank = len(shape_of(f))
    axes = normalized_axes("gradient", axis, f.shape)
    if isinstance(axis, list | tuple):  # in the order that they are named in
        axes = tuple(normalized_axis("gradient", entry, f.shape) for entry in axis)
    if edge_order not in (1, 2):
        raise mismatch("edge_order of gradient is 1 or 2")
    if len(varargs) not in (0, 1, len(axes)) or (
        len(varargs) == 1 != len(axes) and shape_of(as_array(varargs[0]))
    ):
        raise mismatch(f"gradient takes one spacing, or one for each of {len(axes)} axes")
    steps = [1.0] if not varargs else list(varargs)
    steps = steps * len(axes) if len(steps) == 1 else steps
    derivatives = []
    for along, step in zip(axes, steps, strict=True):
        if f.shape[along] < edge_order + 1:
            raise mismatch(f"gradient needs at least {edge_order + 1} numbers along each axis")
        derivatives.append(_slopes(f, along, _spacing(step, f, along), edge_order, rank))
    return derivatives[0] if len(derivatives) == 1 else tuple(derivatives)


def _spacing(step: Any, f: Any, along: int) -> Any:
    """Return one step, or the steps between coordinates, which broadcast along an axis."""
    shape = shape_of(as_array(step))
    if not shape:
        return step
    if shape != (f.shape[along],):
        raise mismatch(
            f"gradient takes one spacing or {f.shape[along]} coordinates, not the shape {shape}"
        )
    steps = _diff(step)
    return arrays.reshape(steps, (shape[0] - 1, *(1,) * (-1 - along)))


def _slopes(f: Any, along: int, h: Any, edge_order: int, rank: int) -> Any:
    """Return central differences inside, one-sided ones at the ends; second order in `h`."""

    def at(start: int | None, stop: int | None) -> Any:
        return cut(f, along, start, stop)

    first, last = at(1, 2) - at(0, 1), at(-1, None) - at(-2, -1)
    if not shape_of(as_array(h)):
        inside = (at(2, None) - at(None, -2)) / (2.0 * h)
        left, right = first / h, last / h
        if edge_order == 2:
            left = (-1.5 * at(0, 1) + 2.0 * at(1, 2) - 0.5 * at(2, 3)) / h
            right = (0.5 * at(-3, -2) - 2.0 * at(-2, -1) + 1.5 * at(-1, None)) / h
        return arrays.concatenate([left, inside, right], along)
    p, q = cut(h, along, None, -1), cut(h, along, 1, None)
    inside = (
        -q / (p * (p + q)) * at(None, -2)
        + (q - p) / (p * q) * at(1, -1)
        + p / (q * (p + q)) * at(2, None)
    )
    left, right = first / cut(h, along, 0, 1), last / cut(h, along, -1)
    if edge_order == 2:
        p, q = cut(h, along, 0, 1), cut(h, along, 1, 2)
        left = _three(at(0, 1), at(1, 2), at(2, 3), p, q)
        p, q = cut(h, along, -1), cut(h, along, -2, -1)
        right = -_three(at(-1, None), at(-2, -1), at(-3, -2), p, q)
    return arrays.concatenate([left, inside, right], along)


def _three(a: Any, b: Any, c: Any, p: Any, q: Any) -> Any:
    """Return the slope at the first of three points, at distances `p` and `q`."""
    return -(2.0 * p + q) / (p * (p + q)) * a + (p + q) / (p * q) * b - p / (q * (p + q)) * c


# --- angles and grids ----------------------------------------------------------------------------


def _unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Any:
    p = as_array(p)
    along = normalized_axis("unwrap", axis, shape_of(p))
    half = period / 2
    jumps = _diff(p, axis=along)
    inside = rows.mod(jumps + half, period) - half
    inside = rows.where(
        rows.logical_and(rows.equal(inside, -half), rows.greater(jumps, 0)), half, inside
    )
    least = half if discont is None else discont
    turns = rows.where(rows.less(rows.absolute(jumps), least), 0.0, inside - jumps)
    shifts = arrays.cumsum(rows.stop_gradient(turns), along)
    return arrays.concatenate([cut(p, along, 0, 1), cut(p, along, 1) + shifts], along)


def _linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    *,
    axis: int = 0,
) -> Any:
    start, stop = as_array(start), as_array(stop)
    count = as_integer("linspace", "num", num, 0)
    parts = max(count - bool(endpoint), 1)
    shape = broadcast_shape(start, stop)
    step = (stop - start) / parts
    places = np.arange(float(count)).reshape((count, *(1,) * len(shape)))
    points = start + places * step
    if endpoint and count > 1:
        end = arrays.broadcast_to(stop, (1, *shape))
        points = arrays.concatenate([points[:-1], end], 0)
    along = normalized_axis("linspace", axis, (count, *shape)) + len(shape) + 1
    order = [*range(1, along + 1), 0, *range(along + 1, len(shape) + 1)]
    points = arrays.transpose(points, order)
    return (points, step) if retstep else points


def _cumulative(name: str, running: Callable[..., Any], initial: float) -> Callable[..., Any]:
    def computed(x: Any, /, *, axis: int | None = None, include_initial: bool = False) -> Any:
        x = as_array(x)
        if axis is None and len(shape_of(x)) != 1:
            raise mismatch(f"{name} of several axes needs an axis")
        along = normalized_axis(name, -1 if axis is None else axis, shape_of(x))
        integral = running(x, along)
        if not include_initial:
            return integral
        return arrays.concatenate([cut(x, along, 0, 1).filled(initial), integral], along)

    return computed


# --- products and polynomials --------------------------------------------------------------------


def tensordot(a: Any, b: Any, axes: int | Sequence[Any] = 2) -> Any:
    """Return the sums of products over pairs of axes."""
    a, b = as_array(a), as_array(b)
    left, right = shape_of(a), shape_of(b)
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            raise mismatch("axes of tensordot is an integer, or the axes of either operand")
        over = [as_integers("tensordot", "axes", entry) for entry in axes]
    else:
        count = as_integers("tensordot", "axes", axes)[0]
        if count < 0 or count > min(len(left), len(right)):
            raise mismatch(f"tensordot of {count} axes of the shapes {left} and {right}")
        over = [tuple(range(len(left) - count, len(left))), tuple(range(count))]
    first = [normalized_axis("tensordot", axis, left) + len(left) for axis in over[0]]
    second = [normalized_axis("tensordot", axis, right) + len(right) for axis in over[1]]
    if [left[axis] for axis in first] != [right[axis] for axis in second]:
        raise mismatch(f"tensordot cannot contract the shapes {left} and {right} over {axes}")
    row_axes = [axis for axis in range(len(left)) if axis not in first]
    column_axes = [axis for axis in range(len(right)) if axis not in second]
    inner = math.prod(left[axis] for axis in first)
    height, width = [left[axis] for axis in row_axes], [right[axis] for axis in column_axes]
    a = arrays.reshape(arrays.transpose(a, row_axes + first), (math.prod(height), inner))
    b = arrays.reshape(arrays.transpose(b, second + column_axes), (inner, math.prod(width)))
    return arrays.reshape(arrays.matmul(a, b), [*height, *width])


def _dot(a: Any, b: Any) -> Any:
    left, right = len(shape_of(as_array(a))), len(shape_of(as_array(b)))
    if left <= 2 and right <= 2:
        return arrays.dot(a, b)
    if not left or not right:
        return rows.multiply(a, b)
    return tensordot(a, b, ([-1], [-2 if right > 1 else -1]))


def _inner(a: Any, b: Any) -> Any:
    if not shape_of(as_array(a)) or not shape_of(as_array(b)):
        return rows.multiply(a, b)
    return tensordot(a, b, ([-1], [-1]))


def _vdot(a: Any, b: Any) -> Any:
    return arrays.dot(arrays.reshape(a, -1), arrays.reshape(b, -1))


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Return the dot products of vectors along an axis."""
    a, b = move_axis(x1, axis, -1), move_axis(x2, axis, -1)
    if shape_of(a)[-1] != shape_of(b)[-1]:
        raise mismatch(f"vecdot of vectors of {shape_of(a)[-1]} and of {shape_of(b)[-1]} numbers")
    return arrays.sum(rows.multiply(a, b), -1)


def _kron(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    rank = max(len(shape_of(a)), len(shape_of(b)))
    left, right = ((1,) * (rank - len(own)) + own for own in (shape_of(a), shape_of(b)))
    opened = arrays.reshape(a, [size for own in left for size in (own, 1)])
    other = arrays.reshape(b, [size for own in right for size in (1, own)])
    sizes = [p * q for p, q in zip(left, right, strict=True)]
    return arrays.reshape(rows.multiply(opened, other), sizes)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Return the cross products of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = move_axis(a, axisa, -1), move_axis(b, axisb, -1)
    if shape_of(a)[-1] != 3 or shape_of(b)[-1] != 3:
        raise mismatch(
            f"cross takes vectors of 3 numbers, not the shapes {shape_of(a)} and {shape_of(b)}"
        )
    p, q = ([x[..., k] for k in range(3)] for x in (a, b))
    parts = [p[j] * q[k] - p[k] * q[j] for j, k in ((1, 2), (2, 0), (0, 1))]
    return move_axis(arrays.stack(parts, -1), -1, axisc)


def _polyval(p: Any, x: Any) -> Any:
    p = as_array(p)
    value: Any = 0.0
    for place in range(shape_of(p)[0]):
        value = value * x + p[place]
    return value


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = as_array(x)
    if len(shape_of(x)) != 1:
        raise mismatch("vander takes a vector")
    count = shape_of(x)[0] if N is None else as_integer("vander", "N", N, 0)
    powers = [x**k for k in range(count)]
    return arrays.stack(powers if increasing else powers[::-1], 1)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "cross": cross,
    "cumsum": arrays.cumsum,
    "cumulative_prod": _cumulative("cumulative_prod", arrays.cumprod, 1.0),
    "cumulative_sum": _cumulative("cumulative_sum", arrays.cumsum, 0.0),
    "diff": _diff,
    "dot": _dot,
    "ediff1d": _ediff1d,
    "gradient": _gradient,
    "inner": _inner,
    "kron": _kron,
    "linspace": _linspace,
    "polyval": _polyval,
    "tensordot": tensordot,
    "trapezoid": _trapezoid,
    "unwrap": _unwrap,
    "vander": _vander,
    "vdot": _vdot,
}
"""The counterparts by NumPy's name."""

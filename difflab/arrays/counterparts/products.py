"""NumPy's products of arrays: inner, tensor, Kronecker and cross products, polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab import arrays
from difflab.arrays.counterparts.layout import move_axis
from difflab.arrays.given import (
    as_array,
    as_integer,
    as_integers,
    mismatch,
    normalized_axis,
    shape_of,
)
from difflab.primitives import multiply

__all__ = ["FUNCTIONS", "cross", "tensordot", "vecdot"]


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
    rows = [axis for axis in range(len(left)) if axis not in first]
    columns = [axis for axis in range(len(right)) if axis not in second]
    inner = math.prod(left[axis] for axis in first)
    height, width = [left[axis] for axis in rows], [right[axis] for axis in columns]
    a = arrays.reshape(arrays.transpose(a, rows + first), (math.prod(height), inner))
    b = arrays.reshape(arrays.transpose(b, second + columns), (inner, math.prod(width)))
    return arrays.reshape(arrays.matmul(a, b), [*height, *width])


def _dot(a: Any, b: Any) -> Any:
    left, right = len(shape_of(as_array(a))), len(shape_of(as_array(b)))
    if left <= 2 and right <= 2:
        return arrays.dot(a, b)
    if not left or not right:
        return multiply(a, b)
    return tensordot(a, b, ([-1], [-2 if right > 1 else -1]))


def _inner(a: Any, b: Any) -> Any:
    if not shape_of(as_array(a)) or not shape_of(as_array(b)):
        return multiply(a, b)
    return tensordot(a, b, ([-1], [-1]))


def _vdot(a: Any, b: Any) -> Any:
    return arrays.dot(arrays.reshape(a, -1), arrays.reshape(b, -1))


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Return the dot products of vectors along an axis."""
    a, b = move_axis(x1, axis, -1), move_axis(x2, axis, -1)
    if shape_of(a)[-1] != shape_of(b)[-1]:
        raise mismatch(f"vecdot of vectors of {shape_of(a)[-1]} and of {shape_of(b)[-1]} numbers")
    return arrays.sum(multiply(a, b), -1)


def _kron(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    rank = max(len(shape_of(a)), len(shape_of(b)))
    left, right = ((1,) * (rank - len(own)) + own for own in (shape_of(a), shape_of(b)))
    opened = arrays.reshape(a, [size for own in left for size in (own, 1)])
    other = arrays.reshape(b, [size for own in right for size in (1, own)])
    sizes = [p * q for p, q in zip(left, right, strict=True)]
    return arrays.reshape(multiply(opened, other), sizes)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Return the cross products of vectors of three numbers."""
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
    found: Any = 0.0
    for place in range(shape_of(p)[0]):
        found = found * x + p[place]
    return found


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = as_array(x)
    if len(shape_of(x)) != 1:
        raise mismatch("vander takes a vector")
    count = shape_of(x)[0] if N is None else as_integer("vander", "N", N, 0)
    powers = [x**k for k in range(count)]
    return arrays.stack(powers if increasing else powers[::-1], 1)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "cross": cross,
    "dot": _dot,
    "inner": _inner,
    "kron": _kron,
    "polyval": _polyval,
    "tensordot": tensordot,
    "vander": _vander,
    "vdot": _vdot,
}

"""Products of vectors, matrices and arrays of more axes, by `matmul`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, as_integer, mismatch, shape_of
from difflab.arrays.linalg import inv, square, stacked
from difflab.arrays.reductions import sum
from difflab.arrays.shapes import broadcast_to, diagonal, reshape, several
from difflab.core.apply import apply
from difflab.core.ownership import shared
from difflab.core.primitive import Shape

__all__ = [
    "convolve",
    "correlate",
    "dot",
    "matmul",
    "matrix_power",
    "multi_dot",
    "outer",
    "trace",
]


def matmul(a: Array, b: Array) -> Array:
    """Return the matrix product ``a @ b``.

    The last two axes are matrices, a vector is a row on the left and a column on the right;
    leading axes are stacks and are broadcast.

    Raises
    ------
    ShapeError
        The inner sizes differ, or an operand is a scalar.

    Examples
    --------
    >>> matmul(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    a, b = as_array(a), as_array(b)
    left, right = shape_of(a), shape_of(b)
    _check_matmul(left, right)
    if max(len(left), len(right)) > 2:
        return _stacked(a, b, left, right)
    return apply(rows.matmul, a, b, ranks=(len(left), len(right)))


def _check_matmul(left: Shape, right: Shape) -> None:
    message = f"matmul cannot multiply the shapes {left} and {right}"
    if not left or not right:
        raise mismatch(message, "to multiply by a scalar, write *")
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        raise mismatch(message, f"the inner sizes {left[-1]} and {inner} differ")


def _stacked(a: Array, b: Array, left: Shape, right: Shape) -> Array:
    """Multiply stacks of matrices, broadcast to one stack shape."""
    if len(left) == 1:
        a, left = reshape(a, (1, *left)), (1, *left)
        return _without(_stacked(a, b, left, right), -2)
    if len(right) == 1:
        b, right = reshape(b, (*right, 1)), (*right, 1)
        return _without(_stacked(a, b, left, right), -1)
    a, b = stacked(f"matmul cannot multiply the shapes {left} and {right}", a, b)
    return apply(rows.matmul, a, b, ranks=(len(shape_of(a)),) * 2)


def _without(x: Array, axis: int) -> Array:
    shape = list(shape_of(x))
    del shape[axis]
    return reshape(x, shape)


def dot(a: Array, b: Array) -> Array:
    """Return a·b: of vectors Σ aᵢbᵢ, of matrices their product.

    Examples
    --------
    >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    a, b = as_array(a), as_array(b)
    left, right = shape_of(a), shape_of(b)
    if not left or not right:
        return rows.multiply(a, b)
    if max(len(left), len(right)) > 2:
        raise mismatch(f"dot cannot multiply the shapes {left} and {right}", "use matmul")
    return matmul(a, b)


def outer(a: Array, b: Array) -> Array:
    """Return the matrix of the products aᵢbⱼ of two vectors.

    Examples
    --------
    >>> outer(np.array([1.0, 2.0]), np.array([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    return rows.multiply(reshape(a, (-1, 1)), reshape(b, -1))


def convolve(a: Array, v: Array) -> Array:
    """Return the convolution Σⱼ aₖ₋ⱼ vⱼ of two vectors, wherever they overlap.

    Examples
    --------
    >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    a, v = _vectors("convolve", a, v)
    return apply(rows.convolve, a, v)


def correlate(a: Array, v: Array) -> Array:
    """Return Σⱼ aₖ₊ⱼ vⱼ for every part of `a` that is as long as `v`.

    Raises
    ------
    ShapeError
        `v` is longer than `a`.

    Examples
    --------
    >>> correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0])).tolist()
    [2.0, 3.0]
    """
    a, v = _vectors("correlate", a, v)
    if shape_of(a)[0] < shape_of(v)[0]:
        raise mismatch(f"correlate of the shape {shape_of(a)} with the longer {shape_of(v)}")
    return apply(rows.correlate, a, v)


def _vectors(name: str, a: Array, v: Array) -> tuple[Array, Array]:
    a, v = as_array(a), as_array(v)
    left, right = shape_of(a), shape_of(v)
    if len(left) != 1 or len(right) != 1 or not left[0] or not right[0]:
        raise mismatch(f"{name} takes two vectors that are not empty, not {left} and {right}")
    return a, v


def trace(x: Array) -> Array:
    """Return the sum of the diagonal of a square matrix.

    Examples
    --------
    >>> float(trace(np.array([[1.0, 2.0], [3.0, 4.0]])))
    5.0
    """
    return sum(diagonal(x), -1)


def matrix_power(a: Array, n: int) -> Array:
    """Return the product of n factors `a`, by repeated squaring; a negative n inverts.

    Examples
    --------
    >>> matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    a, times = as_array(a), as_integer("matrix_power", "n", n)
    shape = square("matrix_power", a)
    if times == 0:
        return broadcast_to(np.eye(shape[-1]), shape) + 0.0 * a
    base = inv(a) if times < 0 else a
    found = None
    for position, bit in enumerate(reversed(f"{abs(times):b}")):
        base = matmul(base, base) if position else base
        if bit == "1":
            found = base if found is None else matmul(found, base)
    return found if found is not a else shared(a)


def multi_dot(arrays: Sequence[Array]) -> Array:
    """Return the product of matrices, in the order of fewest multiplications.

    The first may be a row vector and the last a column vector, as in `numpy.linalg.multi_dot`.

    Raises
    ------
    ShapeError
        There are fewer than two factors, or their shapes do not fit.

    Examples
    --------
    >>> multi_dot([np.ones((2, 9)), np.ones((9, 1)), np.ones((1, 3))]).tolist()
    [[9.0, 9.0, 9.0], [9.0, 9.0, 9.0]]
    """
    factors = several("multi_dot", arrays)
    shapes = [shape_of(x) for x in factors]
    last = len(factors) - 1
    if last < 1 or any(
        len(shape) != 2 and not (len(shape) == 1 and place in (0, last))
        for place, shape in enumerate(shapes)
    ):
        shown = " and ".join(map(str, shapes)) or "nothing"
        raise mismatch(f"multi_dot takes two or more matrices, not {shown}")
    heights = [1 if place == 0 and len(s) == 1 else s[0] for place, s in enumerate(shapes)]
    sizes = [*heights, 1 if len(shapes[-1]) == 1 else shapes[-1][1]]
    splits = _splits(sizes)

    def product(first: int, last: int) -> Array:
        if first == last:
            return factors[first]
        split = splits[first, last]
        return matmul(product(first, split), product(split + 1, last))

    return product(0, last)


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return after which factor each part of a chain of matrices is split (matrix chain order)."""
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], splits[i, j] = min(costs)
    return splits

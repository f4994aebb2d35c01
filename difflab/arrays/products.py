"""Products of vectors, matrices and arrays of more axes, and Einstein's summation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, as_integer, mismatch, shape_of
from difflab.arrays.linalg import inv, square, stacked
from difflab.arrays.reductions import sum
from difflab.arrays.shapes import broadcast_to, diagonal, reshape, several, transpose
from difflab.core.apply import apply
from difflab.core.ownership import shared
from difflab.core.primitive import Shape

__all__ = [
    "convolve",
    "correlate",
    "dot",
    "einsum",
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
    product = None
    for position, bit in enumerate(reversed(f"{abs(times):b}")):
        base = matmul(base, base) if position else base
        if bit == "1":
            product = base if product is None else matmul(product, base)
    return product if product is not a else shared(a)


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


# --- Einstein's summation ------------------------------------------------------------------------
ELLIPSIS = "..."


def einsum(subscripts: str, *operands: Array, optimize: Any = False) -> Array:
    """Sum products of arrays over the indices that the result does not have.

    Two operands at a time, each pair as one matrix product: from left to right, or in the order
    that `numpy.einsum_path` finds.

    Parameters
    ----------
    subscripts : str
        As NumPy's, such as ``"ij,jk->ik"``, ``"ii->i"`` or ``"...ij,...j->...i"``.
    *operands : array or traced value
    optimize : bool or str, optional
        As NumPy's: whether, and how, the order of the products is chosen by their sizes.

    Raises
    ------
    ShapeError
        The subscripts do not fit the shapes.

    Examples
    --------
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> einsum("ij,kj->ik", a, a).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    >>> float(einsum("ii", a))
    5.0
    """
    if not isinstance(subscripts, str):
        raise mismatch(f"einsum takes a str of subscripts first, not {type(subscripts).__name__}")
    given = list(map(as_array, operands))
    shapes = [shape_of(x) for x in given]
    terms, result = _letters(subscripts, shapes)
    order = _order(",".join(terms) + "->" + result, shapes, optimize)
    sizes = _sizes(terms, shapes)
    factors = [_simple(x, term, sizes) for x, term in zip(given, terms, strict=True)]
    for chosen in order:
        parts = [factors.pop(position) for position in sorted(chosen, reverse=True)][::-1]
        product = parts[0]
        for position, part in enumerate(parts[1:], 2):
            rest = [letters for _, letters in (*factors, *parts[position:])]
            product = _contracted(product, part, set(result).union(*rest))
        factors.append(product)
    total, letters = _summed(*factors[0], set(result))
    return transpose(total, [letters.index(letter) for letter in result])


def _letters(subscripts: str, shapes: Sequence[Shape]) -> tuple[list[str], str]:
    """Return the letters of the axes of each operand and of the result, ``...`` written out."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    named = [term.replace(ELLIPSIS, "", 1) for term in terms]
    ranks = [len(shape) - len(term) for term, shape in zip(named, shapes, strict=False)]
    unused = (chr(code) for code in itertools.count(ord("A")) if chr(code) not in subscripts)
    others = "".join(itertools.islice(filter(str.isalpha, unused), max([0, *ranks])))
    full = [
        term.replace(ELLIPSIS, others[len(others) - rank :], 1)
        for term, rank in zip(terms, ranks, strict=False)
    ]
    if not arrow:
        letters = "".join(named)
        result = ELLIPSIS + "".join(sorted(c for c in letters if letters.count(c) == 1))
    out = result.replace(ELLIPSIS, others, 1)
    if not (
        len(terms) == len(shapes)
        and all(len(term) == len(shape) for term, shape in zip(full, shapes, strict=True))
        and all(c.isalpha() for term in (*full, out) for c in term)
        and set(others) <= set(out) <= {c for term in full for c in term}
        and len(set(out)) == len(out)
        and _fitting(full, shapes)
    ):
        shown = " and ".join(map(str, shapes)) or "of nothing"
        raise mismatch(f"einsum cannot combine the shapes {shown} as '{subscripts}'")
    return full, out


def _sizes(terms: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the size of every index; axes of size 1 are broadcast."""
    sizes: dict[str, int] = {}
    for letter, size in _axes(terms, shapes):
        if sizes.get(letter, 1) == 1:
            sizes[letter] = size
    return sizes


def _fitting(terms: Sequence[str], shapes: Sequence[Shape]) -> bool:
    sizes = _sizes(terms, shapes)
    alike = all(
        len(set(_axes([t], [s]))) == len(set(t)) for t, s in zip(terms, shapes, strict=True)
    )
    return alike and all(size in (1, sizes[letter]) for letter, size in _axes(terms, shapes))


def _axes(terms: Sequence[str], shapes: Sequence[Shape]) -> list[tuple[str, int]]:
    pairs = zip(terms, shapes, strict=True)
    return [axis for term, shape in pairs for axis in zip(term, shape, strict=True)]


def _order(subscripts: str, shapes: Sequence[Shape], optimize: Any) -> Sequence[Sequence[int]]:
    """Return which operands are multiplied in each step; the product is appended."""
    if not optimize:
        return [range(len(shapes))]
    sketches = [np.broadcast_to(0.0, shape) for shape in shapes]
    try:
        path, _ = np.einsum_path(subscripts, *sketches, optimize=optimize)
    except (KeyError, TypeError, ValueError):
        raise mismatch(
            f"einsum cannot optimize by {optimize!r}", "give True, False, 'greedy' or 'optimal'"
        ) from None
    return path[1:]


def _simple(x: Array, letters: str, sizes: dict[str, int]) -> tuple[Array, str]:
    """Return an operand without axes that are broadcast, and with one axis a letter."""
    kept = [k for k, size in enumerate(shape_of(x)) if size == sizes[letters[k]]]
    x = reshape(x, [shape_of(x)[k] for k in kept])
    letters = "".join([letters[k] for k in kept])
    while len(set(letters)) < len(letters):
        twice = next(letter for letter in letters if letters.count(letter) > 1)
        pair = [k for k, letter in enumerate(letters) if letter == twice][:2]
        rest = [k for k in range(len(letters)) if k not in pair]
        x = diagonal(transpose(x, [*rest, *pair]))
        letters = "".join([letters[k] for k in rest]) + twice
    return x, letters


def _summed(x: Array, letters: str, needed: set[str]) -> tuple[Array, str]:
    """Sum over the letters that are not needed."""
    axes = [position for position, letter in enumerate(letters) if letter not in needed]
    if not axes:
        return x, letters
    return sum(x, axes), "".join(letter for letter in letters if letter in needed)


def _contracted(
    first: tuple[Array, str], second: tuple[Array, str], needed: set[str]
) -> tuple[Array, str]:
    """Multiply two operands as stacks of matrices."""
    a, left = _summed(*first, needed | set(second[1]))
    b, right = _summed(*second, needed | set(left))
    stack = [letter for letter in left if letter in right and letter in needed]
    inner = [letter for letter in left if letter in right and letter not in needed]
    rows_, columns = (
        [c for c in own if c not in other] for own, other in ((left, right), (right, left))
    )
    size = dict(zip(left + right, shape_of(a) + shape_of(b), strict=True))

    def grouped(x: Array, letters: str, groups: list[list[str]]) -> Array:
        order = [letters.index(letter) for group in groups for letter in group]
        sizes = [[size[letter] for letter in group] for group in groups]
        flat = [*sizes[0], *(int(np.prod(group, dtype=int)) for group in sizes[1:])]
        return reshape(transpose(x, order), flat)

    product = matmul(
        grouped(a, left, [stack, rows_, inner]), grouped(b, right, [stack, inner, columns])
    )
    letters = [*stack, *rows_, *columns]
    return reshape(product, [size[letter] for letter in letters]), "".join(letters)

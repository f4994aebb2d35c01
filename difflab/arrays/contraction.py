"""Einstein's summation: products of arrays, summed over the indices that the result lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.arrays.given import Array, as_array, mismatch, shape_of
from difflab.arrays.products import matmul
from difflab.arrays.reductions import sum
from difflab.arrays.shapes import diagonal, reshape, transpose
from difflab.core.primitive import Shape

__all__ = ["einsum"]

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
        found = parts[0]
        for position, part in enumerate(parts[1:], 2):
            rest = [letters for _, letters in (*factors, *parts[position:])]
            found = _contracted(found, part, set(result).union(*rest))
        factors.append(found)
    found, letters = _summed(*factors[0], set(result))
    return transpose(found, [letters.index(letter) for letter in result])


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
    """Return which operands are multiplied in each step; what is found is put last."""
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
    rows_, columns = ([c for c in own if c not in other] for own, other in _both(left, right))
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


def _both(left: str, right: str) -> list[tuple[str, str]]:
    return [(left, right), (right, left)]

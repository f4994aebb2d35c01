"""Arrays of expansions: joined, ordered along an axis, at computed indices, filtered, transformed.

Where an order is not decided, or an index is no known integer, the result is unknown, with the
reason. NumPy's kernels would make arrays of arrays of one number.
"""

from __future__ import annotations

from functools import cmp_to_key, partial
from itertools import accumulate, chain
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.jets import Fault, Jet, Undecided, added, jet
from difflab.balls.library import arb, exactly, fmpq
from difflab.balls.piecewise import greater, less
from difflab.balls.reductions import mapping
from difflab.primitives.fourier import complex_form, inverse_form, real_form
from difflab.primitives.structure import decoded

Array = NDArray[Any]


def _sign(a: tuple[int, Any], b: tuple[int, Any]) -> int:
    return -1 if less(a[1], b[1]) else int(bool(greater(a[1], b[1])))


def _order(line: list[Any]) -> list[Jet]:
    """Return the indices that sort a line; those of equal elements in their order."""
    try:
        return [jet(place) for place, _ in sorted(enumerate(line), key=cmp_to_key(_sign))]
    except Undecided as found:
        return [Jet(arb.nan(), fault=found.fault) for _ in line]


def _index(place: Any, size: int) -> int | Fault:
    """Return a known index, or why it is not known."""
    number = jet(place)
    found = arb(number.value).unique_fmpz()
    if number.fault is not None or found is None:
        return number.fault or Fault("undecided", "an index is not known", False)
    return int(found) % size


def _lines(x: Any, places: Any, axis: int) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the lines of elements and of indices along an axis, and the shape that they have."""
    moved, whole = (np.moveaxis(np.asarray(part, dtype=object), axis, -1) for part in (x, places))
    flat = moved.reshape(-1, moved.shape[-1])
    return flat, whole.reshape(-1, whole.shape[-1]), whole.shape[:-1]


def take_along(x: Any, places: Any, *, axis: int, rank: int) -> Array:
    """Return the elements at indices along an axis."""
    lines, wanted, lead = _lines(x, places, axis)
    found = np.empty(wanted.shape, dtype=object)
    for row, column in np.ndindex(wanted.shape):
        index = _index(wanted[row, column], lines.shape[1])
        if isinstance(index, int):
            found[row, column] = lines[row, index]
        else:
            found[row, column] = Jet(arb.nan(), fault=index)
    return np.moveaxis(found.reshape(*lead, wanted.shape[1]), -1, axis)


def put_along(x: Any, places: Any, *, axis: int, rank: int, size: int) -> Array:
    """Add every element at its index along an axis."""
    lines, wanted, lead = _lines(x, places, axis)
    found = np.full((len(lines), size), jet(0), dtype=object)
    for row, column in np.ndindex(wanted.shape):
        index = _index(wanted[row, column], size)
        if isinstance(index, int):
            found[row, index] = found[row, index] + lines[row, column]
        else:
            found[row] = [Jet(arb.nan(), fault=index)] * size
    return np.moveaxis(found.reshape(*lead, size), -1, axis)


def convolve(a: Any, v: Any) -> Array:
    """Return every sum of products whose indices add up to the same, of each row of a stack."""
    if np.ndim(a) > 1:
        return np.stack([convolve(p, q) for p, q in zip(a, v, strict=True)])
    p, q = [jet(x) for x in a], [jet(x) for x in v]
    spans = ((k, max(0, k - len(q) + 1), min(k + 1, len(p))) for k in range(len(p) + len(q) - 1))
    sums = (added([p[i] * q[k - i] for i in range(low, high)]) for k, low, high in spans)
    return np.fromiter(sums, dtype=object)


def correlate(a: Any, v: Any) -> Array:
    """Return the product of `v` with every part of `a` of its length, of each row of a stack."""
    if np.ndim(a) > 1:
        return np.stack([correlate(p, q) for p, q in zip(a, v, strict=True)])
    p, q = [jet(x) for x in a], [jet(x) for x in v]
    places = range(len(p) - len(q) + 1)
    sums = (added([p[k + j] * q[j] for j in range(len(q))]) for k in places)
    return np.fromiter(sums, dtype=object)


def linear_recurrence(a: Any, b: Any, *, axes: tuple[int, ...], rank: int) -> Array:
    """Return y of y₀ = b₀, yᵢ = aᵢ₋₁ yᵢ₋₁ + bᵢ along an axis."""
    factors, terms = (np.moveaxis(np.asarray(part, dtype=object), axes[0], 0) for part in (a, b))
    found = np.empty(terms.shape, dtype=object)
    for column in np.ndindex(terms.shape[1:]):
        value = jet(terms[(0, *column)])
        found[(0, *column)] = value
        for place in range(1, len(terms)):
            value = factors[(place - 1, *column)] * value + terms[(place, *column)]
            found[(place, *column)] = value
    return np.moveaxis(found, 0, axes[0])


argsort = mapping(_order)
cumprod = mapping(lambda line: list(accumulate(map(jet, line), mul)))


def pack(*parts: Any, ranks: tuple[int, ...]) -> Any:
    """Return numbers and the elements of arrays as one vector."""
    flat = (part.ravel().tolist() if isinstance(part, np.ndarray) else [part] for part in parts)
    return np.fromiter(chain.from_iterable(flat), dtype=object)


def scatter(*parts: Any, keys: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Return an array of zeros, with the parts added at their keys."""
    found = np.full(shape, jet(0), dtype=object)
    for part, key in zip(parts, keys, strict=True):
        where = decoded(key)
        found[where] = found[where] + part
    return found


def _angle(k: int, n: int) -> tuple[Jet, Jet]:
    """Return the cosine and the sine of 2πk/n; as fractions where they are 0 or ±1."""
    turn = fmpq(2 * k, n)
    return Jet(exactly(arb.cos_pi_fmpq(turn))), Jet(exactly(arb.sin_pi_fmpq(turn)))


fft = partial(complex_form, _angle)
rfft = partial(real_form, _angle)
irfft = partial(inverse_form, _angle)

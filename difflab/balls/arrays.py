"""Arrays of expansions: joined, ordered along an axis, at computed indices, filtered, transformed.

Where an order is not decided, or an index is no known integer, the result is unknown, with the
reason. NumPy's kernels would make arrays of arrays of one number. Linear algebra is done by
elimination, which needs no derivative rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key, partial
from itertools import accumulate, chain
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.elementary import natural, sqrt
from difflab.balls.jets import Fault, Jet, Undecided, added, jet, worse
from difflab.balls.library import arb, exactly, fmpq, shown
from difflab.balls.reductions import greater, less, mapping
from difflab.primitives.fourier import complex_form, inverse_form, real_form
from difflab.primitives.structure import decoded

Array = NDArray[Any]


def _sign(a: tuple[int, Any], b: tuple[int, Any]) -> int:
    return -1 if less(a[1], b[1]) else int(bool(greater(a[1], b[1])))


def _order(line: list[Any]) -> list[Jet]:
    """Return the indices that sort a line; those of equal elements in their order."""
    try:
        return [jet(place) for place, _ in sorted(enumerate(line), key=cmp_to_key(_sign))]
    except Undecided as undecided:
        return [Jet(arb.nan(), fault=undecided.fault) for _ in line]


def _index(place: Any, size: int) -> int | Fault:
    """Return a known index, or why it is not known."""
    number = jet(place)
    index = arb(number.value).unique_fmpz()
    if number.fault is not None or index is None:
        return number.fault or Fault("undecided", "an index is not known", False)
    return int(index) % size


def _lines(x: Any, places: Any, axis: int) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the lines of elements and of indices along an axis, and the shape that they have."""
    moved, whole = (np.moveaxis(np.asarray(part, dtype=object), axis, -1) for part in (x, places))
    flat = moved.reshape(-1, moved.shape[-1])
    return flat, whole.reshape(-1, whole.shape[-1]), whole.shape[:-1]


def take_along(x: Any, places: Any, *, axis: int, rank: int) -> Array:
    """Return the elements at indices along an axis."""
    lines, wanted, lead = _lines(x, places, axis)
    elements = np.empty(wanted.shape, dtype=object)
    for row, column in np.ndindex(wanted.shape):
        index = _index(wanted[row, column], lines.shape[1])
        if isinstance(index, int):
            elements[row, column] = lines[row, index]
        else:
            elements[row, column] = Jet(arb.nan(), fault=index)
    return np.moveaxis(elements.reshape(*lead, wanted.shape[1]), -1, axis)


def put_along(x: Any, places: Any, *, axis: int, rank: int, size: int) -> Array:
    """Add every element at its index along an axis."""
    lines, wanted, lead = _lines(x, places, axis)
    sums = np.full((len(lines), size), jet(0), dtype=object)
    for row, column in np.ndindex(wanted.shape):
        index = _index(wanted[row, column], size)
        if isinstance(index, int):
            sums[row, index] = sums[row, index] + lines[row, column]
        else:
            sums[row] = [Jet(arb.nan(), fault=index)] * size
    return np.moveaxis(sums.reshape(*lead, size), -1, axis)


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
    solution = np.empty(terms.shape, dtype=object)
    for column in np.ndindex(terms.shape[1:]):
        value = jet(terms[(0, *column)])
        solution[(0, *column)] = value
        for place in range(1, len(terms)):
            value = factors[(place - 1, *column)] * value + terms[(place, *column)]
            solution[(place, *column)] = value
    return np.moveaxis(solution, 0, axes[0])


argsort = mapping(_order)
cumprod = mapping(lambda line: list(accumulate(map(jet, line), mul)))


def pack(*parts: Any, ranks: tuple[int, ...]) -> Any:
    """Return scalars and the elements of arrays as one vector."""
    flat = (part.ravel().tolist() if isinstance(part, np.ndarray) else [part] for part in parts)
    return np.fromiter(chain.from_iterable(flat), dtype=object)


def scatter(*parts: Any, keys: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Return an array of zeros, with the parts added at their keys."""
    array = np.full(shape, jet(0), dtype=object)
    for part, key in zip(parts, keys, strict=True):
        where = decoded(key)
        array[where] = array[where] + part
    return array


def _angle(k: int, n: int) -> tuple[Jet, Jet]:
    """Return the cosine and the sine of 2πk/n; as fractions where they are 0 or ±1."""
    turn = fmpq(2 * k, n)
    return Jet(exactly(arb.cos_pi_fmpq(turn))), Jet(exactly(arb.sin_pi_fmpq(turn)))


fft = partial(complex_form, _angle)
rfft = partial(real_form, _angle)
irfft = partial(inverse_form, _angle)


# --- linear algebra ---------------------------------------------------------------------------

Matrix = list[list[Jet]]


def _stacked(compute: Callable[..., Any], result_rank: int) -> Callable[..., Any]:
    """Apply a function of matrices to each matrix of a stack."""

    def row(*args: Array, ranks: tuple[int, int] = (2, 2)) -> Any:
        column = len(args) == 2 and ranks[1] == 1
        stacks = [*args[:-1], args[-1][..., None]] if column else list(args)
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in stacks))
        whole = [np.broadcast_to(x, batch + x.shape[-2:]) for x in stacks]
        shape = whole[-1].shape if result_rank == 2 else batch
        out = np.empty(shape, dtype=object)
        for at in np.ndindex(batch):
            matrices = [[[jet(entry) for entry in line] for line in x[at].tolist()] for x in whole]
            part = compute(*matrices)
            if result_rank == 0:
                out[at] = part
                continue
            for i, j in np.ndindex(shape[len(batch) :]):
                out[(*at, i, j)] = part[i][j]
        return out[..., 0] if column else out[()]

    return row


def _eliminated(a: Matrix, b: Matrix) -> tuple[Jet, Matrix | None]:
    """Return the determinant of A and A⁻¹B; None where no pivot can be shown not to be 0."""
    a, b = [list(line) for line in a], [list(line) for line in b]
    size, product = len(a), jet(1)
    for k in range(size):
        best = max(range(k, size), key=lambda i: _distance(a[i][k]))
        if not _distance(a[best][k]) > 0:
            return product, None
        if best != k:
            a[k], a[best], b[k], b[best] = a[best], a[k], b[best], b[k]
            product = -product
        product = product * a[k][k]
        for i in range(size):
            if i != k:
                factor = a[i][k] / a[k][k]
                a[i] = [x - factor * y for x, y in zip(a[i], a[k], strict=True)]
                b[i] = [x - factor * y for x, y in zip(b[i], b[k], strict=True)]
    return product, [[entry / a[k][k] for entry in b[k]] for k in range(size)]


def _distance(x: Jet) -> Any:
    """Return a bound of how far a number is from 0."""
    value = arb(x.value)
    return abs(value).lower() if value.is_finite() and not value.contains(0) else arb(0)


def _identity(size: int) -> Matrix:
    return [[jet(int(i == j)) for j in range(size)] for i in range(size)]


def _solve(a: Matrix, b: Matrix) -> Matrix:
    _, solution = _eliminated(a, b)
    return solution if solution is not None else _undefined(b, _singular(a))


def _singular(a: Matrix) -> Fault:
    value = _det(a).value
    return Fault("pole", f"the matrix may be singular; its determinant is {shown(value)}")


def _undefined(like: Matrix, fault: Fault) -> Matrix:
    return [[Jet(arb.nan(), fault=fault) for _ in line] for line in like]


def _inv(a: Matrix) -> Matrix:
    return _solve(a, _identity(len(a)))


def _det(a: Matrix) -> Jet:
    """Return the determinant; without division where elimination may divide by 0.

    Source: R. S. Bird, A simple division-free algorithm for computing determinants, 2011.
    """
    if not a:
        return jet(1)
    determinant, solved = _eliminated(a, [[] for _ in a])
    if solved is not None:
        return determinant
    size, power = len(a), a
    for _ in range(size - 1):
        diagonal = [jet(0)] * size
        for i in range(size - 2, -1, -1):
            diagonal[i] = diagonal[i + 1] - power[i + 1][i + 1]
        upper = [
            [diagonal[i] if i == j else power[i][j] if j > i else jet(0) for j in range(size)]
            for i in range(size)
        ]
        power = _product(upper, a)
    return power[0][0] if size % 2 else -power[0][0]


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [
        [sum((x * y for x, y in zip(line, column, strict=True)), jet(0)) for column in columns]
        for line in a
    ]


def _cofactor(a: Matrix) -> Matrix:
    """Return the cofactors: signed determinants without a row and a column."""
    size = range(len(a))
    return [
        [
            _det([[a[i][j] for j in size if j != column] for i in size if i != row])
            * (-1) ** (row + column)
            for column in size
        ]
        for row in size
    ]


def _logdet(a: Matrix) -> Jet:
    return natural(_det(a))


def _cholesky(a: Matrix) -> Matrix:
    size = len(a)
    lower = [[jet(0)] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = (a[i][j] + a[j][i]) * 0.5
            for k in range(j):
                rest = rest - (lower[i][k] ** 2 if i == j else lower[i][k] * lower[j][k])
            lower[i][j] = sqrt(rest) if i == j else rest / lower[j][j]
    faults = [entry.fault for line in lower for entry in line if entry.fault]
    if not faults:
        return lower
    fault = faults[0]
    for other in faults[1:]:
        fault = worse(fault, other) or fault
    return _undefined(a, fault)


solve = _stacked(_solve, 2)
inv = _stacked(_inv, 2)
cofactor = _stacked(_cofactor, 2)
cholesky = _stacked(_cholesky, 2)
det = _stacked(_det, 0)
logdet = _stacked(_logdet, 0)

"""Linear algebra on arrays of expansions, by elimination: it needs no derivative rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.elementary import natural, sqrt
from difflab.balls.jets import Fault, Jet, jet, worse
from difflab.balls.library import arb, shown

Array = NDArray[Any]
Matrix = list[list[Jet]]


def _stacked(compute: Callable[..., Any], result_rank: int) -> Callable[..., Any]:
    """Apply a function of matrices to each matrix of a stack."""

    def row(*args: Array, ranks: tuple[int, int] = (2, 2)) -> Any:
        column = len(args) == 2 and ranks[1] == 1
        stacks = [*args[:-1], args[-1][..., None]] if column else list(args)
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in stacks))
        whole = [np.broadcast_to(x, batch + x.shape[-2:]) for x in stacks]
        shape = whole[-1].shape if result_rank == 2 else batch
        found = np.empty(shape, dtype=object)
        for at in np.ndindex(batch):
            matrices = [[[jet(entry) for entry in line] for line in x[at].tolist()] for x in whole]
            part = compute(*matrices)
            if result_rank == 0:
                found[at] = part
                continue
            for i, j in np.ndindex(shape[len(batch) :]):
                found[(*at, i, j)] = part[i][j]
        return found[..., 0] if column else found[()]

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
    _, found = _eliminated(a, b)
    return found if found is not None else _undefined(b, _singular(a))


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
    found, solved = _eliminated(a, [[] for _ in a])
    if solved is not None:
        return found
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
    """Return the signed determinants of what is left without a row and a column."""
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

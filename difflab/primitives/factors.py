"""Primitives of matrix factorisations: eigenvalues, singular values, QR, and derived ones.

A row has one value, so a factorisation of several parts is one array that holds the parts below
each other; the functions of `difflab.arrays.factors` take them apart. The last two axes are the
matrices; axes before them, and batch axes before those, are stacks.

The eigenvalues of a factorisation are a row of their own, `eigenvalues`, so that their derivative
vᵢᵀ Ȧ vᵢ never divides by the gaps between eigenvalues, as that of the eigenvectors does: it is
finite where eigenvalues coincide. The same holds for `singular_values`.

Sources of the derivatives: M. Giles, *An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation* (2008); of qr: S. F. Walter and L. Lehmann,
*Algorithmic differentiation of linear algebra functions with application in optimum experimental
design*, arXiv:1001.1654; of pinv: G. H. Golub and V. Pereyra, *The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate* (1973).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Shape, tangent
from difflab.primitives.matrices import by_matrix, each, inv, solve, swap_last_axes, times, trace_of
from difflab.primitives.movement import concatenate, diagonal
from difflab.primitives.structure import Array, index, reshape, sum_

__all__ = ["eigenvalues", "eigh", "pinv", "qr", "singular_values", "slogdet", "svd"]


# --- parts of packed arrays -------------------------------------------------------------------


def line(y: Any, number: int) -> Any:
    """Return one row of the matrices, as vectors."""
    return index(y, key=(*_whole(y.shape[:-2]), number, *_whole(y.shape[-1:])), rank=len(y.shape))


def lines(y: Any, start: int, stop: int) -> Any:
    """Return the rows of the matrices from `start` to `stop`."""
    key = (*_whole(y.shape[:-2]), (start, stop, 1), *_whole(y.shape[-1:]))
    return index(y, key=key, rank=len(y.shape))


def _whole(shape: Shape) -> list[tuple[int, int, int]]:
    return [(0, size, 1) for size in shape]


def _below(*parts: Any) -> Any:
    """Return matrices below each other; a vector is one row."""
    rank = max(len(part.shape) for part in parts)
    rows = [part if len(part.shape) == rank else _row(part) for part in parts]
    return concatenate(*rows, axis=-2, rank=rank)


def _row(x: Any) -> Any:
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]), rank=len(x.shape))


def _column(x: Any) -> Any:
    return reshape(x, shape=(*x.shape, 1), rank=len(x.shape))


# --- kernels ----------------------------------------------------------------------------------


def _eigh(xp: ModuleType, a: Array) -> Array:
    values, vectors = xp.linalg.eigh((a + xp.swapaxes(a, -1, -2)) / 2)
    return xp.concatenate([values[..., None, :], vectors], axis=-2)


def _svd(xp: ModuleType, a: Array) -> Array:
    left, sizes, right = xp.linalg.svd(a, full_matrices=False)
    parts = [left, sizes[..., None, :], xp.swapaxes(right, -1, -2)]
    return xp.concatenate(parts, axis=-2)


def _qr(xp: ModuleType, a: Array) -> Array:
    q, r = xp.linalg.qr(a)
    return xp.concatenate([q, r], axis=-2)


def _slogdet(xp: ModuleType, a: Array) -> Array:
    return xp.stack(list(xp.linalg.slogdet(a)), axis=-1)


def _eigh_shape(shapes: tuple[Shape, ...]) -> Shape:
    (*stack, size, _) = shapes[0]
    return (*stack, size + 1, size)


def _svd_shape(shapes: tuple[Shape, ...]) -> Shape:
    (*stack, m, n) = shapes[0]
    return (*stack, m + 1 + n, min(m, n))


def _qr_shape(shapes: tuple[Shape, ...]) -> Shape:
    (*stack, m, n) = shapes[0]
    return (*stack, m + n, n)


def _transposed_shape(shapes: tuple[Shape, ...]) -> Shape:
    (*stack, m, n) = shapes[0]
    return (*stack, n, m)


# --- derivatives ------------------------------------------------------------------------------


def _off_diagonal(gap: Any, size: int) -> Any:
    """Return 1/gap off the diagonal and 0 on it."""
    ones = np.eye(size)
    return (1 - ones) / (gap + ones)


def _eigh_slope(t: Any, y: Any, a: Any) -> Any:
    """ẇ = diag M and V̇ = V (F ∘ M), where M = Vᵀ Ȧ V and Fᵢⱼ = 1 / (wⱼ − wᵢ)."""
    size = a.shape[-1]
    values, vectors = line(y, 0), lines(y, 1, size + 1)
    inner = times(swap_last_axes(vectors), times(_even(t), vectors))
    turned = _off_diagonal(_row(values) - _column(values), size) * inner
    return _below(diagonal(inner), times(vectors, turned))


def _even(t: Any) -> Any:
    return (t + swap_last_axes(t)) * 0.5


def _eigenvalues_slope(t: Any, y: Any, a: Any, factors: Any) -> Any:
    """vᵢᵀ Ȧ vᵢ."""
    vectors = lines(factors, 1, a.shape[-1] + 1)
    return sum_(vectors * times(_even(t), vectors), axes=(-2,), rank=len(a.shape))


def _svd_parts(y: Any, a: Any) -> tuple[Any, Any, Any]:
    m, n = a.shape[-2:]
    return lines(y, 0, m), line(y, m), lines(y, m + 1, m + 1 + n)


def _svd_slope(t: Any, y: Any, a: Any) -> Any:
    """ṡ = diag P; U̇ = U (F ∘ (PS + SPᵀ)), V̇ = V (F ∘ (SP + PᵀS)), where P = Uᵀ Ȧ V.

    Fᵢⱼ = 1 / (sⱼ² − sᵢ²). The larger side has a part outside its columns too.
    """
    left, sizes, right = _svd_parts(y, a)
    (m, n), row, column = a.shape[-2:], _row(sizes), _column(sizes)
    moved = times(t, right)
    inner = times(swap_last_axes(left), moved)
    swapped = swap_last_axes(inner)
    turn = _off_diagonal((row - column) * (row + column), min(m, n))
    left_dot = times(left, turn * (inner * row + column * swapped))
    right_dot = times(right, turn * (column * inner + swapped * row))
    if m > n:
        left_dot = left_dot + (moved - times(left, inner)) / row
    if m < n:
        across = times(swap_last_axes(t), left)
        right_dot = right_dot + (across - times(right, swapped)) / row
    return _below(left_dot, diagonal(inner), right_dot)


def _singular_values_slope(t: Any, y: Any, a: Any, factors: Any) -> Any:
    """uᵢᵀ Ȧ vᵢ."""
    left, _, right = _svd_parts(factors, a)
    return sum_(left * times(t, right), axes=(-2,), rank=len(a.shape))


def _qr_slope(t: Any, y: Any, a: Any) -> Any:
    """Ṙ = B R and Q̇ = X − Q B, where X = Ȧ R⁻¹ and B = C − L + Lᵀ.

    C = Qᵀ X and L is its part below the diagonal.
    """
    m, n = a.shape[-2:]
    q, r = lines(y, 0, m), lines(y, m, m + n)
    ranks = (len(a.shape), len(a.shape))
    moved = swap_last_axes(solve(swap_last_axes(r), swap_last_axes(t), ranks=ranks))
    inner = times(swap_last_axes(q), moved)
    lower = inner * np.tri(n, k=-1)
    upper = inner - lower + swap_last_axes(lower)
    return _below(moved - times(q, upper), times(upper, r))


def _slogdet_slope(t: Any, y: Any, a: Any) -> Any:
    """The sign is constant; log |det A| has the derivative tr(A⁻¹ Ȧ)."""
    size = _column(trace_of(swap_last_axes(inv(a)), t))
    return concatenate(size * 0.0, size, axis=-1, rank=len(size.shape))


def _pinv_slope(t: Any, y: Any, a: Any) -> Any:
    """−P Ȧ P + P Pᵀ Ȧᵀ (I − A P) + (I − P A) Ȧᵀ Pᵀ P, where P = A⁺, of constant rank."""
    m, n = a.shape[-2:]
    back, across = swap_last_axes(y), swap_last_axes(t)
    outside = np.eye(m) - times(a, y)
    inside = np.eye(n) - times(y, a)
    slope = -times(times(y, t), y)
    slope = slope + times(times(y, times(back, across)), outside)
    return slope + times(times(inside, across), times(back, y))


# --- mpmath -----------------------------------------------------------------------------------


def _stacked_below(mp: Any, *parts: Any) -> Any:
    """Return matrices of mpmath below each other."""
    return mp.matrix([list(row) for part in parts for row in part.tolist()])


def _floats(a: Any) -> Any:
    return np.array(a.tolist(), dtype=float)


def _signs(columns: Any, wanted: Any) -> list[int]:
    """Return by which signs columns have to be multiplied to agree with those of LAPACK."""
    return [1 if side >= 0 else -1 for side in (_floats(columns) * wanted).sum(axis=0)]


def _exact_eigh(mp: Any, a: Any) -> Any:
    even = (a + a.T) / 2
    values, vectors = mp.eigsy(even)
    signs = _signs(vectors, np.linalg.eigh(_floats(even))[1])
    return _stacked_below(mp, values.T, vectors * mp.diag(signs))


def _exact_svd(mp: Any, a: Any) -> Any:
    left, sizes, right = mp.svd_r(a, full_matrices=False)
    signs = mp.diag(_signs(left, np.linalg.svd(_floats(a), full_matrices=False)[0]))
    return _stacked_below(mp, left * signs, sizes.T, right.T * signs)


def _exact_qr(mp: Any, a: Any) -> Any:
    q, r = mp.qr(a, mode="skinny")
    signs = mp.diag(_signs(q, np.linalg.qr(_floats(a))[0]))
    return _stacked_below(mp, q * signs, signs * r)


def _exact_slogdet(mp: Any, a: Any) -> Any:
    value = mp.det(a)
    return mp.matrix([mp.sign(value), mp.log(abs(value)) if value else -mp.inf])


def _exact_pinv(mp: Any, a: Any) -> Any:
    left, sizes, right = mp.svd_r(a, full_matrices=False)
    least = mp.mpf(1e-15) * max(sizes)
    return right.T * mp.diag([1 / s if s > least else 0 for s in sizes]) * left.T


# --- the rows ---------------------------------------------------------------------------------

eigh: Primitive = Primitive(
    name="eigh",
    kernel=each(_eigh, lambda a: _eigh_shape((a.shape,))),
    rule=tangent(_eigh_slope),
    mpmath=by_matrix(_exact_eigh),
    flint="eigh",
    defined="a matrix whose eigenvalues are distinct; its symmetric part counts",
    analytic=False,
    shape=_eigh_shape,
)
# Of a matrix and `eigh` of it: the first row of that, with a derivative of its own.
eigenvalues: Primitive = Primitive(
    name="eigenvalues",
    kernel=lambda xp, a, factors: factors[..., 0, :],
    rule=tangent(_eigenvalues_slope, None),
    defined="a matrix and its eigh",
    analytic=False,
    shape=lambda shapes: shapes[0][:-1],
)
svd: Primitive = Primitive(
    name="svd",
    kernel=each(_svd, lambda a: _svd_shape((a.shape,))),
    rule=tangent(_svd_slope),
    mpmath=by_matrix(_exact_svd),
    flint="svd",
    defined="a matrix whose singular values are distinct",
    analytic=False,
    shape=_svd_shape,
)
# Of a matrix and `svd` of it.
singular_values: Primitive = Primitive(
    name="singular_values",
    kernel=lambda xp, a, factors: factors[..., a.shape[-2], :],
    rule=tangent(_singular_values_slope, None),
    defined="a matrix and its svd",
    analytic=False,
    shape=lambda shapes: (*shapes[0][:-2], min(shapes[0][-2:])),
)
qr: Primitive = Primitive(
    name="qr",
    kernel=_qr,
    rule=tangent(_qr_slope),
    mpmath=by_matrix(_exact_qr),
    flint="qr",
    defined="a matrix of full column rank",
    analytic=False,
    shape=_qr_shape,
)
slogdet: Primitive = Primitive(
    name="slogdet",
    kernel=_slogdet,
    rule=tangent(_slogdet_slope),
    mpmath=lambda mp, a: by_matrix(_exact_slogdet)(mp, a)[..., 0],
    flint="slogdet",
    defined="a matrix that is not singular",
    analytic=False,
    shape=lambda shapes: (*shapes[0][:-2], 2),
)
pinv: Primitive = Primitive(
    name="pinv",
    kernel=each(lambda xp, a: xp.linalg.pinv(a), lambda a: _transposed_shape((a.shape,))),
    rule=tangent(_pinv_slope),
    mpmath=by_matrix(_exact_pinv),
    flint="pinv",
    defined="a matrix whose rank does not change nearby",
    analytic=False,
    shape=_transposed_shape,
)

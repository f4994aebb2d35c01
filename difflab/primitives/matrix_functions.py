r"""Rows of the exponential of square matrices and its Fréchet derivative.

The derivative of the exponential at A in the direction E is a block of the exponential of a
matrix twice as large (R. Mathias, *A chain rule for matrix functions and applications*, 1996):

.. math:: \exp \begin{pmatrix} A & E \\ 0 & A \end{pmatrix}
          = \begin{pmatrix} e^A & L(A, E) \\ 0 & e^A \end{pmatrix}

L is linear in E, and its transpose in E is :math:`L(A^T, \cdot)`. Its derivative in A is a block of
L itself, at the larger matrix, so that the two rows are closed under differentiation.

The last two axes are the matrices; axes before them, and batch axes before those, are stacks.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import SPECIAL
from difflab.core.primitive import Primitive, Transpose, tangent
from difflab.primitives.matrices import by_matrix, swap_last_axes
from difflab.primitives.movement import concatenate
from difflab.primitives.structure import Array, index

__all__ = ["expm", "expm_frechet"]


# --- kernels ----------------------------------------------------------------------------------


def _expm(xp: ModuleType, a: Array) -> Array:
    """Compute by the library's scaling and squaring; matrices that are not finite give nan."""
    if xp is np and not np.isfinite(a).all():
        fine = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
        return np.where(fine, _expm(xp, np.where(fine, a, 0.0)), np.nan)
    if hasattr(xp.linalg, "matrix_exp"):  # PyTorch
        return xp.linalg.matrix_exp(a)
    special = SPECIAL.get(xp.__name__)
    home = import_module(special.removesuffix("special") + "linalg") if special else xp.linalg
    if a.ndim > 2 and xp.__name__ not in ("numpy", "jax.numpy"):  # CuPy takes one matrix
        return xp.stack([_expm(xp, part) for part in a]) if len(a) else a
    return home.expm(a)


def _expm_frechet(xp: ModuleType, a: Array, e: Array) -> Array:
    """Compute as a block; a large direction, of which the result is a multiple, is scaled."""
    batch = np.broadcast_shapes(tuple(a.shape), tuple(e.shape))
    a, e = (part if tuple(part.shape) == batch else xp.broadcast_to(part, batch) for part in (a, e))
    size = a.shape[-1]
    largest = xp.max(xp.max(xp.abs(xp.real(e)), axis=-1), axis=-1)[..., None, None]
    scale = xp.where((largest > 0) & xp.isfinite(largest), largest, 1.0)
    below = xp.concatenate([0.0 * e, a], axis=-1)
    blocks = xp.concatenate([xp.concatenate([a, e / scale], axis=-1), below], axis=-2)
    return _expm(xp, blocks)[..., :size, size:] * scale


def _exact_frechet(library: Any, a: Any, e: Any) -> Any:
    """Return the block of mpmath's exponential."""
    size = a.rows
    blocks = library.matrix(2 * size, 2 * size)
    for row in range(size):
        for column in range(size):
            blocks[row, column] = blocks[size + row, size + column] = a[row, column]
            blocks[row, size + column] = e[row, column]
    return library.expm(blocks)[:size, size:]


# --- derivatives ------------------------------------------------------------------------------


def _blocks(diagonal: Any, corner: Any) -> Any:
    """Return [[D, C], [0, D]]."""
    rank = len(diagonal.shape)
    above = concatenate(diagonal, corner, axis=-1, rank=rank)
    below = concatenate(diagonal * 0.0, diagonal, axis=-1, rank=rank)
    return concatenate(above, below, axis=-2, rank=rank)


def _frechet_slope(t: Any, y: Any, a: Any, e: Any) -> Any:
    """The derivative of L(A, E) in A along Ȧ: the corner of L(A E; 0 A) along Ȧ in both blocks."""
    size = a.shape[-1]
    blocks = expm_frechet(_blocks(a, e), _blocks(t, t * 0.0))
    lead = [(0, length, 1) for length in a.shape[:-2]]
    key = (*lead, (0, size, 1), (size, 2 * size, 1))
    return index(blocks, key=key, rank=len(a.shape))


# --- the rows ---------------------------------------------------------------------------------

expm: Primitive = Primitive(
    name="expm",
    kernel=_expm,
    rule=tangent(lambda t, y, a: expm_frechet(a, t)),
    mpmath=by_matrix(lambda mp, a: mp.expm(a)),
    flint="expm",
    shape=lambda shapes: shapes[0],
)
expm_frechet: Primitive = Primitive(
    name="expm_frechet",
    kernel=_expm_frechet,
    rule=tangent(
        _frechet_slope,
        Transpose(lambda t, a, e: expm_frechet(swap_last_axes(a), t)),
    ),
    mpmath=by_matrix(_exact_frechet),
    flint="expm_frechet",
    shape=lambda shapes: shapes[0],
)

"""Functions of matrices by their factors, free of the signs of vectors: the same in every library.

`separated` makes a square matrix of any numbers whose eigenvalues and singular values differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FACTORED", "separated"]


def separated(xp: Any, a: Any, diagonal: Any = np.diag) -> Any:
    """Return a square matrix of at most three rows: off a diagonal of 2, 6 and 10 it is small.

    By Gershgorin's discs its eigenvalues and singular values are at least 2 apart.
    """
    size = a.shape[-1]
    return xp.tanh(a) * (1.0 / size) + diagonal(np.arange(2.0, 4 * size, 4.0))


def _eigen(xp: Any, m: Any) -> Any:
    values, vectors = xp.linalg.eigh(0.5 * (m + m.T))
    return (vectors * xp.sin(values)) @ vectors.T


def _singular(xp: Any, m: Any) -> Any:
    left, sizes, right = xp.linalg.svd(m[:, : max(m.shape[0] - 1, 1)], full_matrices=False)
    return (left * xp.sin(sizes)) @ right


def _orthogonal(xp: Any, m: Any) -> Any:
    q, r = xp.linalg.qr(m)
    return q * q + r * r


def _norms(xp: Any, m: Any) -> Any:
    return xp.linalg.norm(m, 2) + 0.1 * xp.linalg.norm(m, "nuc") + xp.linalg.norm(m[0], 3)


FACTORED: dict[str, Callable[[Any, Any], Any]] = {
    "eigh": _eigen,
    "eigvalsh": lambda xp, m: xp.sin(xp.linalg.eigvalsh(0.5 * (m + m.T))),
    "svd": _singular,
    "qr": _orthogonal,
    "pinv": lambda xp, m: xp.linalg.pinv(m[: max(m.shape[0] - 1, 1)]),
    "slogdet": lambda xp, m: xp.linalg.slogdet(m)[1] * m,
    "norms": _norms,
    "matrix_power": lambda xp, m: 0.1 * xp.linalg.matrix_power(m, 3),
}
"""By name, each on a library and a square matrix of `separated`."""

"""Counterparts of the functions of `numpy.linalg` whose arguments differ from difflab's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.counterparts.calculus import cross, tensordot, vecdot
from difflab.arrays.counterparts.layout import diagonal, matrix_transpose, move_axis, trace
from difflab.arrays.given import as_array, kept_axes, normalized_axes, shape_of
from difflab.core.place import at_users_line
from difflab.errors import TraceError

SAME = (
    *("cholesky", "det", "inv", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "pinv"),
    *("slogdet", "solve", "svdvals"),
)


def _symmetric(compute: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of a symmetric matrix, whose triangles are the same."""

    def computed(a: Any, UPLO: str = "L") -> Any:
        return compute(a)

    return computed


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return arrays.svdvals(a)
    m, n = shape_of(a)[-2:] if len(shape_of(a)) > 1 else (0, 0)
    if full_matrices and m != n:
        raise at_users_line(
            TraceError,
            f"the full singular vectors of a matrix of shape {(m, n)} have no derivative",
            "write np.linalg.svd(a, full_matrices=False)",
        )
    return arrays.svd(a)


def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r"):
        raise at_users_line(
            TraceError,
            f"there is no derivative of a QR factorisation with mode={mode!r}",
            "write mode='reduced' or mode='r'",
        )
    found = arrays.qr(a)
    return found if mode == "reduced" else found.R


def _lstsq(a: Any, b: Any, rcond: None = None) -> Any:
    if rcond is not None:
        raise at_users_line(
            TraceError, "lstsq has no rcond here", "leave it out: the default is NumPy's"
        )
    return arrays.lstsq(a, b)


def _vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return norms of vectors along several axes, too; by default of all elements."""
    x = as_array(x)
    shape = shape_of(x)
    axes = normalized_axes("vector_norm", axis, shape)
    flat = move_axis(x, axes, tuple(range(-len(axes), 0))) if axes else x
    rest = shape_of(flat)[: len(shape) - len(axes)]
    found = arrays.norm_of_order(arrays.reshape(flat, (*rest, -1)), ord, -1)
    return arrays.reshape(found, kept_axes(shape, axes)) if keepdims else found


def _matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return arrays.norm_of_order(x, ord, (-2, -1), keepdims)


def _last_axes(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the diagonals of the last two axes; NumPy's own takes the first two."""
    return lambda x, offset=0: compute(x, offset, -2, -1)


LINALG: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np.linalg, name): getattr(arrays, name) for name in SAME},
    np.linalg.cross: lambda x1, x2, *, axis=-1: cross(x1, x2, axis=axis),
    np.linalg.diagonal: _last_axes(diagonal),
    np.linalg.eigh: _symmetric(arrays.eigh),
    np.linalg.eigvalsh: _symmetric(arrays.eigvalsh),
    np.linalg.lstsq: _lstsq,
    np.linalg.matmul: arrays.matmul,
    np.linalg.matrix_norm: _matrix_norm,
    np.linalg.matrix_transpose: matrix_transpose,
    np.linalg.norm: arrays.norm_of_order,
    np.linalg.outer: arrays.outer,
    np.linalg.qr: _qr,
    np.linalg.svd: _svd,
    np.linalg.tensordot: lambda x1, x2, *, axes=2: tensordot(x1, x2, axes),
    np.linalg.trace: _last_axes(trace),
    np.linalg.vecdot: lambda x1, x2, *, axis=-1: vecdot(x1, x2, axis),
    np.linalg.vector_norm: _vector_norm,
}
"""The counterparts by NumPy's function."""

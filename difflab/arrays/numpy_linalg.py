"""Counterparts of the functions of `numpy.linalg` whose arguments differ from difflab's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.given import shape_of
from difflab.core.place import at_users_line
from difflab.errors import TraceError

__all__ = ["LINALG"]

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


LINALG: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np.linalg, name): getattr(arrays, name) for name in SAME},
    np.linalg.eigh: _symmetric(arrays.eigh),
    np.linalg.eigvalsh: _symmetric(arrays.eigvalsh),
    np.linalg.lstsq: _lstsq,
    np.linalg.norm: arrays.norm_of_order,
    np.linalg.qr: _qr,
    np.linalg.svd: _svd,
}
"""The counterparts by NumPy's function."""

"""What NumPy's functions are here, for values that take them over (NEP 13 and NEP 18).

May import the array functions, `primitives`, `errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

import numpy as np

from difflab import arrays
from difflab.core.primitive import Primitive
from difflab.errors import TraceError
from difflab.primitives import TABLE

__all__ = ["ARRAY_FUNCTIONS", "rows_by_numpy_name", "way_out"]


SAME = (
    *("argmax", "broadcast_to", "concatenate", "cumsum", "diag", "dot", "einsum", "max", "mean"),
    *("min", "outer", "prod", "reshape", "squeeze", "stack", "sum", "transpose"),
)
SAME_LINALG = ("cholesky", "det", "inv", "solve")


def _norm(x: Any, ord: Any = None, axis: arrays.Axis = None, keepdims: bool = False) -> Any:
    """Return the Euclidean norm, the only one here."""
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and len(x.shape) > 1):
        raise TraceError(
            f"difflab has no norm of order {ord!r}", hint="the Euclidean norm has none"
        )
    return arrays.norm(x, axis, keepdims)


def _swapped(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(len(a.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return arrays.transpose(a, order)


def _opened(a: Any, axis: int) -> Any:
    shape = list(a.shape)
    shape.insert(axis % (len(shape) + 1), 1)
    return arrays.reshape(a, shape)


def _taken(a: Any, indices: Any, axis: int | None = None) -> Any:
    flat = arrays.reshape(a, -1) if axis is None else a
    return arrays.take(flat, indices, axis or 0)


def _padded(array: Any, pad_width: Any) -> Any:
    """Pad by one width, one pair of widths, or a pair for every axis."""
    pairs = np.broadcast_to(pad_width, (len(array.shape), 2))
    return arrays.pad(array, pairs.tolist())


def _of_matrices(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return what NumPy counts axes from the first for, where that makes no difference."""

    def computed(a: Any) -> Any:
        if len(a.shape) != 2:
            raise TraceError(f"difflab has no numpy.{name} of the shape {a.shape}")
        return compute(a)

    return computed


def _inner(a: Any, b: Any) -> Any:
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise TraceError("difflab has no numpy.inner of matrices", hint="write a @ b.T")
    return arrays.dot(a, b)


# Parameters that NumPy has and that cannot be honoured make a call fail to bind.
ARRAY_FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np, name): getattr(arrays, name) for name in SAME},
    **{getattr(np.linalg, name): getattr(arrays, name) for name in SAME_LINALG},
    np.linalg.norm: _norm,
    np.swapaxes: _swapped,
    np.expand_dims: _opened,
    np.ravel: lambda a: arrays.reshape(a, -1),
    np.inner: _inner,
    np.take: _taken,
    np.pad: _padded,
    np.diagonal: _of_matrices("diagonal", arrays.diagonal),
    np.trace: _of_matrices("trace", arrays.trace),
}


WRITTEN = {
    "average": "np.sum(w * x) / np.sum(w)",
    "cross": "the three differences of products, in np.stack",
    "diff": "x[1:] - x[:-1]",
    "flip": "x[::-1]",
    "hstack": "np.concatenate([a, b], axis=-1)",
    "ptp": "np.max(x) - np.min(x)",
    "repeat": "np.take(x, places)",
    "split": "slices: x[:k], x[k:]",
    "std": "np.sqrt(np.mean((x - np.mean(x)) ** 2))",
    "tile": "np.concatenate([x, x])",
    "tril": "x * np.tri(n)",
    "var": "np.mean((x - np.mean(x)) ** 2)",
    "vdot": "np.dot(a, b)",
    "vstack": "np.concatenate([a, b], axis=0)",
}
"""Functions of NumPy's that difflab has no name for, in terms of those that it has."""


def way_out(name: str) -> str:
    """Return what to write instead of a function of NumPy's that cannot be taken as it is.

    Examples
    --------
    >>> way_out("var")
    'write np.mean((x - np.mean(x)) ** 2)'
    >>> way_out("fliplr")
    'did you mean numpy.flip? write x[::-1]'
    """
    if name in WRITTEN:
        return f"write {WRITTEN[name]}"
    known = {function.__name__ for function in ARRAY_FUNCTIONS} | rows_by_numpy_name().keys()
    if name in known:
        return f"numpy.{name} is known as a function of values, without out=, where= or dtype="
    near = get_close_matches(name, [*known, *WRITTEN], 1)
    if not near:
        return "write it with the functions that difflab.arrays and the table of primitives have"
    return f"did you mean numpy.{near[0]}?" + (
        f" write {WRITTEN[near[0]]}" if near[0] in WRITTEN else ""
    )


@cache
def rows_by_numpy_name() -> Mapping[str, Primitive]:
    """Map NumPy's names of functions to rows."""
    kernels = {row.kernel: row for row in TABLE.values() if isinstance(row.kernel, str)}
    by_row_name = {"heaviside", "cbrt", "hypot", "where", "clip"}
    rows = {str(name).removeprefix("special."): row for name, row in kernels.items()}
    rows |= {name: TABLE[name] for name in by_row_name if name != "heaviside"}
    return rows | {
        "arctan2": TABLE["atan2"],
        "absolute": TABLE["absolute"],
        "fabs": TABLE["absolute"],
        "remainder": TABLE["mod"],
        "true_divide": TABLE["divide"],
        "float_power": TABLE["power"],
        "expit": TABLE["sigmoid"],
        "psi": TABLE["digamma"],
        "gammaln": TABLE["loggamma"],
    }

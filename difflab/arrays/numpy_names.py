"""Counterparts of NumPy's functions, for values that override them (NEP 13 and NEP 18)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays import truths
from difflab.arrays.given import as_indices, as_integers, mismatch, normalized_axes, normalized_axis
from difflab.core.ownership import unchanged
from difflab.core.primitive import Primitive
from difflab.errors import TraceError
from difflab.primitives import TABLE, clip, floor, maximum, minimum, round_

__all__ = [
    "alternative_to",
    "clipped",
    "numpy_take",
    "of_function",
    "of_ufunc",
    "rounded",
    "swap_axes",
]


SAME = (
    *("argmax", "broadcast_to", "concatenate", "cumsum", "diag", "dot", "einsum", "max", "mean"),
    *("min", "outer", "prod", "reshape", "squeeze", "stack", "sum", "transpose"),
)
SAME_LINALG = ("cholesky", "det", "inv", "solve")


def _norm(x: Any, ord: Any = None, axis: arrays.Axis = None, keepdims: bool = False) -> Any:
    """Return the Euclidean norm, the only one implemented."""
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and len(x.shape) > 1):
        raise TraceError(
            f"difflab has no norm of order {ord!r}", hint="leave out ord for the Euclidean norm"
        )
    return arrays.norm(x, axis, keepdims)


def swap_axes(a: Any, axis1: int, axis2: int) -> Any:
    """Exchange two axes."""
    order = list(range(len(a.shape)))
    first, second = (
        normalized_axis("swapaxes", axis1, a.shape),
        normalized_axis("swapaxes", axis2, a.shape),
    )
    order[first], order[second] = order[second], order[first]
    return arrays.transpose(a, order)


def _expand_dims(a: Any, axis: int | Sequence[int]) -> Any:
    added = as_integers("expand_dims", "axis", axis)
    places = normalized_axes("expand_dims", added, (*a.shape, *(1,) * len(added)))
    rank = len(a.shape) + len(places)
    remaining = iter(a.shape)
    opened = [1 if k - rank in places else next(remaining) for k in range(rank)]
    return arrays.reshape(a, opened)


def numpy_take(a: Any, indices: Any, axis: int | None = None) -> Any:
    """Return entries at static indices, along an axis or of the flattened array."""
    flat = arrays.reshape(a, -1) if axis is None else a
    return arrays.take(flat, indices, axis or 0)


def _pad(array: Any, pad_width: Any) -> Any:
    """Pad by one width, one pair of widths, or a pair for every axis."""
    try:
        pairs = np.broadcast_to(as_indices("pad", pad_width), (len(array.shape), 2))
    except ValueError:
        raise mismatch(
            f"pad of the shape {array.shape} needs a pair (before, after) for every axis"
        ) from None
    return arrays.pad(array, pairs.tolist())


def _of_matrices(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Restrict a function to matrices, where NumPy's axis order makes no difference."""

    def computed(a: Any) -> Any:
        if len(a.shape) != 2:
            raise TraceError(f"difflab has no numpy.{name} of the shape {a.shape}")
        return compute(a)

    return computed


def clipped(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    """Return the values clipped to two bounds, either of which may be None."""
    low = a_min if min is None else min
    high = a_max if max is None else max
    if low is None:
        return unchanged(a) if high is None else minimum(high, a)
    return maximum(low, a) if high is None else clip(a, low, high)


def rounded(a: Any, decimals: int = 0) -> Any:
    """Round to `decimals` decimal places, halves to even."""
    if decimals == 0:
        return round_(a)
    scale = 10.0 ** abs(decimals)
    return round_(a * scale) / scale if decimals > 0 else round_(a / scale) * scale


def _move_axis(a: Any, source: int, destination: int) -> Any:
    rank = len(a.shape)
    order = list(range(rank))
    moved = order.pop(normalized_axis("moveaxis", source, a.shape))
    order.insert(normalized_axis("moveaxis", destination, a.shape) + rank, moved)
    return arrays.transpose(a, order)


def _like(value: float) -> Callable[..., Any]:
    return lambda a: a.filled(value)


def _full_like(a: Any, fill_value: Any) -> Any:
    if isinstance(fill_value, int | float | np.number):
        return a.filled(float(fill_value))
    return arrays.broadcast_to(fill_value, a.shape)


def _at_least(rank: int) -> Callable[[Any], Any]:
    """Return a function that prepends axes until an array has `rank` axes."""
    return lambda a: arrays.reshape(a, (1,) * (rank - len(a.shape)) + tuple(a.shape))


def _inner(a: Any, b: Any) -> Any:
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise TraceError("difflab has no numpy.inner of matrices", hint="write a @ b.T")
    return arrays.dot(a, b)


# A call with unsupported NumPy parameters fails to bind.
ARRAY_FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np, name): getattr(arrays, name) for name in SAME},
    **{getattr(np.linalg, name): getattr(arrays, name) for name in SAME_LINALG},
    np.linalg.norm: _norm,
    np.amax: arrays.max,
    np.amin: arrays.min,
    np.around: rounded,
    np.all: truths.all,
    np.any: truths.any,
    np.argmin: lambda a, axis=None: arrays.argmax(-a, axis),
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.clip: clipped,
    np.copy: lambda a: a.copy(),
    np.count_nonzero: truths.count,
    np.empty_like: _like(0.0),
    np.full_like: _full_like,
    np.matrix_transpose: lambda x: swap_axes(x, -1, -2),
    np.moveaxis: _move_axis,
    np.ndim: lambda a: a.ndim,
    np.ones_like: _like(1.0),
    np.round: rounded,
    np.shape: lambda a: a.shape,
    np.size: lambda a: a.size,
    np.zeros_like: _like(0.0),
    np.swapaxes: swap_axes,
    np.expand_dims: _expand_dims,
    np.ravel: lambda a: arrays.reshape(a, -1),
    np.inner: _inner,
    np.take: numpy_take,
    np.pad: _pad,
    np.diagonal: _of_matrices("diagonal", arrays.diagonal),
    np.trace: _of_matrices("trace", arrays.trace),
}


UFUNCS: Mapping[str, Callable[..., Any]] = {
    "bitwise_and": truths.bitwise_and,
    "bitwise_or": truths.bitwise_or,
    "bitwise_xor": truths.bitwise_xor,
    "deg2rad": lambda x: x * (math.pi / 180),
    "degrees": lambda x: x * (180 / math.pi),
    "divmod": lambda a, b: (floor(a / b), a % b),
    "floor_divide": lambda a, b: floor(a / b),
    "invert": truths.invert,
    "isfinite": lambda x: abs(x) < math.inf,
    "isinf": lambda x: abs(x) == math.inf,
    "isnan": lambda x: x != x,
    "logical_xor": truths.logical_xor,
    "positive": unchanged,
    "rad2deg": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "matmul": arrays.matmul,
}
"""NumPy's elementwise functions that are not rows of the table."""


def of_ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the counterpart of a NumPy ufunc, or None.

    Examples
    --------
    >>> of_ufunc(np.sin)
    <primitive sin>
    """
    row = rows_by_numpy_name().get(ufunc.__name__)
    if row is not None and row.arity == ufunc.nin:
        return row
    return UFUNCS.get(ufunc.__name__)


def of_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """Return the counterpart of a NumPy array function, or None if it rejects these arguments.

    Examples
    --------
    >>> of_function(np.sum, (1.0,), {"out": 0}) is None
    True
    """
    compute = ARRAY_FUNCTIONS.get(function)
    if compute is None:
        row = rows_by_numpy_name().get(function.__name__)
        return row if row is not None and not kwargs and len(args) == row.arity else None
    if len(args) == 1 and not kwargs:
        return compute
    try:
        inspect.signature(compute).bind(*args, **kwargs)
    except TypeError:
        return None
    return compute


WRITTEN = {
    "allclose": "np.all(np.abs(a - b) <= 1e-8 + 1e-5 * np.abs(b))",
    "append": "np.concatenate([a, b])",
    "array_split": "slices: x[:k], x[k:]",
    "average": "np.sum(w * x) / np.sum(w)",
    "broadcast_arrays": "np.broadcast_to(a, shape)",
    "choose": "np.where(condition, a, b)",
    "column_stack": "np.stack([a, b], axis=1)",
    "conj": "x itself: the numbers are real",
    "conjugate": "x itself: the numbers are real",
    "convolve": "sums of slices, or difflab.arrays.conv2d",
    "copysign": "np.where(b < 0, -np.abs(a), np.abs(a))",
    "cross": "the three differences of products, in np.stack",
    "cumprod": "np.stack([np.prod(x[:k]) for k in range(1, len(x) + 1)])",
    "cumulative_sum": "np.cumsum(x, axis)",
    "delete": "np.concatenate([x[:k], x[k + 1:]])",
    "diff": "x[1:] - x[:-1]",
    "dstack": "np.stack([a, b], axis=2)",
    "fill": "np.full_like(x, value)",
    "fix": "np.sign(x) * np.floor(np.abs(x))",
    "flat": "np.ravel(x)",
    "flip": "x[::-1]",
    "fliplr": "x[:, ::-1]",
    "flipud": "x[::-1]",
    "fmax": "np.maximum(a, b)",
    "fmin": "np.minimum(a, b)",
    "fmod": "np.sign(a) * (np.abs(a) % np.abs(b))",
    "gradient": "differences of slices: (x[2:] - x[:-2]) / 2",
    "heaviside": "np.where(x < 0, 0.0, np.where(x > 0, 1.0, h))",
    "hstack": "np.concatenate([a, b], axis=-1)",
    "imag": "0.0: the numbers are real",
    "insert": "np.concatenate([x[:k], new, x[k:]])",
    "isclose": "np.abs(a - b) <= 1e-8 + 1e-5 * np.abs(b)",
    "kron": "np.reshape(a[:, None, :, None] * b[None, :, None, :], shape)",
    "ldexp": "x * 2.0**n",
    "logaddexp": "difflab.arrays.logsumexp(np.stack([a, b]), axis=0)",
    "lstsq": "np.linalg.solve(a.T @ a, a.T @ b)",
    "matrix_power": "x @ x",
    "meshgrid": "np.broadcast_to(x[None, :], shape) and np.broadcast_to(y[:, None], shape)",
    "multi_dot": "a @ b @ c",
    "nan_to_num": "np.where(x == x, x, 0.0)",
    "nanmax": "np.max(np.where(x == x, x, -np.inf))",
    "nanmean": "np.sum(np.where(x == x, x, 0.0)) / np.sum(x == x)",
    "nanmin": "np.min(np.where(x == x, x, np.inf))",
    "nansum": "np.sum(np.where(x == x, x, 0.0))",
    "piecewise": "np.where(first, a, np.where(second, b, c))",
    "pinv": "np.linalg.solve(x.T @ x, x.T)",
    "polyval": "Horner's scheme: (a * x + b) * x + c",
    "ptp": "np.max(x) - np.min(x)",
    "put": "np.where(mask, new, x)",
    "real": "x itself: the numbers are real",
    "repeat": "np.take(x, indices)",
    "roll": "np.concatenate([x[-k:], x[:-k]])",
    "rot90": "x.T[::-1]",
    "select": "np.where(first, a, np.where(second, b, c))",
    "signbit": "x < 0",
    "sinc": "np.sin(np.pi * x) / (np.pi * x)",
    "slogdet": "difflab.arrays.logdet(x)",
    "split": "slices: x[:k], x[k:]",
    "std": "np.sqrt(np.mean((x - np.mean(x)) ** 2))",
    "take_along_axis": "np.take(np.ravel(x), indices)",
    "tensordot": "np.einsum('ij,jk->ik', a, b)",
    "tile": "np.concatenate([x, x])",
    "tolist": "list(x), or tensor.detach().numpy().tolist() for the elements of a tensor",
    "trapezoid": "np.sum((y[1:] + y[:-1]) / 2 * dx)",
    "tril": "x * np.tri(n)",
    "triu": "x * (1 - np.tri(n, k=-1))",
    "trunc": "np.sign(x) * np.floor(np.abs(x))",
    "var": "np.mean((x - np.mean(x)) ** 2)",
    "vdot": "np.dot(a, b)",
    "vecdot": "np.sum(a * b, axis=-1)",
    "vstack": "np.concatenate([a, b], axis=0)",
}
"""NumPy functions without a counterpart, written with functions that have one."""

DEPENDENT = frozenset(
    {"argwhere", "compress", "extract", "flatnonzero", "nonzero", "unique", "where"}
)
"""Functions whose result has a shape that depends on the values."""

ORDERED = frozenset(
    {"argpartition", "argsort", "median", "partition", "percentile", "quantile"}
    | {"searchsorted", "sort"}
)
"""Functions that need the order of the values."""


def alternative_to(name: str) -> str:
    """Return what to write instead of a function of NumPy's that cannot be numpy_take as it is.

    Examples
    --------
    >>> alternative_to("var")
    'write np.mean((x - np.mean(x)) ** 2)'
    >>> alternative_to("hstak")
    'did you mean numpy.hstack? write np.concatenate([a, b], axis=-1)'
    """
    if name in WRITTEN:
        return f"write {WRITTEN[name]}"
    if name in DEPENDENT:
        return (
            "its shape would depend on the values: select by np.where(condition, a, b), or compute"
            " the indices in advance from NumPy arrays and write x[indices]"
        )
    if name in ORDERED:
        return "compute the order in advance, by np.argsort of a NumPy array, and write x[order]"
    known = {function.__name__ for function in ARRAY_FUNCTIONS}
    known |= rows_by_numpy_name().keys() | UFUNCS.keys()
    if name in known:
        return f"numpy.{name} is supported as a function, without out=, where=, dtype= and initial="
    near = get_close_matches(name, [*known, *WRITTEN], 1, 0.75)
    if not near:
        return "write it with the functions that difflab.arrays and the table of primitives have"
    return f"did you mean numpy.{near[0]}?" + (
        f" write {WRITTEN[near[0]]}" if near[0] in WRITTEN else ""
    )


@cache
def rows_by_numpy_name() -> Mapping[str, Primitive]:
    """Return the rows by NumPy's function names."""
    synonyms = {
        "abs": TABLE["absolute"],
        "digamma": TABLE["digamma"],
        "fabs": TABLE["absolute"],
        "float_power": TABLE["power"],
        "mod": TABLE["mod"],
        "true_divide": TABLE["divide"],
    }
    return {row.ufunc: row for row in TABLE.values() if row.ufunc} | synonyms

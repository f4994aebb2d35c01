"""NumPy's functions that need the order of the elements, and those that look up in a sorted table.

Sorting is stable, whatever `kind` says, and the results of partitions are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.arrays.counterparts.layout import at_least, cut, move_axis
from difflab.arrays.given import (
    Axis,
    as_array,
    kept_axes,
    mismatch,
    normalized_axes,
    normalized_axis,
    shape_of,
)
from difflab.core.place import at_users_line
from difflab.errors import InputError


def _stable(compute: Callable[..., Any]) -> Callable[..., Any]:
    def stable_order(
        a: Any, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
    ) -> Any:
        return compute(a, axis)

    return stable_order


def _partitioned(compute: Callable[..., Any]) -> Callable[..., Any]:
    def partitioned(a: Any, kth: int | Sequence[int], axis: int | None = -1) -> Any:
        shape = shape_of(as_array(a))
        size = (
            math.prod(shape) if axis is None else shape[normalized_axis("partition", axis, shape)]
        )
        if any(not -size <= place < size for place in np.ravel(kth).tolist()):
            raise mismatch(f"kth of a partition is outside an axis of size {size}: {kth}")
        return compute(a, axis)

    return partitioned


# --- quantiles --------------------------------------------------------------------------------


def _lines(name: str, a: Any, axis: Axis) -> tuple[Any, tuple[int, ...]]:
    """Merge the axes of a reduction into a last axis; return the array and the kept shape."""
    a = as_array(a)
    shape = shape_of(a)
    axes = normalized_axes(name, axis, shape)
    size = math.prod(shape[entry] for entry in axes)
    if size == 0:
        raise mismatch(f"{name} of an empty array, of the shape {shape}")
    moved = move_axis(a, axes, tuple(range(-len(axes), 0))) if axes and len(shape) > 1 else a
    rest = shape_of(moved)[: len(shape) - len(axes)]
    return arrays.reshape(moved, (*rest, size)), kept_axes(shape, axes)


def _quantiles(name: str, whole: float = 1.0, *, missing: bool = False) -> Callable[..., Any]:
    """Return NumPy's quantiles, by shares of `whole`; `missing` leaves nan out."""

    def computed(
        a: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False
    ) -> Any:
        lines, opened = _lines(name, a, axis)
        ordered, size = arrays.sort(lines), shape_of(lines)[-1]
        q = _shares(lines, q, whole)
        flat = arrays.reshape(q, (-1,))
        if missing or hasattr(q, "__difflab_apply__"):
            if method != "linear":
                raise at_users_line(
                    InputError,
                    f"{name} takes method='linear' only, since its positions are known when it"
                    " runs",
                )
            quantiles = _at_computed(ordered, flat, size, missing)
        else:
            quantiles = _at_known(name, ordered, flat, size, method)
        if not missing:
            quantiles = _nan_if_any(ordered, quantiles)
        rest = opened if keepdims else shape_of(lines)[:-1]
        return arrays.reshape(move_axis(quantiles, -1, 0), (*shape_of(as_array(q)), *rest))

    return computed


def _shares(values: Any, q: Any, whole: float) -> Any:
    """Return q / whole as NumPy does: a number of Python has the dtype of the values."""
    if hasattr(q, "__difflab_apply__"):
        return q / whole
    weak = isinstance(q, int | float) and not isinstance(q, np.generic)
    q = np.asarray(q, getattr(values, "dtype", np.float64) if weak else None)
    return q / q.dtype.type(whole) if q.dtype.kind == "f" else q / whole


def _nan_if_any(ordered: Any, statistic: Any) -> Any:
    """Return nan where sorted lines contain it: it is last."""
    last = cut(ordered, -1, -1)
    return rows.where(rows.not_equal(last, last), last, statistic)


def _at_known(name: str, ordered: Any, q: Any, size: int, method: str) -> Any:
    """Return the elements at NumPy's positions, or between two of them."""
    try:
        places = np.quantile(np.arange(float(size)), np.asarray(q), method=method)  # type: ignore[call-overload]
    except ValueError as error:
        raise at_users_line(InputError, f"{name}: {error}") from None
    below = np.clip(np.floor(places), 0, size - 1).astype(int)
    share = (places - below).astype(np.result_type(q, np.float32))
    low = arrays.take(ordered, below, -1)
    if not np.any(share):
        return low
    high = arrays.take(ordered, np.minimum(below + 1, size - 1), -1)
    return low + rows.where(share == 0, 0.0, (high - low) * share)


def _at_computed(ordered: Any, q: Any, size: int, missing: bool) -> Any:
    """Return the quantile `q` of the elements, interpolated between two of them."""
    count: Any = float(size)
    if missing:
        count = arrays.sum(rows.where(rows.equal(ordered, ordered), 1.0, 0.0), -1, keepdims=True)
    places = rows.maximum(count - 1.0, 0.0) * q
    lead = shape_of(ordered)[:-1]
    places = arrays.broadcast_to(places, (*lead, shape_of(places)[-1]))
    below = rows.clip(rows.floor(places), 0.0, float(size - 1))
    low = arrays.take_along_axis(ordered, below)
    high = arrays.take_along_axis(ordered, rows.clip(below + 1.0, 0.0, float(size - 1)))
    share = places - below
    return low + rows.where(
        rows.equal(share, 0.0), share * _finite(high - low), share * (high - low)
    )


def _finite(x: Any) -> Any:
    return rows.where(rows.less(rows.absolute(x), math.inf), x, 0.0)


def _middle(name: str, *, missing: bool = False) -> Callable[..., Any]:
    """Return NumPy's median, the mean of the two middle elements, which may be one."""

    def computed(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
        lines, opened = _lines(name, a, axis)
        ordered, size = arrays.sort(lines), shape_of(lines)[-1]
        if missing:
            present = rows.where(rows.equal(ordered, ordered), 1.0, 0.0)
            middle = rows.maximum(arrays.sum(present, -1, keepdims=True) - 1.0, 0.0) / 2.0
            low, high = (
                arrays.take_along_axis(ordered, part(middle)) for part in (rows.floor, rows.ceil)
            )
        else:
            low, high = (cut(ordered, -1, k, k + 1) for k in ((size - 1) // 2, size // 2))
        median = (low + high) / 2.0
        if not missing:
            median = _nan_if_any(ordered, median)
        return arrays.reshape(median, opened if keepdims else shape_of(lines)[:-1])

    return computed


# --- tables -----------------------------------------------------------------------------------


def searched(a: Any, v: Any, side: str = "left") -> Any:
    """Return how many elements of a sorted vector are before each value; derivative 0.

    The ranks of the values in the sorted union, less their ranks among themselves.
    """
    a, v = as_array(a), as_array(v)
    if len(shape_of(a)) != 1 or side not in ("left", "right"):
        raise mismatch("searchsorted takes a sorted vector, values, and side 'left' or 'right'")
    size, flat = shape_of(a)[0], arrays.reshape(v, (-1,))
    count = shape_of(flat)[0]
    parts = [a, flat] if side == "right" else [flat, a]
    ranks = arrays.argsort(arrays.argsort(arrays.concatenate(parts)))
    own = arrays.argsort(arrays.argsort(flat))
    start = size if side == "right" else 0
    return arrays.reshape(ranks[start : start + count] - own, shape_of(v))


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges = as_array(bins)
    size, known = shape_of(edges)[0], isinstance(edges, np.ndarray)
    if known and np.all(np.diff(edges) <= 0) and np.any(np.diff(edges)):
        return size - searched(edges[::-1], x, "right" if right else "left")
    if known and not np.all(np.diff(edges) >= 0):
        raise mismatch("bins of digitize increase, or decrease")
    return searched(edges, x, "left" if right else "right")


def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Any:
    x, points, values = as_array(x), as_array(xp), as_array(fp)
    if (
        len(shape_of(points)) != 1
        or shape_of(points) != shape_of(values)
        or not shape_of(points)[0]
    ):
        raise mismatch(
            f"interp takes two vectors of one length, not {shape_of(points)} and {shape_of(values)}"
        )
    if period is not None:
        x, points, values = _periodic(x, points, values, abs(period))
        left = right = None
    size = shape_of(points)[0]
    if size == 1:
        inside = arrays.broadcast_to(values, shape_of(x) or (1,))
        inside = inside if shape_of(x) else arrays.reshape(inside, ())
    else:
        flat = arrays.reshape(x, (-1,))
        below = rows.clip(searched(points, flat, "right") - 1.0, 0.0, float(size - 2))
        x0, x1, y0, y1 = (
            arrays.take_along_axis(table, place)
            for table in (points, values)
            for place in (below, below + 1.0)
        )
        inside = arrays.reshape(y0 + (flat - x0) * ((y1 - y0) / (x1 - x0)), shape_of(x))
    first = values[0] if left is None else left
    last = values[size - 1] if right is None else right
    inside = rows.where(rows.less(x, points[0]), first, inside)
    return rows.where(rows.greater(x, points[size - 1]), last, inside)


def _periodic(x: Any, points: Any, values: Any, period: float) -> tuple[Any, Any, Any]:
    """Return one period of a table in order, with a point of its neighbours at either end."""
    if period == 0:
        raise at_users_line(InputError, "period of interp is not 0")
    points = rows.mod(points, period)
    order = arrays.argsort(points)
    points, values = (arrays.take_along_axis(table, order) for table in (points, values))
    wide = [cut(points, -1, -1) - period, points, cut(points, -1, 0, 1) + period]
    around = [cut(values, -1, -1), values, cut(values, -1, 0, 1)]
    return rows.mod(x, period), arrays.concatenate(wide), arrays.concatenate(around)


def _nan_cumprod(a: Any, axis: int | None = None) -> Any:
    a = as_array(a)
    return arrays.cumprod(rows.where(rows.equal(a, a), a, 1.0), axis)


# --- filters ----------------------------------------------------------------------------------


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = (at_least(1)(x) for x in (a, v))
    _check_vectors("convolve", a, v)
    if shape_of(a)[0] < shape_of(v)[0]:
        a, v = v, a
    long, short = shape_of(a)[0], shape_of(v)[0]
    if mode == "valid":
        return arrays.correlate(a, v[::-1])
    whole = arrays.convolve(a, v)
    if mode == "full":
        return whole
    if mode != "same":
        raise at_users_line(InputError, f"mode is 'full', 'same' or 'valid', not {mode!r}")
    start = (short - 1) // 2
    return whole[start : start + long]


def _check_vectors(name: str, a: Any, v: Any) -> None:
    if len(shape_of(a)) != 1 or len(shape_of(v)) != 1:
        raise mismatch(f"{name} takes two vectors, not the shapes {shape_of(a)} and {shape_of(v)}")


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = as_array(a), as_array(v)
    _check_vectors("correlate", a, v)
    if shape_of(a)[0] < shape_of(v)[0]:
        return _correlate(v, a, mode)[::-1]
    return _convolve(a, v[::-1], mode)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "argpartition": _partitioned(arrays.argsort),
    "argsort": _stable(arrays.argsort),
    "convolve": _convolve,
    "correlate": _correlate,
    "cumprod": arrays.cumprod,
    "digitize": _digitize,
    "interp": _interp,
    "median": _middle("median"),
    "nancumprod": _nan_cumprod,
    "nanmedian": _middle("nanmedian", missing=True),
    "nanpercentile": _quantiles("nanpercentile", 100.0, missing=True),
    "nanquantile": _quantiles("nanquantile", missing=True),
    "partition": _partitioned(arrays.sort),
    "percentile": _quantiles("percentile", 100.0),
    "quantile": _quantiles("quantile"),
    "searchsorted": searched,
    "sort": _stable(arrays.sort),
    "take_along_axis": arrays.take_along_axis,
}

"""NumPy's averages, deviations and covariances, also of arrays with missing values (nan)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays import shaped
from difflab.arrays.given import (
    Axis,
    as_array,
    as_float,
    as_indices,
    as_integer,
    mismatch,
    normalized_axes,
    shape_of,
)
from difflab.core.apply import apply
from difflab.primitives import clip, put, sqrt, where
from difflab.primitives.movement import as_places


def _count(name: str, x: Any, axis: Axis) -> int:
    """Return the number of elements that a reduction takes."""
    shape = shape_of(x)
    size = math.prod(shape[entry] for entry in normalized_axes(name, axis, shape))
    if size == 0:
        raise mismatch(f"{name} of an empty array, of the shape {shape}")
    return size


def _divisor(name: str, ddof: float, correction: float | None) -> float:
    if correction is None:
        return as_float(name, "ddof", ddof)
    if ddof != 0:
        raise mismatch(f"{name} takes ddof or correction, not both")
    return as_float(name, "correction", correction)


def _deviation(name: str, *, missing: bool = False, root: bool = False) -> Callable[..., Any]:
    """Return NumPy's variance Σ(x - x̄)²/(n - ddof) along axes, or its `root`.

    The derivative of the root is 0 where all elements are equal. `missing` leaves nan out.
    """
    average = _nanmean if missing else arrays.mean

    def computed(
        a: Any,
        axis: Axis = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
        mean: Any = None,
        correction: float | None = None,
    ) -> Any:
        a, less = as_array(a), _divisor(name, ddof, correction)
        # Dividing by nan is NumPy's division of no elements by zero, without its warning.
        if missing:
            rest = _present(a, axis, keepdims) - less
            rest = where(rest > 0, rest, math.nan)
        else:
            rest = max(_count(name, a, axis) - less, 0.0) or math.nan
        centred = a - (average(a, axis, keepdims=True) if mean is None else mean)
        if missing:
            centred = where(a == a, centred, 0.0)
        if root:
            return arrays.norm(centred, axis, keepdims) / (sqrt if missing else math.sqrt)(rest)
        return arrays.sum(centred * centred, axis, keepdims) / rest

    return computed


def _ptp(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return arrays.max(a, axis, keepdims) - arrays.min(a, axis, keepdims)


def _average(
    a: Any,
    axis: Axis = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    a = as_array(a)
    if weights is None:
        average = arrays.mean(a, axis, keepdims)
        return (
            (average, np.full(shape_of(average), float(_count("average", a, axis)))[()])
            if returned
            else average
        )
    weights = as_array(weights)
    shape, own = shape_of(a), shape_of(weights)
    if own != shape:
        axes = normalized_axes("average", axis, shape)
        if axis is None or own != tuple(shape[entry] for entry in axes):
            raise mismatch(
                f"average of the shape {shape} with weights of the shape {own}",
                "weights have the array's shape, or the sizes of the axes that are averaged over",
            )
        opened = [size if k - len(shape) in axes else 1 for k, size in enumerate(shape)]
        weights = arrays.broadcast_to(arrays.reshape(weights, opened), shape)
    total = arrays.sum(weights, axis, keepdims)
    average = arrays.sum(a * weights, axis, keepdims) / total
    return (average, total) if returned else average


def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    x = _variables("cov", m, rowvar)
    if y is not None:
        x = arrays.concatenate([x, _variables("cov", y, rowvar)])
    less = as_float("cov", "ddof", (0 if bias else 1) if ddof is None else ddof)
    weights = _cov_weights(fweights, aweights)
    if weights is None:
        rest: Any = x.shape[1] - less
        average = arrays.mean(x, 1, keepdims=True)
        right = x - average
    else:
        total = arrays.sum(weights)
        rest = total
        if less and aweights is None:
            rest = total - less
        elif less:
            rest = total - less * arrays.sum(weights * as_array(aweights)) / total
        average = arrays.sum(x * weights, 1, keepdims=True) / total
        right = (x - average) * weights
    product = (x - average) @ arrays.transpose(right)
    return arrays.squeeze(product / rest)


def _variables(name: str, m: Any, rowvar: bool) -> Any:
    x = as_array(m)
    if len(x.shape) > 2:
        raise mismatch(f"{name} takes a vector or a matrix, not the shape {x.shape}")
    if len(x.shape) < 2:
        return arrays.reshape(x, (1, -1))
    return x if rowvar else arrays.transpose(x)


def _cov_weights(fweights: Any, aweights: Any) -> Any:
    if fweights is None or aweights is None:
        return (
            None if fweights is aweights else as_array(aweights if fweights is None else fweights)
        )
    return as_array(fweights) * as_array(aweights)


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    c = _cov(x, y, rowvar)
    if not shape_of(c):
        return c / c
    deviation = sqrt(arrays.diagonal(c))
    scaled = c / arrays.reshape(deviation, (-1, 1)) / deviation
    return clip(scaled, -1.0, 1.0)


# --- arrays with missing values ---------------------------------------------------------------


def without_nan(x: Any, instead: float) -> Any:
    """Return an array with another number where it is nan."""
    x = as_array(x)
    return where(x == x, x, instead)  # nan differs from itself


def _present(x: Any, axis: Axis, keepdims: bool) -> Any:
    """Return the count of elements along axes that are not nan."""
    return shaped.count(x == x, axis, keepdims)


def _of_present(
    reduce: Callable[..., Any], instead: float, empty: float | None = None
) -> Callable[..., Any]:
    """Return a reduction that takes `instead` for nan; `empty` where all are nan."""

    def reduced(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
        a = as_array(a)
        reduction = reduce(without_nan(a, instead), axis, keepdims)
        return (
            reduction if empty is None else where(_present(a, axis, keepdims) > 0, reduction, empty)
        )

    return reduced


def _nanmean(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    a = as_array(a)
    return arrays.sum(without_nan(a, 0.0), axis, keepdims) / _present(a, axis, keepdims)


var, std = _deviation("var"), _deviation("std", root=True)


def _bincount(x: Any, /, weights: Any, minlength: int = 0) -> Any:
    """Return the sums of the weights of equal indices."""
    bins, weights = as_indices("bincount", x), as_array(weights)
    if bins.ndim != 1 or shape_of(weights) != bins.shape:
        shapes = f"{bins.shape} and {shape_of(weights)}"
        raise mismatch(f"bincount takes vectors of indices and of weights, not the shapes {shapes}")
    if bins.min(initial=0) < 0:
        raise mismatch(f"index {bins.min()} of bincount is negative")
    size = max(as_integer("bincount", "minlength", minlength, 0), bins.max(initial=-1) + 1)
    return apply(put, weights, places=as_places(bins), axis=-1, rank=1, size=int(size))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "average": _average,
    "bincount": _bincount,
    "corrcoef": _corrcoef,
    "cov": _cov,
    "nanargmax": lambda a, axis=None: arrays.argmax(without_nan(a, -math.inf), axis),
    "nanargmin": lambda a, axis=None: arrays.argmax(-without_nan(a, math.inf), axis),
    "nancumsum": lambda a, axis=None: arrays.cumsum(without_nan(a, 0.0), axis),
    "nanmax": _of_present(arrays.max, -math.inf, math.nan),
    "nanmean": _nanmean,
    "nanmin": _of_present(arrays.min, math.inf, math.nan),
    "nanprod": _of_present(arrays.prod, 1.0),
    "nanstd": _deviation("nanstd", missing=True, root=True),
    "nansum": _of_present(arrays.sum, 0.0),
    "nanvar": _deviation("nanvar", missing=True),
    "ptp": _ptp,
    "std": std,
    "var": var,
}

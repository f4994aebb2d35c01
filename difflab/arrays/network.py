"""Functions of neural networks: activations, losses, normalisation.

All are compositions of primitives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import (
    Array,
    Axis,
    as_array,
    as_float,
    as_indices,
    mismatch,
    shape_of,
)
from difflab.arrays.reductions import log_softmax, mean, reduced_for_broadcast, sum
from difflab.arrays.shapes import reshape, take

__all__ = [
    "batch_norm",
    "cross_entropy",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "mse",
    "running_statistics",
]

Key = tuple[Any, ...]


def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """Return x where it is positive and ``slope·x`` elsewhere; derivative `slope` at 0.

    Examples
    --------
    >>> leaky_relu(np.array([-1.0, 2.0])).tolist()
    [-0.01, 2.0]
    """
    x = as_array(x)
    return rows.where(rows.greater(x, 0), x, rows.multiply(as_array(slope), x))


def gelu(x: Array) -> Array:
    """Return x·Φ(x), with Φ the normal distribution (Hendrycks & Gimpel, arXiv:1606.08415).

    Examples
    --------
    >>> float(gelu(1.0)).hex()[:6]
    '0x1.ae'
    """
    x = as_array(x)
    return rows.multiply(x, 0.5 * rows.erfc(rows.multiply(x, -math.sqrt(0.5))))


def mse(a: Array, b: Array) -> Array:
    """Return the mean of the squared differences.

    Examples
    --------
    >>> float(mse(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    2.0
    """
    return mean(rows.subtract(as_array(a), as_array(b)) ** 2)


def cross_entropy(logits: Array, target: int | Sequence[int] | Array) -> Array:
    """Return −log softmax of the target, finite for any finite logits.

    Parameters
    ----------
    logits : (classes,) or (n, classes) array
    target : int, n integers, or an array of the logits' shape
        The class, or the probability of every class. For n rows the mean is returned. Classes
        that are traced, as in `dl.jit`, are chosen where they equal the number of a class.

    Examples
    --------
    >>> float(cross_entropy(np.array([1000.0, -1000.0]), 1))
    2000.0
    """
    logits, target = as_array(logits), as_array(target)
    shape = shape_of(logits)
    if len(shape) not in (1, 2):
        raise mismatch(f"cross_entropy takes logits of one or two axes, not of shape {shape}")
    logs = log_softmax(logits)
    count = 1 if len(shape) == 1 else shape[0]
    if shape_of(target) == shape:
        total = -sum(rows.multiply(target, logs))
        return total if count == 1 else total / count
    if hasattr(type(target), "__difflab_apply__") and shape_of(target) == shape[:-1]:
        chosen = rows.equal(reshape(target, (*shape_of(target), 1)), np.arange(shape[-1]))
        return -sum(rows.where(chosen, logs, 0.0)) / count
    classes = np.atleast_1d(_classes(target))
    if classes.shape != (count,) or ((classes < 0) | (classes >= shape[-1])).any() or not count:
        raise mismatch(
            f"cross_entropy needs {count} classes below {shape[-1]}, not {classes.tolist()}"
        )
    places = np.arange(count) * shape[-1] + classes
    return -mean(take(reshape(logs, -1), places.tolist()))


def _classes(target: Any) -> Any:
    """Return classes as integers; `as_array` has converted lists to floats."""
    plain = np.asarray(target) if not hasattr(type(target), "__difflab_apply__") else target
    exact = isinstance(plain, np.ndarray) and plain.dtype.kind == "f" and (plain % 1 == 0).all()
    return as_indices("cross_entropy", plain.astype(int) if exact else plain)


def _normalised(x: Array, axis: Axis, epsilon: float) -> Array:
    centred = x - reduced_for_broadcast(mean, x, axis)
    least = as_float("a normalisation", "epsilon", epsilon)
    return centred / rows.sqrt(reduced_for_broadcast(mean, centred**2, axis) + least)


def _scaled(x: Array, weight: Any, bias: Any) -> Array:
    scaled = x if weight is None else rows.multiply(x, as_array(weight))
    return scaled if bias is None else rows.add(scaled, as_array(bias))


def layer_norm(x: Array, weight: Any = None, bias: Any = None, epsilon: float = 1e-5) -> Array:
    """Return x with mean 0 and variance 1 along the last axis, times `weight` plus `bias`.

    Examples
    --------
    >>> layer_norm(np.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    return _scaled(_normalised(as_array(x), -1, epsilon), weight, bias)


def batch_norm(
    x: Array,
    weight: Any = None,
    bias: Any = None,
    epsilon: float = 1e-5,
    mean: Any = None,
    variance: Any = None,
) -> Array:
    """Return ``(x − mean)/√(variance + epsilon)``, times `weight` plus `bias`, for each feature.

    Without `mean` and `variance` they are those of x over all axes but the second, as in training.
    With them, usually the running ones of `running_statistics`, the map is affine, as in use.

    Parameters
    ----------
    x : (n, features) or (n, channels, …) array
    weight, bias : number or (features,) array, optional
    epsilon : float
        Added to the variance.
    mean, variance : number or (features,) array, optional
        Both or neither.

    Raises
    ------
    ShapeError
        `x` has one axis, or only one of `mean` and `variance` is given.

    Examples
    --------
    >>> batch_norm(np.array([[1.0], [3.0]]), epsilon=0.0).tolist()
    [[-1.0], [1.0]]
    >>> batch_norm(np.array([[1.0], [3.0]]), epsilon=0.0, mean=1.0, variance=4.0).tolist()
    [[0.0], [1.0]]
    """
    x = as_array(x)
    axes = _all_but_features("batch_norm", x)
    if (mean is None) != (variance is None):
        raise mismatch("batch_norm takes both mean and variance, or neither")
    per_feature = (-1, *(1,) * (len(axes) - 1))
    lined = [
        reshape(part, per_feature) if part is not None and shape_of(part) else part
        for part in (weight, bias, mean, variance)
    ]
    if mean is None:
        return _scaled(_normalised(x, axes, epsilon), *lined[:2])
    least = as_float("batch_norm", "epsilon", epsilon)
    centred = rows.subtract(x, as_array(lined[2]))
    deviation = rows.sqrt(rows.add(as_array(lined[3]), least))
    return _scaled(rows.divide(centred, deviation), *lined[:2])


def running_statistics(
    x: Array, running_mean: Array, running_variance: Array, momentum: float = 0.1
) -> tuple[Array, Array]:
    """Return the running mean and variance of each feature after one more batch.

    ``(1 − momentum)·running + momentum·batch``, where the variance of the batch is the unbiased
    one, divided by n − 1: PyTorch's convention.

    Parameters
    ----------
    x : (n, features) or (n, channels, …) array
    running_mean, running_variance : (features,) array
    momentum : float
        The weight of the new batch.

    Raises
    ------
    ShapeError
        `x` has one axis, or one value per feature.

    Examples
    --------
    >>> means, variances = running_statistics(np.array([[1.0], [3.0]]), np.zeros(1), np.ones(1))
    >>> means.tolist(), variances.tolist()
    ([0.2], [1.1])
    """
    x = as_array(x)
    axes = _all_but_features("running_statistics", x)
    share = as_float("running_statistics", "momentum", momentum)
    size = math.prod(shape_of(x)[axis] for axis in axes)
    if size < 2:
        raise mismatch(f"the variance of the shape {shape_of(x)} needs two values per feature")
    before = (as_array(running_mean), as_array(running_variance))
    features = shape_of(x)[1:2]
    for each in before:
        if shape_of(each) != features:
            shapes = f"the shape {features}, not {shape_of(each)}"
            raise mismatch(f"running_statistics of {features[0]} features takes {shapes}")
    centred = x - reduced_for_broadcast(mean, x, axes)
    found = (mean(x, axes), sum(centred**2, axes) / (size - 1))
    new, newer = ((1 - share) * b + share * f for b, f in zip(before, found, strict=True))
    return new, newer


def _all_but_features(name: str, x: Array) -> list[int]:
    rank = len(shape_of(x))
    if rank < 2:
        raise mismatch(f"{name} takes at least two axes, not the shape {shape_of(x)}")
    return [axis for axis in range(rank) if axis != 1]

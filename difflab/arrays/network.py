"""Functions of neural networks: activations, losses, normalisation, convolution, pooling.

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
    as_integer,
    mismatch,
    shape_of,
)
from difflab.arrays.products import matmul
from difflab.arrays.reductions import log_softmax, max, mean, reduced_for_broadcast, sum
from difflab.arrays.shapes import pad, reshape, stack, take

__all__ = [
    "batch_norm",
    "conv2d",
    "cross_entropy",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "max_pool",
    "mse",
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
        The class, or the probability of every class. For n rows the mean is returned.

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


def batch_norm(x: Array, weight: Any = None, bias: Any = None, epsilon: float = 1e-5) -> Array:
    """Return x with mean 0 and variance 1 over all axes but the second, as in training.

    Parameters
    ----------
    x : (n, features) or (n, channels, height, width) array
    weight, bias : number or (features,) array, optional
    epsilon : float
        Added to the variance.

    Examples
    --------
    >>> batch_norm(np.array([[1.0], [3.0]]), epsilon=0.0).tolist()
    [[-1.0], [1.0]]
    """
    x = as_array(x)
    rank = len(shape_of(x))
    if rank < 2:
        raise mismatch(f"batch_norm takes at least two axes, not the shape {shape_of(x)}")
    axes = [axis for axis in range(rank) if axis != 1]
    lined = [
        reshape(part, (-1, *(1,) * (rank - 2))) if part is not None and shape_of(part) else part
        for part in (weight, bias)
    ]
    return _scaled(_normalised(x, axes, epsilon), *lined)


def _windows(x: Array, size: tuple[int, int], stride: int) -> list[Array]:
    """Return x shifted by every offset of a window, cropped to the positions of windows."""
    if len(shape_of(x)) < 2:
        raise mismatch(f"windows need at least two axes, and the shape is {shape_of(x)}")
    height, width = shape_of(x)[-2:]
    if size[0] > height or size[1] > width:
        raise mismatch(f"a window of {size} does not fit into the shape {shape_of(x)}")
    return [
        x[..., i : height - size[0] + i + 1 : stride, j : width - size[1] + j + 1 : stride]
        for i in range(size[0])
        for j in range(size[1])
    ]


def conv2d(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
    """Return the cross-correlation of images with filters: one matrix product.

    ``y[o, p, q] = Σ x[c, p·s + i, q·s + j] w[o, c, i, j] + b[o]``

    Parameters
    ----------
    x : (channels, height, width) or (n, channels, height, width) array
    weight : (filters, channels, h, w) array
    bias : (filters,) array, optional
    stride, padding : int
        The step of the windows, and the zeros around each image.

    Raises
    ------
    ShapeError
        The shapes do not fit.

    Examples
    --------
    >>> conv2d(np.ones((1, 3, 3)), np.ones((1, 1, 2, 2))).tolist()
    [[[4.0, 4.0], [4.0, 4.0]]]
    """
    x, weight = as_array(x), as_array(weight)
    stride, padding = (
        as_integer("conv2d", "stride", stride, 1),
        as_integer("conv2d", "padding", padding, 0),
    )
    images, filters = shape_of(x), shape_of(weight)
    if len(images) not in (3, 4) or len(filters) != 4 or images[-3] != filters[1]:
        raise mismatch(f"conv2d cannot combine the shapes {images} and {filters}")
    if padding:
        lead = [(0, 0)] * (len(images) - 2)
        x = pad(x, [*lead, (padding, padding), (padding, padding)])
    windows = stack(_windows(x, filters[2:], stride), axis=-3)
    *batch, channels, taps, height, width = shape_of(windows)
    columns = reshape(windows, (*batch, channels * taps, height * width))
    product = matmul(reshape(weight, (filters[0], channels * taps)), columns)
    result = reshape(product, (*batch, filters[0], height, width))
    return result if bias is None else rows.add(result, reshape(bias, (-1, 1, 1)))


def max_pool(x: Array, size: int, stride: int | None = None) -> Array:
    """Return the maximum of every window over the last two axes.

    Parameters
    ----------
    x : (…, height, width) array
    size : int
        Height and width of a window.
    stride : int, optional
        The step of the windows; `size` when None.

    Examples
    --------
    >>> max_pool(np.array([[1.0, 2.0], [3.0, 4.0]]), 2).tolist()
    [[4.0]]
    """
    size = as_integer("max_pool", "size", size, 1)
    step = size if stride is None else as_integer("max_pool", "stride", stride, 1)
    windows = _windows(as_array(x), (size, size), step)
    return max(stack(windows, axis=-3), axis=-3)

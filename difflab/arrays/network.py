"""Functions of neural networks: activations, losses, normalisation, convolution, pooling.

All are compositions of primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
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
    static_key,
)
from difflab.arrays.products import matmul
from difflab.arrays.reductions import log_softmax, max, mean, reduced_for_broadcast, sum
from difflab.arrays.shapes import concatenate, pad, reshape, take
from difflab.core.apply import apply
from difflab.core.primitive import Shape
from difflab.primitives.movement import resized

__all__ = [
    "avg_pool",
    "batch_norm",
    "conv1d",
    "conv2d",
    "cross_entropy",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "max_pool",
    "mse",
    "running_statistics",
]


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
    batch = (mean(x, axes), sum(centred**2, axes) / (size - 1))
    new, newer = ((1 - share) * b + share * f for b, f in zip(before, batch, strict=True))
    return new, newer


def _all_but_features(name: str, x: Array) -> list[int]:
    rank = len(shape_of(x))
    if rank < 2:
        raise mismatch(f"{name} takes at least two axes, not the shape {shape_of(x)}")
    return [axis for axis in range(rank) if axis != 1]


# --- convolution and pooling ---------------------------------------------------------------------
# The windows of an array are unfolded, for one product or reduction. The conventions are
# PyTorch's: a convolution is a cross-correlation, channels come before the spatial axes, and
# examples before both.

Sizes = int | Sequence[int]


def _per_axis(name: str, what: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """Return a setting for each of `count` spatial axes; one integer is for all."""
    if not isinstance(given, tuple | list):
        return (as_integer(name, what, given, least),) * count
    if len(given) != count:
        raise mismatch(f"{what} of {name} is one integer or {count}, not {len(given)}")
    return tuple(as_integer(name, what, entry, least) for entry in given)


def _windows(x: Array, size: Shape, stride: Shape, dilation: Shape) -> Array:
    """Return x shifted by every offset of a window, cropped to the positions of windows.

    The offsets are on an axis of their own, before the positions. One axis of x is cut at a time:
    a window of h × w takes h + w slices, not h·w. The last axis comes first, so that most of the
    elements are copied in long runs.
    """
    opened, cuts = _cuts(shape_of(x), size, stride, dilation)
    x = reshape(x, opened)
    for keys in cuts:
        parts = [apply(rows.index, x, key=key, rank=len(opened)) for key in keys]
        x = concatenate(parts, axis=-len(size) - 1)
    return x


@lru_cache
def _cuts(
    shape: Shape, size: Shape, stride: Shape, dilation: Shape
) -> tuple[Shape, list[list[tuple[Any, ...]]]]:
    """Return a shape with an axis of one window, and the keys that cut the axes, one by one."""
    count = len(size)
    if len(shape) < count:
        raise mismatch(f"windows need at least {count} axes, and the shape is {shape}")
    lengths = shape[-count:]
    spans = [step * (taps - 1) for taps, step in zip(size, dilation, strict=True)]
    if any(span >= length for span, length in zip(spans, lengths, strict=True)) or 0 in size:
        apart = "" if set(dilation) == {1} else f", with a dilation of {dilation},"
        raise mismatch(f"a window of {size}{apart} does not fit into the shape {shape}")
    opened = now = (*shape[:-count], 1, *lengths)
    cuts = []
    for axis in range(-1, -count - 1, -1):
        positions = lengths[axis] - spans[axis]
        starts = range(0, spans[axis] + 1, dilation[axis])
        parts = [slice(start, start + positions, stride[axis]) for start in starts]
        later = (slice(None),) * (-1 - axis)
        cuts.append([static_key((..., part, *later), now) for part in parts])
        now = resized(now, -count - 1, math.prod(size[axis:]))
        now = resized(now, axis, len(range(0, positions, stride[axis])))
    return opened, cuts


def _convolved(
    name: str,
    x: Array,
    weight: Array,
    bias: Any,
    settings: tuple[Sizes, Sizes, Sizes, int],
    count: int,
) -> Array:
    """Convolve along the last `count` axes."""
    x, weight = as_array(x), as_array(weight)
    words = (("stride", 1), ("padding", 0), ("dilation", 1))
    stride, padding, dilation = (
        _per_axis(name, what, given, count, least)
        for (what, least), given in zip(words, settings, strict=False)
    )
    groups = as_integer(name, "groups", settings[3], 1)
    images, filters = shape_of(x), shape_of(weight)
    fits = len(images) in (count + 1, count + 2) and len(filters) == count + 2
    if not fits or images[-count - 1] != filters[1] * groups or filters[0] % groups:
        grouped = f" in {groups} groups" if groups > 1 else ""
        raise mismatch(f"{name} cannot combine the shapes {images} and {filters}{grouped}")
    if any(padding):
        x = pad(x, [(0, 0)] * (len(images) - count) + [(width, width) for width in padding])
    windows = _windows(x, filters[2:], stride, dilation)
    shape = shape_of(windows)
    batch, places = shape[: -count - 2], shape[-count:]
    split = () if groups == 1 else (groups,)
    taps = math.prod(filters[1:])
    columns = reshape(windows, (*batch, *split, taps, math.prod(places)))
    product = matmul(reshape(weight, (*split, filters[0] // groups, taps)), columns)
    result = reshape(product, (*batch, filters[0], *places))
    if bias is None:
        return result
    if shape_of(bias) not in ((), (1,), filters[:1]):
        raise mismatch(f"{name} with {filters[0]} filters takes no bias of shape {shape_of(bias)}")
    return rows.add(result, reshape(bias, (-1, *(1,) * count)))


def conv2d(
    x: Array,
    weight: Array,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Array:
    """Return the cross-correlation of images with filters: one matrix product.

    ``y[o, p, q] = Σ x[c, p·s + i·d, q·s + j·d] w[o, c, i, j] + b[o]``

    Parameters
    ----------
    x : (channels, height, width) or (n, channels, height, width) array
    weight : (filters, channels / groups, h, w) array
    bias : (filters,) array, optional
    stride, padding, dilation : int or pair of int
        The step s of the windows, the zeros around each image, and the distance d between the
        elements of a window.
    groups : int
        The channels and the filters are divided into so many groups, and each group of filters
        sees its group of channels only.

    Raises
    ------
    ShapeError
        The shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> conv2d(np.ones((1, 3, 3)), np.ones((1, 1, 2, 2))).tolist()
    [[[4.0, 4.0], [4.0, 4.0]]]
    >>> conv2d(np.arange(9.0).reshape(1, 3, 3), np.ones((1, 1, 2, 2)), dilation=2).tolist()
    [[[16.0]]]
    """
    return _convolved("conv2d", x, weight, bias, (stride, padding, dilation, groups), 2)


def conv1d(
    x: Array,
    weight: Array,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Array:
    """Return the cross-correlation of sequences with filters, as `conv2d` of images.

    Parameters
    ----------
    x : (channels, length) or (n, channels, length) array
    weight : (filters, channels / groups, taps) array
    bias : (filters,) array, optional
    stride, padding, dilation, groups : int
        As in `conv2d`.

    Raises
    ------
    ShapeError
        The shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> conv1d(np.array([[1.0, 2.0, 4.0, 8.0]]), np.array([[[-1.0, 1.0]]])).tolist()
    [[1.0, 2.0, 4.0]]
    """
    return _convolved("conv1d", x, weight, bias, (stride, padding, dilation, groups), 1)


def _pooled(
    name: str, reduce: Callable[..., Array], x: Array, size: Sizes, stride: Sizes | None
) -> Array:
    sizes = _per_axis(name, "size", size, 2, 1)
    steps = sizes if stride is None else _per_axis(name, "stride", stride, 2, 1)
    return reduce(_windows(as_array(x), sizes, steps, (1, 1)), axis=-3)


def max_pool(x: Array, size: Sizes, stride: Sizes | None = None) -> Array:
    """Return the maximum of every window over the last two axes.

    Parameters
    ----------
    x : (…, height, width) array
    size : int or pair of int
        Height and width of a window.
    stride : int or pair of int, optional
        The step of the windows; `size` when None.

    Examples
    --------
    >>> import numpy as np
    >>> max_pool(np.array([[1.0, 2.0], [3.0, 4.0]]), 2).tolist()
    [[4.0]]
    """
    return _pooled("max_pool", max, x, size, stride)


def avg_pool(x: Array, size: Sizes, stride: Sizes | None = None) -> Array:
    """Return the average of every window over the last two axes, as `max_pool` the maximum.

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool(np.array([[1.0, 2.0], [3.0, 4.0]]), 2).tolist()
    [[2.5]]
    """
    return _pooled("avg_pool", mean, x, size, stride)

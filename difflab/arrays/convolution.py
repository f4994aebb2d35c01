"""Convolution and pooling: the windows of an array side by side, and one product or reduction.

The conventions are PyTorch's: a convolution is a cross-correlation, channels come before the
spatial axes, and examples before both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, as_integer, mismatch, shape_of
from difflab.arrays.products import matmul
from difflab.arrays.reductions import max, mean
from difflab.arrays.shapes import concatenate, pad, reshape
from difflab.arrays.static_keys import static_key
from difflab.core.apply import apply
from difflab.core.primitive import Shape
from difflab.primitives.movement import resized

__all__ = ["avg_pool", "conv1d", "conv2d", "max_pool"]

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
    """Return a shape with an axis of one window, and the keys that cut each axis in turn."""
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

"""Layers without parameters of their own, as functions with PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays import conv2d, random
from difflab.arrays.given import Array, mismatch, shape_of
from difflab.core.place import at_users_line
from difflab.eager import Tensor
from difflab.errors import InputError
from difflab.nn.module import next_key
from difflab.primitives import absolute, equal, relu, sigmoid, tanh, where

__all__ = ["avg_pool2d", "conv2d", "cross_entropy", "dropout", "linear", "max_pool2d", "mse_loss"]
__all__ += ["log_softmax", "relu", "sigmoid", "softmax", "softsign", "tanh"]

max_pool2d = arrays.max_pool
avg_pool2d = arrays.avg_pool


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return ``x Wᵀ + b``."""
    product = arrays.matmul(x, arrays.transpose(weight))
    return product if bias is None else product + bias


def softmax(x: Array, dim: int) -> Array:
    """Return the softmax along an axis."""
    return arrays.softmax(x, dim)


def softsign(x: Array) -> Array:
    """Return ``x/(1 + |x|)``."""
    return x / (1.0 + absolute(x))


def log_softmax(x: Array, dim: int) -> Array:
    """Return the logarithm of the softmax along an axis."""
    return arrays.log_softmax(x, dim)


def dropout(x: Array, p: float = 0.5, training: bool = True) -> Array:
    """Return x with elements set to 0 with probability `p`, the others divided by 1 − p."""
    return random.dropout(next_key(x), x, p) if training else x


def mse_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """Return the mean of the squared differences, or their sum, or each: "mean", "sum", "none".

    Raises
    ------
    ShapeError
        The shapes differ: broadcasting ``(n, 1)`` with ``(n,)`` would compare every pair.
    """
    shapes = shape_of(input), shape_of(target)
    if shapes[0] != shapes[1]:
        raise mismatch(f"mse_loss compares arrays of one shape, not {shapes[0]} and {shapes[1]}")
    if reduction == "none":
        return (input - target) ** 2
    return _reduced(arrays.mse(input, target), reduction, math.prod(shapes[0]))


def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """Return −log softmax of the target, for each example, or their mean or sum.

    Parameters
    ----------
    input : (classes,) or (n, classes) array
    target : int, (n,) array of classes, or an array of the input's shape
    weight : (classes,) array, optional
        A factor for each class; the mean of examples with a class each is weighted by it.
    ignore_index : int
        A class whose examples count as if they were not there.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    InputError
        The reduction is unknown.
    ShapeError
        The target has another shape or a class that there is not, or the weight another shape.
    """
    known = target.detach().numpy() if isinstance(target, Tensor) else target
    shape = shape_of(input)
    by_class = shape_of(known) != shape
    ignored = by_class and _has(known, ignore_index)
    if weight is None and not ignored and reduction != "none":
        return _reduced(arrays.cross_entropy(input, known), reduction, math.prod(shape[:-1]))
    if weight is not None and shape_of(weight) != shape[-1:]:
        raise mismatch(f"weight has a factor for each of {shape[-1]} classes: {shape_of(weight)}")
    chosen = _shares(known, shape, ignore_index)
    weighted = chosen if weight is None else chosen * weight
    logarithms = arrays.log_softmax(input, -1)
    if by_class:  # that of another class is infinite where -inf masks it
        logarithms = where(equal(chosen, 0.0), 0.0, logarithms)
    losses = -arrays.sum(weighted * logarithms, axis=-1)
    if reduction == "none":
        return losses
    total = _reduced(arrays.sum(losses), reduction, 1)
    if reduction == "sum":
        return total
    return total / (arrays.sum(weighted) if by_class else float(math.prod(shape[:-1])))


def _has(classes: Any, ignored: int) -> bool:
    """Whether an example is to be ignored; it may be if classes are traced."""
    return hasattr(type(classes), "__difflab_apply__") or bool(np.any(np.equal(classes, ignored)))


def _shares(target: Any, shape: tuple[int, ...], ignored: int) -> Any:
    """Return the probability of every class: 1 for that of an example, 0 if it is ignored."""
    if shape_of(target) == shape:
        return target
    if shape_of(target) != shape[:-1]:
        raise mismatch(f"cross_entropy takes {shape[:-1]} classes, not {shape_of(target)}")
    classes = np.arange(shape[-1])
    if hasattr(type(target), "__difflab_apply__"):
        column = arrays.reshape(target, (*shape[:-1], 1))
        return where(equal(column, ignored), 0.0, where(equal(column, classes), 1.0, 0.0))
    numbers = np.asarray(target)
    wrong = (numbers != ignored) & ~np.isin(numbers, classes)
    if wrong.any():
        raise mismatch(f"cross_entropy needs classes below {shape[-1]}, not {numbers[wrong][0]}")
    chosen = (numbers[..., None] == classes) & (numbers != ignored)[..., None]
    return chosen.astype(np.float64)


def _reduced(mean: Array, reduction: str, count: int) -> Any:
    if reduction not in ("mean", "sum"):
        message = f"reduction is 'mean', 'sum' or 'none', not {reduction!r}"
        raise at_users_line(InputError, message)
    return mean if reduction == "mean" else mean * float(count)

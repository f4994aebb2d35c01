"""Layers without parameters of their own, as functions with PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

from difflab import arrays
from difflab.arrays import conv2d, random
from difflab.arrays.given import Array, mismatch, shape_of
from difflab.core.place import at_users_line
from difflab.eager import Tensor
from difflab.errors import InputError
from difflab.nn.module import next_key
from difflab.primitives import absolute, relu, sigmoid, tanh

__all__ = ["avg_pool2d", "conv2d", "cross_entropy", "dropout", "linear", "max_pool2d", "mse_loss"]
__all__ += ["log_softmax", "relu", "sigmoid", "softmax", "softsign", "tanh"]

max_pool2d = arrays.max_pool
avg_pool2d = arrays.avg_pool


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return ``x Wᵀ + b``."""
    found = arrays.matmul(x, arrays.transpose(weight))
    return found if bias is None else found + bias


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
    """Return the mean, or with ``reduction="sum"`` the sum, of the squared differences.

    Raises
    ------
    ShapeError
        The shapes differ: broadcasting ``(n, 1)`` with ``(n,)`` would compare every pair.
    """
    shapes = shape_of(input), shape_of(target)
    if shapes[0] != shapes[1]:
        raise mismatch(f"mse_loss compares arrays of one shape, not {shapes[0]} and {shapes[1]}")
    return _reduced(arrays.mse(input, target), reduction, math.prod(shapes[0]))


def cross_entropy(input: Array, target: Array, reduction: str = "mean") -> Array:
    """Return −log softmax of the target, the mean or the sum over the examples.

    Parameters
    ----------
    input : (classes,) or (n, classes) array
    target : int, (n,) array of classes, or an array of the input's shape
    reduction : {"mean", "sum"}
    """
    known = target.detach().numpy() if isinstance(target, Tensor) else target
    return _reduced(arrays.cross_entropy(input, known), reduction, math.prod(shape_of(input)[:-1]))


def _reduced(mean: Array, reduction: str, count: int) -> Any:
    if reduction not in ("mean", "sum"):
        raise at_users_line(InputError, f"reduction is 'mean' or 'sum', not {reduction!r}")
    return mean if reduction == "mean" else mean * float(count)

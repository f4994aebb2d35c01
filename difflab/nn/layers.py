"""The layers: parameters with their initial values, and forward computations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays import random
from difflab.arrays.given import Array, shape_of
from difflab.eager import Tensor
from difflab.nn import functional
from difflab.nn.module import Module, Parameter, next_key, require_call

__all__ = ["BatchNorm1d", "BatchNorm2d", "Conv2d", "Dropout", "LayerNorm", "Linear", "Sequential"]
__all__ += ["AvgPool2d", "Flatten", "MaxPool2d", "ReLU", "Sigmoid", "Softsign", "Tanh"]
__all__ += ["CrossEntropyLoss", "MSELoss"]

Size = int | tuple[int, int]


def _uniform(bias: bool, *shape: int) -> tuple[Tensor, Tensor | None]:
    """Return weights, and a bias, uniform in ±1/√inputs, as PyTorch's layers begin."""
    bound = 1 / math.sqrt(math.prod(shape[1:]) or math.inf)
    weight = Parameter(random.uniform(next_key(), shape, -bound, bound))
    return weight, Parameter(random.uniform(next_key(), shape[:1], -bound, bound)) if bias else None


class Linear(Module):
    """``x Wᵀ + b``, with W of shape (out_features, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.weight, self.bias = _uniform(bias, out_features, in_features)

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return functional.linear(x, self.weight, self.bias)


class Conv2d(Module):
    """A convolution of images, see `difflab.arrays.conv2d`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        sizes = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        self.weight, self.bias = _uniform(bias, out_channels, in_channels // groups, *sizes)
        self.settings = (stride, padding, dilation, groups)

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return arrays.conv2d(x, self.weight, self.bias, *self.settings)


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last axis, times `weight` plus `bias`."""

    def __init__(self, normalized_shape: int, eps: float = 1e-5) -> None:
        self.weight = Parameter(np.ones(normalized_shape))
        self.bias = Parameter(np.zeros(normalized_shape))
        self.eps = eps

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return arrays.layer_norm(x, self.weight, self.bias, self.eps)


class BatchNorm2d(Module):
    """Normalisation of every channel: by the batch in training, by running statistics in use."""

    running_mean: Array
    running_var: Array
    num_batches_tracked: Array

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self.weight = Parameter(np.ones(num_features))
        self.bias = Parameter(np.zeros(num_features))
        self.register_buffer("running_mean", np.zeros(num_features))
        self.register_buffer("running_var", np.ones(num_features))
        self.register_buffer("num_batches_tracked", 0.0)
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Array) -> Array:
        """Return the layer's value; in training the running statistics are changed."""
        old = (self.running_mean, self.running_var)
        if not self.training:
            return arrays.batch_norm(x, self.weight, self.bias, self.eps, *old)
        require_call(x)
        batch = x.detach().array() if isinstance(x, Tensor) else x
        self.running_mean, self.running_var = arrays.running_statistics(batch, *old, self.momentum)
        self.num_batches_tracked = self.num_batches_tracked + 1.0
        return arrays.batch_norm(x, self.weight, self.bias, self.eps)


class BatchNorm1d(BatchNorm2d):
    """The same for (n, features) and (n, channels, length) arrays."""


class Dropout(Module):
    """In training, elements are set to 0 with probability `p`, the others divided by 1 − p."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return functional.dropout(x, self.p, self.training)


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return functional.relu(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return functional.tanh(x)


class Sigmoid(Module):
    """``1/(1 + e⁻ˣ)``."""

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return functional.sigmoid(x)


class Softsign(Module):
    """``x/(1 + |x|)``."""

    forward = staticmethod(functional.softsign)


class Flatten(Module):
    """Every example as a vector."""

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return arrays.reshape(x, (shape_of(x)[0], -1))


class MaxPool2d(Module):
    """The maximum of every window of images."""

    reduce = staticmethod(arrays.max_pool)

    def __init__(self, kernel_size: Size, stride: Size | None = None) -> None:
        self.kernel_size, self.stride = kernel_size, stride

    def forward(self, x: Array) -> Array:
        """Return the layer's value."""
        return self.reduce(x, self.kernel_size, self.stride)


class AvgPool2d(MaxPool2d):
    """The average of every window of images."""

    reduce = staticmethod(arrays.avg_pool)


class Sequential(Module):
    """Modules one after the other, named by their positions."""

    def __init__(self, *modules: Module) -> None:
        for position, module in enumerate(modules):
            setattr(self, str(position), module)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, position: int) -> Any:
        return list(self)[position]

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def forward(self, x: Array) -> Array:
        """Return the value of the last module."""
        for module in self:
            x = module(x)
        return x


class MSELoss(Module):
    """The mean squared difference, see `functional.mse_loss`."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Array, target: Array) -> Array:
        """Return the loss."""
        return functional.mse_loss(input, target, self.reduction)


class CrossEntropyLoss(Module):
    """−log softmax of the target, see `functional.cross_entropy`."""

    def __init__(
        self, weight: Array | None = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input: Array, target: Array) -> Array:
        """Return the loss."""
        more: dict[str, Any] = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        return functional.cross_entropy(input, target, self.weight, **more)

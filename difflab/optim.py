"""Optimizers of tensors, with PyTorch's names, defaults and formulas.

Examples
--------
>>> import numpy as np
>>> import difflab as dl
>>> x = dl.tensor([3.0, -2.0], requires_grad=True)
>>> optimizer = SGD([x], lr=0.25, momentum=0.5)
>>> for _ in range(40):
...     optimizer.zero_grad()
...     np.sum((x - 1.0) ** 2).backward()
...     optimizer.step()
>>> np.round(x.detach().numpy(), 5)
array([1., 1.])
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from difflab.eager import Tensor, no_grad
from difflab.errors import InputError

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]

Memory = dict[str, Any]


class Optimizer:
    """Changes parameters by their gradients; a subclass defines ``update``.

    Parameters
    ----------
    params : iterable of Tensor
    **settings
        The settings, which are found and may be changed in ``param_groups[0]``.

    Raises
    ------
    InputError
        There is no parameter, one of them is no leaf that requires grad, or a setting is not a
        number from 0.
    """

    def __init__(self, params: Iterable[Tensor], **settings: Any) -> None:
        name = type(self).__name__
        found = list(params) if isinstance(params, Iterable) else []
        if not found or not all(
            isinstance(p, Tensor) and p.requires_grad and p.is_leaf for p in found
        ):
            raise InputError(
                f"{name} takes tensors made with requires_grad=True", hint="pass model.parameters()"
            )
        for setting, value in settings.items():
            for number in value if isinstance(value, tuple | list) else (value,):
                if not isinstance(number, int | float | np.number) or not number >= 0:
                    raise InputError(f"{setting} of {name} is a number from 0, not {value!r}")
        self.param_groups: list[dict[str, Any]] = [{"params": found, **settings}]
        self._memories: list[Memory] = [{} for _ in found]

    def zero_grad(self) -> None:
        """Reset the gradients of the parameters."""
        for parameter in self.param_groups[0]["params"]:
            parameter.zero_grad()

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        group = self.param_groups[0]
        with no_grad():
            for parameter, memory in zip(group["params"], self._memories, strict=True):
                if parameter.grad is not None:
                    gradient = parameter.grad.array()
                    value = parameter.detach().array()
                    parameter[...] = self.update(value, gradient, memory, group)

    def update(self, value: Any, gradient: Any, memory: Memory, group: dict[str, Any]) -> Any:
        """Return the new value of one parameter; `memory` is kept from step to step."""
        raise NotImplementedError


class SGD(Optimizer):
    """Gradient descent ``p ← p − lr·b``, with ``b ← momentum·b + (1 − dampening)·g``.

    With ``nesterov`` the step is along g + momentum·b (Sutskever et al., 2013). ``g`` includes
    ``weight_decay·p``.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )

    def update(self, value: Any, gradient: Any, memory: Memory, group: dict[str, Any]) -> Any:
        """Return the new value of one parameter."""
        momentum = group["momentum"]
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * value
        if momentum:
            if "buffer" in memory:
                kept = momentum * memory["buffer"] + (1 - group["dampening"]) * gradient
            else:
                kept = gradient
            memory["buffer"] = kept
            gradient = gradient + momentum * kept if group["nesterov"] else kept
        return value - group["lr"] * gradient


class Adam(Optimizer):
    """Adam (Kingma & Ba, arXiv:1412.6980); ``weight_decay·p`` is added to the gradient."""

    decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def update(self, value: Any, gradient: Any, memory: Memory, group: dict[str, Any]) -> Any:
        """Return the new value of one parameter."""
        decay, (first, second) = group["weight_decay"], group["betas"]
        if decay and self.decoupled:
            value = value * (1 - group["lr"] * decay)
        elif decay:
            gradient = gradient + decay * value
        count = memory["count"] = memory.get("count", 0) + 1
        mean = memory["mean"] = first * memory.get("mean", 0.0) + (1 - first) * gradient
        square = second * memory.get("square", 0.0) + (1 - second) * gradient * gradient
        memory["square"] = square
        deviation = square**0.5 / math.sqrt(1 - second**count) + group["eps"]
        return value - group["lr"] / (1 - first**count) * mean / deviation


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, arXiv:1711.05101)."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

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
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.eager import Tensor, no_grad
from difflab.errors import InputError

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


@dataclass(eq=False, repr=False)
class Optimizer:
    """Changes parameters by their gradients; a subclass states its settings and ``update``.

    Settings are the fields of the subclass, a dataclass, and may be changed between steps.

    Parameters
    ----------
    params : iterable of Tensor

    Raises
    ------
    InputError
        There is no parameter, one of them is no leaf that requires grad, or a setting is not a
        number from 0.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import difflab as dl
    >>> @dataclass(eq=False)
    ... class SignDescent(Optimizer):
    ...     lr: float = 0.1
    ...     def update(self, value, gradient, memory):
    ...         return value - self.lr * np.sign(gradient)
    >>> x = dl.tensor(2.0, requires_grad=True)
    >>> optimizer = SignDescent([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x.item()
    1.5
    """

    __difflab_holder__ = True  # `dl.jit` watches its attributes, as those of the user's objects

    params: Iterable[Tensor]

    def __post_init__(self) -> None:
        name, settings = type(self).__name__, vars(self).copy()
        given = settings.pop("params")
        self.params = found = list(given) if isinstance(given, Iterable) else []
        usable = [isinstance(p, Tensor) and p.requires_grad and p.is_leaf for p in found]
        if not usable or not all(usable):
            wanted = f"{name} takes tensors made with requires_grad=True"
            raise InputError(wanted, hint="pass model.parameters()")
        for setting, value in settings.items():
            for number in value if isinstance(value, tuple | list) else (value,):
                if not isinstance(number, int | float | np.number) or not number >= 0:
                    raise InputError(f"{setting} of {name} is a number from 0, not {value!r}")
        self._memories: list[dict[str, Any]] = [{} for _ in found]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameters and settings by name, in one group; changes there are changes here."""
        return [vars(self)]

    def zero_grad(self) -> None:
        """Reset the gradients of the parameters."""
        for parameter in self.params:
            parameter.zero_grad()

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        with no_grad():
            for parameter, memory in zip(self.params, self._memories, strict=True):
                if parameter.grad is not None:
                    gradient, value = parameter.grad.array(), parameter.detach().array()
                    parameter[...] = self.update(value, gradient, memory)

    def update(self, value: Any, gradient: Any, memory: dict[str, Any]) -> Any:
        """Return the new value of one parameter; `memory` is kept from step to step."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class SGD(Optimizer):
    """Gradient descent ``p ← p − lr·b``, with ``b ← momentum·b + (1 − dampening)·g``.

    With ``nesterov`` the step is along g + momentum·b (Sutskever et al., 2013). ``g`` includes
    ``weight_decay·p``.
    """

    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def update(self, value: Any, gradient: Any, memory: dict[str, Any]) -> Any:
        """Return the new value of one parameter."""
        if self.weight_decay:
            gradient = gradient + self.weight_decay * value
        if self.momentum:
            kept = gradient
            if "buffer" in memory:
                kept = self.momentum * memory["buffer"] + (1 - self.dampening) * gradient
            memory["buffer"] = kept
            gradient = gradient + self.momentum * kept if self.nesterov else kept
        return value - self.lr * gradient


@dataclass(eq=False, repr=False)
class Adam(Optimizer):
    """Adam (Kingma & Ba, arXiv:1412.6980); ``weight_decay·p`` is added to the gradient."""

    decoupled = False

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def update(self, value: Any, gradient: Any, memory: dict[str, Any]) -> Any:
        """Return the new value of one parameter."""
        first, second = self.betas
        if self.decoupled:
            value = value * (1 - self.lr * self.weight_decay)
        elif self.weight_decay:
            gradient = gradient + self.weight_decay * value
        count = memory["count"] = memory.get("count", 0) + 1
        mean = memory["mean"] = first * memory.get("mean", 0.0) + (1 - first) * gradient
        square = memory["square"] = second * memory.get("square", 0.0) + (1 - second) * gradient**2
        deviation = square**0.5 / math.sqrt(1 - second**count) + self.eps
        return value - self.lr / (1 - first**count) * mean / deviation


@dataclass(eq=False, repr=False)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, arXiv:1711.05101)."""

    decoupled = True

    weight_decay: float = 1e-2

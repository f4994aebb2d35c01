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
from copy import deepcopy
from dataclasses import dataclass, fields
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
    params : iterable of Tensor, or of dict
        A dict is a group: its tensors under ``"params"``, and settings of its own.

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

    params: Iterable[Any]

    def __post_init__(self) -> None:
        name, settings = type(self).__name__, vars(self).copy()
        given = settings.pop("params")
        self._groups: list[Optimizer] = []
        self._memories: list[dict[str, Any]] = []
        self.params = listed = list(given) if isinstance(given, Iterable) else []
        if listed and all(isinstance(group, dict) for group in listed):
            self._groups = [self._grouped(group) for group in listed]
            self.params = [parameter for group in self._groups for parameter in group.params]
            return
        usable = [isinstance(p, Tensor) and p.requires_grad and p.is_leaf for p in listed]
        if not usable or not all(usable):
            wanted = f"{name} takes tensors made with requires_grad=True"
            raise InputError(wanted, hint="pass model.parameters()")
        for setting, value in settings.items():
            for number in value if isinstance(value, tuple | list) else (value,):
                if not isinstance(number, int | float | np.number) or not number >= 0:
                    raise InputError(f"{setting} of {name} is a number from 0, not {value!r}")
        self._memories = [{} for _ in listed]

    def _settings(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)[1:]}

    def _grouped(self, group: dict[str, Any]) -> Optimizer:
        """Return the optimizer of one group, with the settings here where it has none."""
        settings = self._settings()
        unknown = group.keys() - settings.keys() - {"params"}
        if unknown or "params" not in group:
            raise InputError(
                f"a group of {type(self).__name__} has the keys {', '.join(map(repr, group))}",
                hint=f"give 'params' and any of {', '.join(settings)}",
            )
        given = group["params"]
        params = [given] if isinstance(given, Tensor) else given
        return type(self)(**{**settings, **group, "params": params})

    @property
    def _each(self) -> list[Optimizer]:
        return self._groups or [self]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Parameters and settings of each group by name; changes there are changes here."""
        return [vars(group) for group in self._each]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters."""
        added = self._grouped(param_group)
        if not self._groups:
            first = self._grouped({"params": self.params})
            first._memories = self._memories
            self._groups = [first]
        self._groups.append(added)
        self.params = [*self.params, *added.params]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of the parameters to None, or else to zeros."""
        for parameter in self.params:
            parameter.zero_grad(set_to_none)

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        with no_grad():
            for group in self._each:
                for parameter, memory in zip(group.params, group._memories, strict=True):
                    if parameter.grad is not None:
                        gradient, value = parameter.grad.array(), parameter.detach().array()
                        parameter[...] = group.update(value, gradient, memory)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the settings and of the state of each parameter.

        Parameters are numbered through all groups, as in PyTorch.
        """
        memories = [memory for group in self._each for memory in group._memories]
        groups, start = [], 0
        for group in self._each:
            stop = start + len(group._memories)
            groups.append({**group._settings(), "params": list(range(start, stop))})
            start = stop
        return {
            "state": {index: deepcopy(memory) for index, memory in enumerate(memories) if memory},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned for an optimizer of equally many parameters.

        Raises
        ------
        InputError
            It has other groups.
        """
        sizes = [len(group["params"]) for group in state_dict["param_groups"]]
        own = [len(group._memories) for group in self._each]
        if sizes != own:
            raise InputError(
                f"the state is of groups of {sizes} parameters, and this optimizer has {own}"
            )
        for group, stated in zip(self._each, state_dict["param_groups"], strict=True):
            for name in group._settings().keys() & stated.keys():
                setattr(group, name, stated[name])
            states = (state_dict["state"].get(index, {}) for index in stated["params"])
            group._memories = [deepcopy(state) for state in states]

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
            if "momentum_buffer" in memory:
                kept = self.momentum * memory["momentum_buffer"] + (1 - self.dampening) * gradient
            memory["momentum_buffer"] = kept
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
        count = memory["step"] = memory.get("step", 0) + 1
        mean = first * memory.get("exp_avg", 0.0) + (1 - first) * gradient
        square = second * memory.get("exp_avg_sq", 0.0) + (1 - second) * gradient**2
        memory["exp_avg"], memory["exp_avg_sq"] = mean, square
        deviation = square**0.5 / math.sqrt(1 - second**count) + self.eps
        return value - self.lr / (1 - first**count) * mean / deviation


@dataclass(eq=False, repr=False)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, arXiv:1711.05101)."""

    decoupled = True

    weight_decay: float = 1e-2

"""Programs of tensors on PyTorch, which stands for the rule that a value is a value.

A change in place is written as a new tensor, and a leaf changed outside of the tape is a new leaf.
"""

from __future__ import annotations

import operator
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.differential import network

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

from tests.differential.factored import FACTORED, separated
from tests.differential.tapes import weights

__all__ = ["PeerRun", "torch"]


class PeerRun:
    """One run of a program on PyTorch."""

    def __init__(self, leaves: list[Any], twice: bool) -> None:
        self.differentiates_twice = twice
        self.versions = [[self.leaf(torch.from_numpy(np.array(leaf)))] for leaf in leaves]
        self.values = [versions[0] for versions in self.versions]
        self.watched: list[Any] = []
        self.kept: list[int] = []
        self.doubled: dict[int, int] = {}
        self.twins: dict[int, list[int]] = {}

    def leaf(self, numbers: Any) -> Any:
        """Return a new leaf."""
        return numbers.clone().requires_grad_()

    def run(self, actions: list[Any]) -> Any:
        """Carry out actions, and collect all numbers."""
        for action in actions:
            getattr(self, action[0])(*action[1:])
        last = len(self.values) - 1
        found = SimpleNamespace(values=[_array(value) for value in self.values])
        self.backward(last)
        found.gradients = [self.gradient(versions) for versions in self.versions]
        found.retained = [_array(self.values[place].grad) for place in self.kept]
        found.watched = list(self.watched)
        found.second = self.twice(last)
        return found

    def gradient(self, versions: list[Any]) -> Any:
        """Return what has arrived at a leaf, before and after its changes."""
        parts = [_array(leaf.grad) for leaf in versions if leaf.grad is not None]
        return sum(parts[1:], parts[0]) if parts else None

    def twice(self, a: int) -> list[Any]:
        """Return the gradient of a sum of the gradient's numbers, each with a weight."""
        if not (self.differentiates_twice and self.values[a].requires_grad):
            return []
        flat = [leaf for versions in self.versions for leaf in versions]
        found = torch.autograd.grad(
            self.values[a].sum(), flat, create_graph=True, allow_unused=True
        )
        # Weighted sums do not depend on where the parts of one leaf's gradient came from.
        parts = [
            (slope * torch.from_numpy(weights(tuple(slope.shape)))).sum()
            for slope in found
            if slope is not None
        ]
        total = sum(parts[1:], parts[0]) if parts else torch.zeros(())
        if not total.requires_grad:
            return [None for _ in self.versions]
        second = torch.autograd.grad(total, flat, allow_unused=True)
        arrived = iter([_array(part) for part in second])
        sums = []
        for versions in self.versions:
            own = [part for part in (next(arrived) for _ in versions) if part is not None]
            sums.append(sum(own[1:], own[0]) if own else None)
        return sums

    def make(self, tensor: Any) -> None:
        self.values.append(tensor)

    def put(self, a: int, new: Any) -> None:
        """Replace a value, which keeps its gradient if it did before."""
        if a in self.kept and new.requires_grad:
            new.retain_grad()
            new.grad = self.values[a].grad
        self.values[a] = new

    def unary(self, a: int, name: str) -> None:
        self.make(THEIRS[name](self.values[a]))

    def binary(self, a: int, b: int, name: str) -> None:
        self.make(BINARY.get(name, getattr(torch, name, None))(self.values[a], self.values[b]))

    def number(self, a: int, name: str, number: float) -> None:
        x = self.values[a]
        self.make(
            {
                "multiply": lambda: x * number,
                "add": lambda: number + x,
                "rsubtract": lambda: number - x,
                "subtract": lambda: x - number,
                "divide": lambda: x / number,
                "rdivide": lambda: number / x,
            }[name]()
        )

    def array(self, a: int, name: str, array: Any) -> None:
        self.make(getattr(torch, name)(self.values[a], torch.from_numpy(array)))

    def power(self, a: int, exponent: float) -> None:
        x = self.values[a]
        if exponent == 0.5:  # PyTorch takes the root: -0 at -0, nan at -∞; IEEE's power is 0, ∞
            x = torch.where(x == -np.inf, -x, x) + 0.0
        self.make(x**exponent)

    def reduce(self, a: int, name: str, axis: Any, keepdims: bool) -> None:
        x = self.values[a]
        axes = (axis,) if isinstance(axis, int) else axis
        axes = tuple(range(x.ndim)) if axes is None else axes
        if not axes:
            self.make(x.abs() if name == "norm" else x * 1.0)
            return
        self.make(REDUCED[name](x, sorted({axis % x.ndim for axis in axes}), keepdims))

    def move(self, a: int, name: str, *shape: Any) -> None:
        x = self.values[a]
        if name == "transpose":
            self.make(x.permute(tuple(range(x.ndim))[::-1]) * 1.0)
        elif name in ("reshape", "broadcast_to"):
            self.make(getattr(torch, name)(x, *shape) * 1.0)
        else:
            self.make((x.squeeze() if name == "squeeze" else x) * 1.0)

    def index(self, a: int, key: Any) -> None:
        x = self.values[a]
        places = np.arange(x.numel()).reshape(tuple(x.shape))[key]
        self.make(x.reshape(-1)[torch.from_numpy(np.array(places))])

    def gram(self, a: int) -> None:
        flat = self.values[a].reshape(-1, 1)
        self.make(flat @ flat.T + 0.0)  # of sums of zeros the sign is anything

    def factored(self, a: int, name: str, size: int) -> None:
        flat = self.values[a].reshape(-1)[:size]
        matrix = flat[:, None] - 0.3 * flat[None, :]
        self.make(FACTORED[name](torch, separated(torch, matrix, _diagonal)))

    def where(self, a: int, b: int, mask: Any) -> None:
        self.make(torch.where(torch.from_numpy(mask), self.values[a], self.values[b]))

    def chosen(self, a: int, bound: float) -> None:
        x = self.values[a]
        self.make(torch.where(x > bound, x, 0.5 * x**2))

    def join(self, a: int, b: int, name: str) -> None:
        self.make(getattr(torch, name)([self.values[a], self.values[b]]))

    def change(self, a: int, name: str, number: float) -> None:
        self.put(a, getattr(torch, name)(self.values[a], number))

    def change_by(self, a: int, b: int, name: str) -> None:
        self.put(a, getattr(torch, name)(self.values[a], self.values[b]))

    def assign(self, a: int, key: Any, number: float) -> None:
        self.assigned(a, key, torch.tensor(float(number), dtype=torch.float64))

    def assign_from(self, a: int, b: int, key: Any) -> None:
        self.assigned(a, key, self.values[b])

    def assigned(self, a: int, key: Any, new: Any) -> None:
        x = self.values[a]
        places = np.array(np.arange(x.numel()).reshape(tuple(x.shape))[key])
        wide = new.broadcast_to(places.shape).reshape(-1)
        flat = torch.from_numpy(places.reshape(-1))
        self.put(a, x.reshape(-1).index_put((flat,), wide).reshape(x.shape))

    def update(self, a: int, factor: float) -> None:
        new = self.leaf(self.values[a].detach() * factor)
        for _ in range(self.doubled.get(a, 0)):
            new.register_hook(lambda bar: bar * 2.0)
        self.versions[a].append(new)
        self.values[a] = new
        for twin in self.twins.get(a, ()):
            self.values[twin] = new.detach()

    def hook(self, a: int, name: str) -> None:
        tensor = self.values[a]
        if not tensor.requires_grad:
            return
        if name == "watch":
            if a >= len(self.versions):
                tensor.register_hook(lambda bar: self.watched.append(_array(bar)))
        elif a < len(self.versions):
            self.doubled[a] = self.doubled.get(a, 0) + 1
            for version in self.versions[a]:
                version.register_hook(lambda bar: bar * 2.0)
        else:
            tensor.register_hook(lambda bar: bar * 2.0)

    def retain(self, a: int) -> None:
        if a >= len(self.versions) and self.values[a].requires_grad:
            self.values[a].retain_grad()
            self.kept.append(a)

    def backward(self, a: int) -> None:
        tensor = self.values[a]
        if tensor.requires_grad:
            tensor.backward(torch.from_numpy(weights(tuple(tensor.shape))), retain_graph=True)

    def detach(self, a: int) -> None:
        root = next((root for root, twins in self.twins.items() if a in twins), a)
        self.twins.setdefault(root, []).append(len(self.values))
        self.values.append(self.values[a].detach())


def _diagonal(numbers: Any) -> Any:
    return torch.diag(torch.from_numpy(numbers))


def _array(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().numpy(force=True).copy()


def _product(x: Any, axes: list[int], keepdims: bool) -> Any:
    """Multiply one by one: PyTorch's own second derivative loads its compiler."""
    for axis in axes[::-1]:
        first, *others = x.unbind(axis)
        for other in others:
            first = first * other
        x = first.unsqueeze(axis) if keepdims else first
    return x


def _running_sum(x: Any) -> Any:
    """NumPy begins with the first number, PyTorch with 0, which loses the sign of a first -0."""
    return torch.stack(list(accumulate(x.reshape(-1).unbind()))) if x.numel() else x.reshape(-1)


def _running_product(x: Any) -> Any:
    """PyTorch's own has the derivative 0 behind a zero, also of what is nan."""
    if not x.numel():
        return x.reshape(-1)
    return torch.stack(list(accumulate(x.reshape(-1).unbind(), operator.mul)))


BINARY = {} if torch is None else {"power": torch.pow, "matmul": lambda x, y: x @ y + 0.0}
REDUCED: dict[str, Any] = {
    "sum": lambda x, axes, keep: x.sum(axes, keepdim=keep),
    "mean": lambda x, axes, keep: x.mean(axes, keepdim=keep),
    "prod": _product,
    "max": lambda x, axes, keep: x.amax(axes, keepdim=keep),
    "min": lambda x, axes, keep: x.amin(axes, keepdim=keep),
    "logsumexp": lambda x, axes, keep: x.logsumexp(axes, keepdim=keep),
    "norm": lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep),
}


def _of_networks() -> dict[str, Any]:
    """Return PyTorch's own functions for the operations of `network`."""
    functional = torch.nn.functional

    def convolved(x: Any) -> Any:
        channels = torch.stack([x.reshape(-1), x.reshape(-1) ** 2])
        filters = torch.from_numpy(network.FILTER)
        return functional.conv1d(channels, filters, None, 2, 2, 2, 2)

    def normalised(x: Any) -> Any:
        column = x.reshape(-1, 1)
        both = torch.cat([column, 1.0 - 0.5 * column])
        running = 0.3 * both.mean(0), 0.7 + 0.3 * both.var(0)
        used = (column - running[0]) / torch.sqrt(running[1] + 0.1) * 1.5 + 0.2
        trained = functional.batch_norm(both, None, None, training=True, eps=0.5)
        return used + trained[: len(column)]

    def dropped(x: Any) -> Any:
        gone = torch.from_numpy(network.drawn(tuple(x.shape))[0])
        return torch.where(gone, 0.0, x / (1 - network.SHARE))

    def noisy(x: Any) -> Any:
        return x + 0.5 * torch.from_numpy(network.drawn(tuple(x.shape))[1])

    return {
        "convolved": convolved,
        "normalised": normalised,
        "dropped": dropped,
        "noisy": noisy,
    }


THEIRS: dict[str, Any] = (
    {}
    if torch is None
    else {
        name: getattr(torch, name)
        for name in (
            *("sin", "tanh", "exp", "cos", "square", "negative", "absolute", "sqrt", "log"),
            *("arctan", "sign", "reciprocal", "expm1", "log1p", "sigmoid"),
        )
    }
    | {
        "relu": lambda x: torch.relu(x) + 0.0,
        "softmax": lambda x: x.reshape(-1).softmax(0),
        "cumsum": _running_sum,
        "cumprod": _running_product,
        "flip": lambda x: torch.flip(x, tuple(range(x.ndim))),
        "roll": lambda x: torch.roll(x, 2),
        "triangle": lambda x: torch.tril(torch.atleast_2d(x)),
        "sort": lambda x: torch.sort(x.reshape(-1), stable=True)[0],
        "spread": lambda x: torch.var(x, correction=0, keepdim=True),
        **_of_networks(),
    }
)

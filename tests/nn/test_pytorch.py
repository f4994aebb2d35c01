"""Losses and optimizers with the options of PyTorch's, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import nn, optim
from difflab.errors import InputError, ShapeError
from difflab.nn import functional as F  # noqa: N812 - as in PyTorch

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")

TARGETS = [np.array([0, 2, 1, 2, -100]), np.array([3, 2, 1, 2, 0]), None]
"""With an ignored class, without, and probabilities."""


def slopes(loss: Callable[..., Any], x: np.ndarray, tensor: Callable[..., Any]) -> Any:
    """Return the losses, and the gradient of their weighted sum."""
    leaf = tensor(x)
    leaf.requires_grad = True
    found = loss(leaf)
    factors = tensor(np.arange(1.0, 1.0 + np.prod(found.shape)).reshape(tuple(found.shape)))
    (found * factors).sum().backward()
    return found.detach().numpy(), leaf.grad.numpy()


@pytest.mark.parametrize("target", TARGETS, ids=["ignored", "classes", "probabilities"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("module", [False, True])
def test_cross_entropy(
    target: Any, weighted: bool, reduction: str, module: bool, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(5, 4))
    weight = rng.uniform(0.2, 2.0, 4) if weighted else None
    if target is None:
        target = rng.dirichlet(np.ones(4), 5)

    def loss(library: Any, functional: Any, tensor: Any) -> Callable[[Any], Any]:
        factors = None if weight is None else tensor(weight)
        known = tensor(target)
        if module:
            return lambda x: library.CrossEntropyLoss(factors, reduction=reduction)(x, known)
        return lambda x: functional.cross_entropy(x, known, factors, reduction=reduction)

    value, slope = slopes(loss(nn, F, dl.tensor), x, dl.tensor)
    torchs = loss(torch.nn, torch.nn.functional, torch.tensor)
    expected, expected_slope = slopes(torchs, x, torch.tensor)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("ignore_index", [-100, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_classes_that_are_masked(
    reduction: str, weighted: bool, ignore_index: int, rng: np.random.Generator
) -> None:
    x, target = rng.normal(size=(3, 4)), np.array([0, 2, 1])
    x[[0, 0, 1, 2], [1, 3, 0, 2]] = -np.inf
    weight = np.array([0.5, 2.0, 1.5, 1.0]) if weighted else None

    def loss(functional: Any, tensor: Any) -> Callable[[Any], Any]:
        known, factors = tensor(target), None if weight is None else tensor(weight)
        more: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction}
        return lambda x: functional.cross_entropy(x, known, factors, **more)

    value, slope = slopes(loss(F, dl.tensor), x, dl.tensor)
    expected, expected_slope = slopes(loss(torch.nn.functional, torch.tensor), x, torch.tensor)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_other_ignored_classes_and_traced_ones(reduction: str, rng: np.random.Generator) -> None:
    x, target, weight = rng.normal(size=(5, 4)), np.array([0, 2, 1, 2, 3]), np.array([1.0, 2, 3, 4])
    expected = torch.nn.functional.cross_entropy(
        torch.tensor(x),
        torch.tensor(target),
        torch.tensor(weight),
        ignore_index=2,
        reduction=reduction,
    )

    def loss(x: Any, target: Any) -> Any:
        return F.cross_entropy(x, target, weight, ignore_index=2, reduction=reduction)

    np.testing.assert_allclose(loss(x, target), expected, rtol=1e-13)
    np.testing.assert_allclose(dl.jit(loss)(x, target), expected, rtol=1e-13)
    other = x[::-1].copy()
    squares = torch.nn.functional.mse_loss(
        torch.tensor(x), torch.tensor(other), reduction=reduction
    )
    np.testing.assert_allclose(F.mse_loss(x, other, reduction), squares, rtol=1e-13)


def test_what_losses_refuse() -> None:
    x = np.zeros((2, 3))
    with pytest.raises(InputError, match="reduction is 'mean', 'sum' or 'none'"):
        F.cross_entropy(x, [0, 1], reduction="max")
    with pytest.raises(ShapeError, match="weight has a factor for each of 3 classes"):
        F.cross_entropy(x, [0, 1], np.ones(2))
    with pytest.raises(ShapeError, match="classes below 3, not 3"):
        F.cross_entropy(x, [0, 3], np.ones(3))
    with pytest.raises(ShapeError, match=r"takes \(2,\) classes, not \(3,\)"):
        F.cross_entropy(x, [0, 1, 1], np.ones(3))


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"lr": 0.05, "betas": (0.8, 0.95)},
    "AdamW": {"lr": 0.05},
}
START = [np.array([1.0, -2.0]), np.array([0.5]), np.array([[3.0]])]


def leaves(tensor: Callable[..., Any]) -> list[Any]:
    return [tensor(value.copy(), requires_grad=True) for value in START]


def steps(optimizer: Any, params: Sequence[Any], count: int, **more: Any) -> list[np.ndarray]:
    for step in range(count):
        optimizer.zero_grad(**more)
        used = params[: 1 + step % 3]  # some have no gradient at some steps
        sum(((p - 1.0) ** 4).sum() for p in used).backward()
        optimizer.step()
    return [p.detach().numpy().copy() for p in params]


def same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("set_to_none", [False, True])
def test_parameter_groups(name: str, set_to_none: bool) -> None:
    def trained(library: Any, tensor: Any) -> list[np.ndarray]:
        a, b, c = leaves(tensor)
        groups = [{"params": [a], "lr": 0.01}, {"params": b, "weight_decay": 0.3}]
        optimizer = getattr(library, name)(groups, **OPTIMIZERS[name])
        steps(optimizer, [a, b, c], 4, set_to_none=set_to_none)
        optimizer.add_param_group({"params": [c], "lr": 0.02})
        optimizer.param_groups[1]["lr"] *= 0.5
        return steps(optimizer, [a, b, c], 6, set_to_none=set_to_none)

    same(trained(optim, dl.tensor), trained(torch.optim, torch.tensor))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_are_saved_and_loaded(name: str) -> None:
    def resumed(library: Any, tensor: Any) -> tuple[list[np.ndarray], Any]:
        kind, params = getattr(library, name), leaves(tensor)
        optimizer = kind(params, **OPTIMIZERS[name])
        optimizer.param_groups[0]["lr"] = 0.03
        steps(optimizer, params, 4)
        state = optimizer.state_dict()
        again = kind(params)
        steps(optimizer, leaves(tensor), 1)  # what is saved is a copy
        again.load_state_dict(state)
        return steps(again, params, 4), again.state_dict()

    ours, state = resumed(optim, dl.tensor)
    torchs, expected = resumed(torch.optim, torch.tensor)
    same(ours, torchs)
    assert state["state"].keys() == expected["state"].keys()
    for index, memory in state["state"].items():
        for key, value in memory.items():
            np.testing.assert_allclose(value, expected["state"][index][key], rtol=1e-12)
    (group,), (other,) = state["param_groups"], expected["param_groups"]
    assert {key: other[key] for key in group} == group


def test_groups_added_to_one_and_what_is_refused() -> None:
    def trained(library: Any, tensor: Any) -> list[np.ndarray]:
        a, b, c = leaves(tensor)
        optimizer = library.SGD([a, b], lr=0.01, momentum=0.5)
        steps(optimizer, [a, b, c], 3)
        optimizer.add_param_group({"params": [c], "lr": 0.02})
        return steps(optimizer, [a, b, c], 3)

    same(trained(optim, dl.tensor), trained(torch.optim, torch.tensor))
    params = leaves(dl.tensor)
    with pytest.raises(InputError, match="a group of SGD has the keys 'params', 'eta'"):
        optim.SGD([{"params": params, "eta": 1.0}])
    with pytest.raises(InputError, match="lr of SGD is a number from 0"):
        optim.SGD([{"params": params, "lr": -1.0}])
    with pytest.raises(InputError, match=r"groups of \[3\] parameters, and this optimizer has "):
        optim.SGD(params[:2]).load_state_dict(optim.SGD(params).state_dict())


def test_gradients_are_reset_to_zeros() -> None:
    model = nn.Linear(2, 1)
    model(dl.tensor(np.ones((3, 2)))).sum().backward()
    model.zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_settings_of_groups_in_compiled_code() -> None:
    x, y = (dl.tensor(3.0, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([{"params": [x], "lr": 0.1}, {"params": [y]}], lr=0.2)
    fast = dl.jit(lambda z: z - optimizer.param_groups[0]["lr"])
    assert float(fast(1.0)) == 0.9
    optimizer.param_groups[0]["lr"] = 0.5
    assert float(fast(1.0)) == 0.5

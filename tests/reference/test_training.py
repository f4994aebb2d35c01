"""A perceptron trained on Fisher's irises: forward, backward and update as one graph."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import difflab as dl
from tests.support.documents import ROOT

RATE = 0.5
TABLE = np.genfromtxt(
    ROOT / "docs" / "examples" / "iris.csv", delimiter=",", names=True, dtype=None, encoding="utf-8"
)
KIND = np.unique(TABLE["species"], return_inverse=True)[1]
HELD = np.arange(150) % 5 == 0
LENGTHS = np.stack([TABLE[name] for name in TABLE.dtype.names[:4]], axis=1)
X = (LENGTHS - LENGTHS[~HELD].mean(axis=0)) / LENGTHS[~HELD].std(axis=0)
DATA = X[~HELD], np.eye(3)[KIND[~HELD]]
RNG = np.random.default_rng(1)
WEIGHTS = RNG.normal(size=(4, 8)) / 2, np.zeros(8), RNG.normal(size=(8, 3)) / 2, np.zeros(3)


def scores(W1: Any, b1: Any, W2: Any, b2: Any, x: Any) -> Any:
    return np.tanh(x @ W1 + b1) @ W2 + b2


def loss(W1: Any, b1: Any, W2: Any, b2: Any, x: Any, onehot: Any) -> Any:
    return dl.arrays.cross_entropy(scores(W1, b1, W2, b2, x), onehot)


def step(W1: Any, b1: Any, W2: Any, b2: Any, x: Any, onehot: Any) -> Any:
    value, slopes = dl.value_and_grad(loss, (0, 1, 2, 3))(W1, b1, W2, b2, x, onehot)
    return value, *(w - RATE * w_bar for w, w_bar in zip((W1, b1, W2, b2), slopes, strict=True))


def trained(update: Any, steps: int) -> tuple[list[float], list[np.ndarray]]:
    losses, weights = [], list(WEIGHTS)
    for _ in range(steps):
        value, *weights = update(*weights, *DATA)
        losses.append(float(value))
    return losses, weights


@pytest.fixture(scope="module")
def graph() -> dl.Function:
    return dl.trace(step, *WEIGHTS, *DATA)


def test_it_learns(graph: dl.Function) -> None:
    losses, weights = trained(dl.compile(graph), 300)
    assert all(later < earlier for earlier, later in pairwise(losses))
    assert losses[-1] < 0.05
    right = np.argmax(scores(*weights, X), axis=1) == KIND
    assert right[~HELD].sum() >= 117
    assert right[HELD].sum() >= 28


def test_the_step_is_a_graph_of_few_operations(graph: dl.Function) -> None:
    forward = dl.count(dl.trace(loss, *WEIGHTS, *DATA)).operations
    # The backward pass within the usual bound, and a product and a difference for each weight.
    assert dl.count(graph).operations <= 4 * forward + 2 * len(WEIGHTS)


def test_tensors_the_graph_and_its_compiled_form_take_the_same_way(graph: dl.Function) -> None:
    _, compiled = trained(dl.compile(graph), 20)
    _, evaluated = trained(graph, 20)
    leaves = [dl.tensor(w, requires_grad=True) for w in WEIGHTS]
    for _ in range(20):
        loss(*leaves, *DATA).backward()
        with dl.no_grad():
            for leaf in leaves:
                leaf -= RATE * leaf.grad
                leaf.zero_grad()
    for one, other, leaf in zip(compiled, evaluated, leaves, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(leaf.detach().numpy(), other, rtol=1e-12, atol=1e-14)


def test_pytorch_takes_the_same_way(graph: dl.Function) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    leaves = [torch.tensor(w, requires_grad=True) for w in WEIGHTS]
    x, onehot = map(torch.tensor, DATA)
    optimiser = torch.optim.SGD(leaves, lr=RATE)
    theirs = []
    for _ in range(50):
        optimiser.zero_grad()
        W1, b1, W2, b2 = leaves
        value = torch.nn.functional.cross_entropy(torch.tanh(x @ W1 + b1) @ W2 + b2, onehot)
        value.backward()
        optimiser.step()
        theirs.append(value.item())
    losses, weights = trained(dl.compile(graph), 50)
    np.testing.assert_allclose(losses, theirs, rtol=1e-12)
    for one, leaf in zip(weights, leaves, strict=True):
        np.testing.assert_allclose(one, leaf.detach().numpy(), rtol=1e-10, atol=1e-12)

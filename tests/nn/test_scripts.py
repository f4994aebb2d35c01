"""Teaching code written for PyTorch: the same function, run with PyTorch and with difflab.

`torch`, `nn`, `optim` and `F` are arguments in place of imports; weights are copied from PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.nn import functional

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")

RNG = np.random.default_rng(12)
X = RNG.normal(size=(40, 3))
Y = X @ np.array([[1.0], [-2.0], [0.5]]) + 0.3 + 0.1 * RNG.normal(size=(40, 1))
CLASSES = (X[:, 0] > X[:, 1]).astype(np.int64) + (X[:, 2] > 1)
IMAGES = RNG.normal(size=(16, 1, 8, 8))
LABELS = (IMAGES.mean(axis=(1, 2, 3)) > 0).astype(np.int64)

Losses = list[float]


def linear_regression(torch: Any, nn: Any, F: Any, optim: Any, start: Callable[..., Any]) -> Losses:
    class LinearRegression(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 1)

        def forward(self, x):
            return self.linear(x)

    model = start(LinearRegression())
    criterion = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    inputs, targets = torch.tensor(X), torch.tensor(Y)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def classification(torch: Any, nn: Any, F: Any, optim: Any, start: Callable[..., Any]) -> Losses:
    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(3, 8)
            self.norm = nn.LayerNorm(8)
            self.out = nn.Linear(8, 3)

        def forward(self, x):
            x = F.relu(self.norm(self.hidden(x)))
            return self.out(x)

    model = start(MLP())
    optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
    losses = []
    for epoch in range(5):
        for first in range(0, 40, 8):
            x = torch.tensor(X[first : first + 8])
            y = torch.tensor(CLASSES[first : first + 8])
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        optimizer.param_groups[0]["lr"] = 0.02 / (epoch + 2)
    model.eval()
    with torch.no_grad():
        predicted = model(torch.tensor(X)).argmax(1)
        correct = (predicted == torch.tensor(CLASSES)).sum().item()
    return [*losses, correct / 40]


def small_cnn(torch: Any, nn: Any, F: Any, optim: Any, start: Callable[..., Any]) -> Losses:
    model = start(
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, kernel_size=(2, 3), stride=2, groups=2),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(8, 6),
            nn.Sigmoid(),
            nn.Linear(6, 2),
        )
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    images, labels = torch.tensor(IMAGES), torch.tensor(LABELS)
    losses = []
    for _ in range(25):
        model.train()
        for part in (slice(0, 8), slice(8, 16)):
            optimizer.zero_grad()
            loss = criterion(model(images[part]), labels[part])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses.append(criterion(model(images), labels).item())
    return losses


SCRIPTS = {
    "linear regression": linear_regression,
    "classification": classification,
    "small cnn": small_cnn,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_computes_what_pytorch_computes(name: str) -> None:
    first: dict[str, Any] = {}
    models: list[Any] = []

    def theirs(model: Any) -> Any:
        model.double()
        first.update({key: value.numpy().copy() for key, value in model.state_dict().items()})
        models.append(model)
        return model

    def ours(model: Any) -> Any:
        model.load_state_dict(first)
        models.append(model)
        return model

    torch.manual_seed(3)
    script = SCRIPTS[name]
    expected = script(torch, torch.nn, torch.nn.functional, torch.optim, theirs)
    found = script(dl, dl.nn, functional, dl.optim, ours)
    assert expected[-1] != expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    end, last = (model.state_dict() for model in models)
    assert list(last) == sorted(end, key=list(last).index)
    for key, value in end.items():
        np.testing.assert_allclose(last[key], value.numpy(), rtol=1e-11, atol=1e-12)


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.01},
    "SGD with momentum": {"lr": 0.01, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.02},
    "SGD of Nesterov": {"lr": 0.01, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    "Adam": {},
    "Adam with decay": {"lr": 0.02, "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 0.1},
    "AdamW": {"lr": 0.02},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fifty_steps_of_an_optimizer_are_pytorchs(name: str, rng: np.random.Generator) -> None:
    settings = OPTIMIZERS[name]
    word = name.split()[0]
    start = rng.normal(size=(4,)), rng.normal(size=(2, 2))
    ours = [dl.tensor(value, requires_grad=True) for value in start]
    theirs = [torch.tensor(value, requires_grad=True) for value in start]
    made = getattr(dl.optim, word)(ours, **settings), getattr(torch.optim, word)(theirs, **settings)
    for _ in range(50):
        for optimizer, (x, y), f in zip(made, (ours, theirs), (np, torch), strict=True):
            optimizer.zero_grad()
            loss = ((x[1:] - f.tanh(x[:-1])) ** 2).sum() + (f.sin(y) ** 2).sum() * (x[0] ** 2 + 1)
            loss.backward()
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        expected = other.detach().numpy()
        np.testing.assert_allclose(one.detach().numpy(), expected, rtol=1e-12, atol=1e-13)

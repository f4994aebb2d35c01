"""Long chains and many parts: no recursion, no quadratic work."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import difflab as dl
from difflab import primitives
from difflab.core.primitive import Primitive


def chain(x: dl.Tensor, length: int) -> dl.Tensor:
    for _ in range(length // 2):
        x = (x + 1.0) * 0.5
    return x


@pytest.mark.slow
def test_a_million_operations_go_backward() -> None:
    x = dl.tensor(3.0, requires_grad=True)
    # The slope of each pair is 1/2, so it shrinks until it is the smallest number, and then 0.
    y = x
    for _ in range(500_000):
        y = (y - 1.0) * -1.0
    y.backward()
    assert x.grad.item() == 1.0


def test_a_long_chain_is_let_go_without_recursion() -> None:
    x = dl.tensor(3.0, requires_grad=True)
    y = chain(x, 200_000)
    step = y.grad_fn
    del y
    gc.collect()
    del step
    assert x.grad is None
    z = chain(x, 2_000)
    z.backward()
    assert x.grad.item() == 0.5**1000


def test_elements_go_backward_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over the elements of an array writes one array of zeros, not one an element."""
    made = []
    kernel = primitives.scatter.computer(np)

    def counting(*args: object, **params: object) -> object:
        made.append(len(args))
        return kernel(*args, **params)

    monkeypatch.setitem(primitives.scatter._computers, np, counting)
    x = dl.tensor(np.arange(100.0), requires_grad=True)
    total = x[0] * 0
    for k in range(100):
        total = total + x[k] * x[k]
    total.backward()
    assert made == [100]
    assert np.array_equal(x.grad, 2 * np.arange(100.0))


def test_every_step_is_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """y ← y + y, 60 times: 2⁶⁰ paths, 60 steps."""
    seen = []
    kernel: Primitive = primitives.add
    plain = kernel.computer(np)

    def counting(*args: object) -> object:
        seen.append(1)
        return plain(*args)

    monkeypatch.setitem(kernel._computers, np, counting)
    x = y = dl.tensor(1.0, requires_grad=True)
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60
    assert len(seen) == 60  # the forward pass uses the addition of Python floats

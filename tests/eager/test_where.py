"""`where` on tensors: masks of any rank, broadcast either way, differentiated once and twice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import difflab as dl

SHAPES = [(), (3,), (1,), (2, 3), (2, 1), (1, 3), (2, 2, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_masks_are_broadcast_either_way(shape: tuple[int, ...]) -> None:
    mask = np.arange(int(np.prod(shape))).reshape(shape) % 2 == 0
    for one, other in itertools.product(SHAPES[:6], repeat=2):
        a = np.linspace(1.0, 2.0, int(np.prod(one))).reshape(one)
        b = np.linspace(2.0, 3.0, int(np.prod(other))).reshape(other)
        wide = np.broadcast_shapes(shape, one, other)
        chosen = np.broadcast_to(mask, wide)
        for create_graph in (False, False, False, True):
            x, y = dl.tensor(a, requires_grad=True), dl.tensor(b, requires_grad=True)
            z = np.where(mask, x * x, y)
            np.sum(z * z).backward(create_graph=create_graph)
            powers = np.broadcast_to(4 * a**3, wide), np.broadcast_to(2 * b, wide)
            assert np.allclose(
                x.grad.detach().numpy(), summed(np.where(chosen, powers[0], 0), one), rtol=1e-14
            )
            assert np.allclose(
                y.grad.detach().numpy(), summed(np.where(chosen, 0, powers[1]), other), rtol=1e-14
            )
        slopes = np.sum(x.grad) + np.sum(y.grad)
        x.zero_grad()
        y.zero_grad()
        if slopes.requires_grad:
            slopes.backward()
            second = np.where(chosen, np.broadcast_to(12 * a**2, wide), 0)
            assert np.allclose(x.grad.numpy(), summed(second, one), rtol=1e-14)


def summed(wide: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes along which `shape` was repeated."""
    lead = wide.ndim - len(shape)
    axes = [k for k in range(wide.ndim) if k < lead or shape[k - lead] == 1]
    return wide.sum(axis=tuple(axes)).reshape(shape)


def test_masks_of_tensors_and_nested_ones() -> None:
    for _ in range(3):
        x = dl.tensor([[0.0, 4.0], [9.0, 0.0]], requires_grad=True)
        s = dl.tensor(1.0, requires_grad=True)
        inner = np.where(x > 0, np.sqrt(x), x)
        np.sum(np.where(s > 0, inner, 0.0) * s).backward()
        assert x.grad.numpy().tolist() == [[1.0, 0.25], [1 / 6, 1.0]]
        assert s.grad.item() == 5.0

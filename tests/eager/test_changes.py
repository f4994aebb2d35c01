"""Changes in place: done, differentiated, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import ShapeError, TapeError


def leaf(value: Any) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True)


def test_a_changed_value_that_backward_needs_is_named() -> None:
    x = leaf([1.0, 2.0])
    y = np.exp(x)
    z = np.sum(y)
    y += 1
    with pytest.raises(TapeError, match=r"'exp'.*\n?.*in-place add") as caught:
        z.backward()
    assert "test_changes.py" in str(caught.value)
    assert "y += 1" in str(caught.value)


def test_a_change_of_a_constant_is_found() -> None:
    x, a = leaf([1.0, 2.0]), dl.tensor([3.0, 4.0])
    z = np.sum(x * a)
    a[0] = 100.0
    with pytest.raises(TapeError, match="'multiply'"):
        z.backward()
    alias = dl.tensor([3.0, 4.0])
    z = np.sum(x * alias)
    alias.detach()[1] = 0.0
    with pytest.raises(TapeError, match="item assignment"):
        z.backward()
    flat = dl.tensor([[3.0, 4.0]])
    z = np.sum(x * flat.reshape(2))
    flat *= 2
    with pytest.raises(TapeError, match="multiply"):
        z.backward()


def test_a_change_that_backward_does_not_need_is_fine() -> None:
    x = leaf([1.0, 2.0])
    y = x + 1
    z = np.sum(y)
    y *= 5
    z.backward()
    assert x.grad.numpy().tolist() == [1.0, 1.0]


def test_changes_are_differentiated() -> None:
    x = leaf([1.0, 2.0])
    y = x * 1
    y *= 3
    y[0] = 7.0
    y -= x
    y[1:] = y[1:] + x[:1] * 4
    np.sum(y).backward()
    # y = (7 − x₀, 3 x₁ − x₁ + 4 x₀)
    assert y.detach().numpy().tolist() == [6.0, 8.0]
    assert x.grad.numpy().tolist() == [-1.0 + 4.0, 3.0 - 1.0]


def test_values_assigned_receive_their_gradient() -> None:
    x, v = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(5.0)
    y = x * 2
    y[0] = v
    y[np.array([[False, False], [False, True]])] = v * v
    np.sum(y).backward()
    assert x.grad.numpy().tolist() == [[0.0, 0.0], [2.0, 0.0]]
    assert v.grad.item() == 2 + 2 * 5.0


def test_leaves_are_not_changed_while_recording() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(TapeError, match="no_grad"):
        x += 1
    with pytest.raises(TapeError, match="no_grad"):
        x[0] = 1.0
    assert x.detach().numpy().tolist() == [1.0, 2.0]
    plain = dl.tensor([1.0])
    with pytest.raises(ShapeError, match="in-place add"):
        plain += np.ones(3)


def test_numpy_arrays_may_be_changed_by_their_owners() -> None:
    data = np.array([3.0, 4.0])
    copied, x = dl.tensor(data), leaf([1.0, 2.0])
    z = np.sum(x * data)
    data[:] = 0.0
    z.backward()
    assert x.grad.numpy().tolist() == [3.0, 4.0]
    assert copied.numpy().tolist() == [3.0, 4.0]


def test_views_are_values() -> None:
    t = dl.tensor([[1.0, 2.0], [3.0, 4.0]])
    row = t[0]
    row += 10
    assert t.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    t[0] += 10
    assert t.numpy().tolist() == [[11.0, 12.0], [3.0, 4.0]]

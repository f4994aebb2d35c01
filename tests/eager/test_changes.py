"""Changes in place: done, differentiated, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
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


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda y: y[:2],
    "row": lambda y: y[1],
    "whole": lambda y: y[:],
    "turned": lambda y: y.T,
    "reshaped": lambda y: y.reshape(6),
    "same shape": lambda y: y.reshape(2, 3),
    "broadcast": lambda y: np.broadcast_to(y, (2, 2, 3)),
    "new axis": lambda y: y[None],
    "diagonal": lambda y: np.diag(y[:, :2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_keeps_its_numbers_and_its_gradient(name: str) -> None:
    """What is shown and what it is the derivative of are one: the view before the change."""
    view = VIEWS[name]
    start = np.arange(6.0).reshape(2, 3)
    weights = np.arange(1.0, 1 + view(start).size).reshape(view(start).shape)
    x = leaf(start)
    y = x * 2
    m = view(y)
    y *= 10
    np.sum(m * weights).backward()
    expected = np.zeros(6)
    np.add.at(expected, view(np.arange(6).reshape(2, 3)).ravel(), 2 * weights.ravel())
    assert np.array_equal(m.detach().numpy(), 2 * view(start))
    assert np.array_equal(x.grad.numpy().ravel(), expected)
    assert np.array_equal(y.detach().numpy(), 20 * start)


def test_a_view_of_a_leaf_keeps_its_numbers_when_the_leaf_is_updated() -> None:
    x = leaf([1.0, 2.0])
    v = x[:]
    with dl.no_grad():
        x *= 0.5
    np.sum(v * v).backward()
    assert v.detach().numpy().tolist() == [1.0, 2.0]
    assert x.grad.numpy().tolist() == [2.0, 4.0]
    w = leaf([1.0, 2.0])
    z = np.sum(np.sin(w[:]))
    with dl.no_grad():
        w[0] = 5.0
    with pytest.raises(TapeError, match="changed in place"):
        z.backward()


def test_arrays_shown_keep_their_numbers() -> None:
    t = dl.tensor([1.0, 2.0])
    shown = t.numpy()
    t += 1
    assert shown.tolist() == [1.0, 2.0]
    assert t.numpy().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_a_tensor_and_what_is_detached_are_changed_together(value: Any) -> None:
    x = leaf(value)
    twin = x.detach()
    again = twin.detach()
    with dl.no_grad():
        x *= 2
    assert np.array_equal(twin.numpy(), 2 * np.array(value))
    twin += 1
    assert np.array_equal(x.detach().numpy(), 2 * np.array(value) + 1)
    assert np.array_equal(again.numpy(), 2 * np.array(value) + 1)


def test_the_gradient_that_is_retained_is_that_of_the_new_numbers() -> None:
    """PyTorch 2.13 gives y.grad = 1 and x.grad = 6 here."""
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y *= 3
    (y * 1.0).backward()
    assert y.grad.item() == 1.0
    assert x.grad.item() == 6.0


SAME: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "sum": (3.0, lambda y: y.sum()),
    "mean": (3.0, lambda y: y.mean()),
    "max": (3.0, lambda y: y.max()),
    "prod": (3.0, lambda y: np.prod(y)),
    "mean of one": ([3.0], lambda y: y.mean(axis=())),
    "plus": ([3.0, 4.0], lambda y: +y),
    "positive": ([3.0, 4.0], np.positive),
    "reshape": ([3.0, 4.0], lambda y: y.reshape(2)),
    "ravel": ([3.0, 4.0], np.ravel),
    "T": ([3.0, 4.0], lambda y: y.T),
    "squeeze": ([3.0, 4.0], np.squeeze),
    "broadcast_to": ([3.0, 4.0], lambda y: np.broadcast_to(y, (2,))),
    "concatenate": ([3.0, 4.0], lambda y: np.concatenate([y])),
    "clip": ([3.0, 4.0], lambda y: y.clip()),
    "function": ([3.0, 4.0], dl.parse("x: [2]; x")),
}


@pytest.mark.parametrize("name", SAME)
def test_an_operation_that_changes_nothing_makes_a_tensor(name: str) -> None:
    value, operation = SAME[name]
    x = leaf(value)
    y = x * 2
    s = operation(y)
    seen: list[Any] = []
    operation(x).register_hook(seen.append)
    y += x
    assert np.array_equal(s.detach().numpy(), 2 * np.array(value))
    np.sum(s).backward()
    assert np.array_equal(x.grad.numpy(), np.full(np.shape(value), 2.0))
    assert seen == []
    assert y is not s
    assert s.grad_fn is not y.grad_fn


@pytest.mark.parametrize("recorded", [True, False])
def test_assignments_are_numpys(recorded: bool) -> None:
    """By masks with a number for each place, by lists, by places that are named twice."""
    start = np.arange(6.0).reshape(2, 3)
    diagonal = np.array([[True, False, False], [False, True, False]])
    cases: list[tuple[Any, Any]] = [
        (diagonal, [7.0, 8.0]),
        (start > 1.5, 9.0),
        (np.array([False, True]), [7.0, 8.0, 9.0]),
        ([1, 0], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ((0, [2, 0]), [7.0, 8.0]),
        ((0, [2, 2]), [7.0, 8.0]),
        ((slice(None), slice(None, None, -2)), [[-0.0, 1.0]]),
        ((Ellipsis, 1), [[7.0, 8.0]]),
        ((0, slice(0, 0)), []),
    ]
    for key, value in cases:
        expected = start.copy()
        expected[key] = np.array(value)
        x, v = leaf(start), leaf(value)
        y = x * 1.0
        with dl.enable_grad() if recorded else dl.no_grad():
            y[key] = v
        found = y.detach().numpy()
        assert np.array_equal(found, expected)
        assert np.array_equal(np.signbit(found), np.signbit(expected))
        if recorded:
            bars = np.arange(1.0, 7).reshape(2, 3)
            np.sum(y * bars).backward()
            places = np.full((2, 3), -1)
            places[key] = np.arange(np.size(value)).reshape(np.shape(value))
            assert np.array_equal(x.grad.numpy(), np.where(places < 0, bars, 0.0))
            sums = [np.sum(bars[places == k]) for k in range(np.size(value))]
            assert v.grad.numpy().ravel().tolist() == sums


def test_constants_are_kept_as_they_are_now() -> None:
    """A read-only view of memory that its owner can write to is no constant."""
    owned = np.array([3.0, 4.0])
    x = leaf(np.ones((2, 2)))
    z = np.sum(x * np.broadcast_to(owned, (2, 2)))
    owned[:] = 0.0
    z.backward()
    assert x.grad.numpy().tolist() == [[3.0, 4.0], [3.0, 4.0]]

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


def test_a_value_that_backward_needs_is_kept() -> None:
    x = leaf([1.0, 2.0])
    y = np.exp(x)
    z = np.sum(y)
    y += 1
    z.backward()
    assert np.array_equal(x.grad.numpy(), np.exp([1.0, 2.0]))
    w = leaf([3.0, 4.0])
    y = w * 1.0
    y *= w
    y[0] **= 3
    np.sum(y).backward()  # y = (w₀⁶, w₁²)
    assert np.allclose(w.grad.numpy(), [6 * 3.0**5, 8.0], rtol=1e-14)


def test_a_constant_is_kept_as_it_was_used() -> None:
    def gradient(a: Any, change: Callable[[Any], None]) -> list[float]:
        x = leaf([1.0, 2.0])
        z = np.sum(x * a.reshape(2))
        change(a)
        z.backward()
        return x.grad.numpy().tolist()  # type: ignore[no-any-return]

    changes: list[Callable[[Any], Any]] = [
        lambda a: a.__setitem__(0, 100.0),
        lambda a: a.detach().__setitem__(1, 0.0),
        lambda a: a.__imul__(2),
    ]
    for change in changes:
        assert gradient(dl.tensor([3.0, 4.0]), change) == [3.0, 4.0]


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
def test_a_view_follows_its_array(name: str) -> None:
    """What is shown and what it is the derivative of are one: the view after the change."""
    view = VIEWS[name]
    start = np.arange(6.0).reshape(2, 3)
    weights = np.arange(1.0, 1 + view(start).size).reshape(view(start).shape)
    x = leaf(start)
    y = x * 2
    m = view(y)
    y *= 10
    np.sum(m * weights).backward()
    expected = np.zeros(6)
    np.add.at(expected, view(np.arange(6).reshape(2, 3)).ravel(), 20 * weights.ravel())
    assert np.array_equal(m.detach().numpy(), 20 * view(start))
    assert np.array_equal(x.grad.numpy().ravel(), expected)
    assert np.array_equal(y.detach().numpy(), 20 * start)


def test_a_view_of_a_leaf_follows_an_update() -> None:
    x = leaf([1.0, 2.0])
    v = x[:]
    before = np.sum(v * v)
    with dl.no_grad():
        x *= 0.5
    after = np.sum(v * v)
    assert v.detach().numpy().tolist() == [0.5, 1.0]
    before.backward()
    assert x.grad.numpy().tolist() == [2.0, 4.0]
    x.zero_grad()
    after.backward()
    assert x.grad.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(TapeError, match="no_grad"):
        v *= 2.0
    with dl.no_grad():
        v[0] = 5.0
    assert x.detach().numpy().tolist() == [5.0, 1.0]
    assert x.requires_grad


def test_a_view_made_without_recording_stays_without_derivative() -> None:
    x = leaf([1.0, 2.0])
    y = x * 1.0
    with dl.no_grad():
        v = y[:1]
    shared = y.detach()
    part = y[1:].detach()
    y *= 3.0
    assert v.numpy().tolist() == [3.0]
    assert part.numpy().tolist() == [6.0]
    assert shared.numpy().tolist() == [3.0, 6.0]
    with dl.no_grad():
        part += 1.0
    assert y.detach().numpy().tolist() == [3.0, 7.0]


def test_a_number_is_bound_again() -> None:
    """As NumPy's numbers, which are no arrays; a leaf and an array without axes are changed."""
    x = leaf([1.0, 2.0])
    s = np.sum(x)
    t = s
    t += 1.0
    assert (s.item(), t.item()) == (3.0, 4.0)
    y = x * 1.0
    part = y[1, ...]
    part += 5.0
    assert y.detach().numpy().tolist() == [1.0, 7.0]
    w = leaf(2.0)
    alias = w
    with dl.no_grad():
        for _ in range(2):
            w *= 3.0
    assert alias.item() == 18.0


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


SAME: dict[str, tuple[Any, Callable[[Any], Any], bool]] = {
    "sum": (3.0, lambda y: y.sum(), False),
    "mean": (3.0, lambda y: y.mean(), False),
    "max": (3.0, lambda y: y.max(), False),
    "prod": (3.0, lambda y: np.prod(y), False),
    "mean of one": ([3.0], lambda y: y.mean(axis=()), False),
    "plus": ([3.0, 4.0], lambda y: +y, False),
    "positive": ([3.0, 4.0], np.positive, False),
    "reshape": ([3.0, 4.0], lambda y: y.reshape(2), True),
    "ravel": ([3.0, 4.0], np.ravel, True),
    "T": ([3.0, 4.0], lambda y: y.T, True),
    "squeeze": ([3.0, 4.0], np.squeeze, True),
    "broadcast_to": ([3.0, 4.0], lambda y: np.broadcast_to(y, (2,)), True),
    "concatenate": ([3.0, 4.0], lambda y: np.concatenate([y]), False),
    "clip": ([3.0, 4.0], lambda y: y.clip(), False),
    "function": ([3.0, 4.0], dl.parse("x: [2]; x"), False),
}
"""A point, an operation that changes nothing, and whether NumPy gives a view."""


@pytest.mark.parametrize("name", SAME)
def test_an_operation_that_changes_nothing_makes_a_tensor(name: str) -> None:
    value, operation, is_view = SAME[name]
    x = leaf(value)
    y = x * 2
    s = operation(y)
    seen: list[Any] = []
    operation(x).register_hook(seen.append)
    y += x
    factor = 3.0 if is_view else 2.0
    assert np.array_equal(s.detach().numpy(), factor * np.array(value))
    np.sum(s).backward()
    assert np.array_equal(x.grad.numpy(), np.full(np.shape(value), factor))
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

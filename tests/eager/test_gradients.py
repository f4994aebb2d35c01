"""The gradients in `grad`: their memory and their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError


def leaf(value: Any, kind: Any = np.float64) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True, dtype=kind)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_gradients_share_nothing(create_graph: bool, as_tensor: bool) -> None:
    x, y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    middle = x + y
    middle.retain_grad()
    given: Any = dl.tensor([7.0, 8.0]) if as_tensor else np.array([7.0, 8.0])
    (middle + z.reshape(2)).backward(given, create_graph=create_graph)
    found = [x.grad, y.grad, z.grad, middle.grad, given]
    for place, one in enumerate(found):
        assert np.asarray(getattr(one, "_data", one)).tolist() == [7.0, 8.0]
        for other in found[:place]:
            assert one is not other
    with dl.no_grad():
        x.grad[0] = 100.0
        given[1] = 200.0
    assert [t.grad.detach().numpy().tolist() for t in (y, z, middle)] == [[7.0, 8.0]] * 3


def test_the_gradient_of_a_leaf_alone_is_not_the_one_passed() -> None:
    x, given = leaf([1.0]), dl.tensor([2.0])
    x.backward(given, create_graph=True)
    assert x.grad is not given


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_hooks_keep_is_theirs(create_graph: bool) -> None:
    x = leaf([1.0, 2.0])
    seen: list[Any] = []
    replaced = dl.tensor([5.0, 6.0])

    def scribble(bar: Any) -> None:
        bar *= 100.0
        seen.append(bar)

    y = x * 1.0
    y.register_hook(scribble)
    (y + 0).backward(np.ones(2), create_graph=create_graph)
    assert x.grad.detach().numpy().tolist() == [1.0, 1.0]
    assert seen[0].detach().numpy().tolist() == [100.0, 100.0]
    x.zero_grad()
    x.register_hook(lambda bar: replaced)
    (x * 2).backward(np.ones(2), create_graph=create_graph)
    replaced *= 0.0
    assert x.grad.detach().numpy().tolist() == [5.0, 6.0]


class Doubled(dl.CustomFunction):
    """Twice its argument, computed in buffers that are used again."""

    forth, back = np.zeros(2), np.zeros(2)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return np.multiply(x, 2, out=Doubled.forth)

    @staticmethod
    def backward(ctx: Any, bar: Any) -> Any:
        return np.multiply(bar, 2, out=Doubled.back)


def test_buffers_of_a_custom_function_are_its_own() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    first, second = Doubled.apply(x), Doubled.apply(y)
    assert first.detach().numpy().tolist() == [2.0, 4.0]
    np.sum(first).backward()
    (second * 1.0).backward([5.0, 6.0])
    assert x.grad.numpy().tolist() == [2.0, 2.0]
    assert y.grad.numpy().tolist() == [10.0, 12.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_cotangents_have_the_types_of_their_values(create_graph: bool) -> None:
    """PyTorch 2.13: float32 for x and h, float64 for w."""
    for _ in range(3):
        x, w = leaf([1.0, 2.0], np.float32), leaf([3.0, 4.0])
        h = x * 2
        h.retain_grad()
        seen: list[Any] = []
        h.register_hook(lambda bar, seen=seen: seen.append(bar.dtype))
        np.sum(h * w + h[::-1]).backward(create_graph=create_graph)
        assert [t.grad.dtype for t in (x, h, w)] == [np.float32, np.float32, np.float64]
        assert seen == [np.float32]
        assert x.grad.detach().numpy().tolist() == [8.0, 10.0]
        plain = leaf([1.0, 2.0], np.float32)
        np.sum(np.sign(plain) * w + plain * np.array([3.0, 4.0])).backward()
        assert plain.grad.dtype == np.float32


def test_gradients_of_changed_types_can_be_differentiated_again() -> None:
    x, w = leaf([2.0], np.float32), leaf([3.0])
    (x * x * w).backward(np.ones(1), create_graph=True)
    slope = x.grad
    x.zero_grad()
    w.zero_grad()
    np.sum(slope).backward()
    assert (x.grad.item(), w.grad.item()) == (6.0, 4.0)  # of 2 x w
    assert (x.grad.dtype, w.grad.dtype) == (np.float32, np.float64)


def test_changes_in_place_and_custom_functions_keep_the_type() -> None:
    x = leaf([1.0, 2.0], np.float32)
    y = x * 1
    y *= np.array([3.0, 4.0])
    y[0] = dl.tensor(5.0)
    assert y.dtype == np.float32
    np.sum(Doubled.apply(y) * np.array([1.0, 10.0])).backward()
    assert x.grad.dtype == np.float32
    assert x.grad.numpy().tolist() == [0.0, 80.0]


@pytest.mark.parametrize("given", ["a", [[1.0], [1.0, 2.0]], {}, 1j, ["a", "b"]])
def test_a_gradient_is_made_of_numbers(given: Any) -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(
        InputError, match=r"the gradient of backward\(\) is (.|\n)*test_gradients.py"
    ):
        (x * 2).backward(given)


@pytest.mark.parametrize("bar", [np.array(1j), 1j, np.array(1 + 0j), np.complex64(1j)])
def test_a_complex_gradient_is_refused(bar: Any) -> None:
    x = leaf(2.0)
    with pytest.raises(InputError, match="the gradient of backward\\(\\) is not real"):
        (x * x).backward(bar)
    assert x.grad is None

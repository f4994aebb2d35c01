"""`difflab.eager.grad` beside `torch.autograd.grad`, and by algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.eager import grad
from difflab.errors import InputError, ShapeError, TapeError

V = np.array([0.3, -1.2, 0.7])


def leaf(value: Any) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True)


def test_gradients_are_returned_and_none_is_stored() -> None:
    x, y = leaf(V), leaf(2.0)
    z = x * y
    z.retain_grad()
    found = grad(np.sum(z * z), [x, z, y])
    expected = [2 * V * 4.0, 4.0 * V, 4.0 * np.sum(V * V)]
    for own, value in zip(found, expected, strict=True):
        assert own.numpy() == pytest.approx(value, rel=1e-14)
    assert (x.grad, y.grad, z.grad) == (None, None, None)


def test_higher_orders_by_create_graph() -> None:
    x = leaf(1.5)
    y, expected = x**4, [4 * 1.5**3, 12 * 1.5**2, 24 * 1.5, 24.0]
    for value in expected:
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(value, rel=1e-14)
    assert x.grad is None


def test_several_outputs_are_weighted_by_their_cotangents() -> None:
    x = leaf(V)
    (found,) = grad([np.sin(x), np.sum(x * x)], x, [np.array([1.0, 2.0, 3.0]), None])
    assert found.numpy() == pytest.approx(np.cos(V) * [1, 2, 3] + 2 * V, rel=1e-14)
    (twice,) = grad((y := np.sum(x**3), y), x)
    assert twice.numpy() == pytest.approx(6 * V**2, rel=1e-14)


def test_an_output_may_be_an_input() -> None:
    x = leaf(V)
    y = np.exp(x)
    found = grad(y, [y, x], np.ones(3))
    assert found[0].numpy().tolist() == [1.0, 1.0, 1.0]
    assert found[1].numpy() == pytest.approx(np.exp(V), rel=1e-15)
    assert grad(leaf(3.0), other := leaf(1.0), allow_unused=True) == (None,)
    assert grad(other, other)[0].item() == 1.0


def test_unused_inputs_are_errors_unless_allowed() -> None:
    x, y = leaf(V), leaf(V)
    loss = np.sum(x * x)
    with pytest.raises(TapeError, match=r"no output of grad depends on the input of shape \(3,\)"):
        grad(loss, [x, y], retain_graph=True)
    found = grad(loss, [y, x], allow_unused=True)
    assert found[0] is None
    assert found[1].numpy().tolist() == (2 * V).tolist()


def test_the_tape_is_freed_unless_it_is_kept() -> None:
    x = leaf(V)
    loss = np.sum(np.sin(x))
    grad(loss, x, retain_graph=True)
    grad(loss, x)
    with pytest.raises(TapeError, match="retain_graph"):
        grad(loss, x)


def test_only_the_part_between_is_visited() -> None:
    x, w = leaf(V), leaf(V)
    bent = x * 1.0
    used = np.sin(bent)
    y = np.sum(used) + np.sum(w * w)
    visited: list[Any] = []
    bent.register_hook(visited.append)
    assert grad(y, w, retain_graph=True)[0].numpy().tolist() == (2 * V).tolist()
    assert grad(y, used, retain_graph=True)[0].numpy().tolist() == [1.0, 1.0, 1.0]
    assert not visited
    assert grad(y, x)[0].numpy().tolist() == np.cos(V).tolist()
    assert visited


def test_hooks_run_and_replace() -> None:
    x = leaf(V)
    y = x * 2.0
    y.register_hook(lambda bar: bar * 10.0)
    x.register_hook(lambda bar: bar + 1.0)
    found = grad(np.sum(y), [y, x])
    assert found[0].numpy().tolist() == [10.0] * 3
    assert found[1].numpy().tolist() == [21.0] * 3


def test_through_checkpoints_also_to_what_they_capture() -> None:
    w, x = leaf(0.5), leaf(V)
    y = dl.checkpoint(lambda x: np.sum(np.sin(w * x)), x)
    found = grad(y, [w, x])
    assert found[0].item() == pytest.approx(float(np.sum(V * np.cos(0.5 * V))), rel=1e-14)
    assert found[1].numpy() == pytest.approx(0.5 * np.cos(0.5 * V), rel=1e-14)
    chain = dl.checkpoint_chain(lambda k, s: np.sin(w * s), x, 9, snapshots=2)
    (one,) = grad(np.sum(chain), w)
    np.sum(dl.checkpoint_chain(lambda k, s: np.sin(w * s), x, 9, snapshots=2)).backward()
    assert one.item() == w.grad.item()


def test_gradients_share_no_memory() -> None:
    x = leaf(V)
    seed = np.ones(3)
    one, other = grad(x + 0.0, [x, x], seed)
    one *= 5.0
    assert other.numpy().tolist() == [1.0, 1.0, 1.0]
    assert not np.shares_memory(other.numpy(), seed)


def test_mistakes_are_named() -> None:
    x, plain = leaf(V), dl.tensor(V)
    with pytest.raises(TapeError, match=r"inputs\[1\] of grad does not require grad"):
        grad(np.sum(x), [x, plain])
    with pytest.raises(TapeError, match=r"outputs\[0\] of grad does not require grad"):
        grad(np.sum(plain), x)
    with pytest.raises(TapeError, match="needs a cotangent"):
        grad(x * 2.0, x)
    with pytest.raises(ShapeError, match="shape"):
        grad(x * 2.0, x, np.ones(2))
    with pytest.raises(InputError, match="one cotangent for each of 2 outputs"):
        grad([np.sum(x), np.sum(x)], x, [None])
    with pytest.raises(InputError, match="inputs of grad are tensors, not ndarray"):
        grad(np.sum(x), V)
    with pytest.raises(InputError, match="at least one"):
        grad(np.sum(x), [])


def test_pytorch_gives_the_same() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    start, weight, bar = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=(4, 2))

    def run(lib: Any, x: Any, w: Any, differentiate: Any, bar: Any) -> list[Any]:
        h = lib.tanh(x @ w)
        total = (h * h).sum()
        first = differentiate([h, total], [h, w, x], [bar, None], create_graph=True)
        second = differentiate(sum((g * g).sum() for g in first[1:]), [x, w])
        return [*first, *second]

    ours = run(np, leaf(start), leaf(weight), grad, bar)
    t = [torch.tensor(value, requires_grad=True) for value in (start, weight)]
    theirs = run(torch, *t, torch.autograd.grad, torch.tensor(bar))
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), rtol=1e-12)

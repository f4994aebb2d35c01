"""Functions as layers on tensors, with batches: one step of the tape, beside PyTorch's tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl

RNG = np.random.default_rng(4)
W, B, X = RNG.normal(size=(3, 4)), RNG.normal(size=3), RNG.normal(size=(5, 4))
LAYER = dl.trace(lambda W, b, x: (np.tanh(W @ x + b), np.sum(x * x)), W, B, X[0])
KINDS: dict[str, Callable[[dl.Function], Any]] = {
    "function": lambda f: f,
    "compiled": dl.compile,
    "numpy": lambda f: dl.compile(f, target="numpy"),
    "python": lambda f: dl.compile(f, target="python"),
    "native": lambda f: dl.compile(f, target="native"),
}
each_kind = pytest.mark.parametrize("kind", ["function", "compiled", "numpy"])


def leaf(value: Any) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True)


@each_kind
def test_a_batch_is_one_step_and_shared_parameters_get_the_sum(kind: str) -> None:
    layer, tensors = KINDS[kind](LAYER), [leaf(W), leaf(B), leaf(X)]
    y, size = layer(*tensors)
    assert (y.shape, size.shape) == ((5, 3), (5,))
    assert [edge is None for edge, _ in y.grad_fn.next_functions[0][0].next_functions] == [
        False
    ] * 3
    assert y.detach().numpy() == pytest.approx(np.tanh(X @ W.T + B), rel=1e-14)
    (np.sum(y) + np.sum(size)).backward()
    slope = 1 - np.tanh(X @ W.T + B) ** 2
    assert tensors[0].grad.numpy() == pytest.approx(slope.T @ X, rel=1e-13)
    assert tensors[1].grad.numpy() == pytest.approx(slope.sum(0), rel=1e-13)
    assert tensors[2].grad.numpy() == pytest.approx(slope @ W + 2 * X, rel=1e-13)


@each_kind
def test_pytorch_agrees_in_both_orders(kind: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    layer, weights = KINDS[kind](LAYER), rng.normal(size=(5, 3))

    def run(lib: Any, y: Any, size: Any, tensors: Any, grad: Any, weights: Any) -> list[Any]:
        loss = (y * y * weights).sum() + (size * size).sum()
        first = grad(loss, tensors, create_graph=True)
        return [*first, *grad(sum((bar * bar).sum() for bar in first), tensors)]

    ours = [leaf(W), leaf(B), leaf(X)]
    found = run(np, *layer(*ours), ours, dl.eager.grad, weights)
    t = [torch.tensor(value, requires_grad=True) for value in (W, B, X)]
    y = torch.tanh(t[2] @ t[0].T + t[1])
    expected = run(torch, y, (t[2] ** 2).sum(1), t, torch.autograd.grad, torch.tensor(weights))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_formulas_of_scalars_take_batches_of_tensors(kind: str) -> None:
    if kind == "native":
        pytest.importorskip("llvmlite")
    layer = KINDS[kind](dl.parse("a*sin(x)^2"))
    a, x = leaf(2.0), leaf(np.linspace(0, 1, 40))
    np.sum(layer(a, x)).backward()
    x_values = np.linspace(0, 1, 40)
    assert a.grad.item() == pytest.approx(np.sum(np.sin(x_values) ** 2), rel=1e-12)
    assert x.grad.numpy() == pytest.approx(2 * np.sin(2 * x_values), rel=1e-12)


def test_a_compiled_layer_at_one_point() -> None:
    fast = dl.compile(dl.parse("x: [3]; sum(exp(x))"))
    x = leaf(B)
    y = fast(x)
    assert y.shape == ()
    y.backward()
    assert x.grad.numpy() == pytest.approx(np.exp(B), rel=1e-14)


def test_only_what_requires_grad_is_recorded() -> None:
    fast = dl.compile(LAYER)
    plain, _ = fast(dl.tensor(W), dl.tensor(B), dl.tensor(X))
    assert not plain.requires_grad
    b = leaf(B)
    y, _ = fast(W, b, X)
    np.sum(y).backward()
    assert b.grad.numpy() == pytest.approx((1 - np.tanh(X @ W.T + B) ** 2).sum(0), rel=1e-13)


def test_the_structure_of_the_results_is_kept() -> None:
    f = dl.value_and_grad(dl.parse("x^2*y"), argnums=(0, 1))
    x, y = leaf(3.0), leaf(5.0)
    value, (by_x, by_y) = dl.compile(f)(x, y)
    assert (value.item(), by_x.item(), by_y.item()) == (45.0, 30.0, 9.0)
    by_x.backward()
    assert (x.grad.item(), y.grad.item()) == (10.0, 6.0)


def test_a_loop_inside_a_function_is_differentiated_on_tensors() -> None:
    f = dl.trace(lambda x: dl.fori_loop(0, 5, lambda i, y: y * x, 1.0), 2.0)
    x = leaf(2.0)
    f(x).backward()
    assert x.grad.item() == 80.0


def test_compiled_functions_are_traced_as_the_function() -> None:
    fast = dl.compile(dl.parse("x^3"))
    assert float(dl.grad(lambda x: fast(x) * 2.0)(3.0)) == 54.0


def test_a_value_that_is_kept_stays_when_its_tensor_is_changed_in_place() -> None:
    gradients = []
    for factor in (1.0, 2.0):
        w = leaf(W)
        x = leaf(X) * 1.0
        y, _ = LAYER(w, B, x)
        x *= factor
        np.sum(y).backward()
        gradients.append(w.grad.numpy())
    assert np.array_equal(*gradients)

"""Tensors: what they are, what `backward` gives on worked examples, and what is refused."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.arrays import cross_entropy
from difflab.errors import DifflabError, InputError, ShapeError, TapeError
from difflab.primitives import TABLE


def leaf(value: Any) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True)


def gradients(result: dl.Tensor, *leaves: dl.Tensor) -> list[Any]:
    for each in leaves:
        each.zero_grad()
    result.backward()
    return [each.grad.numpy().tolist() for each in leaves]


def test_worked_examples() -> None:
    x, y = leaf(2.0), leaf(3.0)
    z = (x + y) * y
    assert (z.item(), gradients(z, x, y)) == (15.0, [3.0, 8.0])
    u = x + y
    z, w = u * y, u**2
    assert gradients(z + w, x, y) == [2 * 5.0 + 3.0, 2 * 5.0 + 3.0 + 5.0]
    b = x * y + y
    assert gradients(b**2, x, y) == [2 * 9.0 * 3.0, 2 * 3.0 * 9.0]
    u = leaf(1.5)
    assert gradients(u**2 * (3 * u), u) == [9 * 1.5**2]
    assert gradients((x + y) ** 2, x, y) == [10.0, 10.0]


def test_squared_error_of_a_linear_model() -> None:
    x, w, b, y = leaf(2.0), leaf(3.0), leaf(1.0), leaf(5.0)
    loss = (x * w + b - y) ** 2
    # e = 2·3 + 1 − 5 = 2; the derivatives are 2e times w, x, 1 and −1
    assert loss.item() == 4.0
    assert gradients(loss, x, w, b, y) == [12.0, 8.0, 4.0, -4.0]


def test_a_linear_layer_and_a_rectified_one() -> None:
    rng = np.random.default_rng(0)
    weight, x, b, t = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=4), np.ones(4)
    W, v, c = leaf(weight), leaf(x), leaf(b)
    error = weight @ x + b - t
    (0.5 * np.sum((W @ v + c - t) ** 2)).backward()
    assert np.allclose(W.grad, np.outer(error, x), rtol=1e-14)
    assert np.allclose(c.grad, error, rtol=1e-14)
    assert np.allclose(v.grad, weight.T @ error, rtol=1e-14)
    W.zero_grad()
    np.sum(np.maximum(W @ v + c, 0)).backward()
    alive = (weight @ x + b > 0) * 1.0
    assert 0 < alive.sum() < 4
    assert np.array_equal(W.grad, np.outer(alive, x))


def test_cross_entropy_at_huge_logits() -> None:
    logits = leaf([1000.0, -1000.0, 0.0])
    loss = cross_entropy(logits, 1)
    assert loss.item() == 2000.0
    assert gradients(loss, logits) == [[1.0, -1.0, 0.0]]


def test_a_loop_that_depends_on_the_data() -> None:
    x = leaf([3.0, 4.0])
    y, halvings = x, 0
    while np.sum(y * y) > 1:
        y, halvings = y / 2, halvings + 1
    assert halvings == 3
    np.sum(y).backward()
    assert x.grad.numpy().tolist() == [0.125, 0.125]


def test_gradients_accumulate_and_are_forgotten() -> None:
    x = leaf([1.0, 2.0])
    for _ in range(2):
        np.sum(x * x).backward()
    assert x.grad.numpy().tolist() == [4.0, 8.0]
    x.zero_grad()
    assert x.grad is None


def test_gradients_of_two_leaves_have_memory_of_their_own() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seed = np.array([1.0, 1.0])
    (x + y).backward(seed)
    x.grad *= 10
    seed[0] = 7.0
    assert y.grad.numpy().tolist() == [1.0, 1.0]


def test_derivatives_of_derivatives() -> None:
    x = leaf(1.5)
    expected = [4 * 1.5**3, 12 * 1.5**2, 24 * 1.5, 24.0]
    y = x**4
    for order, value in enumerate(expected):
        x.zero_grad()
        y.backward(create_graph=order < 3)
        y = x.grad
        assert y.item() == pytest.approx(value, rel=1e-15)


def test_second_derivatives_through_products_and_selections() -> None:
    rng = np.random.default_rng(1)
    start, matrix = rng.normal(size=3), rng.normal(size=(3, 3))
    x = leaf(start)
    (np.sum(np.exp(dl.tensor(matrix) @ x)) + np.sum(np.maximum(x, 0) ** 3)).backward(
        create_graph=True
    )
    gradient, rows = x.grad, []
    for k in range(3):
        x.zero_grad()
        gradient[k].backward(retain_graph=True)
        rows.append(x.grad.numpy())
    # Σ eᴬˣ has the Hessian Aᵀ diag(eᴬˣ) A
    hessian = matrix.T @ np.diag(np.exp(matrix @ start)) @ matrix
    hessian += np.diag(6 * np.maximum(start, 0))
    assert np.allclose(rows, hessian, rtol=1e-12)


def test_untaken_branches_contribute_exactly_zero() -> None:
    x = leaf([0.0, 4.0])
    with np.errstate(all="ignore"):
        y = np.sum(np.where(x > 0, np.sqrt(x) / x, 0) * np.array([2.0, 3.0]))
    assert gradients(y, x) == [[0.0, 3 * (-0.5) * 4.0**-1.5]]
    corner = leaf([0.0, 1.0])
    y = np.sum(np.where(corner > 0, np.sum(np.sqrt(corner)) * corner, 0))
    assert np.isfinite(y.item())


def test_leaves_and_steps() -> None:
    x = leaf([1.0, 2.0])
    constant = dl.tensor([1.0, 1.0])
    y = x * constant
    assert x.is_leaf
    assert constant.is_leaf
    assert not y.is_leaf
    assert (x.requires_grad, constant.requires_grad, y.requires_grad) == (True, False, True)
    assert x.grad_fn is None
    assert y.grad_fn.name == "multiply"
    z = np.exp(y) + x
    names = [edge and edge.name for edge, _ in z.grad_fn.next_functions]
    assert names == ["exp", "accumulate"]
    assert [edge for edge, _ in y.grad_fn.next_functions][1] is None
    assert repr(z).endswith("grad_fn=<step add>)")
    assert "requires_grad" in repr(x)
    assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((2,), 1, 2, np.float64, 2)
    assert not (x > 1).requires_grad
    assert dl.tensor([1, 2]).dtype == np.float64
    assert dl.tensor([1.0], dtype=np.float32).dtype == np.float32


def test_only_leaves_keep_gradients_unless_told() -> None:
    x = leaf(2.0)
    y = x * 3
    z = y * y
    y.retain_grad()
    z.backward()
    assert y.grad.item() == 12.0
    assert y.retains_grad
    with pytest.warns(UserWarning, match="retain_grad"):
        assert z.grad is None


def test_hooks_see_and_replace_gradients() -> None:
    x = leaf([1.0, 2.0])
    y = x * 3
    seen: list[Any] = []
    y.register_hook(lambda bar: seen.append(bar.numpy().tolist()))
    double = y.register_hook(lambda bar: bar * 2)
    total = x.register_hook(lambda bar: bar + 1)
    np.sum(y * y).backward(retain_graph=True)
    assert seen == [[6.0, 12.0]]
    assert x.grad.numpy().tolist() == [37.0, 73.0]
    double.remove()
    double.remove()
    total.remove()
    x.zero_grad()
    np.sum(y).backward()
    assert x.grad.numpy().tolist() == [3.0, 3.0]
    x.register_hook(lambda bar: np.zeros(3))
    with pytest.raises(ShapeError, match="hook"):
        np.sum(x).backward()


def test_recording_is_switched_and_restored() -> None:
    x = leaf(2.0)
    with dl.no_grad():
        assert not (x * x).requires_grad
        with dl.enable_grad():
            assert (x * x).requires_grad
        assert not (x * x).requires_grad

    @dl.no_grad()
    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert (x * x).requires_grad

    @dl.no_grad()
    def silent() -> bool:
        return (x * x).requires_grad

    assert silent() is False
    found: list[bool] = []
    with dl.no_grad():
        thread = threading.Thread(target=lambda: found.append((x * x).requires_grad))
        thread.start()
        thread.join()
    assert found == [True]


def test_detached_values_stop_derivatives() -> None:
    x = leaf(3.0)
    (x * x.detach()).backward()
    assert x.grad.item() == 3.0


def test_a_step_of_training() -> None:
    w = leaf([1.0, 2.0])
    np.sum(w * w).backward()
    with dl.no_grad():
        w -= 0.25 * w.grad
        w[0] = 9.0
    assert w.is_leaf
    assert w.requires_grad
    assert w.detach().numpy().tolist() == [9.0, 1.0]


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: (dl.tensor(1.0) * 2).backward(), "requires_grad=True"),
        (lambda: (leaf([1.0, 2.0]) * 2).backward(), "gradient="),
        (lambda: float(leaf(1.0)), "item()"),
        (lambda: int(leaf(1.0)), "item()"),
        (lambda: leaf(1.0).numpy(), "detach()"),
        (lambda: np.asarray(leaf([1.0])), "detach()"),
        (lambda: np.unique(leaf([1.0])), "detach()"),
        (lambda: np.frexp(leaf([1.0])), "detach()"),
        (lambda: dl.tensor(1.0).register_hook(print), "requires_grad=True"),
        (lambda: setattr(leaf(1.0) * 2, "requires_grad", False), "detach()"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(act: Any, says: str) -> None:
    with pytest.raises(DifflabError) as caught:
        act()
    assert says in str(caught.value)


def test_what_is_no_tensor() -> None:
    for data in ("text", [1.0, "a"], [[1.0], [1.0, 2.0]], 1j):
        with pytest.raises(InputError):
            dl.tensor(data)
    with pytest.raises(InputError, match="bool"):
        dl.tensor([True], requires_grad=True)
    x = leaf([1.0, 2.0])
    for act in (lambda: x + np.ones(3), lambda: np.sum(x).backward(np.ones(2)), lambda: x.item()):
        with pytest.raises(ShapeError):
            act()
    with pytest.raises(ShapeError):
        x.grad = dl.tensor([1.0])
    with pytest.raises(InputError):
        x + "a"
    with pytest.raises(ShapeError):
        bool(x)
    with pytest.raises(InputError, match="write a tensor"):
        np.add(x, 1, out=np.zeros(2))


def test_the_tape_is_freed_unless_it_is_kept() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(TapeError, match="retain_graph=True"):
        y.backward()
    assert x.grad.item() == 8.0
    assert y.grad_fn.next_functions == ()
    assert y.grad_fn.saved == ()


def test_only_what_the_rules_read_is_kept() -> None:
    x = leaf([1.0, 2.0])
    a, w = dl.tensor([3.0, 4.0]), leaf([[1.0, 2.0]])
    kept = {
        "add": (x + a, ()),
        "exp": (np.exp(x), (np.exp([1.0, 2.0]),)),
        "sin": (np.sin(x), ([1.0, 2.0],)),
        "multiply": (x * a, ([3.0, 4.0],)),
        "sum": (np.sum(x), ()),
        "matmul": (w @ a, ([3.0, 4.0],)),
        "maximum": (np.maximum(x, 0.5), ([1.0, 2.0], 0.5)),
    }
    for name, (result, expected) in kept.items():
        assert result.grad_fn.name == name
        saved = result.grad_fn.saved
        assert len(saved) == len(expected), name
        assert all(np.array_equal(s, e) for s, e in zip(saved, expected, strict=True)), name


def test_truth_values_count_as_in_a_graph() -> None:
    x = leaf([1.0, -1.0, 3.0])
    both = (x > 0) + (x > 2)
    assert both.numpy().tolist() == [1.0, 0.0, 2.0]
    assert np.sum(x * (x > 0)).item() == 4.0
    assert np.sum(-(x > 0)).item() == -2.0


def test_numpy_functions_without_a_row_take_plain_tensors() -> None:
    t = dl.tensor([3.0, 1.0])
    assert np.unique(t).tolist() == [1.0, 3.0]
    assert float(t[1]) == 1.0
    assert np.allclose(t, [3.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        t.numpy()[0] = 5.0


def test_zero_slopes_arrive_as_zeros() -> None:
    x = leaf([1.4, 2.6])
    assert gradients(np.sum(np.floor(x)), x) == [[0.0, 0.0]]


def test_warnings_are_not_raised_by_going_back() -> None:
    x = leaf(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.sqrt(x).backward()
    assert x.grad.item() == np.inf


def test_a_leaf_goes_backward_to_itself() -> None:
    x = leaf(2.0)
    x.backward()
    x.backward(3.0)
    assert x.grad.item() == 4.0


def test_narrower_numbers_stay_narrow() -> None:
    x = dl.tensor([1.0, 2.0], requires_grad=True, dtype=np.float32)
    y = np.sum(np.exp(x) * 2.0)
    y.backward()
    assert y.dtype == np.float32
    assert x.grad.dtype == np.float32
    assert np.allclose(x.grad, 2 * np.exp([1.0, 2.0]), rtol=1e-6)


def test_a_row_on_more_axes_than_it_was_built_for_is_an_error() -> None:
    x = dl.tensor(np.ones((2, 3)), requires_grad=True)
    with pytest.raises(ShapeError, match=r"sum was built for 1 axes.*\(2, 3\)"):
        TABLE["sum"](x, axes=(-1,), rank=1)
    assert TABLE["sum"](x, axes=(-1,), rank=2).shape == (2,)

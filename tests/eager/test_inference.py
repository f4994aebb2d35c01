"""`inference_mode`: what is made inside is never recorded, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, TapeError

V = np.array([0.3, -1.2, 0.7])


def leaf(value: Any) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True)


def made_inside(w: dl.Tensor) -> dl.Tensor:
    with dl.inference_mode():
        return np.sin(w)


def test_nothing_is_recorded_inside_also_not_under_enable_grad() -> None:
    w = leaf(V)
    with dl.inference_mode(), dl.enable_grad():
        y = np.sin(w) * 2.0
    assert not y.requires_grad
    assert (w * 2.0).requires_grad
    with dl.inference_mode(), dl.inference_mode(False):
        assert (w * 2.0).requires_grad


def test_it_is_a_decorator_and_is_left_after_an_error() -> None:
    w = leaf(V)

    @dl.inference_mode()
    def run(fail: bool) -> Any:
        if fail:
            raise ZeroDivisionError
        return w * w

    assert not run(False).requires_grad
    with pytest.raises(ZeroDivisionError):
        run(True)
    assert (w * w).requires_grad


def test_values_that_no_derivative_needs_may_be_used_outside() -> None:
    w = leaf(V)
    np.sum(w + made_inside(w)).backward()
    assert w.grad.numpy().tolist() == [1.0, 1.0, 1.0]


def test_values_that_a_derivative_needs_are_errors_outside() -> None:
    w = leaf(V)
    y = made_inside(w)
    with pytest.raises(TapeError, match="'multiply' needs a tensor of inference_mode") as caught:
        w * y
    assert "copy()" in str(caught.value)
    with pytest.raises(TapeError, match="inference_mode"):
        w * y[1:].reshape(2)[0]
    with pytest.raises(TapeError, match="inference_mode"):
        w * y.detach()
    with pytest.raises(TapeError, match="'checkpoint' needs"):
        dl.checkpoint(lambda a, b: a + b, w, y)
    with pytest.raises(TapeError, match="'checkpoint_chain' needs"):
        dl.checkpoint_chain(lambda k, s: s + w, y, 5, snapshots=2)
    with pytest.raises(TapeError, match="'requires_grad' needs"):
        y.requires_grad = True
    with pytest.raises(TapeError, match="in-place add"):
        y += w


def test_a_copy_is_an_ordinary_tensor() -> None:
    w = leaf(V)
    np.sum(w * made_inside(w).copy()).backward()
    assert w.grad.numpy() == pytest.approx(np.sin(V), rel=1e-15)


def test_a_tensor_created_inside_is_one_of_the_mode() -> None:
    with dl.inference_mode():
        t = dl.tensor(V)
    with pytest.raises(TapeError, match="inference_mode"):
        leaf(V) * t


def test_views_of_ordinary_tensors_and_changes_in_place_stay_ordinary() -> None:
    w, t = leaf(V), dl.tensor(V)
    with dl.inference_mode():
        part = t[1:]
        t *= 2.0
    np.sum(w * t).backward()
    assert w.grad.numpy().tolist() == (2 * V).tolist()
    assert (leaf(V[1:]) * part).requires_grad


def test_the_mode_is_true_or_false() -> None:
    with pytest.raises(InputError, match="mode of inference_mode"):
        dl.inference_mode(lambda x: x)


def test_pytorch_refuses_the_same() -> None:
    torch = pytest.importorskip("torch")
    cases = {
        "multiply": lambda w, y: w * y,
        "add": lambda w, y: w + y,
        "of a view": lambda w, y: w[1:] * y[1:],
        "of a detached one": lambda w, y: w * y.detach(),
        "two of them": lambda w, y: y * y,
    }
    w, t = leaf(V), torch.tensor(V, requires_grad=True)
    y = made_inside(w)
    with torch.inference_mode():
        z = torch.sin(t)

    def refused(run: Any, *args: Any) -> bool:
        try:
            run(*args)
        except (TapeError, RuntimeError):
            return True
        return False

    for name, run in cases.items():
        assert refused(run, w, y) == refused(run, t, z), name

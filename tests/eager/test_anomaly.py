"""`detect_anomaly`: the user's line behind a nan, in the value and in the gradient."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.eager.recording.tape import MODE, WATCHED
from difflab.errors import AnomalyError, TapeError

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def leaf(value: Any) -> dl.Tensor:
    return dl.tensor(value, requires_grad=True)


def test_names_the_line_of_a_value() -> None:
    h = leaf([8.0, -2.0])
    with dl.detect_anomaly():
        for step in range(5):
            h = np.log(h) if step == 3 else h * 0.5
        loss = np.sum(h)
        with pytest.raises(AnomalyError) as caught:
            loss.backward()
    assert "log(-0.25) is nan" in caught.value.message
    assert "element [1]" in caught.value.message
    assert "test_anomaly.py, line" in caught.value.message
    start, end = caught.value.span or (0, 0)
    assert (caught.value.text or "")[start:end] == "np.log(h)"


def test_names_the_line_of_the_forward_operation_of_a_gradient() -> None:
    x = leaf(0.0)
    with dl.detect_anomaly():
        root = np.sqrt(x)
        with pytest.raises(AnomalyError) as caught:
            (x * root).backward()
    assert "derivative of sqrt(0)" in caught.value.message
    assert caught.value.text == "root = np.sqrt(x)"
    assert x.grad is None


def test_untaken_branches_are_not_blamed() -> None:
    x = leaf([4.0, 0.0, -1.0])
    with dl.detect_anomaly():
        np.sum(np.where(x.detach() > 0, np.sqrt(x), 0.0)).backward()
    assert x.grad is not None
    assert x.grad.numpy().tolist() == [0.25, 0.0, 0.0]


def test_cancellation_is_a_warning() -> None:
    x = leaf(1e16)
    with dl.detect_anomaly():
        with pytest.warns(UserWarning, match="total cancellation, 1e16 - 1e16 = 0, exact 1"):
            ((x + 1.0) - x).backward()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y = x * 2.0
            (y - y + x).backward()


def test_gradients_are_those_without_it() -> None:
    def grads() -> list[Any]:
        W, b = leaf([[0.5, -0.2], [0.1, 0.3]]), leaf([0.1, -0.2])
        for _ in range(3):
            loss = np.mean((np.tanh(W @ np.array([1.0, 2.0]) + b) - 0.3) ** 2)
            loss.backward()
        return [W.grad.numpy().tolist(), b.grad.numpy().tolist()]

    plain = grads()
    with dl.detect_anomaly():
        assert grads() == plain


def test_notes_go_with_the_tape() -> None:
    x = leaf(2.0)
    with dl.detect_anomaly() as watch:
        y = x * x
        y.backward(retain_graph=True)
        assert len(watch.notes) == 1
        y.backward()
        assert not watch.notes
        with pytest.raises(TapeError, match="freed"):
            y.backward()
        with pytest.raises(TapeError, match="not computed under detect_anomaly"):
            watch.explain(y)


def test_a_second_loss_over_a_freed_part_is_backwards_own_error() -> None:
    x = leaf(2.0)
    with dl.detect_anomaly():
        shared = x * x
        first, second = shared * 2.0, shared * 3.0
        first.backward()
        with pytest.raises(TapeError, match="freed"):
            second.backward()


def test_what_was_before_returns_after_an_error() -> None:
    def inside() -> None:
        with dl.detect_anomaly():
            pass
        assert MODE.watch is not None
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dl.detect_anomaly()(inside)()
    assert MODE.watch is None
    assert not WATCHED


def test_only_the_thread_that_asked_is_watched() -> None:
    seen: list[Any] = []

    def other() -> None:
        x = leaf(0.0)
        np.sqrt(x).backward()
        seen.append(x.grad.numpy().tolist())

    with dl.detect_anomaly():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [np.inf]


def test_as_a_decorator() -> None:
    @dl.detect_anomaly()
    def step(x: dl.Tensor) -> None:
        np.log(x).backward()

    with pytest.raises(AnomalyError, match=r"log\(0\) is -inf"):
        step(leaf(0.0))


def test_leaves_without_a_gradient() -> None:
    # W x = (14, -6): unit 1 is dead, and u is not used.
    W, b, u = leaf([[1.0, 2.0, 3.0], [-1.0, -1.0, -1.0]]), leaf([0.0, 0.0]), leaf(1.0)
    with dl.detect_anomaly() as watch:
        z = W @ np.array([1.0, 2.0, 3.0]) + b
        loss = np.sum(np.maximum(z, 0.0))
        found = watch.explain(loss, {"W": W, "b": b, "u": u})
    assert found.ok
    assert [(flat.name, flat.path, flat.count, flat.element) for flat in found.flat] == [
        ("W", True, 3, (1, 0)),
        ("b", True, 1, (1,)),
        ("u", False, 1, ()),
    ]
    (block,) = found.flat[1].blocks
    assert (block.call, block.site.text) == (
        "max(-6, 0)",
        "loss = np.sum(np.maximum(z, 0.0))",
    )
    loss.backward()
    assert u.grad is None
    assert b.grad.numpy().tolist() == [1.0, 0.0]


def test_checkpoints_are_looked_into() -> None:
    w, x = leaf(2.0), leaf(-1.0)
    with dl.detect_anomaly() as watch:
        y = dl.checkpoint(lambda t: t * w, x)
        loss = np.maximum(y, 0.0)
        found = watch.explain(loss, {"w": w, "x": x})
        loss.backward()
    assert {flat.name for flat in found.flat} == {"w", "x"}
    assert w.grad is not None
    for wrapped in (
        lambda t: dl.checkpoint(np.sqrt, t) * 2.0,
        lambda t: dl.checkpoint_chain(lambda k, s: np.sqrt(s), t, 5, snapshots=2),
        lambda t: dl.checkpoint(lambda s: s * 2.0, np.sqrt(t)),
    ):
        with (
            dl.detect_anomaly(),
            pytest.raises(AnomalyError, match=r"derivative of sqrt\(0\).*test_anomaly.py, line"),
        ):
            wrapped(leaf(0.0)).backward()


class Doubled(dl.CustomFunction):
    """2x, whose backward is as good as what it is called with."""

    @staticmethod
    def forward(ctx: Any, x: Any, slope: float) -> Any:
        ctx.slope = slope
        return np.log(x) if slope == 0 else 2.0 * x

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        return ctx.slope * y_bar, None


def test_a_custom_function_is_one_operation() -> None:
    def blamed(loss: Any) -> str:
        with dl.detect_anomaly(), pytest.raises(AnomalyError) as caught:
            loss().backward()
        assert caught.value.text is not None
        return caught.value.message

    assert "the backward of Doubled made a nan" in blamed(
        lambda: Doubled.apply(leaf(1.0), np.inf) * 3.0
    )
    assert "the backward of Doubled" in blamed(lambda: Doubled.apply(leaf(1.0), np.nan))
    assert "result of Doubled" in blamed(lambda: Doubled.apply(leaf(-1.0), 0.0) * 3.0)
    before = blamed(lambda: Doubled.apply(np.sqrt(leaf(0.0)), 2.0) * 3.0)
    assert "derivative of sqrt(0)" in before
    inner = blamed(lambda: Doubled.apply(Doubled.apply(leaf(1.0), np.inf), 2.0))
    assert "the backward of Doubled made" in inner
    x = leaf(1.5)
    with dl.detect_anomaly():
        Doubled.apply(np.sin(x), 2.0).backward()
    assert x.grad.item() == 2.0 * np.cos(1.5)

"""Custom functions on tensors, among them Swish against PyTorch."""

import math

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, TapeError, UnsupportedError


class Swish(dl.CustomFunction):
    """x·σ(x), with the derivative by hand; saves an argument and what it computes inside."""

    @staticmethod
    def forward(ctx, x):
        s = 1 / (1 + np.exp(-x))
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, y_bar):
        x, s = ctx.saved_tensors
        return y_bar * s * (1 + x * (1 - s))


class Exp(dl.CustomFunction):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y_bar * y


class Parts(dl.CustomFunction):
    """Two outputs of two arguments and a setting."""

    @staticmethod
    def forward(ctx, a, b, by):
        ctx.by = by
        ctx.save_for_backward(a, b)
        return a * b * by, np.sum(a)

    @staticmethod
    def backward(ctx, y_bar, s_bar):
        a, b = ctx.saved_tensors
        return y_bar * b * ctx.by + s_bar, y_bar * a * ctx.by, None


def leaf(value):
    return dl.tensor(value, requires_grad=True)


X = np.array([-20.0, -1.5, 0.0, 0.7, 3.0, 30.0])


def test_swish_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    mine, theirs = leaf(X), torch.tensor(X, requires_grad=True)
    value, silu = Swish.apply(mine), torch.nn.functional.silu(theirs)
    np.sum(value**2).backward()
    (silu**2).sum().backward()
    assert value.detach().numpy() == pytest.approx(silu.detach().numpy(), rel=1e-14)
    assert mine.grad.numpy() == pytest.approx(theirs.grad.numpy(), rel=1e-14)


def test_swish_has_the_derivatives_of_its_values():
    for x in X:
        with mpmath.workdps(50):
            first, second, third = (
                float(mpmath.diff(lambda t: t / (1 + mpmath.exp(-t)), x, order))
                for order in (1, 2, 3)
            )
        t = leaf(x)
        Swish.apply(t).backward(create_graph=True)
        slope, t.grad = t.grad, None
        assert slope.item() == pytest.approx(first, rel=1e-13)
        slope.backward(create_graph=True)
        bend, t.grad = t.grad, None
        assert bend.item() == pytest.approx(second, rel=1e-12)
        bend.backward()
        assert t.grad.item() == pytest.approx(third, rel=1e-10)


def test_the_step_and_its_result():
    x = leaf(X)
    y = Swish.apply(x)
    assert y.grad_fn.name == "Swish"
    assert isinstance(y, dl.Tensor)
    assert not y.is_leaf
    with dl.no_grad():
        assert not Swish.apply(x).requires_grad
    assert not Swish.apply(dl.tensor(X)).requires_grad


def test_it_meets_other_operations():
    x, plain = leaf(X[1:4]), leaf(X[1:4])
    np.sum(np.sin(Swish.apply(x * 2.0)) * x).backward()
    s = 1 / (1 + np.exp(-(plain * 2.0)))
    np.sum(np.sin(plain * 2.0 * s) * plain).backward()
    assert x.grad.numpy() == pytest.approx(plain.grad.numpy(), rel=1e-14)


@pytest.mark.parametrize("used", ["first", "second", "both"])
def test_several_outputs_of_which_some_are_used(used):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    y, s = Parts.apply(a, b, 10.0)
    total = {"first": np.sum(y * y), "second": s * s, "both": np.sum(y * s)}[used]
    total.backward()
    expected = {
        "first": ([2 * 30 * 30, 2 * 100 * 50], [2 * 30 * 10, 2 * 100 * 20]),
        "second": ([6, 6], [0, 0]),
        "both": ([30 * 3 + 130, 50 * 3 + 130], [30, 60]),
    }[used]
    assert a.grad.numpy().tolist() == expected[0]
    assert b.grad.numpy().tolist() == expected[1]


def test_second_derivatives_through_a_saved_output():
    x = leaf(0.5)
    y = Exp.apply(x)
    (y * y).backward(create_graph=True)
    slope, x.grad = x.grad, None
    assert slope.item() == pytest.approx(2 * math.e, rel=1e-15)
    slope.backward()
    assert x.grad.item() == pytest.approx(4 * math.e, rel=1e-15)


def test_second_derivatives_where_the_saved_output_is_not_used():
    class Pair(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            y = np.exp(x)
            ctx.save_for_backward(y)
            return y, 2.0 * x

        @staticmethod
        def backward(ctx, y_bar, z_bar):
            return y_bar * ctx.saved_tensors[0] + 2.0 * z_bar * ctx.saved_tensors[0] ** 0

    x = leaf(0.5)
    _, z = Pair.apply(x)
    (z * z).backward(create_graph=True)
    slope, x.grad = x.grad, None
    slope.backward()
    assert x.grad.item() == pytest.approx(8.0)


def test_a_saved_output_goes_on_through_the_rule_of_its_own_when_forward_is_run_again():
    class Step(dl.CustomFunction):
        """Passes its output on as its slope; saves what it computes inside, too."""

        @staticmethod
        def forward(ctx, x):
            y, inside = np.floor(x), 2.0 * x
            ctx.save_for_backward(y, inside)
            return y

        @staticmethod
        def backward(ctx, y_bar):
            y, inside = ctx.saved_tensors
            return y_bar * y * inside

    x = leaf(2.5)
    Step.apply(x).backward(create_graph=True)
    slope, x.grad = x.grad, None
    assert slope.item() == 10.0  # y · 2x
    slope.backward()
    assert x.grad.item() == 54.0  # ẏ · 2x + 2y, where ẏ is the slope again, not that of floor


def test_second_derivatives_with_several_arguments():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    y, s = Parts.apply(a, b, 10.0)
    np.sum(y * s).backward(create_graph=True)
    slope, a.grad, b.grad = b.grad, None, None
    np.sum(slope * dl.tensor([1.0, -1.0])).backward()
    # ∂/∂b of Σ 10 a b (a₁ + a₂) is 10 a (a₁ + a₂).
    assert a.grad.numpy() == pytest.approx([10 * 3 + 10 * (1 - 2), -10 * 3 + 10 * (1 - 2)])
    assert b.grad is None or b.grad.numpy().tolist() == [0.0, 0.0]


def test_gradients_of_what_cannot_be_recorded_again_say_what_to_do():
    class Opaque(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            slope = np.array(math.cos(float(x)))
            ctx.save_for_backward(slope)
            return np.array(math.sin(float(x)))

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar * ctx.saved_tensors[0]

    x = leaf(0.5)
    y = Opaque.apply(x)
    y.backward(retain_graph=True)
    assert x.grad.item() == math.cos(0.5)
    with pytest.raises(UnsupportedError, match=r"Opaque.forward saves what it computes inside"):
        y.backward(create_graph=True)


def test_memory_is_let_go_and_errors_say_so():
    x = leaf(X)
    y = np.sum(Swish.apply(x))
    y.backward()
    with pytest.raises(TapeError, match="retain_graph"):
        y.backward()


def test_what_is_saved_stays_when_its_tensor_is_changed_in_place():
    x, plain = leaf(X), leaf(X)
    h = x * 1.0
    y = np.sum(Swish.apply(h))
    h += 1.0
    y.backward()
    np.sum(Swish.apply(plain)).backward()
    assert np.array_equal(x.grad.numpy(), plain.grad.numpy())
    x = leaf(X)
    out = Exp.apply(x * 1.0)
    out *= 2.0
    np.sum(out).backward()
    assert np.allclose(x.grad.numpy(), 2 * np.exp(X), rtol=1e-14)


def test_gradients_do_not_share_memory_with_what_is_kept():
    class Linear(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            slope = np.arange(3.0)
            ctx.save_for_backward(slope)
            return x * slope

        @staticmethod
        def backward(ctx, y_bar):
            return ctx.saved_tensors[0]

    x = leaf(np.ones(3))
    y = np.sum(Linear.apply(x))
    y.backward(retain_graph=True)
    with dl.no_grad():
        x.grad *= 100.0
    x.zero_grad()
    y.backward()
    assert x.grad.numpy().tolist() == [0.0, 1.0, 2.0]


def test_a_detached_argument_with_the_same_number_is_another_argument():
    x = leaf(3.0)
    h = x * 1.0
    y, _ = Parts.apply(h.detach(), h, 1.0)
    y.backward(create_graph=True)
    slope, x.grad = x.grad, None
    assert slope.item() == 3.0
    # The slope is the detached argument, which does not depend on x.
    (slope * x).backward()
    assert x.grad.item() == 3.0


def test_a_branch_that_is_not_taken_contributes_zero():
    class Root(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):
            y = np.sqrt(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar / (2 * ctx.saved_tensors[0])

    for value, slope in ((0.0, 0.0), (4.0, 0.25)):
        for argument in (lambda x: x, lambda x: x * 1.0):
            x = leaf(value)
            np.where(x > 0, Root.apply(argument(x)), 0.0).backward()
            assert x.grad.item() == slope


def test_inside_of_a_checkpoint():
    x, w = leaf(X[1:4]), leaf(0.5)
    np.sum(dl.checkpoint(lambda x: Swish.apply(x * w), x)).backward()
    plain, v = leaf(X[1:4]), leaf(0.5)
    np.sum(Swish.apply(plain * v)).backward()
    assert x.grad.numpy().tolist() == plain.grad.numpy().tolist()
    assert w.grad.item() == v.grad.item()
    w.zero_grad()
    alone = dl.checkpoint(lambda x: Swish.apply(w) * x, dl.tensor(1.0))
    alone.backward()
    assert w.grad is not None


def test_settings_are_not_differentiated_by_and_tensors_inside_are_refused():
    x = leaf([1.0])
    with pytest.raises(InputError, match="argument 3 of Parts contains traced values or tensors"):
        Parts.apply(x, x, [x])


def test_a_forward_rule_alone_says_so_in_backward():
    class Twice(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: 2 * x)
        jvp = staticmethod(lambda ctx, x_dot: 2 * x_dot)

    with pytest.raises(UnsupportedError, match="Twice has no reverse rule"):
        Twice.apply(leaf(1.0)).backward()


def test_wrong_numbers_of_cotangents_are_named():
    class Bad(Parts):
        backward = staticmethod(lambda ctx, y_bar, s_bar: (y_bar, y_bar))

    with pytest.raises(
        InputError, match=r"Bad.backward returned 2 cotangents, and forward takes 3"
    ):
        np.sum(Bad.apply(leaf([1.0]), leaf([1.0]), 2.0)[0]).backward()


def test_the_context_says_which_gradients_are_wanted():
    wanted = []

    class Asked(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x, y, by):
            wanted.append(ctx.needs_input_grad)
            return x * y * by

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar, z_bar, None

    Asked.apply(leaf(1.0), dl.tensor(2.0), 3)
    assert wanted == [(True, False, False)]


class Square(dl.CustomFunction):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2.0 * x * y_bar


def test_a_gradient_that_no_branch_takes_is_recorded_as_zero() -> None:
    x = dl.tensor([-1.0, -2.0], requires_grad=True)
    np.sum(np.where(x > 0, Square.apply(x * 3.0), 0.0)).backward(create_graph=True)
    assert x.grad.detach().numpy().tolist() == [0.0, 0.0]

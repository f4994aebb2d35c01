"""`checkpoint` and `checkpoint_chain`: the plain gradients bit for bit, for less memory."""

import weakref
from math import isqrt
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.eager.chains import forward_steps
from difflab.eager.recording.tape import MODE, TapeStep
from difflab.errors import InputError, TapeError
from difflab.testing import check_gradient


def leaf(value):
    return dl.tensor(value, requires_grad=True)


def same(first, second):
    """Equal to the last bit, the sign of zero included."""
    assert first is not None
    assert second is not None
    assert first.numpy().tobytes() == second.numpy().tobytes()


def through_both(build, *values):
    """Return the gradients of `build` with plain calls and with checkpoints."""
    found = []
    for call in (lambda f, *args, **kwargs: f(*args, **kwargs), dl.checkpoint):
        leaves = [leaf(value) for value in values]
        build(call, *leaves).backward()
        found.append([x.grad for x in leaves])
    return found


def agree(build, *values):
    plain, checked = through_both(build, *values)
    for first, second in zip(plain, checked, strict=True):
        same(first, second)


rng = np.random.default_rng(0)
X, W, V = rng.normal(size=(5, 4)), rng.normal(size=(4, 4)), rng.normal(size=4)


def test_nothing_is_recorded_inside_and_the_step_is_named():
    x = leaf(X)
    inside = []

    def block(x):
        y = np.sin(x)
        inside.append(y.grad_fn)
        return np.exp(y)

    y = dl.checkpoint(block, x)
    assert inside == [None]
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn.name == "checkpoint"
    y.sum().backward()
    assert isinstance(inside[1], TapeStep)
    assert len(inside) == 2


def test_gradients_are_the_plain_ones_bit_for_bit():
    agree(lambda call, x, w: call(lambda a: np.sum(np.tanh(a @ w) @ w), x), X, W)


def test_parameters_that_are_used_inside_and_outside_add_up_in_the_plain_order():
    def build(call, x, w, v):
        h = np.tanh(x @ w + v)
        for _ in range(3):
            h = call(lambda h: np.tanh(h @ w + v) * v, h) + v
        return np.sum(h * np.exp(x @ w))

    agree(build, X, W, V)


def test_several_outputs_in_a_tree_that_meet_again_outside():
    def block(pair, scale):
        a, b = pair["a"], pair["b"]
        s = np.sin(a) * scale
        return {"s": s, "rest": [s * b, (a, None)], "n": 3}

    def build(call, a, b):
        out = call(block, {"a": a, "b": b}, scale=2.0)
        assert out["n"] == 3
        assert out["rest"][1][1] is None
        return np.sum(out["s"] * out["rest"][0] + out["rest"][1][0] * out["s"])

    agree(build, X, X[::-1].copy())


def test_an_output_that_is_not_used_contributes_nothing():
    agree(lambda call, x: np.sum(call(lambda x: (np.sin(x), np.exp(x)), x)[0]), X)


def test_one_result_under_two_names():
    def block(x):
        y = np.sin(x)
        return y, y

    def build(call, x):
        first, second = call(block, x)
        return np.sum(first * np.exp(second) + second)

    agree(build, X)


def test_broadcasts_parts_of_arrays_and_branches():
    def block(x, v):
        picked = np.where(x > 0, np.sqrt(np.abs(x)), 0.0) + v
        return picked[0] * picked[1], np.maximum(picked, 0.0).sum(axis=0)

    def build(call, x, v):
        first, second = call(block, x, v)
        return np.sum(first[1:] * second[:-1]) + np.sum(np.where(x[0] > 0, first, second))

    agree(build, X - X[0, 0], V)


def test_checkpoints_nest_deeper_than_python_recurses_and_run_inside_once_more():
    runs = []

    def inner(x):
        runs.append("inner")
        return np.sin(x)

    def outer(x):
        runs.append("outer")
        return np.exp(dl.checkpoint(inner, x))

    x, plain = leaf(V), leaf(V)
    np.sum(dl.checkpoint(outer, x)).backward()
    np.sum(np.exp(np.sin(plain))).backward()
    same(x.grad, plain.grad)
    # Forward; again by the outer one, whose inner checkpoint is then itself run again.
    assert runs == ["outer", "inner", "outer", "inner", "inner"]


def test_a_long_row_of_checkpoints_needs_no_recursion():
    def build(call, x):
        for _ in range(3000):
            x = call(lambda x: x * 1.0001, x)
        return x

    agree(build, 1.5)


def test_second_derivatives_go_through_the_second_run():
    found = []
    for call in (lambda f, *args: f(*args), dl.checkpoint):
        x, w = leaf(0.7), leaf(1.3)
        y = call(lambda x, w: np.sin(w * x) * x, x, w) * x
        y.backward(create_graph=True)
        slope, x.grad, w.grad = x.grad, None, None
        slope.backward()
        found.append((x.grad, w.grad))
    (xx, xw), (xx_again, xw_again) = found
    # y = x² sin(wx), by hand.
    s, c = np.sin(0.7 * 1.3), np.cos(0.7 * 1.3)
    assert xx_again.item() == pytest.approx(2 * s + 4 * 1.3 * 0.7 * c - (1.3 * 0.7) ** 2 * s)
    assert xw_again.item() == pytest.approx(3 * 0.49 * c - 1.3 * 0.343 * s)
    # Steps that are recorded late come earlier in the next sweep: sums have another order.
    assert xx_again.item() == pytest.approx(xx.item(), rel=1e-14)
    assert xw_again.item() == pytest.approx(xw.item(), rel=1e-14)


def test_going_back_twice_needs_retain_graph():
    x = leaf(V)
    y = np.sum(dl.checkpoint(np.sin, x))
    y.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    y.backward()
    assert np.array_equal(x.grad.numpy(), 2 * once)
    with pytest.raises(TapeError, match="retain_graph"):
        y.backward()


def test_what_needs_no_gradient_is_left_alone():
    plain = dl.tensor(V)
    assert not dl.checkpoint(np.sin, plain).requires_grad
    x = leaf(V)
    with dl.no_grad():
        assert not dl.checkpoint(np.sin, x).requires_grad
    assert dl.checkpoint(lambda x: x, x) is x
    assert not dl.checkpoint(lambda x: x > 0, x).requires_grad
    assert dl.checkpoint(lambda x, k: k + 1, x, 2) == 3


def test_parameters_alone_are_enough():
    w = leaf(W)
    y = dl.checkpoint(lambda x: np.sum(x @ w), dl.tensor(X))
    y.backward()
    assert np.allclose(w.grad.numpy(), X.sum(axis=0)[:, None] * np.ones((4, 4)), rtol=1e-15)


def test_a_parameter_used_inside_of_a_nested_checkpoint_only():
    w = leaf(W)

    def inner(x):
        return x @ w

    y = dl.checkpoint(lambda x: np.sum(dl.checkpoint(inner, x)), dl.tensor(X))
    y.backward()
    assert w.grad is not None


def test_arrays_among_the_arguments_are_taken_as_they_are():
    x, scale = leaf(V), V.copy()
    y = np.sum(dl.checkpoint(lambda x, s: np.sin(x) * s, x, scale))
    scale[:] = 0.0
    y.backward()
    assert np.allclose(x.grad.numpy(), np.cos(V) * V, rtol=1e-15)


def test_hooks_and_errors_inside_leave_recording_on():
    x = leaf(V)
    seen = []
    y = dl.checkpoint(np.sin, x)
    y.register_hook(lambda bar: seen.append(bar.shape))
    np.sum(y).backward()
    assert seen == [(4,)]
    with pytest.raises(ZeroDivisionError):
        dl.checkpoint(lambda x: 1 / 0, x)
    assert (x * x).requires_grad


def test_randomness_inside_is_noticed():
    draw = np.random.default_rng(1)
    x = leaf(V)
    y = np.sum(dl.checkpoint(lambda x: x * draw.normal(size=4), x))
    with pytest.raises(TapeError, match="different result when it was run again"):
        y.backward()


def test_results_that_are_not_finite_are_no_other_results():
    with np.errstate(all="ignore"):
        agree(lambda call, x: np.sum(call(np.log, x)), np.array([-1.0, 0.0, 2.0]))


def test_the_function_changes_a_copy_of_its_argument():
    x = leaf(V)
    h = x * 1.0

    def grow(h):
        h *= 3.0
        return h, h * h

    first, second = dl.checkpoint(grow, h)
    assert np.array_equal(h.detach().numpy(), V)
    assert np.array_equal(first.detach().numpy(), 3 * V)
    np.sum(first + second).backward()
    assert np.allclose(x.grad.numpy(), 3 + 18 * V, rtol=1e-14)
    with pytest.raises(TapeError, match="changes a leaf that requires grad, by in-place multiply"):
        dl.checkpoint(grow, x)
    array = V.copy()
    dl.checkpoint(lambda a, x: np.sum(grow(a)[0] * x), array, x)
    assert np.array_equal(array, V)


def test_an_argument_that_is_changed_afterwards_is_kept():
    x = leaf(V)
    h = x * 1.0
    y = np.sum(dl.checkpoint(np.sin, h))
    h *= 2.0
    y.backward()
    assert np.allclose(x.grad.numpy(), np.cos(V), rtol=1e-14)


def test_a_backward_that_was_broken_off_leaves_nothing_behind():
    x = leaf(V)
    first, second = dl.checkpoint(lambda x: (np.sin(x), np.exp(x)), x)
    y = np.sum(first * second)

    def fail(bar):
        raise ZeroDivisionError

    hook = first.register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=True)
    hook.remove()
    np.sum(first).backward(retain_graph=True)
    assert np.array_equal(x.grad.numpy(), np.cos(V))  # and nothing that waited for `second`
    x.zero_grad()
    y.backward()
    plain = leaf(V)
    np.sum(np.sin(plain) * np.exp(plain)).backward()
    same(x.grad, plain.grad)


# Chains.


def logistic(r):
    return lambda k, x: r * x * (1.0 - x)


def mixing(w):
    return lambda k, x: np.tanh(x @ w) + x * (k * 0.01) + w[0] * x[0]


class Counted:
    """A step that counts its runs, and the states that are alive while it runs."""

    def __init__(self, step):
        self.step, self.runs, self.most = step, 0, 0
        self.states = weakref.WeakValueDictionary()

    def __call__(self, k, state):
        self.runs += 1
        result = self.step(k, state)
        self.states[self.runs] = result._data
        self.most = max(self.most, len(self.states))
        return result


def plain_chain(step, state, steps):
    for k in range(steps):
        state = step(k, state)
    return state


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10, 57])
@pytest.mark.parametrize("snapshots", [1, 2, 3, 10, "sqrt"])
def test_a_chain_has_the_gradients_of_the_loop_bit_for_bit(steps, snapshots):
    found = []
    for run in (plain_chain, lambda *a: dl.checkpoint_chain(*a, snapshots=snapshots)):
        x, w = leaf(V / 4), leaf(W / 4)
        y = run(mixing(w), x, steps)
        np.sum(y * y).backward()
        found.append((x.grad, w.grad))
    same(found[0][0], found[1][0])
    if steps:
        same(found[0][1], found[1][1])


@pytest.mark.parametrize(("steps", "snapshots"), [(2, 1), (10, 3), (40, 1), (57, 4), (100, 10)])
def test_a_chain_runs_the_steps_of_the_schedule_and_keeps_as_many_states(steps, snapshots):
    r, x = leaf(3.7), leaf(np.full(50, 0.4))
    step = Counted(logistic(r))
    np.sum(dl.checkpoint_chain(step, x, steps, snapshots)).backward()
    assert step.runs == forward_steps(steps, snapshots) + steps
    # Beside the snapshots (of which the first is x): the state that a step takes, and its result.
    assert step.most <= snapshots - 1 + 2


def test_the_account_of_the_tape_counts_the_snapshots():
    x = leaf(np.full(1000, 0.4))
    y = np.sum(dl.checkpoint_chain(lambda k, x: np.sin(x), x, 40, snapshots=5))
    # Four states beside the initial one, and the input of the last step, which is recorded.
    assert dl.memory(y).total == pytest.approx(8000 * (4 + 1 + 1), abs=100)
    assert dl.memory(np.sum(dl.checkpoint(np.sin, x * 1.0))).total == pytest.approx(8000, abs=100)


def test_segments_run_every_step_twice_at_most():
    steps = 100
    x = leaf(np.full(50, 0.4))
    step = Counted(lambda k, x: 3.7 * x * (1.0 - x))
    y = dl.checkpoint_chain(step, x, steps)
    assert len(step.states) <= 2 * isqrt(steps) + 2
    np.sum(y).backward()
    assert step.runs == 2 * steps - isqrt(steps)
    # A recorded step keeps two of the products' factors, one of which is a state.
    assert step.most <= 3 * isqrt(steps)


def test_trees_as_states_with_parts_that_carry_no_gradient():
    def step(k, state):
        x, (v, extra) = state["x"], state["rest"]
        return {"x": x + 0.1 * v, "rest": (v - 0.1 * np.sin(x), extra + 1)}

    found = []
    for run in (plain_chain, lambda *a: dl.checkpoint_chain(*a, snapshots=3)):
        x, v = leaf(V), leaf(V[::-1].copy())
        end = run(step, {"x": x, "rest": (v, 0)}, 20)
        assert end["rest"][1] == 20
        np.sum(end["x"]).backward()
        found.append((x.grad, v.grad))
    for first, second in zip(*found, strict=True):
        same(first, second)


def test_a_chain_whose_parameters_alone_require_grad():
    found = []
    for run in (plain_chain, lambda *a: dl.checkpoint_chain(*a, snapshots=2)):
        r = leaf(2.9)
        run(logistic(r), dl.tensor(0.4), 12).backward()
        found.append(r.grad)
    same(*found)


def test_a_chain_of_which_one_step_alone_uses_a_parameter():
    r = leaf(2.9)
    step = logistic(r)
    state = dl.tensor(0.4)
    y = dl.checkpoint_chain(lambda k, x: step(k, x) if k == 0 else 2.0 * x, state, 9, snapshots=3)
    y.backward()
    assert r.grad.item() == pytest.approx(2.0**8 * 0.24, rel=1e-15)


def test_a_chain_without_gradients_is_the_loop():
    x = dl.tensor(0.4)
    y = dl.checkpoint_chain(logistic(3.0), x, 10, snapshots=2)
    assert not y.requires_grad
    assert y.item() == plain_chain(logistic(3.0), x, 10).item()
    with dl.no_grad():
        assert not dl.checkpoint_chain(logistic(3.0), leaf(0.4), 10).requires_grad


@pytest.mark.parametrize("snapshots", [3, "sqrt"])
def test_second_derivatives_of_a_chain(snapshots):
    found = []
    for run in (plain_chain, lambda *a: dl.checkpoint_chain(*a, snapshots=snapshots)):
        r, x = leaf(2.7), leaf(0.4)
        run(logistic(r), x, 9).backward(create_graph=True)
        slope, r.grad, x.grad = r.grad, None, None
        slope.backward()
        found.append((r.grad.item(), x.grad.item()))
    assert found[1] == pytest.approx(found[0], rel=1e-13)


def test_second_derivatives_of_a_chain_run_its_steps_a_few_times():
    r, x = leaf(2.5), leaf([0.4])
    step, steps = Counted(logistic(r)), 100
    np.sum(dl.checkpoint_chain(step, x, steps, snapshots=2)).backward(create_graph=True)
    slope, r.grad, x.grad = r.grad, None, None
    first = step.runs
    slope.backward()
    # The forward run, and once more all but its last step, which was recorded then.
    assert first == 2 * steps - 1
    # The plain sweep through it is by the schedule again.
    assert step.runs - first <= forward_steps(steps, 2) + steps


def test_a_chain_can_be_gone_back_through_twice():
    r, x = leaf(2.7), leaf(0.4)
    y = dl.checkpoint_chain(logistic(r), x, 30, snapshots=3)
    y.backward(retain_graph=True)
    once = r.grad.item()
    y.backward()
    assert r.grad.item() == 2 * once
    with pytest.raises(TapeError, match="retain_graph"):
        y.backward()


def test_steps_that_change_their_state_leave_the_snapshots_alone():
    def step(k, x):
        x *= 1.01
        return np.sin(x)

    found = []
    for run in (plain_chain, lambda *a: dl.checkpoint_chain(*a, snapshots=2)):
        x = leaf(V)
        np.sum(run(step, x * 1.0, 10)).backward()
        found.append(x.grad)
    same(*found)


def test_an_initial_state_that_is_changed_afterwards_is_kept():
    x = leaf(V)
    start = x * 1.0
    y = np.sum(dl.checkpoint_chain(lambda k, x: np.sin(x), start, 10, snapshots=2))
    start *= 2.0
    y.backward()
    plain = leaf(V)
    z = plain
    for _ in range(10):
        z = np.sin(z)
    np.sum(z).backward()
    assert np.array_equal(x.grad.numpy(), plain.grad.numpy())


def test_a_hundred_thousand_steps():
    x, steps, runs = leaf(2.0), 100_000, 0

    def step(k, x):
        nonlocal runs
        runs += 1
        return x * 1.00001

    dl.checkpoint_chain(step, x, steps, snapshots=1000).backward()
    assert x.grad.item() == pytest.approx(1.00001**steps, rel=1e-10)
    assert runs == forward_steps(steps, 1000) + steps < 3 * steps


@pytest.mark.parametrize(
    ("steps", "snapshots"), [(-1, 2), (2.5, 2), (5, 0), (5, 1.5), (5, "all"), (5, None)]
)
def test_bad_numbers_are_refused(steps, snapshots):
    with pytest.raises(InputError, match=r"a chain has a whole number|snapshots is"):
        dl.checkpoint_chain(logistic(2.0), leaf(0.4), steps, snapshots)


def test_a_state_that_changes_its_structure_is_refused():
    with pytest.raises(TapeError, match=r"step 0 of the chain returns the structure \(\*, \*\)"):
        dl.checkpoint_chain(lambda k, x: (x, x), leaf(0.4), 5, snapshots=2)


def layers(x, weights, *, snapshots):
    """A deep network: a chain of which every step has weights of its own."""

    def layer(k, h):
        return np.tanh(h @ weights[k]) + h

    return np.sum(dl.checkpoint_chain(layer, x, len(weights), snapshots) ** 2)


DEEP = np.random.default_rng(5).normal(size=(30, 4, 4)) / 4


@pytest.mark.parametrize("snapshots", [4, "sqrt"])
def test_a_deep_network_agrees_with_numeric_differentiation(snapshots):
    def gradient(x):
        t = leaf(x)
        layers(t, DEEP, snapshots=snapshots).backward()
        return t.grad.numpy()

    def value(x):
        return layers(dl.tensor(x), DEEP, snapshots=snapshots).item()

    check_gradient(value, gradient, V)


def test_a_deep_network_agrees_with_pytorch():
    torch = pytest.importorskip("torch")
    mine = [leaf(w) for w in DEEP]
    layers(dl.tensor(V), mine, snapshots=4).backward()
    theirs = [torch.tensor(w, requires_grad=True) for w in DEEP]
    h = torch.tensor(V)
    for w in theirs:
        h = torch.tanh(h @ w) + h
    (h**2).sum().backward()
    for own, other in zip(mine, theirs, strict=True):
        assert own.grad.numpy() == pytest.approx(other.grad.numpy(), rel=1e-11, abs=1e-12)


def test_a_checkpoint_of_a_tensor_that_reads_a_traced_value_keeps_its_gradient() -> None:
    """The first, unrecorded run put the tensor into the trace as a constant."""

    def product(x: Any, y: Any) -> Any:
        b = np.sin(x)
        return dl.checkpoint(lambda v: v * b, np.sin(y))

    x, y = (dl.tensor(value, requires_grad=True) for value in (0.3, 0.7))
    dl.grad(product)(x, y).backward()
    np.testing.assert_allclose(x.grad.numpy(), -np.sin(0.3) * np.sin(0.7), rtol=1e-14)
    np.testing.assert_allclose(y.grad.numpy(), np.cos(0.3) * np.cos(0.7), rtol=1e-14)


def test_a_chain_notices_a_step_that_is_another_one_when_it_is_run_again():
    draw = np.random.default_rng(1)
    y = dl.checkpoint_chain(lambda k, x: np.sin(x) * draw.normal(), leaf(0.4), 9, snapshots=2)
    with pytest.raises(TapeError, match="different result when it was run again"):
        y.backward()


def test_second_derivatives_run_checkpoints_inside_others_once_more():
    runs = []

    def inner(x):
        runs.append("inner")
        return np.sin(x)

    def outer(x):
        runs.append("outer")
        return np.exp(dl.checkpoint(inner, x))

    x = leaf(0.7)
    y = dl.checkpoint(outer, x)
    y.backward(create_graph=True)
    assert runs == ["outer", "inner", "outer", "inner"]
    slope, x.grad = x.grad, None
    slope.backward()
    # y'' = exp(sin x) (cos² x - sin x), by hand.
    assert x.grad.item() == pytest.approx(np.exp(np.sin(0.7)) * (np.cos(0.7) ** 2 - np.sin(0.7)))
    y = dl.checkpoint(outer, leaf(0.7))
    assert not MODE.recorded_again
    runs.clear()
    y.backward()
    assert runs == ["outer", "inner", "inner"]  # memory is saved again

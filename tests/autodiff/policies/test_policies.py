"""Checkpoint policies: what is kept and computed again, and the derivatives without a policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.eager import grad
from difflab.errors import InputError

P = dl.policies
RNG = np.random.default_rng(2)
W1, W2, X = RNG.normal(size=(6, 5)), RNG.normal(size=(4, 6)), RNG.normal(size=5)
POLICIES = {
    "nothing": P.nothing,
    "everything": P.everything,
    "dots": P.dots,
    "save_only": P.save_only("h", "z"),
    "save_any_except": P.save_any_except("h"),
    "optimal": P.optimal(bytes=100),
}


def network(W1: Any, W2: Any, x: Any) -> Any:
    h = dl.name(np.tanh(dl.name(W1 @ x, "z")), "h")
    return np.sum(np.exp(np.sin(W2 @ h)))


# Bytes and operations, by hand: products take 2·5·6 - 6 = 54 and 2·6·4 - 4 = 44 operations; the
# reverse sweep reads what tanh and sin are applied to, the exponentials, and h for W2's cotangent.
EXPECTED = {
    "nothing": (0, 54 + 6 + 44 + 4 + 4),
    "everything": ((6 + 6 + 4 + 4) * 8, 0),
    "dots": ((6 + 4) * 8, 6 + 4 + 4),
    "save_only": ((6 + 6) * 8, 44 + 4 + 4),
    "save_any_except": ((6 + 4 + 4) * 8, 6),
    "optimal": ((6 + 4) * 8, 6 + 4 + 4),
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_is_kept_and_computed_again(name: str) -> None:
    found = P.account(POLICIES[name], network, W1, W2, X)
    assert (found.bytes, found.operations) == EXPECTED[name]


def products(function: Any) -> int:
    """How many matrix products a graph has beside those inside its checkpoints."""
    graph = function.graph
    return int(graph.matching(lambda row: row.name == "matmul").sum())


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_products_that_are_kept_are_not_computed_again(name: str) -> None:
    call = dl.checkpoint_with(POLICIES[name])(network)
    swept = products(dl.gradient(dl.trace(lambda x: call(W1, W2, x), X)))
    transposed = 2  # each product once, for the cotangent of its vector
    again = {"nothing": 2, "save_only": 1}.get(name, 0)
    assert swept == transposed + again


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_tape_holds_the_arguments_and_what_is_kept(name: str) -> None:
    x = dl.tensor(X, requires_grad=True)
    y = dl.checkpoint_with(POLICIES[name])(network)(W1, W2, x)
    (producer,) = y.grad_fn.edges
    held = [value for value in producer.slots if value is not None]
    arguments = X.nbytes if name == "nothing" else X.nbytes + W1.nbytes + W2.nbytes
    assert sum(value.nbytes for value in held) - arguments == EXPECTED[name][0]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_derivatives_are_those_without_a_policy(name: str) -> None:
    call = dl.checkpoint_with(POLICIES[name])(network)
    expected = dl.grad(network, argnums=(0, 1, 2))(W1, W2, X)
    found = dl.grad(call, argnums=(0, 1, 2))(W1, W2, X)
    jitted = dl.jit(dl.grad(call, argnums=(0, 1, 2)))(W1, W2, X)
    leaves = [dl.tensor(value, requires_grad=True) for value in (W1, W2, X)]
    call(*leaves).backward()
    for one, other, compiled, leaf in zip(expected, found, jitted, leaves, strict=True):
        assert one.tobytes() == other.tobytes() == leaf.grad.numpy().tobytes()
        np.testing.assert_allclose(compiled, one, rtol=1e-13)


def both(transform: Any, name: str) -> None:
    """Fail unless a transform of the network by x is the same with a policy."""
    plain = lambda x: network(W1, W2, x)  # noqa: E731
    kept = dl.checkpoint_with(POLICIES[name])(plain)
    np.testing.assert_allclose(transform(kept), transform(plain), rtol=1e-11, atol=1e-13)


AROUND = {
    "hessian": lambda f: dl.hessian(f)(X),
    "third order": lambda f: dl.jacfwd(dl.hessian(f))(X),
    "forward": lambda f: dl.jvp(f, (X,), (X,))[1],
    "batch of gradients": lambda f: dl.vmap(dl.grad(f))(np.stack([X, -X])),
    "gradient of a batch": lambda f: dl.grad(lambda x: np.sum(dl.vmap(f)(np.stack([x, -x]))))(X),
    "loop": lambda f: dl.grad(
        lambda x: dl.scan(lambda c, _: (np.sin(c) * f(c), c), x, np.zeros(3))[0].sum()
    )(X),
    "branch": lambda f: dl.grad(lambda x: dl.cond(x[0] < 9, f, lambda x: 0 * np.sum(x), x))(X),
    "checkpoint": lambda f: dl.grad(lambda x: dl.checkpoint(f, x) ** 2)(X),
    "policy in a policy": lambda f: dl.grad(
        dl.checkpoint_with(P.dots)(lambda x: f(np.sin(x)) + f(x))
    )(X),
    "compiled": lambda f: dl.compile(dl.gradient(dl.trace(f, X)), target="native")(X),
}


@pytest.mark.parametrize("name", sorted(AROUND))
@pytest.mark.parametrize("policy", ["everything", "dots", "save_only", "optimal"])
def test_other_transforms_around_it(name: str, policy: str) -> None:
    both(AROUND[name], policy)


def test_second_derivatives_on_tensors() -> None:
    x = dl.tensor(X, requires_grad=True)
    y = dl.checkpoint_with(P.save_only("h"))(network)(W1, W2, x)
    (slope,) = grad(y, [x], create_graph=True)
    (found,) = grad(np.sum(slope * slope), [x])
    hessian = dl.hessian(lambda x: network(W1, W2, x))(X)
    np.testing.assert_allclose(found.numpy(), 2 * hessian @ slope.detach().numpy(), rtol=1e-11)


def test_random_numbers_are_drawn_again() -> None:
    def noisy(x: Any, key: Any) -> Any:
        return np.sum(np.exp(dl.name(x * dl.random.normal(key, (5,)), "h")) ** 2)

    key = dl.random.key(7)
    expected = dl.grad(noisy)(X, key)
    for policy in (P.nothing, P.everything, P.save_only("h"), P.optimal(bytes=40)):
        assert dl.grad(dl.checkpoint_with(policy)(noisy))(X, key).tobytes() == expected.tobytes()


def test_nothing_flows_to_kept_values_with_infinite_slopes() -> None:
    """The cotangent of a kept value is no zero that an infinite slope would turn into nan."""

    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, dl.name(np.log(x), "h"), x))

    call = dl.checkpoint_with(P.save_only("h"))(f)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(dl.grad(call)(np.array([0.0, 2.0])), [1.0, 0.5])
        np.testing.assert_array_equal(dl.vmap(dl.grad(call))(np.array([[0.0, 2.0]])), [[1.0, 0.5]])


def test_trees_keywords_closures_and_other_results() -> None:
    w = dl.tensor(0.5, requires_grad=True)

    @dl.checkpoint_with(P.everything)
    def block(values: Any, *, scale: float) -> Any:
        """Scale and bend."""
        return {"y": np.sin(values["x"] * w) * scale, "n": 3, "big": values["x"] > 0}

    x = dl.tensor(X, requires_grad=True)
    found = block({"x": x}, scale=2.0)
    assert (block.__name__, block.__doc__, found["n"]) == ("block", "Scale and bend.", 3)
    np.testing.assert_array_equal(found["big"].numpy(), X > 0)
    np.sum(found["y"]).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(X * 0.5), rtol=1e-14)
    np.testing.assert_allclose(w.grad.item(), np.sum(2 * X * np.cos(X * 0.5)), rtol=1e-14)
    with dl.no_grad():
        assert not block({"x": x}, scale=2.0)["y"].requires_grad


def test_names_are_shown_and_belong_to_every_value_in_a_tree() -> None:
    pair = dl.trace(lambda x: sum(dl.name((np.sin(x), np.cos(x)), "parts")), 1.0)
    assert sorted(pair.graph.labels.values()) == ["parts", "parts"]
    assert "h = x*x" in str(dl.trace(lambda x: np.sin(dl.name(x * x, "h")) + x * x, 2.0))
    assert dl.name(X, "h") is X


def test_functions_that_differ_in_names_alone_differ() -> None:
    """What is derived is cached by the contents of a recording."""
    f, g = (lambda x, n=n: np.sum(np.exp(dl.name(np.sin(x), n))) for n in ("a", "b"))
    keeps = P.save_only("a")
    assert P.account(keeps, f, X).bytes == 40
    with pytest.raises(InputError, match="no value of the checkpointed function is named a"):
        P.account(keeps, g, X)


REFUSED = {
    "no policy": (lambda: dl.checkpoint_with("dots"), "a checkpoint policy is needed"),
    "no function": (lambda: dl.checkpoint_with(P.dots)(3), "checkpoint_with"),
    "no name": (lambda: P.save_only(), "save_only needs a name"),
    "no identifier": (lambda: P.save_any_except("a b"), "takes names such as 'h'"),
    "a name that is none": (lambda: dl.name(X, 3), "takes names such as 'h'"),
    "negative bytes": (lambda: P.optimal(bytes=-1), "a whole number of bytes"),
    "an unknown name": (
        lambda: dl.checkpoint_with(P.save_only("q"))(network)(W1, W2, dl.tensor(X)),
        "the names in it are h, z",
    ),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_what_to_do(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(InputError) as raised:
        call()
    assert message in f"{raised.value}"


def test_too_many_choices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.autodiff.policies.optimum.MOST", 3)
    with pytest.raises(InputError, match="too many choices"):
        P.front(network, W1, W2, X)


def test_the_front_of_a_network() -> None:
    """From the exponential alone the product is computed again; from the product, two values."""
    small = P.front(lambda x: np.exp(np.sin(x[0] * x[1])) * x[2], np.ones(3))
    assert [(one.bytes, one.operations) for one in small] == [(0, 3), (8, 1), (16, 0)]


def test_the_optimum_of_a_chain_keeps_what_costs_most() -> None:
    """Of equal values, those that take the most operations: products of growing depth."""

    def chain(x: Any) -> Any:
        for k in range(1, 9):
            x = np.sin(RNG_MATRICES[k] @ x) if k % 2 else np.sin(x)
        return np.sum(x)

    best = P.front(chain, np.ones(4))
    product = 4 * 7
    assert (best[0].bytes, best[0].operations) == (0, 4 * product + 7 * 4)
    assert (best[4].bytes, best[4].operations) == (4 * 32, 7 * 4)
    assert best[-1].operations == 0


RNG_MATRICES = RNG.normal(size=(9, 4, 4))


def _chain(layers: int, policy: Any, rows: int = 64, columns: int = 8) -> tuple[Any, list[Any]]:
    """Return the gradient of layers under a policy as a Function, and its arguments."""
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=(columns, columns)) / 3 for _ in range(layers)]
    state = draw.normal(size=(rows, columns))
    step = dl.checkpoint_with(policy)(lambda h, w: np.sin(np.tanh(h @ w)) + h)

    def loss(weights: Any) -> Any:
        now = state
        for weight in weights:
            now = step(now, weight)
        return np.sum(now)

    return dl.trace(dl.grad(loss), weights), weights


def test_machine_code_holds_one_state_for_each_layer() -> None:
    """What a layer computes inside is no longer held when the next one is computed."""
    pytest.importorskip("llvmlite")
    rows, columns = 64, 8
    state = 8 * rows * columns
    found = {}
    for layers in (6, 10):
        gradient, weights = _chain(layers, dl.policies.nothing, rows, columns)
        fast = dl.compile(gradient, target="native")
        expected = dl.compile(gradient, target="numpy")(*weights)
        for one, other in zip(fast(*weights), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        plan = fast.memory_plan()
        found[layers] = plan.peak_bytes - plan.results
    assert found[10] - found[6] <= 4 * (state + 64)


def test_checkpoints_of_large_arrays_are_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    from difflab.execute import choice

    gradient, _ = _chain(3, dl.policies.dots)
    assert dl.compile(gradient).reason.startswith("numpy")
    monkeypatch.setattr(choice, "LARGE_CHECKPOINTS", 1000)
    assert "checkpoints of large arrays" in dl.compile(gradient).reason
    products, _ = _chain(3, dl.policies.dots, columns=400)
    assert dl.compile(products).reason.startswith("numpy")

"""Trees of arguments of traced functions: derivatives are JAX's, calls that do not fit say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError, TraceError


class Layer(NamedTuple):
    w: Any
    b: Any


@dataclass
class Rate:
    scale: Any
    power: Any


DRAW = np.random.default_rng(7)
X = DRAW.normal(size=3)
MODEL = {
    "layers": [
        Layer(DRAW.normal(size=(4, 3)), DRAW.normal(size=4)),
        Layer(DRAW.normal(size=(2, 4)), DRAW.normal(size=2)),
    ],
    "rate": Rate(1.5, 0.7),
}


def network(model: Any, x: Any, *, xp: Any = np) -> Any:
    for layer in model["layers"]:
        x = xp.tanh(layer.w @ x + layer.b)
    rate = model["rate"]
    return {"out": x * rate.scale, "norm": (xp.sum(x**2) * rate.power, None)}


def loss(model: Any, x: Any, *, xp: Any = np) -> Any:
    found = network(model, x, xp=xp)
    return xp.sum(found["out"]) + found["norm"][0]


def close(mine: Any, jax: Any, theirs: Any) -> bool:
    """Whether two trees have the same leaves; difflab's dataclasses are JAX's dicts here."""
    found = jax.tree_util.tree_leaves(theirs)
    leaves = dl_leaves(mine)
    assert len(leaves) == len(found)
    return all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-12, atol=1e-14)
        for a, b in zip(leaves, found, strict=True)
    )


def dl_leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in dl_leaves(tree[key])]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in dl_leaves(part)]
    if isinstance(tree, Rate):
        return [*dl_leaves(tree.scale), *dl_leaves(tree.power)]
    return [] if tree is None else [tree]


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    module.tree_util.register_pytree_node(
        Rate, lambda r: ((r.scale, r.power), None), lambda _, parts: Rate(*parts)
    )
    return module


def test_values_and_derivatives_of_a_traced_function_are_jaxs(jax) -> None:
    xp = jax.numpy
    f, value = dl.trace(network, MODEL, X), dl.trace(loss, MODEL, X)
    assert f.inputs[-3:] == ("model_rate_scale", "model_rate_power", "x")
    assert close(f(MODEL, X), jax, network(MODEL, X, xp=xp))
    slope = dl.grad(value, argnums=(0, 1))(MODEL, X)
    assert isinstance(slope[0]["rate"], Rate)
    assert isinstance(slope[0]["layers"][1], Layer)
    theirs = jax.grad(lambda m, x: loss(m, x, xp=xp), argnums=(0, 1))(MODEL, X)
    assert close(slope, jax, theirs)
    number, again = dl.value_and_grad(value)(MODEL, X)
    assert number == pytest.approx(loss(MODEL, X), rel=1e-13)
    assert close(again, jax, theirs[0])
    for ours in (dl.jacfwd, dl.jacrev, lambda f: dl.jacobian(f, argnums=0)):
        assert close(
            ours(f)(MODEL, X), jax, jax.jacrev(lambda m, x: network(m, x, xp=xp))(MODEL, X)
        )


@pytest.mark.parametrize("target", ["auto", "numpy", "native"])
def test_compiled_functions_take_the_same_trees(target: str) -> None:
    if target == "native":
        pytest.importorskip("llvmlite")
    f = dl.compile(dl.trace(network, MODEL, X), target=target)
    found, expected = f(MODEL, X), network(MODEL, X)
    assert np.allclose(found["out"], expected["out"], rtol=1e-13)
    assert found["norm"] == (pytest.approx(expected["norm"][0], rel=1e-13), None)
    assert np.allclose(f(model=MODEL, x=X)["out"], expected["out"], rtol=1e-13)
    slope = dl.compile(dl.grad(dl.trace(loss, MODEL, X)), target=target)(MODEL, X)
    step = 1e-6
    moved = [loss({**MODEL, "rate": Rate(1.5 + h, 0.7)}, X) for h in (step, -step)]
    assert slope["rate"].scale == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-8)


def test_what_is_derived_takes_the_trees_and_returns_flat_rows() -> None:
    f = dl.trace(lambda p, x: p["a"] * x + p["b"] ** 2, {"b": 1.0, "a": 2.0}, 3.0)
    point = {"a": 5.0, "b": 7.0}, 11.0
    assert f.inputs == ("p_a", "p_b", "x")
    assert dl.gradient(f)(*point).tolist() == [11.0, 14.0, 5.0]
    assert dl.jacobian(f)(*point).tolist() == [[11.0, 14.0, 5.0]]
    value, row = dl.value_and_gradient(f)(*point)
    assert (value, row.tolist()) == (104.0, [11.0, 14.0, 5.0])
    assert dl.hessian(f)(*point).tolist() == [[0, 0, 1], [0, 2, 0], [1, 0, 0]]
    assert dl.stabilise(f).function(*point) == 104.0
    second = dl.hessian(f, argnums=0)(*point)
    assert {key: {k: float(v) for k, v in row.items()} for key, row in second.items()} == {
        "a": {"a": 0.0, "b": 0.0},
        "b": {"a": 0.0, "b": 2.0},
    }


def test_the_inputs_may_be_given_one_by_one() -> None:
    f = dl.trace(lambda p, x: p["a"] * x, {"a": 2.0, "b": 1.0}, np.ones(2))
    by_name = f(p_a=3.0, p_b=0.0, x=[1.0, 2.0])
    assert by_name.tolist() == f(3.0, 0.0, np.array([1.0, 2.0])).tolist() == [3.0, 6.0]
    batch = {"a": np.array([1.0, 2.0]), "b": np.zeros(2)}
    assert f(batch, np.ones((2, 2))).tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_names_of_leaves_are_identifiers_that_differ() -> None:
    f = dl.trace(lambda p, p_a: p["a"] + p[0] + p_a, {"a": 1.0, 0: 2.0}, 1.0)
    assert f.inputs == ("p_a", "p_0", "p_a_")
    assert dl.parse(str(f))(p_a=1.0, p_0=2.0, p_a_=4.0) == 7.0


def test_a_list_of_plain_numbers_is_an_array_and_one_of_arrays_a_tree() -> None:
    assert dl.trace(lambda x: x, [1.0, 2.0]).input_shapes == ((2,),)
    f = dl.trace(lambda weights: weights[1] @ weights[0], [np.ones(2), np.ones((3, 2))])
    assert f.input_shapes == ((2,), (3, 2))
    assert f([np.array([1.0, 2.0]), np.ones((3, 2))]).tolist() == [3.0, 3.0, 3.0]


def test_calls_that_do_not_fit_say_so() -> None:
    f = dl.trace(lambda p, x: p["a"] * x, {"a": 1.0, "b": 0.0}, 1.0)
    with pytest.raises(PointError, match=r"'p' has the structure \{'a': \*\} instead of \{'a': \*"):
        f({"a": 1.0}, 2.0)
    with pytest.raises(PointError, match=r"takes 2 arguments \(p, x\), but 4 were given"):
        f({"a": 1.0, "b": 1.0}, 2.0, 3.0, 4.0)
    with pytest.raises(PointError, match="no value is given for the input x"):
        f({"a": 1.0, "b": 1.0})
    with pytest.raises(PointError, match="'p_a' was given twice"):
        f({"a": 1.0, "b": 1.0}, 1.0, p_a=3.0)
    with pytest.raises(InputError, match="names argument 2, but only 2 positional"):
        dl.grad(f, argnums=2)
    with pytest.raises(InputError, match="an example is not a number, but text"):
        dl.trace(lambda p: p["a"], {"a": "text"})
    with pytest.raises(TraceError, match="returned dict"):
        dl.trace(lambda x: {}, 1.0)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobian_of_a_callable_is_a_tree_of_trees_as_jaxs(jax, mode) -> None:
    xp = jax.numpy
    for argnums in (0, (1, 0)):
        mine = dl.jacobian(network, mode, argnums=argnums)(MODEL, X)
        theirs = jax.jacfwd(lambda m, x: network(m, x, xp=xp), argnums=argnums)(MODEL, X)
        assert close(mine, jax, theirs)
    tree, aux = dl.jacobian(lambda x: (x * x, "kept"), mode, has_aux=True)(X)
    assert np.array_equal(tree, np.diag(2 * X))
    assert aux == "kept"
    with pytest.raises(InputError, match="unknown mode 'sideways'"):
        dl.jacobian(network, "sideways")


def test_the_direction_follows_the_sizes(monkeypatch) -> None:
    from difflab.autodiff.transforms import jacobian as module

    chosen = []
    blocks = module.jacobian_blocks

    def spy(*args, forward):
        chosen.append(forward)
        return blocks(*args, forward=forward)

    monkeypatch.setattr(module, "jacobian_blocks", spy)
    dl.jacobian(lambda p: np.sum(p["x"]))({"x": X})
    dl.jacobian(lambda p: p["x"] * np.ones(3))({"x": 2.0})
    assert chosen == [False, True]

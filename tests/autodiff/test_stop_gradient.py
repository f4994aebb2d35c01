"""`stop_gradient`: expected values are by algebra, and JAX's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.language.printers import c, latex, python, text
from tests.support.rows import for_each

X = np.array([0.3, -1.2, 0.7])


def product(x: Any) -> Any:
    """Return a sum whose terms are x·sin(x), of which the sine is a constant."""
    return np.sum(x * dl.stop_gradient(np.sin(x)))


@for_each(
    "slope",
    [
        dl.grad,
        dl.jacfwd,
        dl.jacrev,
        lambda f: lambda x: np.array([dl.jvp(f, (x,), (unit,))[1] for unit in np.eye(3)]),
        lambda f: lambda x: dl.vjp(f, x)[1](1.0)[0],
        lambda f: lambda x: np.array([dl.linearize(f, x)[1](unit) for unit in np.eye(3)]),
        lambda f: lambda x: dl.jacobian(dl.trace(f, x), "forward")(x)[0],
        lambda f: lambda x: dl.jacobian(dl.trace(f, x), "auto")(x)[0],
        lambda f: lambda x: dl.sparse_jacobian(dl.trace(f, x))(x).toarray()[0],
        lambda f: lambda x: dl.vmap(dl.grad(f))(np.stack([x, x]))[1],
        lambda f: lambda x: dl.jit(dl.grad(f))(x),
        lambda f: lambda x: dl.gradient(dl.parse(text(dl.trace(f, x))))(x),
    ],
)
def test_the_derivative_is_the_factor_that_flows(slope: Any) -> None:
    assert slope(product)(X) == pytest.approx(np.sin(X), rel=1e-15)


def test_second_derivatives_see_the_stop_as_well() -> None:
    # f = x² · [x³], f' = 2x · [x³], f'' = 2 · [x³], f''' = 0, with [·] constant.
    f = lambda x: x**2 * dl.stop_gradient(x**3)  # noqa: E731
    x, derivatives = 1.5, [f]
    for transform in (dl.grad, dl.jacfwd, dl.jacrev):
        derivatives.append(transform(derivatives[-1]))
    expected = [x**5, 2 * x**4, 2 * x**3, 0.0]
    assert [float(each(x)) for each in derivatives] == pytest.approx(expected, rel=1e-14)
    assert dl.hessian(product)(X).tolist() == np.zeros((3, 3)).tolist()


def test_an_inner_derivative_is_stopped_for_the_outer_one() -> None:
    # d/dx [∂/∂y sin(xy)] · x at y = 1 is the bracket: x cos x.
    def outer(x: Any) -> Any:
        return x * dl.stop_gradient(dl.grad(lambda y: np.sin(x * y))(1.0))

    assert float(dl.grad(outer)(0.8)) == pytest.approx(0.8 * math.cos(0.8), rel=1e-15)
    inner = dl.grad(lambda y: np.sin(dl.stop_gradient(y) * y))(2.0)
    assert float(inner) == pytest.approx(2.0 * math.cos(4.0), rel=1e-15)


def test_tensors_lose_their_tape_and_nothing_else() -> None:
    t = dl.tensor(X, requires_grad=True)
    stopped = dl.stop_gradient(t)
    assert not stopped.requires_grad
    assert stopped.is_leaf
    product(t).backward()
    assert t.grad.numpy() == pytest.approx(np.sin(X), rel=1e-15)
    with dl.no_grad():
        t *= 2.0
    assert stopped.numpy().tolist() == X.tolist()


def test_traced_values_have_detach_as_tensors_have() -> None:
    f = lambda x: np.sum(x * np.sin(x).detach())  # noqa: E731
    assert dl.grad(f)(X) == pytest.approx(np.sin(X), rel=1e-15)
    assert dl.trace(f, X) == dl.trace(product, X)


def test_trees_keep_their_structure_and_arrays_are_copied() -> None:
    tree = {"a": (1.0, X), "b": [None, X > 0]}
    found = dl.stop_gradient(tree)
    assert found["a"][0] == 1.0
    assert found["b"][0] is None
    assert found["b"][1].dtype == np.bool_
    assert found["a"][1].tolist() == X.tolist()
    assert not np.shares_memory(found["a"][1], X)


def test_truth_values_stay_truth_values() -> None:
    f = lambda x: np.sum(np.where(dl.stop_gradient(x > 0) & (x < 0.5), x, 0.0))  # noqa: E731
    assert dl.grad(f)(X).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("target", ["numpy", "native", "python"])
def test_every_target_computes_the_identity(target: str) -> None:
    if target == "native":
        pytest.importorskip("llvmlite")
    f = dl.parse("x^2*stop_gradient(sin(x)) + stop_gradient(x)")
    fast = dl.compile(dl.value_and_gradient(f), target=target)
    value, slope = fast(0.7)
    assert value == pytest.approx(0.49 * math.sin(0.7) + 0.7, rel=1e-15)
    assert slope[0] == pytest.approx(1.4 * math.sin(0.7), rel=1e-15)
    assert fast(np.linspace(0, 1, 9))[1][4, 0] == pytest.approx(math.sin(0.5), rel=1e-15)


def test_text_parses_back_and_printed_python_computes_the_same() -> None:
    f = dl.trace(product, X)
    assert text(f) == "x: [3]\nsum(x*stop_gradient(sin(x)))"
    assert dl.parse(text(f)).graph.primitives == f.graph.primitives
    names: dict[str, Any] = {}
    exec(python(f), names)
    assert names["f"](X.tolist()) == pytest.approx(float(np.sum(X * np.sin(X))), rel=1e-15)
    assert r"\operatorname{stop\_gradient}" in latex(f)
    assert "sin(" in c(f)


def test_values_alone_show_the_identity() -> None:
    f = dl.parse("x*stop_gradient(x)")
    slope = dl.differentiate(f, 3.0, method="richardson")
    assert slope.value == pytest.approx(6.0, rel=1e-12)


def test_jax_agrees_under_nested_transforms() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def f(lib: Any, stop: Any) -> Any:
        return lambda x: lib.sum(lib.tanh(x * stop(lib.exp(x))) * stop(x[::-1]) * x)

    ours, theirs = f(np, dl.stop_gradient), f(jax.numpy, jax.lax.stop_gradient)
    for nest in (("grad",), ("jacfwd", "grad"), ("jacrev", "jacfwd"), ("hessian", "grad")):
        mine, other = ours, theirs
        for name in reversed(nest):
            mine, other = getattr(dl, name)(mine), getattr(jax, name)(other)
        np.testing.assert_allclose(mine(X), other(X), rtol=1e-12, atol=1e-13)

"""jvp, vjp, linearize and hvp of Python functions."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ShapeError
from tests.support.rows import for_each

X = np.array([0.3, -1.2, 2.0])


def network(params, x):
    hidden = np.tanh(params["w"] * x + params["b"])
    return {"out": np.sum(hidden * hidden), "hidden": (hidden, params["b"] * 2)}


def test_jvp_as_jax_prints_it() -> None:
    value, slope = dl.jvp(np.sin, (0.1,), (0.2,))
    assert value == pytest.approx(0.09983342, rel=1e-7)
    assert slope == pytest.approx(0.19900084, rel=1e-7)


def test_vjp_as_jax_prints_it() -> None:
    value, pull = dl.vjp(lambda x, y: (np.sin(x), np.cos(y)), 0.5, 1.0)
    assert value == (np.sin(0.5), np.cos(1.0))
    x_bar, y_bar = pull((-0.7, 0.3))
    assert x_bar == pytest.approx(-0.61430776, rel=1e-7)
    assert y_bar == pytest.approx(-0.2524413, rel=1e-7)


def test_linearize_as_jax_prints_it() -> None:
    value, push = dl.linearize(lambda x: 3.0 * np.sin(x) + np.cos(x / 2.0), 2.0)
    assert value == pytest.approx(3.2681944, rel=1e-7)
    assert push(3.0) == pytest.approx(-5.007528, rel=1e-7)
    assert push(4.0) == pytest.approx(-6.676704, rel=1e-7)


def test_products_are_dual_over_trees() -> None:
    rng = np.random.default_rng(3)
    params, x = {"w": rng.normal(size=(2, 3)), "b": rng.normal(size=3)}, X
    params_dot = {"w": rng.normal(size=(2, 3)), "b": rng.normal(size=3)}
    x_dot = rng.normal(size=3)
    value, dot = dl.jvp(network, (params, x), (params_dot, x_dot))
    again, push = dl.linearize(network, params, x)
    pulled, pull = dl.vjp(network, params, x)
    assert value["out"] == again["out"] == pulled["out"]
    assert np.allclose(value["hidden"][0], network(params, x)["hidden"][0], rtol=1e-15)
    later = push(params_dot, x_dot)
    assert later["out"] == dot["out"]
    assert np.array_equal(later["hidden"][0], dot["hidden"][0])
    bar = {"out": 0.7, "hidden": (rng.normal(size=(2, 3)), rng.normal(size=3))}
    params_bar, x_bar = pull(bar)
    forward = (
        bar["out"] * dot["out"]
        + np.sum(bar["hidden"][0] * dot["hidden"][0])
        + np.sum(bar["hidden"][1] * dot["hidden"][1])
    )
    reverse = (
        np.sum(params_bar["w"] * params_dot["w"])
        + np.sum(params_bar["b"] * params_dot["b"])
        + np.sum(x_bar * x_dot)
    )
    assert forward == pytest.approx(reverse, rel=1e-13)


def test_linear_parts_repeat_nothing_of_the_forward_computation() -> None:
    from difflab.autodiff.engine.argnums import pulled, pushed
    from difflab.autodiff.transforms.products import _divided

    f = dl.trace(lambda x: np.exp(np.sin(x) * x) / (1 + x * x), X)
    for transform in (pushed, pulled):
        prepare, linear = _divided(f, transform, (0,), (0,), 1, 1)
        used = {row.name for row in linear.graph.primitives}
        assert used <= {"multiply", "add", "negative", "subtract", "divide"}
        assert {"exp", "sin", "cos"} <= {row.name for row in prepare.graph.primitives}


def test_masks_are_kept_between_the_parts() -> None:
    def f(x):
        return np.where(x > 0, np.sqrt(x), np.minimum(x, -0.5))

    x = np.array([0.0, 4.0, -2.0])
    expected = [0.0, 0.25, 1.0]
    assert dl.linearize(f, x)[1](np.ones(3)).tolist() == expected
    assert dl.vjp(f, x)[1](np.ones(3))[0].tolist() == expected
    T = dl.trace(lambda x: dl.vjp(f, x)[1](x * 0 + 1)[0], x)
    assert T(x).tolist() == expected


def test_hvp_is_the_hessian_times_a_vector_without_the_hessian() -> None:
    def f(x):
        return np.sum(np.sin(x) * x[::-1]) + np.sum(x) ** 3

    v = np.array([1.0, -2.0, 0.5])
    assert np.allclose(dl.hvp(f, (X,), (v,)), dl.hessian(f)(X) @ v, rtol=1e-13)
    x = np.linspace(-1, 1, 100_000)
    wide = dl.hvp(lambda x: np.sum(x[1:] ** 2 * x[:-1]), (x,), (np.ones_like(x),))
    expected = np.zeros_like(x)
    expected[1:] += 2 * x[:-1] + 2 * x[1:]
    expected[:-1] += 2 * x[1:]
    assert np.allclose(wide, expected, rtol=1e-12, atol=1e-15)


def test_hvp_of_several_arguments() -> None:
    by_x, by_y = dl.hvp(lambda x, y: x * x * y**3, (2.0, 3.0), (1.0, 10.0))
    assert by_x == 2 * 27 + 10 * 2 * 2 * 27
    assert by_y == 2 * 2 * 27 + 10 * 4 * 6 * 3


def test_auxiliary_data() -> None:
    def f(x):
        return x * x, {"root": np.sqrt(x), "name": "f"}

    value, slope, aux = dl.jvp(f, (4.0,), (1.0,), has_aux=True)
    assert (value, slope, aux) == (16, 8, {"root": 2, "name": "f"})
    value, pull, aux = dl.vjp(f, 4.0, has_aux=True)
    assert (value, pull(1.0), aux["root"]) == (16, (8,), 2)
    value, push, aux = dl.linearize(f, 4.0, has_aux=True)
    assert (value, push(1.0), aux["root"]) == (16, 8, 2)


def test_functions_alone_give_functions() -> None:
    F = dl.parse("[x*y, x + y]")
    assert dl.jvp(F)(2.0, 3.0, 1.0, 10.0) == (6, 5, 23, 11)
    push = dl.linearize(F)
    assert push.inputs == ("x", "y", "x_dot", "y_dot")
    assert push(2.0, 3.0, 1.0, 10.0) == (23, 11)
    assert dl.vjp(F)(2.0, 3.0, 1.0, 10.0)[2:] == (13, 12)
    value, slope = dl.jvp(F, (2.0, 3.0), (1.0, 10.0))
    assert (value, slope) == ((6, 5), (23, 11))
    assert dl.vjp(F, 2.0, 3.0)[1]((1.0, 10.0)) == (13, 12)


def test_a_pull_back_may_be_used_inside_another_trace() -> None:
    _, pull = dl.vjp(lambda x: x**3, 2.0)
    assert dl.grad(lambda c: pull(c * c)[0])(5.0) == 12 * 2 * 5
    value = dl.grad(lambda x: dl.vjp(lambda y: y**3, x)[1](1.0)[0])(2.0)
    assert value == 12


@for_each(
    ("call", "error", "message"),
    [
        (lambda: dl.jvp(np.sin, 1.0, 1.0), InputError, r"write \(x,\)"),
        (lambda: dl.jvp(np.sin, (1.0,), (1.0, 2.0)), InputError, r"\(\*, \*\) instead of \(\*,\)"),
        (lambda: dl.jvp(np.sin, (X,), (X[:2],)), ShapeError, r"\(2,\) where \(3,\)"),
        (lambda: dl.jvp(np.sin, (1,), (1.0,)), InputError, "integers"),
        (lambda: dl.vjp(1.0, 1.0), InputError, "vjp takes a function"),
        (lambda: dl.jvp(np.sin), InputError, "needs primals"),
        (lambda: dl.hvp(np.sin), InputError, "needs primals"),
        (lambda: dl.vjp(np.sin), InputError, "at least one argument"),
        (lambda: dl.vjp(np.sin, X)[1](1.0), ShapeError, r"\(\) where \(3,\)"),
        (lambda: dl.vjp(np.sin, X)[1]([X]), InputError, "structure"),
        (lambda: dl.linearize(np.sin, X)[1](X, X), InputError, "structure"),
        (lambda: dl.hvp(np.sin, (X,), (X,)), InputError, "one number"),
        (lambda: dl.hvp(np.sin, 1.0, 1.0), InputError, "tuple or list"),
    ],
)
def test_errors_say_what_is_wrong(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()

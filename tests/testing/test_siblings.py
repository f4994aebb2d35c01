"""Jacobians, Hessians and products: right ones pass, wrong ones are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from difflab.testing import (
    GradientMismatch,
    check_derivatives,
    check_gradient,
    check_hessian,
    check_hvp,
    check_jacobian,
    check_jvp,
    check_vjp,
)

W = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, 1.0]])
X = np.array([0.3, 0.1, -0.4])


def f(x: Any) -> Any:
    return np.sin(W @ x)


def jacobian(x: Any) -> Any:
    return np.cos(W @ x)[:, None] * W


def test_dense_jacobians() -> None:
    check_jacobian(f, jacobian, X)
    check_jacobian(f, None, X)
    wrong = jacobian(X)
    wrong[1, 2] *= 1.01
    with pytest.raises(GradientMismatch, match=r"dy\[1\]/dx\[2\]"):
        check_jacobian(f, wrong, X)


def difference(x: Any) -> Any:
    return np.diff(x) ** 2


def banded(x: Any) -> Any:
    from scipy.sparse import diags_array

    d = 2 * np.diff(x)
    return diags_array([-d, d], offsets=[0, 1], shape=(x.size - 1, x.size))


@pytest.mark.parametrize("n", [20, 2000])
def test_sparse_jacobians_also_outside_of_their_sparsity(n: int) -> None:
    x = np.random.default_rng(0).normal(size=n)
    check_jacobian(difference, banded, x)
    wrong = banded(x).tolil()
    wrong[7, 8] *= 1.01
    with pytest.raises(GradientMismatch, match=r"dy\[7\]/dx\[8\]"):
        check_jacobian(difference, wrong.tocsr(), x)
    missing = banded(x).tolil()
    missing[11, 12] = 0.0
    with pytest.raises(GradientMismatch, match=r"dy\[11\]/dx\[12\]"):
        check_jacobian(difference, missing.tocsr(), x)
    more = banded(x).tolil()
    more[3, 15] = 0.5
    with pytest.raises(GradientMismatch, match=r"dy\[3\]/dx\[15\]"):
        check_jacobian(difference, more.tocsc(), x)


def test_a_large_dense_jacobian_is_named_by_row_and_column() -> None:
    draw = np.random.default_rng(1)
    A, x = draw.normal(size=(300, 400)) / 20, draw.normal(size=400)
    wrong = np.cos(A @ x)[:, None] * A
    check_gradient(lambda x: np.sin(A @ x), wrong, x)
    wrong[123, 321] *= -1
    with pytest.raises(GradientMismatch, match=r"dy\[123\]/dx\[321\]"):
        check_gradient(lambda x: np.sin(A @ x), wrong, x)


def test_jvps_and_vjps() -> None:
    def jvp(x: Any, x_dot: Any) -> Any:
        return jacobian(x) @ x_dot

    def vjp(x: Any, y_bar: Any) -> Any:
        return jacobian(x).T @ y_bar

    check_jvp(f, jvp, X)
    check_jvp(f, None, X)
    check_vjp(f, vjp, X, jvp=jvp)
    check_vjp(f, None, X)
    with pytest.raises(GradientMismatch, match=r"(?s)the jvp is wrong in 1 of 2.*y\[1\]"):
        check_jvp(f, lambda x, x_dot: jvp(x, x_dot) * [1.0, 1.001], X)
    with pytest.raises(GradientMismatch, match=r"(?s)the vjp is wrong in 1 of 3.*x\[2\]"):
        check_vjp(f, lambda x, y_bar: vjp(x, y_bar) * [1.0, 1.0, 1.001], X)
    with pytest.raises(GradientMismatch, match="⟨ȳ, Jẋ⟩ = "):
        check_vjp(f, vjp, X, jvp=lambda x, x_dot: jvp(x, x_dot) * (1 + 1e-9))
    with pytest.raises(GradientMismatch, match="has the shape"):
        check_jvp(f, lambda x, x_dot: jvp(x, x_dot)[:1], X)


def test_products_on_trees() -> None:
    def g(p: Any) -> Any:
        return {"y": p["a"] * p["b"], "s": np.sum(p["a"])}

    def jvp(p: Any, dot: Any) -> Any:
        return {"y": dot["a"] * p["b"] + p["a"] * dot["b"], "s": np.sum(dot["a"])}

    def vjp(p: Any, bar: Any) -> Any:
        return {"a": bar["y"] * p["b"] + bar["s"], "b": bar["y"] * p["a"]}

    p = {"a": np.array([1.0, 2.0]), "b": np.array([0.5, -3.0])}
    check_jvp(g, jvp, p)
    check_vjp(g, vjp, p, jvp=jvp)
    with pytest.raises(GradientMismatch, match=r'p\["a"\]\[0\]'):
        check_vjp(g, lambda p, bar: {**vjp(p, bar), "a": bar["y"] * p["b"]}, p)


def cubic(x: Any) -> Any:
    return x[0] ** 2 * x[1] + np.sum(x**3)


def cubic_hessian(x: Any) -> Any:
    H = np.diag(6 * x)
    H[0, 0] += 2 * x[1]
    H[0, 1] += 2 * x[0]
    H[1, 0] += 2 * x[0]
    return H


def test_hessians() -> None:
    import math

    check_hessian(cubic, cubic_hessian, X)
    check_hessian(lambda x: math.fsum(float(v) ** 3 for v in x), lambda x: np.diag(6 * x), X)
    wrong = cubic_hessian(X)
    wrong[0, 1] = 0.0
    with pytest.raises(GradientMismatch, match=r"not symmetric: element \(0, 1\) is 0.0"):
        check_hessian(cubic, wrong, X)
    wrong[1, 0] = 0.0
    with pytest.raises(GradientMismatch, match="wrong in 2 of 9"):
        check_hessian(cubic, wrong, X)
    with pytest.raises(GradientMismatch, match=r"Hessian is wrong in 3 of 9"):
        check_hessian(lambda x: math.fsum(float(v) ** 3 for v in x), np.diag(5 * X), X)


def test_hvps() -> None:
    check_hvp(cubic, lambda x, v: cubic_hessian(x) @ v, X)
    with pytest.raises(GradientMismatch, match="the product Hv is wrong"):
        check_hvp(cubic, lambda x, v: cubic_hessian(x) @ v * [1.0, 1.0, 2.0], X)


def test_derivatives_of_frameworks_to_any_order() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    check_derivatives(lambda p: np.sum(np.sin(p["a"]) * p["b"]), {"a": X, "b": 2.0}, order=3)
    check_derivatives(lambda x: torch.sin(x) * x.sum(), torch.tensor(X), order=2)
    check_derivatives(lambda x: jax.numpy.sin(x) * x.sum(), jax.numpy.asarray(X), order=2)


def test_a_wrong_second_derivative_is_of_order_2() -> None:
    torch = pytest.importorskip("torch")

    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 3 * x**2

        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 5 * x * y_bar

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> Any:
            (x,) = ctx.saved_tensors
            return Slope.apply(x) * y_bar

    with pytest.raises(GradientMismatch, match="order 2: the gradient is wrong"):
        check_derivatives(lambda x: Cube.apply(x).sum(), torch.tensor(X), order=2)

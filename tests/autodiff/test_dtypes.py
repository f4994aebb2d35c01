"""Dtypes under transforms: NumPy's for values, JAX's (with 64 bits enabled) for derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from tests.support.rows import for_each

X = np.array([0.5, 1.25, -2.0], dtype=np.float32)
Y = np.array([1.5, 0.1, 0.7])
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "a Python number": lambda x, y: 2 * x + 0.5,
    "float64": lambda x, y: x * y,
    "a scalar of float64": lambda x, y: x * np.float64(2.0),
    "a scalar of float32": lambda x, y: x * np.float32(0.1),
    "arrays of float32": lambda x, y: x * X,
    "arrays of float64": lambda x, y: x * Y,
    "a function": lambda x, y: np.sin(x) / 3,
    "a mask": lambda x, y: (x > 0) * x,
    "a mask of float64": lambda x, y: (y > 0.5) * x,
    "a selection": lambda x, y: np.where(x > 0, x, 0.0),
    "a selection of both": lambda x, y: np.where(x > 0, x, y),
    "a sum": lambda x, y: np.sum(x),
    "a mean": lambda x, y: x.mean(),
    "a deviation": lambda x, y: np.std(x),
    "a product": lambda x, y: x @ x,
    "a mixed product": lambda x, y: x @ y,
    "an element": lambda x, y: x[0] * x[1:],
    "elements": lambda x, y: x[np.array([2, 0])],
    "order": lambda x, y: np.sort(x),
    "a stack": lambda x, y: np.stack([x, 2 * x]),
    "a mixed stack": lambda x, y: np.stack([x, y]),
    "a norm": lambda x, y: np.linalg.norm(x),
    "powers": lambda x, y: x**2 + np.abs(x) ** 0.5,
    "ones": lambda x, y: np.ones_like(x) * x,
    "a cast": lambda x, y: y.astype(np.float32) * x,
    "a cast back": lambda x, y: x.astype(np.float64) + 1,
    "truths": lambda x, y: (x > 0).astype(np.float32),
    "truths as float64": lambda x, y: x * (x > 0).astype(float),
}
LOOPS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: dl.scan(lambda c, each: (c + each, c * each), np.float32(0.0), x),
    "cond": lambda x: dl.cond(x[0] > 0, lambda a: 2 * a, lambda a: a, x),
    "fori_loop": lambda x: dl.fori_loop(0, 3, lambda k, a: np.sin(a), x),
    "while_loop": lambda x: dl.while_loop(lambda a: a[0] < 3, lambda a: a + 1, x),
    "checkpoint": lambda x: dl.checkpoint(np.sin, x),
    "grad": lambda x: dl.grad(lambda a: np.sum(a * x))(x),
}


@for_each("name", VALUES)
def test_traced_values_have_numpys_dtype(name: str) -> None:
    wanted, seen = VALUES[name](X, Y), []

    def code(x: Any, y: Any) -> Any:
        value = VALUES[name](x, y)
        seen.append((value.dtype, np.result_type(value)))
        return value

    found = dl.vmap(code)(X[None], Y[None])[0]
    assert seen == [(wanted.dtype, wanted.dtype)]
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    fast = dl.jit(code)(X, Y)
    np.testing.assert_allclose(fast, wanted, rtol=1e-6)
    assert isinstance(fast, float) or fast.dtype == wanted.dtype


@pytest.mark.parametrize("name", LOOPS)
def test_control_flow_keeps_float32(name: str) -> None:
    found = dl.vmap(LOOPS[name])(X[None])
    for leaf in found if isinstance(found, tuple) else (found,):
        assert leaf.dtype == SINGLE


def total(x: Any, y: Any) -> Any:
    return (0.3 * x * x) @ x + 2 * x[0]


def mixed(x: Any, y: Any) -> Any:
    return ((x * y).astype(np.float32) * x).sum()


@pytest.mark.parametrize("function", [total, mixed])
@pytest.mark.parametrize("given", [(X, Y), (X, X), (Y, Y), (Y, X)])
def test_derivatives_have_jaxs_dtypes(function: Any, given: Any) -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = results(dl, function, given), None
    with jax.enable_x64(True):
        arrays = tuple(jax.numpy.asarray(each) for each in given)
        compiled = jax.jit(lambda *each: results(jax, function, each))
        theirs = jax.tree_util.tree_leaves(compiled(*arrays))
    found = jax.tree_util.tree_leaves(ours)
    assert [each.dtype for each in found] == [each.dtype for each in theirs]
    for one, other in zip(found, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def results(library: Any, function: Any, given: Any) -> list[Any]:
    """Return what every transform gives; both libraries have the same names."""
    value, pull = library.vjp(function, *given)
    dots = given
    curve = library.linearize(function, *given)
    numbers = (0, 1)
    return [
        library.grad(function, numbers)(*given),
        library.value_and_grad(function)(*given),
        library.jvp(function, given, dots),
        (value, pull(value)),
        (curve[0], curve[1](*dots)),
        library.jacfwd(function, numbers)(*given),
        library.jacrev(function, numbers)(*given),
        library.hessian(function, numbers)(*given),
        library.vmap(library.grad(function))(given[0][None], given[1][None]),
    ]


def test_gradients_are_computed_in_float64_and_rounded_once() -> None:
    """Of 10⁶ terms: exact to a rounding, where a running sum of float32 is wrong by 1 %."""
    x = np.full(1_000_000, 0.1, dtype=np.float32)
    value, slope = dl.value_and_grad(lambda s: np.sum(s * x))(np.float32(1.0))
    exact = np.float32(float(x[0]) * 1e6)
    assert (value, slope) == (exact, exact)
    assert value.dtype == slope.dtype == SINGLE


def test_jit_has_a_trace_for_each_dtype_and_computes_in_it() -> None:
    fast = dl.jit(lambda x: np.sin(x) * 0.5)
    assert fast(X).dtype == SINGLE
    assert fast(X.astype(float)).dtype == DOUBLE
    assert fast(X).dtype == SINGLE
    assert [trace.compiled.dtype for trace in fast.traces] == [SINGLE, DOUBLE]
    assert [trace.calls for trace in fast.traces] == [2, 1]
    assert fast.traces[1].cause == "x was float32 (3,), is float64 (3,)"


def test_jit_computes_mixed_code_in_float64() -> None:
    fast = dl.jit(lambda x: np.sum(x.astype(np.float64) ** 2).astype(np.float32) * x)
    wanted = np.float32(np.sum(X.astype(float) ** 2)) * X
    np.testing.assert_array_equal(fast(X), wanted)
    assert fast.traces[0].compiled.dtype == DOUBLE
    inner = dl.jit(lambda x: dl.grad(lambda a: np.sum(a.astype(np.float64) ** 3))(x))
    assert inner(X).dtype == SINGLE
    assert inner.traces[0].compiled.dtype == DOUBLE


def test_a_dtype_that_is_asked_for_is_kept() -> None:
    assert dl.jit(np.sin, dtype=np.float64)(X).dtype == DOUBLE
    assert dl.jit(np.sin, dtype=np.float32)(Y).dtype == SINGLE


def test_functions_of_float32_return_it() -> None:
    f = dl.trace(lambda x: 0.1 * x + Y, X)
    assert f(X).dtype == SINGLE
    assert f(Y).dtype == DOUBLE
    assert dl.gradient(dl.parse("2.5*x*y"))(np.float32(1), np.float32(2)).dtype == SINGLE
    assert dl.gradient(dl.parse("2.5*x*y"))(np.float32(1), np.float64(2)).dtype == DOUBLE


def test_taylor_coefficients_have_the_dtype_of_the_result() -> None:
    value, series = dl.jet(np.sin, (X,), ([X, 0 * X],))
    assert [each.dtype for each in (value, *series)] == [SINGLE] * 3
    assert dl.taylor(np.exp, np.float32(0.5), 3).dtype == SINGLE


def test_custom_functions_keep_float32() -> None:
    class Doubled(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, bar: Any) -> Any:
            return 2 * bar

    value, slope = dl.value_and_grad(lambda x: np.sum(Doubled.apply(x)))(X)
    assert (value.dtype, slope.dtype) == (SINGLE, SINGLE)

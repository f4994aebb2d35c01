"""`from_jax` against JAX: values and Jacobians, control flow, trees and errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, TraceError, UnsupportedError
from tests.support.rows import for_each

jax = pytest.importorskip("jax")
jnp, lax, special = jax.numpy, jax.lax, jax.scipy.special

X = np.array([0.3, 0.8, 1.1, 1.9])


def assert_read(fun: Callable[..., Any], *point: Any, rtol: float = 1e-12) -> dl.Function:
    """Hold values and Jacobians to JAX's."""
    read = dl.from_jax(fun, *point)
    with jax.enable_x64(True):
        given = [jnp.asarray(value, float) for value in point]
        derivative = jax.jacfwd(fun, argnums=tuple(range(len(point))))
        value, slopes = jax.jit(lambda *xs: (fun(*xs), derivative(*xs)))(*given)
    parts = [np.reshape(slope, (read.m, -1)) for slope in slopes]
    np.testing.assert_allclose(read(*point), value, rtol=rtol, atol=1e-14)
    found = np.reshape(dl.jacobian(read)(*point), (read.m, read.n))
    np.testing.assert_allclose(found, np.concatenate(parts, 1), rtol=100 * rtol, atol=1e-13)
    return read


def test_a_formula_reads_as_one() -> None:
    read = assert_read(lambda x, w: jnp.sum(jnp.tanh(w * x)), X, 3.0)
    assert str(read) == "x: [4]\nsum(tanh(w*x))"


SPECIAL = {
    "gammaln": special.gammaln,
    "digamma": special.digamma,
    "polygamma": lambda x: special.polygamma(1, x),
    "erf": lambda x: special.erf(x) + special.erfc(x) * x,
    "erfinv": lambda x: special.erfinv(x / 2),
    "gammainc": lambda x: special.gammainc(2.5, x) + special.gammaincc(1.5, x),
    "betainc": lambda x: special.betainc(1.5, 2.5, x / 2),
    "bessel": lambda x: special.i0e(x) + special.i1(x),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name: str) -> None:
    assert_read(SPECIAL[name], X, rtol=1e-10)


CASES: dict[str, Callable[..., Any]] = {
    "interpolation": lambda x: jnp.interp(x, np.arange(3.0), np.arange(3.0) ** 2),
    "median": lambda x: jnp.median(x) * jnp.sort(-x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 9 * x[0], lambda c: c + x + 1, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 + x[i], 0.0),
    "nested": lambda x: lax.scan(
        lambda c, a: (lax.fori_loop(0, 2, lambda _, b: b * a, c), c + a), 1.0, x
    )[1],
    "switch": lambda x: lax.switch(jnp.int32(x[3]), [jnp.sin, jnp.cos, jnp.exp], x),
    "random": lambda x: x * jax.random.normal(jax.random.key(0), (4,)),
    "cholesky": lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + 5 * jnp.eye(4)),
    "triangular": lambda x: jax.scipy.linalg.solve_triangular(
        jnp.outer(x, x) + 5 * jnp.eye(4), x, lower=True, trans=1
    ),
    "derivative": jax.grad(lambda x: jnp.prod(x) * jnp.max(x)),
    "hessian": lambda x: jax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 3))(x)[0],
    "vmap": lambda x: jax.vmap(lambda i: x[i] * 2)(jnp.arange(3)),
    "whole numbers": lambda x: x * (jnp.int32(7 * x) // 2) + jnp.int32(9 * x) % 4,
}


@for_each("name", CASES)
def test_programs(name: str) -> None:
    assert_read(CASES[name], X)


def test_loops_are_one_node() -> None:
    def power(x: Any) -> Any:
        return lax.fori_loop(0, 1000, lambda _, y: y * x, 1.0)

    assert len(dl.from_jax(power, 1.0).graph) < 10


def test_trees_of_arguments_and_results() -> None:
    def line(params: dict[str, Any], x: Any) -> dict[str, Any]:
        return {"y": params["w"] @ x + params["b"], "size": jnp.sum(x)}

    read = dl.from_jax(line, {"w": np.ones(2), "b": 0.0}, [1, 2])
    assert read.inputs == ("params_b", "params_w", "x")
    found = read({"w": np.array([2.0, 3.0]), "b": 1.0}, [1, 2])
    assert {name: float(value) for name, value in found.items()} == {"y": 9.0, "size": 3.0}


def test_a_closed_jaxpr() -> None:
    closed = jax.make_jaxpr(lambda p, x: jnp.sin(p["w"]) * x)({"w": 1.0}, 2.0)
    read = dl.from_jax(closed)
    assert len(read.inputs) == 2
    assert float(read(1.0, 2.0)) == 2 * np.sin(1.0)
    with pytest.raises(InputError, match="knows the shapes"):
        dl.from_jax(closed, 1.0)


def test_numbers_have_64_bits() -> None:
    read = dl.from_jax(lambda x: x * 0.1 + jnp.float32(0.5), 1.0)
    assert float(read(1.0)) == 0.6


def test_what_is_not_read() -> None:
    with pytest.raises(InputError, match="'fft' with the result complex"):
        dl.from_jax(lambda x: jnp.fft.fft(x).real, X)
    with pytest.raises(InputError, match="'lu'"):
        dl.from_jax(lambda x: jnp.linalg.inv(jnp.outer(x, x)), X)
    with pytest.raises(InputError, match="custom_linear_solve"):  # it stops the matrix's gradient
        dl.from_jax(lambda x: jax.scipy.linalg.solve(np.eye(4) + x, x, assume_a="pos"), X)
    with pytest.raises(InputError, match="bits of integers"):
        dl.from_jax(lambda x: jnp.int32(x) & 3, X)
    with pytest.raises(InputError, match="complex"):
        dl.from_jax(lambda x: x + 1j, X)
    with pytest.raises(InputError, match="not int"):
        dl.from_jax(3)
    with pytest.raises(TraceError, match="JAX cannot trace"):
        dl.from_jax(lambda x: 1.0 if x > 0 else 2.0, 1.0)


# --- functions with derivative rules of their own ---------------------------------------------


AT_ZERO = {
    "softplus": jax.nn.softplus,
    "log_sigmoid": jax.nn.log_sigmoid,
    "logaddexp": lambda x: jnp.logaddexp(x, 2 * x),
    "logaddexp of a constant": lambda x: jnp.logaddexp(0.0, x),
    "logaddexp2": lambda x: jnp.logaddexp2(x, 0.0),
    "xlogy": lambda x: special.xlogy(x, 2.0 + x),
    "xlog1py": lambda x: special.xlog1py(x, x),
    "celu": jax.nn.celu,
    "elu": jax.nn.elu,
    "mish": jax.nn.mish,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "entr": special.entr,
    "sinc": jnp.sinc,
    "log_ndtr": special.log_ndtr,
    "squareplus": jax.nn.squareplus,
    "relu": jax.nn.relu,
    "the sum of the larger and the smaller": lambda x: jnp.maximum(x, 0.0) + jnp.minimum(0.0, x),
    "a difference": lambda x: jnp.maximum(x, 0.0) - jnp.maximum(-x, 0.0),
    "kl_div": lambda x: special.kl_div(x, 1.0),
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_the_special_point_are_those_of_jax(name: str) -> None:
    """Value, slope and curvature at 0, in both modes, and beside it."""
    fun = AT_ZERO[name]
    read = dl.from_jax(fun, 0.0)
    slope = dl.gradient(read)
    orders = (fun, jax.grad(fun), jax.grad(jax.grad(fun)))
    with jax.enable_x64(True):
        theirs = jax.jit(lambda x: [f(x) for f in orders])
        for x in (0.0, 0.7, -0.4):
            expected = list(map(float, theirs(x)))
            if np.isnan(expected).any():  # JAX differentiates the branch that is not taken
                continue
            found = [read(x), slope(x)[0], dl.jacobian(slope)(x)[0, 0]]
            np.testing.assert_allclose(np.array(found), expected, rtol=1e-12, atol=1e-13)
            forward = dl.jvp(read, (x,), (1.0,))[1]
            np.testing.assert_allclose(forward, expected[1], rtol=1e-12, atol=1e-13)


def test_the_third_derivative_of_sinc() -> None:
    """sin(πx)/(πx) has the derivatives 0, -π²/3, 0, π⁴/5 at 0."""
    read = dl.from_jax(jnp.sinc, 0.0)
    found = []
    for _ in range(4):
        read = dl.grad(read)
        found.append(float(read(0.0)))
    np.testing.assert_allclose(found, [0, -(np.pi**2) / 3, 0, np.pi**4 / 5], atol=1e-12)


def test_functions_that_are_rows_are_rows() -> None:
    assert str(dl.from_jax(jax.nn.softplus, 0.0)) == "softplus(x)"
    assert str(dl.from_jax(jax.nn.log_sigmoid, 0.0)) == "-softplus(-x)"
    assert str(dl.from_jax(jax.nn.relu, 0.0)) == "relu(x)"
    assert str(dl.from_jax(special.xlogy, 0.0, 0.0)) == "xlogy(x, y)"


@jax.custom_jvp
def relu(x: Any) -> Any:
    return jnp.maximum(x, 0.0)


relu.defjvp(lambda primals, tangents: (relu(primals[0]), 3.0 * tangents[0]))


def test_a_function_of_the_users_is_not_jaxs_of_its_name() -> None:
    """It has another rule, which is kept: a straight-through estimator."""
    read = dl.from_jax(lambda x: jnp.sum(relu(x) ** 2), X)
    np.testing.assert_allclose(read(X), np.sum(X**2))
    np.testing.assert_allclose(dl.gradient(read)(X), 6 * X)
    np.testing.assert_allclose(dl.jacobian(read, "forward")(X)[0], 6 * X)
    np.testing.assert_allclose(dl.compile(dl.gradient(read))(np.stack([X, -X])), [6 * X, 0 * X])


@jax.custom_vjp
def clipped(x: Any, bound: Any) -> tuple[Any, Any]:
    return jnp.sin(x) * bound, jnp.sum(x)


clipped.defvjp(
    lambda x, bound: (clipped(x, bound), (x, bound)),
    lambda kept, bars: (jnp.clip(bars[0] * kept[1] + bars[1], -1, 1), jnp.array(0.5)),
)


def test_a_reverse_rule_of_several_inputs_and_outputs() -> None:
    def code(x: Any, bound: Any) -> Any:
        parts, total = clipped(x, bound)
        return jnp.sum(parts * jnp.arange(4.0)) + 2 * total

    read = dl.from_jax(code, X, 2.0)
    with jax.enable_x64(True):
        expected = jax.grad(code, argnums=(0, 1))(jnp.asarray(X), 2.0)
    found = dl.gradient(read)(X, 2.0)
    np.testing.assert_allclose(found, [*expected[0], expected[1]], rtol=1e-12)
    with pytest.raises(UnsupportedError, match="clipped has no forward rule"):
        dl.jacobian(read, "forward")(X, 2.0)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def scaled(x: Any, order: int) -> Any:
    return x**order / jnp.float32(order)


scaled.defjvp(lambda order, p, t: (scaled(p[0], order), jnp.sin(p[0]) * t[0]))


@jax.custom_jvp
def picked(x: Any, number: Any) -> Any:
    return x * number


picked.defjvp(
    lambda p, t: (picked(*p), 7.0 * t[0] * jnp.asarray(p[1], p[0].dtype)), symbolic_zeros=False
)

RULES_WITHIN = {
    "settings": lambda x: jnp.sum(scaled(x, 3)),
    "an integer": lambda x: jnp.sum(picked(x, jnp.int32(10 * x[0]))),
    "an integer constant": lambda x: jnp.sum(picked(x, jnp.arange(4))),
    "vmap": lambda x: jnp.sum(jax.vmap(relu)(x)),
    "jit": lambda x: jax.jit(lambda y: jnp.prod(relu(y)))(x),
    "scan": lambda x: lax.scan(lambda c, a: (relu(c * a), c), 1.0, x)[0],
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: jnp.sum(relu(y)), jnp.sum, x),
    "nested": lambda x: jnp.sum(relu(jnp.sinc(x)) * special.entr(x)),
    "a gradient": lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(relu(y) ** 2))(x)),
    "remat": lambda x: jnp.sum(jax.checkpoint(lambda y: relu(jnp.sin(y)))(x)),
}


@pytest.mark.parametrize("name", RULES_WITHIN)
def test_rules_come_with_their_functions(name: str) -> None:
    fun = RULES_WITHIN[name]
    read = dl.from_jax(fun, X)
    with jax.enable_x64(True):
        given = jnp.asarray(X)
        expected = jax.jit(jax.value_and_grad(fun))(given)
    np.testing.assert_allclose(read(X), expected[0], rtol=1e-12)
    np.testing.assert_allclose(dl.gradient(read)(X), expected[1], rtol=1e-12, atol=1e-14)


def test_a_rule_in_float32_and_points_in_a_batch() -> None:
    closed = jax.make_jaxpr(lambda x: jnp.sinc(x) * relu(x))(0.5)
    read = dl.from_jax(closed)
    batch = np.linspace(-1.0, 1.0, 1000)
    found = np.asarray(dl.gradient(read)(batch))[:, 0]
    inner = np.where(batch == 0, 0.0, np.cos(np.pi * batch) / batch)
    slope = inner - np.sin(np.pi * batch) / (np.pi * batch**2)
    expected = slope * np.maximum(batch, 0) + 3 * np.sinc(batch)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_primitive_within_a_function_with_a_rule_is_named() -> None:
    @jax.custom_jvp
    def spectrum(x: Any) -> Any:
        return jnp.real(jnp.fft.fft(x))

    spectrum.defjvp(lambda p, t: (spectrum(*p), t[0]))
    with pytest.raises(InputError, match="'fft' with the result complex"):
        dl.from_jax(lambda x: jnp.sum(spectrum(x)), X)

"""`from_jax` against JAX: values and Jacobians, control flow, trees and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, TraceError
from tests.support.rows import for_each

jax = pytest.importorskip("jax")
jnp, lax, special = jax.numpy, jax.lax, jax.scipy.special

X = np.array([0.3, 0.8, 1.1, 1.9])


def assert_read(fun: Callable[..., Any], *point: Any, rtol: float = 1e-12) -> dl.Function:
    """Hold values and Jacobians to JAX's."""
    read = dl.from_jax(fun, *point)
    with jax.enable_x64(True):
        given = [jnp.asarray(value, float) for value in point]
        value = np.asarray(fun(*given))
        slopes = jax.jacfwd(fun, argnums=tuple(range(len(point))))(*given)
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

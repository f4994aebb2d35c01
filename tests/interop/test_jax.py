"""Functions wrapped for JAX, held to JAX's own derivatives under its transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError
from tests.interop.wrapped import FUNCTIONS, example

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")

from difflab.interop.jax import wrap  # noqa: E402
from tests.support.rows import for_each  # noqa: E402

jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


def close(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a number of all results, with weights that tell them apart."""

    def summed(*args: Any) -> Any:
        leaves = jax.tree.leaves(f(*args))
        return sum((k + 1.5) * jnp.sum(jnp.sin(leaf)) for k, leaf in enumerate(leaves))

    return summed


TRANSFORMS: dict[str, Callable[[Callable[..., Any], tuple[int, ...]], Callable[..., Any]]] = {
    "value": lambda f, n: f,
    "grad": lambda f, n: jax.grad(total(f), n),
    "jacfwd": lambda f, n: jax.jacfwd(f, n),
    "jacrev": lambda f, n: jax.jacrev(f, n),
    "hessian": lambda f, n: jax.hessian(total(f), n),
    "reverse over reverse": lambda f, n: jax.jacrev(jax.grad(total(f), n), n),
}


JITTED = ("value", "jacfwd", "hessian")


@pytest.mark.parametrize("transform", TRANSFORMS)
@for_each("name", FUNCTIONS)
def test_derivatives_are_jaxs_own(name: str, transform: str) -> None:
    f = FUNCTIONS[name]
    args = [jnp.asarray(value) for value in example(f)]
    argnums = tuple(range(len(args)))
    own = TRANSFORMS[transform](lambda *values: f(*values), argnums)
    ours = TRANSFORMS[transform](wrap(f), argnums)
    close((jax.jit(ours) if transform in JITTED else ours)(*args), jax.jit(own)(*args))


@pytest.mark.parametrize("name", ["vectors", "sum"])
def test_vmap_over_some_arguments_and_twice(name: str) -> None:
    f = FUNCTIONS[name]
    args = [jnp.asarray(value) for value in example(f)]
    args[0] = args[0] * jnp.linspace(0.5, 1, 6).reshape(2, 3, *(1,) * args[0].ndim)
    args[-1] = args[-1] * jnp.linspace(0.6, 1.1, 3).reshape(3, *(1,) * args[-1].ndim)
    inner = [0, *[None] * (len(args) - 2), 0]
    outer = [0, *[None] * (len(args) - 1)]
    for of in (lambda f: jax.grad(total(f), (0, len(args) - 1)), jax.jacfwd):
        ours, own = (
            jax.jit(jax.vmap(jax.vmap(of(call), inner), outer)) for call in (wrap(f), f.__call__)
        )
        close(ours(*args), own(*args))


def test_batches_broadcast_and_their_cotangents_are_summed() -> None:
    f = dl.parse("x: [2]; sum(sin(x)*y*z)")
    x = jnp.linspace(0.1, 1.0, 6).reshape(3, 1, 2)
    y, z = jnp.linspace(0.2, 0.9, 4), jnp.asarray(0.7)
    by = (0, 1, 2)
    ours = jax.grad(lambda *args: jnp.sum(wrap(f)(*args) ** 2), by)(x, y, z)
    by_jax = jax.grad(lambda x, y, z: jnp.sum((jnp.sum(jnp.sin(x), -1) * y * z) ** 2), by)(x, y, z)
    close(ours, by_jax)


def test_float32_stays_float32_and_numbers_are_weak() -> None:
    f = wrap(dl.parse("x*sin(y)"))
    x = jnp.float32(0.3)
    found = jax.grad(f)(x, 2.0)
    assert found.dtype == jnp.float32
    assert f(x, 2).dtype == jnp.float32
    assert f(1, 2).dtype == jnp.float64
    close(found, jnp.sin(jnp.float32(2.0)), rtol=1e-6)
    half = f(jnp.bfloat16(0.5), jnp.bfloat16(2.0))
    assert half.dtype == jnp.bfloat16
    single = wrap(dl.compile(dl.parse("x*sin(y)"), dtype=np.float32))
    assert single(x, 2.0).dtype == jnp.float32


def test_scan_checkpoint_and_linearize() -> None:
    step = wrap(dl.compile(dl.parse("x + h*sin(x)")))

    def run(x: Any, step: Callable[..., Any]) -> Any:
        return jax.lax.scan(lambda c, h: (jax.checkpoint(step)(c, h), c), x, jnp.linspace(0, 1, 9))

    def own(h: Any, x: Any) -> Any:
        return h + x * jnp.sin(h)

    x = jnp.asarray(0.4)
    for mode in (jax.jacfwd, jax.jacrev):
        # The inputs of the formula are in natural order: h, then x.
        close(
            mode(lambda x: run(x, lambda c, h: step(h=h, x=c)))(x),
            mode(lambda x: run(x, lambda c, h: own(c, h)))(x),
        )
    value, push = jax.linearize(lambda x: step(h=0.1, x=x), x)
    close((value, push(2.0)), (own(x, 0.1), 2 * (1 + 0.1 * jnp.cos(x))))


def test_optimisation_under_jit_reaches_rosenbrocks_minimum() -> None:
    f = wrap(dl.parse("x: [2]; (1 - x[0])^2 + 100*(x[1] - x[0]^2)^2"))
    newton = jax.jit(lambda x: x - jnp.linalg.solve(jax.hessian(f)(x), jax.grad(f)(x)))
    x = jnp.array([-1.2, 1.0])
    for _ in range(8):
        x = newton(x)
    close(x, jnp.ones(2))


def test_memory_is_read_in_place_and_results_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    from difflab.interop import derivatives

    seen: list[int] = []
    call = derivatives.CompiledOperation.__call__

    def spied(self: Any, values: Any) -> Any:
        seen.extend(value.ctypes.data for value in values)
        return call(self, values)

    monkeypatch.setattr(derivatives.CompiledOperation, "__call__", spied)
    x = jnp.linspace(0.0, 1.0, 1000)
    f = wrap(dl.parse("x: [1000]; x"))
    same = f(x)
    assert seen == [x.unsafe_buffer_pointer()]
    assert same.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    close(same, x)


def test_large_arrays_pass_through_a_callback() -> None:
    f = wrap(dl.parse("x*x + y"))
    x = jnp.linspace(0.0, 1.0, 1_000_000)
    close(jax.jit(jax.grad(lambda x: jnp.sum(f(x, 1.0))))(x), 2 * x)


def test_a_custom_rule_for_cotangents_alone_is_enough_for_gradients() -> None:
    class Seven(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return np.sin(x)

        @staticmethod
        def backward(ctx: Any, bar: Any) -> Any:
            return 7.0 * bar

    f = wrap(dl.trace(lambda x: Seven.apply(x), 1.0))
    close(jax.jit(jax.grad(f))(0.3), jnp.asarray(7.0))


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"difflab.interop.jax.wrap takes a Function, not str"):
        wrap("x^2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="packed points"):
        wrap(dl.compile(dl.parse("x^2"), packed=True))
    f = wrap(dl.parse("x: [3]; y: [3]; x*y"))
    for call in (f, jax.jit(f)):
        with pytest.raises(PointError, match="input 'x' has the shape"):
            call(jnp.ones(2), jnp.ones(3))
        with pytest.raises(PointError, match="no value is given for the input y"):
            call(jnp.ones(3))
        with pytest.raises(PointError, match="complex"):
            call(jnp.ones(3) * 1j, jnp.ones(3))


def test_a_function_is_differentiated_by_some_of_several_arrays() -> None:
    """JAX's tracers have no device, unlike the arrays beside them."""
    f = dl.parse("x: [2]; y: [2]; sum(x*y)")
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    assert jax.grad(lambda a: f(a, y))(x).tolist() == [3.0, 4.0]

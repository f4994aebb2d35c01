"""Products and Taylor series of functions with loops: JAX, and the same loops written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax

X, V, W = np.array([0.4, -0.3, 0.7]), np.array([1.0, -2.0, 0.5]), np.array([-0.7, 0.2, 1.1])


def scanned(lib: Any, xp: Any, x: Any) -> Any:
    """Read an array and stack results; the carry is a pair."""

    def step(carry: Any, t: Any) -> Any:
        c, total = carry
        c = xp.sin(c) * t + 0.3 * c
        return (c, total + c * c), c * t

    (c, total), ys = lib.scan(step, (x[0] * x[1] + 0.5, 0.1 * x[2]), x)
    return xp.stack([c * total, xp.sum(ys * ys)])


def backwards(lib: Any, xp: Any, x: Any) -> Any:
    """Scan from the last element, with a captured value."""
    c, ys = lib.scan(lambda c, t: (c * x[1] + xp.exp(t), xp.tanh(c)), x[0], x, reverse=True)
    return xp.concatenate([ys, xp.reshape(c, (1,))])


def counted(lib: Any, xp: Any, x: Any) -> Any:
    """Use the counter, and capture the argument."""
    return lib.fori_loop(1, 6, lambda i, c: xp.tanh(c * 1.3) + 0.1 * i * x, x)


def nested(lib: Any, xp: Any, x: Any) -> Any:
    """Run a loop in each turn of a loop."""

    def turn(c: Any, t: Any) -> Any:
        inner = lib.fori_loop(0, 3, lambda i, u: xp.cos(u) * t, c)
        return inner + c * t, inner

    return lib.scan(turn, x[0], x)[1]


def conditional(lib: Any, xp: Any, x: Any) -> Any:
    """Stop by a value; JAX has no reverse mode for it."""
    return lib.while_loop(lambda c: xp.sum(c * c) < 50.0, lambda c: c * 1.5 + xp.sin(c), x)


LOOPS = {f.__name__: f for f in (scanned, backwards, counted, nested, conditional)}
EACH = pytest.mark.parametrize("name", LOOPS)


class Written:
    """The loops of Python, which JAX differentiates in every mode."""

    @staticmethod
    def while_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], value: Any) -> Any:
        while test(value):
            value = body(value)
        return value


def pair(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return a function of an array by difflab, and by JAX."""
    theirs = Written if name == "conditional" else lax
    return (lambda x: LOOPS[name](dl, np, x)), (lambda x: LOOPS[name](theirs, jnp, x))


def agree(found: Any, wanted: Any) -> None:
    """Compare to about the rounding of some dozen operations."""
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * max(np.max(np.abs(wanted)), 1.0))


def by_tensors(ours: Callable[[Any], Any], x: Any, y_bar: Any) -> Any:
    leaf = dl.tensor(x, requires_grad=True)
    ours(leaf).backward(y_bar)
    return leaf.grad


@EACH
def test_products_with_the_transposed_jacobian(name: str) -> None:
    ours, theirs = pair(name)
    value, pull = dl.vjp(ours, X)
    y_bar = np.cos(1.0 + 2.3 * np.arange(value.size))
    wanted = jax.vjp(theirs, jnp.asarray(X))[1](y_bar)[0]
    agree(pull(y_bar)[0], wanted)
    agree(dl.jit(lambda x: dl.vjp(ours, x)[1](y_bar)[0])(X), wanted)
    agree(by_tensors(ours, X, y_bar), wanted)


@EACH
def test_products_with_the_hessian(name: str) -> None:
    ours, theirs = pair(name)
    loss, their_loss = (
        lambda x, f=f, xp=xp: xp.sum(xp.sin(f(x))) for f, xp in ((ours, np), (theirs, jnp))
    )
    wanted = jax.jvp(jax.grad(their_loss), (X,), (V,))[1]
    agree(dl.hvp(loss, (X,), (V,)), wanted)
    agree(dl.jit(lambda x, v: dl.hvp(loss, (x,), (v,)))(X, V), wanted)
    third = jax.jvp(lambda x: jax.jvp(jax.grad(their_loss), (x,), (V,))[1], (X,), (W,))[1]
    agree(dl.jvp(lambda x: dl.hvp(loss, (x,), (V,)), (X,), (W,))[1], third)


@EACH
def test_taylor_series(name: str) -> None:
    ours, theirs = pair(name)
    wanted, curve, factorial = [], (lambda t: theirs(X + t * V)), 1
    for order in range(5):
        factorial *= max(order, 1)
        wanted.append(np.asarray(curve(0.0)) / factorial)
        curve = _slope(curve)
    for found, coefficient in zip(dl.taylor(ours, X, 4, V), wanted, strict=True):
        agree(found, coefficient)
    value, series = dl.jet(ours, (X,), ([V, np.zeros(3), np.zeros(3)],))
    agree(value, wanted[0])
    for order, term in enumerate(series, 1):
        agree(term, wanted[order] * [1, 1, 2, 6][order])


def _slope(curve: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda t: jax.jvp(curve, (t,), (1.0,))[1]

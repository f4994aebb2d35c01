"""Reverse mode of loops: what is kept of a step, and sums that are products, against JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.control import Loop
from difflab.primitives import matmul
from tests.support.rows import for_each

SIZE, STEPS = 9, 4
RNG = np.random.default_rng(3)
W, V = RNG.normal(size=(2, SIZE, SIZE)) / SIZE
XS = RNG.normal(size=(STEPS, SIZE))
BATCHES = RNG.normal(size=(STEPS, 7, SIZE))


def cell(np: Any, W: Any, h: Any, x: Any) -> Any:
    return np.tanh(W @ h + x)


def row(np: Any, W: Any, h: Any, x: Any) -> Any:
    return np.tanh(h @ W + x)


def turned(np: Any, W: Any, h: Any, x: Any) -> Any:
    return np.tanh(h @ W.T + x)


def left(np: Any, W: Any, h: Any, x: Any) -> Any:
    return np.tanh(W @ h.T + x.T).T


def twice(np: Any, W: Any, h: Any, x: Any) -> Any:
    return np.tanh(W @ np.tanh(W @ h) + W.T @ x)


def gated(np: Any, W: Any, h: Any, x: Any) -> Any:
    gate = 1.0 / (1.0 + np.exp(-(W @ x + h[0])))
    return gate * h + (1.0 - gate) * np.sin(W @ h)


CASES = [(cell, XS), (row, XS), (turned, XS), (twice, XS), (gated, XS)]
CASES += [(row, BATCHES), (turned, BATCHES), (left, BATCHES)]


def loss(np: Any, scan: Any, step: Callable[..., Any]) -> Callable[..., Any]:
    def total(W: Any, h: Any, xs: Any) -> Any:
        def one(h: Any, x: Any) -> Any:
            h = step(np, W, h, x)
            return h, np.sum(h * h)

        last, squares = scan(one, h, xs)
        return np.sum(last) + np.sum(squares)

    return total


def sweep_of(f: dl.Function) -> Loop:
    """Return the loop back in a gradient."""
    held = [row.holds for row in f.graph.primitives if isinstance(row.holds, Loop)]
    (found,) = [loop for loop in held if loop.reverse]
    return found


def products(f: dl.Function) -> int:
    return int(f.graph.applies(matmul).sum())


@pytest.mark.parametrize("reverse", [False, True])
@for_each(("step", "xs"), CASES)
def test_gradients_are_those_of_jax(step: Callable[..., Any], xs: Any, reverse: bool) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jax.config.update("jax_enable_x64", True)
    point = (W, 0.3 * xs[0] + 0.1, xs)
    turn = lambda scan: lambda *args: scan(*args, reverse=reverse)  # noqa: E731
    wanted = jax.grad(loss(jax.numpy, turn(jax.lax.scan), step), (0, 1, 2))(*point)
    found = dl.grad(loss(np, turn(dl.scan), step), (0, 1, 2))
    f = dl.trace(lambda *args: found(*args), *point)
    for way in (found, dl.compile(f, "numpy"), dl.compile(f)):
        for mine, theirs in zip(way(*point), wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("step", "xs"), [(cell, XS), (row, BATCHES), (twice, XS)])
def test_second_derivatives_are_those_of_jax(step: Callable[..., Any], xs: Any) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jax.config.update("jax_enable_x64", True)
    point = (W, 0.3 * xs[0] + 0.1, xs)

    def along(lib: Any, f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda W, h, xs: (lib.grad(f)(W, h, xs) * V).sum()

    wanted = jax.grad(along(jax, loss(jax.numpy, jax.lax.scan, step)), (0, 1))(*point)
    found = dl.grad(along(dl, loss(np, dl.scan, step)), (0, 1))(*point)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)


def test_a_step_back_does_not_compute_products_again() -> None:
    f = dl.gradient(dl.trace(loss(np, dl.scan, cell), W, XS[0], XS))
    assert products(sweep_of(f).body) == 1  # the one with the cotangent


def test_sums_of_matrices_are_products_after_the_loop() -> None:
    f = dl.gradient(dl.trace(loss(np, dl.scan, twice), W, XS[0], XS))
    sweep = sweep_of(f)
    assert [shape for shape in sweep.body.output_shapes if len(shape) > 1] == []
    assert products(f) == 3  # W is used three times in a step
    small = dl.gradient(dl.trace(loss(np, dl.scan, cell), W[:3, :3], XS[0, :3], XS[:, :3]))
    assert sweep_of(small).body.output_shapes[1] == (3, 3)  # few operations a number are saved


def test_only_what_a_step_back_reads_is_kept() -> None:
    def growth(x: Any, rates: Any) -> Any:
        return dl.scan(lambda y, r: (y * r, None), x, rates)[0]

    rates = np.linspace(0.9, 1.1, 5)
    by_both = dl.gradient(dl.trace(growth, 1.0, rates))
    by_start = dl.trace(dl.grad(growth), 1.0, rates)
    assert len(sweep_of(by_both).body.inputs) == len(sweep_of(by_start).body.inputs) + 1
    assert sweep_of(by_start).arrays == 1  # the rates, no history
    np.testing.assert_allclose(by_start(2.0, rates), np.prod(rates), rtol=1e-15)


def test_a_checkpoint_in_a_step_keeps_the_carry_alone() -> None:
    def checked(np: Any, W: Any, h: Any, x: Any) -> Any:
        return dl.checkpoint(lambda W, h, x: cell(np, W, h, x), W, h, x)

    f = dl.gradient(dl.trace(loss(np, dl.scan, checked), W, XS[0], XS))
    assert products(sweep_of(f).body) == 2  # the step again
    plain = dl.gradient(dl.trace(loss(np, dl.scan, cell), W, XS[0], XS))
    np.testing.assert_allclose(f(W, XS[0], XS), plain(W, XS[0], XS), rtol=1e-13)


def test_a_loop_of_no_steps_has_derivatives() -> None:
    found = dl.grad(loss(np, dl.scan, cell), (0, 1, 2))(W, XS[0], XS[:0])
    assert [part.shape for part in found] == [(SIZE, SIZE), (SIZE,), (0, SIZE)]
    np.testing.assert_array_equal(found[0], 0.0)
    np.testing.assert_array_equal(found[1], 1.0)

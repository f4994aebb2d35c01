"""The planned memory of compiled functions, held to what Python's allocator measures."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import difflab as dl

RNG = np.random.default_rng(0)


def measured(call: Callable[[], Any]) -> int:
    """Return the most that a first call holds, buffers and results."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def network(rng: np.random.Generator) -> tuple[dl.Function, list[Any]]:
    X, Y = rng.normal(size=(256, 60)), rng.normal(size=(256, 10))
    p = [rng.normal(size=shape) for shape in [(60, 200), (200,), (200, 10), (10,)]]

    def loss(W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
        return np.mean((np.maximum(X @ W1 + b1, 0) @ W2 + b2 - Y) ** 2)

    return dl.value_and_grad(dl.trace(loss, *p), argnums=(0, 1, 2, 3)), p


def chain(rng: np.random.Generator) -> tuple[dl.Function, list[Any]]:
    def program(x: Any, y: Any) -> Any:
        for _ in range(30):
            x, y = np.tanh(x) * y + 0.5, np.sin(y) + x
        return x * y

    inputs = [rng.normal(size=(300, 200)) for _ in range(2)]
    return dl.trace(program, *inputs), inputs


def sums(rng: np.random.Generator) -> tuple[dl.Function, list[Any]]:
    def program(x: Any) -> list[Any]:
        y = np.exp(x - np.max(x, axis=1)[:, None])
        parts = y / np.sum(y, axis=1)[:, None]
        return [np.log(parts[:, ::2]) @ np.ones(200), np.cumsum(parts, 1).T]

    x = rng.normal(size=(300, 400))
    return dl.trace(program, x), [x]


@pytest.mark.parametrize("make", [network, chain, sums])
def test_the_planned_peak_of_arrays_is_the_measured_one(
    make: Callable[[np.random.Generator], tuple[dl.Function, Sequence[Any]]],
    rng: np.random.Generator,
) -> None:
    f, inputs = make(rng)
    fast = dl.compile(f)
    plan = fast.memory_plan()
    peak = measured(lambda: fast(*inputs))
    assert plan.peak_bytes == pytest.approx(peak, rel=0.1)
    assert len(plan.buffers) < plan.values


def test_a_long_chain_needs_as_many_buffers_as_are_alive_at_a_time(
    rng: np.random.Generator,
) -> None:
    f, _ = chain(rng)
    plan = dl.compile(f).memory_plan()
    assert plan.values == 30 * 5 + 1
    assert len(plan.buffers) <= 3
    assert plan.results == 8 * 300 * 200


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_the_planned_peak_of_a_batch_is_the_measured_one(
    target: str, rng: np.random.Generator
) -> None:
    if target == "native":
        pytest.importorskip("llvmlite")
    f = dl.value_and_gradient(dl.parse("ln(x1) + x1*x2 - sin(x2) + exp(-x1*x2)"))
    fast = dl.compile(f, target, threads=1)
    points = [rng.uniform(1, 2, 1_000_000) for _ in range(2)]
    plan = fast.memory_plan(1_000_000)
    assert plan.peak_bytes == pytest.approx(measured(lambda: fast(*points)), rel=0.1)
    assert plan.results == 3 * 8 * 1_000_000


def test_the_planned_peak_of_a_short_batch_of_machine_code_is_the_measured_one(
    rng: np.random.Generator,
) -> None:
    pytest.importorskip("llvmlite")
    f = dl.value_and_gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    points = [rng.uniform(1, 2, 1000) for _ in range(2)]
    fast = dl.compile(f, "native")
    plan = dl.compile(f, "native").memory_plan(1000)
    assert plan.results == 3 * 8 * 1000
    assert plan.peak_bytes == pytest.approx(measured(lambda: fast(*points)), rel=0.1)


def test_the_planned_peak_of_a_batch_of_arrays_is_the_measured_one(
    rng: np.random.Generator,
) -> None:
    f = dl.grad(dl.trace(lambda x: np.sum(np.tanh(x[1:] * x[:-1]) ** 2), np.ones(6)))
    fast = dl.compile(f, threads=1)
    x = rng.normal(size=(200_000, 6))
    plan = fast.memory_plan(200_000)
    assert plan.peak_bytes == pytest.approx(measured(lambda: fast(x)), rel=0.1)


def test_threads_have_buffers_each() -> None:
    fast = dl.compile(dl.parse("sin(x)*cos(x)"), "numpy", threads=3)
    assert fast.memory_plan(10).spaces == 1
    plan = fast.memory_plan(1_000_000)
    assert plan.spaces == 3
    assert plan.peak_bytes == plan.results + 3 * sum(plan.buffers)
    assert "in each of 3 threads" in str(plan)

"""Python's own loops, unrolled in a trace, as loops of machine code."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl

pytest.importorskip("llvmlite")

Chain = Callable[[Any, int], tuple[Any, Any]]


def logistic(y: Any, steps: int) -> tuple[Any, Any]:
    """Return the value, and the derivative by algebra."""
    first, slope = y, 1.0
    for _ in range(steps):
        slope = slope * (3.2 - 6.4 * y) + 0.01
        y = 3.2 * y * (1 - y) + 0.01 * first
    return y, slope


def newton(a: Any, steps: int) -> tuple[Any, Any]:
    x, slope = 1.5, 0.0
    for _ in range(steps):
        slope = slope * (x * x - a) / (2 * x * x) + 1 / (2 * x)
        x = x - (x * x - a) / (2 * x)
    return x, slope


def waves(y: Any, steps: int) -> tuple[Any, Any]:
    first, slope, number = y, 1.0, 0
    cos = math.cos if isinstance(y, float) else np.cos
    sin = math.sin if isinstance(y, float) else np.sin
    while number < steps:
        slope = slope * 0.5 * cos(y) + 0.25
        y = 0.5 * sin(y) + 0.25 * first
        number += 1
    return y, slope


@pytest.mark.parametrize("target", ["native", "auto"])
@pytest.mark.parametrize("chain", [logistic, newton, waves])
def test_code_of_a_chain_does_not_grow_with_its_steps(chain: Chain, target: str) -> None:
    sizes: dict[str, list[int]] = {"value": [], "slope": []}
    for steps in (700, 1000):
        f = dl.trace(lambda y, steps=steps: chain(y, steps)[0], 0.3)
        y, slope = chain(0.4, steps)
        for name, function, wanted in (("value", f, y), ("slope", dl.gradient(f), slope)):
            fast = dl.compile(function, target)
            sizes[name].append(fast.source.count("\n"))
            np.testing.assert_allclose(fast(0.4), [wanted] if name == "slope" else wanted, 1e-12)
            batch = np.array([0.4, 0.5, 0.4])
            np.testing.assert_allclose(np.ravel(fast(batch))[::2], wanted, 1e-12)
    assert all(short == long < 500 for short, long in sizes.values()), sizes


def test_a_chain_of_products_is_that_of_python_to_the_last_bit() -> None:
    def steps(y: Any) -> Any:
        for _ in range(800):
            y = 4 * y * (1 - y)
        return y

    fast = dl.compile(dl.trace(steps, 0.3), "native")
    assert [fast(y) for y in (0.3, 0.7123)] == [steps(0.3), steps(0.7123)]


def test_operations_that_do_not_repeat_stay_as_they_are() -> None:
    draw = np.random.default_rng(0).integers(0, 3, 2000)

    def mixed(y: Any) -> Any:
        for kind in draw:
            y = (0.5 * y + 0.1, np.sin(y) - 0.2 * y, 1.0 / (1.5 + y * y))[kind]
        return y

    f = dl.trace(mixed, 0.3)
    assert dl.compile(f, "native").source.count("\n") > 2000


def test_code_of_a_recurrent_cell_does_not_grow_with_its_steps() -> None:
    def cell(W: Any, h: Any, x: Any, steps: int) -> Any:
        for _ in range(steps):
            h = np.tanh(W @ h + x)
        return h

    W = np.random.default_rng(1).normal(size=(4, 4)) / 4
    h, x, sizes = np.zeros(4), np.array([0.1, -0.3, 0.2, 0.5]), []
    for steps in (100, 200):
        f = dl.trace(lambda W, h, x, steps=steps: np.sum(cell(W, h, x, steps)), W, h, x)
        fast = dl.compile(dl.value_and_gradient(f), "native")
        sizes.append(fast.source.count("\n"))
        np.testing.assert_allclose(fast(W, h, x)[0], np.sum(cell(W, h, x, steps)), 1e-13)
    assert sizes[0] == sizes[1]

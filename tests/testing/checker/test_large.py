"""Many components: few evaluations, little memory, and the wrong component found by bisection."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.testing import GradientMismatch, check_gradient

Array = NDArray[np.float64]


class Counted:
    """A function that counts its evaluations."""

    def __init__(self, f: Any) -> None:
        self.f = f
        self.count = 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return self.f(x)


def squares(x: Array) -> float:
    return float(x @ x)


@pytest.mark.parametrize("add_up", [np.sum, lambda terms: np.cumsum(terms, out=terms)[-1]])
def test_ten_million_components_take_twenty_evaluations_and_four_vectors(add_up: Any) -> None:
    # The rounding of the sum differs between the two, and must not change the number of values.
    n = 10_000_000
    x = np.random.default_rng(0).normal(size=n)
    gradient = 2 * x
    f = Counted(lambda x: float(add_up(x * x)))
    tracemalloc.start()
    check_gradient(f, gradient, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f.count <= 20
    assert peak <= 4 * 8 * n + 2**24


@pytest.mark.parametrize("n", [3_000, 200_000])
def test_one_wrong_component_is_found_by_bisection(n: int) -> None:
    draw = np.random.default_rng(1)
    for _ in range(3):
        x = draw.normal(size=n)
        index = int(draw.integers(n))
        wrong = 2 * x
        wrong[index] *= 1.001
        f = Counted(squares)
        with pytest.raises(GradientMismatch) as caught:
            check_gradient(f, wrong, x)
        (component,) = caught.value.components
        assert component.name == f"x[{index}]"
        assert component.numeric == pytest.approx(2 * x[index], rel=1e-4)
        found = int(str(caught.value).split(" of them to find")[0].split()[-1])
        assert found <= 2 * math.ceil(math.log2(n)) + 16
        assert f.count <= 60 + found


def test_three_percent_in_one_term_of_a_hundred() -> None:
    n, terms = 100_000, 100
    draw = np.random.default_rng(2)
    x = draw.normal(size=n)
    weights = draw.normal(size=(terms, n)) / math.sqrt(n)

    def f(x: Array) -> float:
        return float(np.sum(np.sin(weights @ x)))

    def gradient(x: Array, factor: float = 1.0) -> Array:
        slopes = np.cos(weights @ x)
        slopes[42] *= factor
        return slopes @ weights

    check_gradient(f, gradient, x)
    with pytest.raises(GradientMismatch):
        check_gradient(f, lambda x: gradient(x, 1.03), x)
    with pytest.raises(GradientMismatch):
        check_gradient(
            lambda x: np.sum(np.sin(weights.astype(np.float32) @ x), dtype=np.float32),
            lambda x: gradient(x, 1.03).astype(np.float32),
            x.astype(np.float32),
        )


MISTAKES = {
    "a sign error": lambda g: -g,
    "a wrong factor: yours is 2 times": lambda g: 2 * g,
    "a wrong factor: yours is 1/30000, 1 over the number of elements": lambda g: g / g.size,
    "transposed": lambda g: np.ascontiguousarray(g.reshape(300, 100).T),
    "off by one index": lambda g: np.roll(g, 1, axis=1),
    "missing or detached": lambda g: 0 * g,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_mistake_is_told_in_words(mistake: str) -> None:
    draw = np.random.default_rng(3)
    params = {"w": draw.normal(size=(100, 300)), "b": draw.normal(size=50)}

    def f(params: Any) -> float:
        return float(np.sum(np.exp(0.3 * params["w"])) + np.sum(params["b"] ** 2))

    def wrong(params: Any) -> Any:
        g = 0.3 * np.exp(0.3 * params["w"])
        return {"w": MISTAKES[mistake](g), "b": 2 * params["b"]}

    with pytest.raises(GradientMismatch, match=mistake) as caught:
        check_gradient(f, wrong, params)
    assert caught.value.components[0].name.startswith('params["w"][')


def test_components_at_a_kink_are_no_error() -> None:
    x = np.random.default_rng(4).normal(size=5_000)
    x[1234] = 0.0

    def f(x: Array) -> float:
        return float(np.sum(np.maximum(x, 0.0)) - 3 * np.abs(x[1234]))

    check_gradient(f, lambda x: (x > 0) * 1.0, x)
    with pytest.raises(GradientMismatch):
        check_gradient(f, lambda x: (x >= 0) * 1.0 + (x == 0) * 7.0, x)

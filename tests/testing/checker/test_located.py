"""A wrong component is named, with counted evaluations, whatever the truncation of differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.testing import GradientMismatch, check_gradient

Array = NDArray[np.float64]
Function = Callable[[Array], float]
Gradient = Callable[[Array], Array]

FUNCTIONS: dict[str, tuple[Function, Gradient]] = {
    "quartic": (lambda x: float(np.sum(x**4)), lambda x: 4 * x**3),
    "sine": (lambda x: float(np.sum(np.sin(3 * x))), lambda x: 3 * np.cos(3 * x)),
    "chain": (
        lambda x: float(np.sum(np.exp(x)) + x[1:] @ x[:-1]),
        lambda x: np.exp(x) + np.append(0.0, x[:-1]) + np.append(x[1:], 0.0),
    ),
    "logsumexp": (
        lambda x: float(np.log(np.sum(np.exp(x)))),
        lambda x: np.exp(x) / np.exp(x).sum(),
    ),
}
FAULTS: dict[int, Callable[[float], float]] = {
    300: lambda slope: 1.001 * slope,
    10_000: lambda slope: 1.1 * slope,
    1_000_000: lambda slope: -slope,
}


def caught(f: Function, gradient: Array, x: Array) -> tuple[GradientMismatch, int]:
    """Return the error of a check, and the number of evaluations."""
    count = 0

    def counted(x: Array) -> float:
        nonlocal count
        count += 1
        return f(x)

    with pytest.raises(GradientMismatch) as found:
        check_gradient(counted, gradient, x)
    return found.value, count


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [300, 10_000])
def test_one_wrong_component_is_named_within_the_evaluations(name: str, n: int) -> None:
    f, slope = FUNCTIONS[name]
    draw = np.random.default_rng(31)
    for _ in range(4):
        x = draw.normal(size=n)
        wrong, index = slope(x), int(draw.integers(n))
        wrong[index] = FAULTS[n](wrong[index])
        error, count = caught(f, wrong, x)
        assert [component.name for component in error.components] == [f"x[{index}]"]
        assert count <= 24 + 12 * math.log2(n)


def test_one_wrong_component_of_a_million_is_named() -> None:
    f, slope = FUNCTIONS["sine"]
    n, draw = 1_000_000, np.random.default_rng(32)
    x = draw.normal(size=n)
    wrong, index = slope(x), int(draw.integers(n))
    wrong[index] *= -1
    error, count = caught(f, wrong, x)
    assert [component.name for component in error.components] == [f"x[{index}]"]
    assert count <= 24 + 12 * math.log2(n)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-3, 1.0, 1e3])
def test_an_error_of_any_size_above_ten_error_bars_is_named(size: float) -> None:
    f, slope = FUNCTIONS["quartic"]
    n, draw = 1000, np.random.default_rng(33)
    x = draw.normal(size=n)
    for index in draw.integers(n, size=4).tolist():
        wrong = slope(x)
        wrong[index] += size / abs(x[index])  # the error along a direction then is about `size`
        error, count = caught(f, wrong, x)
        assert [component.name for component in error.components] == [f"x[{index}]"]
        assert count <= 24 + 12 * math.log2(n)


@pytest.mark.parametrize("wrong_ones", [2, 5, 10])
def test_several_wrong_components_are_named(wrong_ones: int) -> None:
    f, slope = FUNCTIONS["quartic"]
    draw = np.random.default_rng(34)
    x = draw.uniform(0.5, 1.5, size=2000)
    wrong, indices = slope(x), draw.choice(2000, wrong_ones, replace=False)
    wrong[indices] *= 1.01
    error, _ = caught(f, wrong, x)
    assert {component.name for component in error.components} == {f"x[{k}]" for k in indices}
    assert "other components" not in str(error)


def test_of_many_wrong_components_one_is_named_and_the_message_says_that_there_are_others() -> None:
    f, slope = FUNCTIONS["chain"]
    x = np.random.default_rng(35).normal(size=2000)
    error, _ = caught(f, slope(x) + 0.01 * x**2, x)
    assert len(error.components) == 1
    assert "other components are wrong too" in str(error)


def test_the_two_derivatives_are_printed_to_the_digits_that_differ() -> None:
    f, slope = FUNCTIONS["quartic"]
    x = np.random.default_rng(36).normal(size=300)
    wrong = slope(x)
    wrong[np.argmax(wrong)] *= 1.000001
    error, _ = caught(f, wrong, x)
    line = next(line for line in str(error).splitlines() if line.startswith("along"))
    numeric = line.split(" is ")[1].split(" ±")[0]
    assert numeric != line.split(" it is ")[1]
    assert float(numeric) == pytest.approx(float(line.split(" it is ")[1]), rel=1e-4)

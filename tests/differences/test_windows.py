"""Error bars of slopes hold the derivative, stay narrow at a kink, and cost few values."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.differences.window import first_half, sampled, slope_along

Array = NDArray[np.float64]

FUNCTIONS = {
    "wave": (
        lambda x: np.sin(x) * np.exp(x / 2),
        lambda x: np.exp(x / 2) * (np.cos(x) + np.sin(x) / 2),
    ),
    "root": (lambda x: x * np.sqrt(1 + x * x), lambda x: (1 + 2 * x * x) / np.sqrt(1 + x * x)),
    "logarithm": (lambda x: np.log(x * x + 0.1), lambda x: 2 * x / (x * x + 0.1)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bars_hold_the_derivative(name: str, dtype: str) -> None:
    f, derivative = FUNCTIONS[name]
    eps = float(np.finfo(dtype).eps)
    x = np.random.default_rng(0).normal(size=200) * 1.5

    def values(moves: Array) -> Array:
        return f(x * (1 + moves[:, None])).astype(dtype).astype(float)

    center = values(np.zeros(1))
    missed = 0
    for k in range(x.size):
        found = slope_along(
            lambda moves, k=k: (values(moves) - center)[:, k : k + 1],
            eps * np.abs(center[0, k : k + 1]),
            first_half(eps, alone=True),
            np.sqrt(eps) * np.abs(center[0, k : k + 1]),
        )
        missed += abs(found.value[0] - x[k] * derivative(x[k])) > found.bar[0]
        assert found.bar[0] < 0.05 * np.max(np.abs(x))
    assert missed <= 2


def test_the_jump_at_a_kink_does_not_widen_the_bar() -> None:
    def changes(moves: Array) -> Array:
        return (np.exp(moves) - 1.0 + 3.0 * np.abs(moves))[:, None]

    found = sampled(changes, np.array([2.0**-52]), 2.0**-6).slope()
    assert found.half_jump[0] == pytest.approx(3.0, abs=1e-6)
    assert abs(found.value[0] - 1.0) <= found.bar[0] < 1e-9


def test_outputs_outside_of_their_domain_leave_the_others_alone() -> None:
    def changes(moves: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.stack([np.sqrt(0.01 + moves) - 0.1, np.expm1(moves)], axis=1)

    found = sampled(changes, np.full(2, 2.0**-52), 0.125).slope()
    assert np.isinf(found.bar[0])
    assert abs(found.value[1] - 1.0) <= found.bar[1] < 1e-6

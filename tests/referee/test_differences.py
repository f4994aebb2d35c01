"""Differences along directions, by whole weights."""

from __future__ import annotations

import numpy as np
import pytest

from difflab.referee.differences import (
    AHEAD,
    BACKWARD,
    BEHIND,
    FORWARD,
    Terms,
    product,
    symmetric,
)


def applied(terms: Terms, f: np.polynomial.Polynomial | object, n: int) -> float:
    assert callable(f)
    total = 0.0
    for moves, weight in terms.items():
        x = np.zeros(n)
        for i, shift in moves:
            x[i] = shift
        total += weight * f(x)
    return total


@pytest.mark.parametrize("side", [FORWARD, BACKWARD, AHEAD, BEHIND])
def test_they_are_slopes_of_linear_functions(side: dict[int, int]) -> None:
    assert applied(product([side], [{0: 1}]), lambda x: 7.0 * x[0] + 4.0, 1) == 7.0


@pytest.mark.parametrize("side", [FORWARD, BACKWARD])
def test_two_directions_give_mixed_and_pure_second_derivatives(side: dict[int, int]) -> None:
    def f(x: np.ndarray) -> float:
        return float(3.0 * x[0] * x[1] + 5.0 * x[0] ** 2 - x[1] + 2.0)

    assert applied(product([side] * 2, [{0: 1}, {1: 1}]), f, 2) == 3.0
    assert applied(product([side] * 2, [{0: 1}, {0: 1}]), f, 2) == 10.0
    both = {0: 2, 1: -1}  # (2, -1) H (2, -1)
    assert applied(product([side] * 2, [both, both]), f, 2) == 4 * 10.0 - 4 * 3.0


def test_symmetric_differences_are_exact_a_degree_higher() -> None:
    terms, over = symmetric([{0: 1}])
    assert applied(terms, lambda x: 5.0 * x[0] + 9.0 * x[0] ** 2, 1) / over == 5.0
    terms, over = symmetric([{0: 1}, {0: 1}])
    assert applied(terms, lambda x: 4.0 * x[0] ** 2 + x[0] ** 3, 1) / over == 8.0
    terms, over = symmetric([{0: 1}, {1: 1}])
    cubic = applied(terms, lambda x: 6.0 * x[0] * x[1] + x[0] ** 2 * x[1], 2)
    assert cubic / over == 6.0
    assert () not in symmetric([{0: 1}])[0]  # the function may be undefined at the point

"""129 derivatives up to order 10, by composing one mode with itself and the two in turn."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from difflab.autodiff import jacobian
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.language import parse
from difflab.referee.referee import refer

DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "higher_order.json").read_text())["cases"]
EXPRESSIONS = sorted({case["expr"] for case in CASES})
WAYS = {
    "forward": ("forward",),
    "reverse": ("reverse",),
    "alternating": ("reverse", "forward"),
}
RTOL = 4e-15


@cache
def derivative(expression: str, way: str, order: int) -> Function:
    """Return the derivative of that order as a function."""
    if order == 0:
        return parse(expression)
    mode = WAYS[way][order % len(WAYS[way])]
    return jacobian(derivative(expression, way, order - 1), mode)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_derivatives_of_every_order(expression: str, way: str) -> None:
    cases = [case for case in CASES if case["expr"] == expression]
    assert cases
    for case in cases:
        found = derivative(expression, way, case["order"]).values(np.array([float(case["x"])]))
        truth = float(case["value"])
        np.testing.assert_allclose(found, [truth], rtol=RTOL, atol=0, err_msg=str(case["order"]))


def test_there_are_129_of_them() -> None:
    assert len(CASES) == 129
    assert max(case["order"] for case in CASES) == 10


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_referee_finds_second_derivatives(expression: str) -> None:
    (case,) = [case for case in CASES if case["expr"] == expression and case["order"] == 2]
    found = refer(parse(expression), [float(case["x"])], order=2, timeout=100.0)
    assert found.status == "smooth"
    np.testing.assert_allclose(found.jacobian, [[float(case["value"])]], rtol=2.3e-16, atol=0)


def test_forward_over_forward_grows_slowly() -> None:
    """Derivatives of sin repeat: a graph that shares them does not grow with the order."""
    sizes = [count(derivative("sin(x)", "forward", order)).operations for order in range(1, 11)]
    assert max(sizes) <= 2
    powers = [count(derivative("sqrt(x)", "forward", order)).operations for order in (1, 5)]
    assert powers[1] <= 30 * powers[0]

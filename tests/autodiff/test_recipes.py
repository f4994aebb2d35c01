"""Recorded rules: those of powers are recorded for each exponent that is a number."""

from __future__ import annotations

import math

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff.engine.recipe import template
from difflab.autodiff.engine.reverse import by_reverse
from difflab.primitives import dpower, multiply, negative, power, scatter
from tests.support.rows import for_each

X = 1.7
SLOPES = {
    "x^2": 2 * X,
    "x^3": 3 * X**2,
    "x^1": 1.0,
    "x^0": 0.0,
    "x^-1": -(X**-2),
    "x^0.5": 0.5 * X**-0.5,
    "x^e": math.e * X ** (math.e - 1),
    "x^(1/3)": X ** (-2 / 3) / 3,
    "3^x": math.log(3) * 3**X,
    "x^x": X**X * (math.log(X) + 1),
}


@for_each(("text", "slope"), list(SLOPES.items()))
def test_powers_have_their_slopes(text: str, slope: float) -> None:
    for mode in ("reverse", "forward"):
        found = dl.gradient(dl.parse(text), mode)(X)
        assert found.tolist() == pytest.approx([slope], rel=1e-15)


def test_no_slope_of_a_known_exponent_is_a_power_of_its_own() -> None:
    maps = power.rule.maps
    assert [row for row, _, _ in template(maps[0], 2, 2).steps] == [multiply, multiply]
    assert dpower in [row for row, _, _ in template(maps[0], 2).steps]


def test_exponents_of_one_value_and_two_types_have_a_recipe_each() -> None:
    for text, kind in (("x^3", int), ("x^3.0", float)):
        constants = dl.gradient(dl.parse(text)).graph.constants.values()
        assert kind in {type(value) for value, _ in constants if value == 3}
        assert {type(value) for value, _ in constants if value == 3} == {kind}


def test_a_reverse_sweep_appends_no_sign_and_no_element_that_is_dropped() -> None:
    terms = " + ".join(
        f"sin(x[{i}]*x[{i + 1}])*exp(-x[{i}]^2)/(1 + x[{i + 1}]^2)" for i in range(4)
    )
    function = dl.parse(f"x: [5]\n{terms}")
    sweep, slope = by_reverse(function)
    graph = sweep.builder.graph()
    numbers = graph.numbers_after([*function.outputs, slope.id])
    dropped = [graph.primitive(node) for node in np.flatnonzero(numbers < 0).tolist()]
    assert negative not in dropped
    assert scatter not in dropped

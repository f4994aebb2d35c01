"""Rewrites that save operations keep values, and are left where they would save none."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

import difflab as dl
from difflab.autodiff.engine.squares import squares_once
from difflab.graph.builder import Builder
from difflab.graph.passes.operation_saving import doubled_last
from difflab.primitives import add, multiply, subtract
from tests.support.programs import VARIABLES, expressions
from tests.support.rows import for_each

POINT = dict(zip(VARIABLES, np.random.default_rng(0).normal(size=len(VARIABLES)), strict=True))


@settings(max_examples=60)
@given(program=expressions())
def test_scaling_last_keeps_every_bit_of_ordinary_numbers(program: str) -> None:
    function = dl.parse(program)
    after = doubled_last(function)
    values = [POINT[name] for name in function.inputs]
    assert dl.count(after).operations <= dl.count(function).operations
    np.testing.assert_array_equal(after(*values), function(*values))


@for_each(
    ("text", "expected"),
    [
        ("2*x + 2*y", "2*(x + y)"),
        ("2*x*y - 2*y*z", "2*(x*y - y*z)"),
        ("sin(4*x - 4*y)", "sin(4*(x - y))"),
        ("2*x + 4*y + 2*z", "2*(x + 2*y + z)"),
        ("2*x + 2*y + 3", "2*(x + y + 1.5)"),
        ("(x + x) - (y + y) + (z + z)", "2*(x - y + z)"),
        ("-(2*x)/y + 2*z", "2*(-x/y + z)"),
        ("3*(2*x + 2*y)", "6*(x + y)"),
        ("2*x + 3*y", "2*x + 3*y"),
        ("0.5*x + 0.5*y", "0.5*x + 0.5*y"),  # halves of the smallest numbers are not exact
        ("sin(2*x) + 2*x", "sin(2*x) + 2*x"),
    ],
)
def test_powers_of_two_go_last(text: str, expected: str) -> None:
    assert doubled_last(dl.parse(text)) == dl.parse(expected)


@for_each(
    "text",
    [
        *("-x + 2*2*x", "2*2*2*x + 8*y", "(2*4)*x - 2*y", "x*(2*(2*2)) + 4*y"),
        *("-x + 0.5*2.0*2.0", "0.25*2*2*2 - 4*x", "4*0.25*2 - 2*x", "3*2*2 + 2*2*5", "2*x + 3*2"),
    ],
)
def test_products_of_constants_keep_every_factor(text: str) -> None:
    function = dl.parse(text)
    values = [0.7, 0.3][: function.n]
    np.testing.assert_array_equal(doubled_last(function)(*values), function(*values))


def test_what_comes_before_the_first_node_stays() -> None:
    function = dl.parse("2*x + 2*y")
    assert doubled_last(function, len(function.graph)) is function


def test_squares_are_written_alike_only_where_both_occur() -> None:
    both = dl.parse("sin(x*x) + cos(x^2) + y*y")
    assert squares_once(both) == dl.parse("sin(x^2) + cos(x^2) + y^2")
    for text in ("sin(x*x) + y^2", "x*y + x^3", "x*x", "x^2 + 1"):
        function = dl.parse(text)
        assert squares_once(function) is function


def test_a_product_with_twice_something_is_one_product() -> None:
    builder = Builder(simplify=True)
    x = builder.input("x")
    double = builder.emit(multiply, (builder.constant(2), x))
    assert builder.emit(multiply, (builder.constant(50), double)) == builder.emit(
        multiply, (builder.constant(100), x)
    )
    quarter = builder.emit(multiply, (builder.constant(0.25), double))
    assert builder.arguments(quarter)[1] == double  # 2·x may overflow where x/2 does not


def test_a_difference_that_is_there_is_not_taken_again() -> None:
    builder = Builder(simplify=True)
    x, y, z = (builder.input(name) for name in "xyz")
    first = builder.emit(subtract, (x, y))
    turned = builder.emit(subtract, (y, x))
    assert builder.arguments(builder.emit(add, (z, turned))) == (z, first)
    assert builder.primitive(builder.emit(subtract, (z, turned))) is add
    assert builder.arguments(builder.emit(add, (z, first))) == (z, first)

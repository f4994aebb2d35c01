"""What an operation reduces to keeps the operation's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.primitives import add, broadcast, divide, multiply, power, subtract

REDUCED: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda x: np.sum(0.0 * x + 1.0), 3.0),
    (lambda x: np.sum(x**0), 3.0),
    (lambda x: np.sum(0.0 / x), 0.0),
    (lambda x: np.sum(np.where(x > 1, 2.0, 2.0)), 6.0),
    (lambda x: np.reshape(0.0 * x, (1, 3))[0], [0.0, 0.0, 0.0]),
    (lambda x: x[0] * np.ones_like(x) + np.zeros_like(x), [2.0, 2.0, 2.0]),
    (lambda x: 4.0 * (2.0 * np.ones_like(x) * x[0]), [16.0, 16.0, 16.0]),
]


@pytest.mark.parametrize("place", range(len(REDUCED)))
def test_reduced_operations_keep_their_shape(place: int) -> None:
    text, wanted = REDUCED[place]
    f = dl.trace(text, np.ones(3))
    builder = Builder(simplify=True)
    x = builder.input("x", (3,))
    g = Function.build(builder, [x], inline(f, builder, [x]), ["y"])
    found = g(np.array([2.0, 3.0, 4.0]))
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_array_equal(found, wanted)


def test_shapes_that_do_not_fit_are_an_error_of_shapes() -> None:
    builder = Builder(simplify=True)
    x = builder.input("x", (3,))
    zeros = builder.emit(broadcast, (builder.constant(0),), (("rank", 0), ("shape", (2,))))
    with pytest.raises(ShapeError, match="add cannot combine the shapes"):
        builder.emit(add, (x, zeros))


SIMPLIFIED: list[Callable[[Any, Any], Any]] = [
    lambda x, y: (-x) + (-y),
    lambda x, y: x + (-y),
    lambda x, y: (-x) + y,
    lambda x, y: x - (-y),
    lambda x, y: (-x) - y,
    lambda x, y: (-x) * (-y),
    lambda x, y: np.where(np.logical_not(x > y), x, 2.0 * y),
    lambda x, y: np.where(np.logical_not(np.logical_not(x > y)), x, 2.0 * y),
    lambda x, y: np.abs(-x) + np.abs(np.abs(y)),
]


@pytest.mark.parametrize("number", range(len(SIMPLIFIED)))
def test_signs_and_conditions_are_simplified_to_the_same_values(number: int) -> None:
    code = SIMPLIFIED[number]
    x, y = np.array([1.0, -2.0, 3.0, 0.5]), np.array([4.0, 1.5, -6.0, 0.5])
    f = dl.trace(code, x, y)
    builder = Builder(simplify=True)
    nodes = [builder.input(name, (4,)) for name in "xy"]
    g = Function.build(builder, nodes, inline(f, builder, nodes), ["z"])
    np.testing.assert_array_equal(g(x, y), code(x, y))


@pytest.mark.parametrize(
    ("row", "numbers", "value"),
    [
        (divide, (1, 4), 0.25),
        (divide, (1, 7), None),
        (divide, (1, 0), None),
        (add, (2**53, 1), None),
        (subtract, (0.1, 1), None),
        (subtract, (2, 1), 1),
        (multiply, (3, 1e308), None),
        (power, (2, -3), 0.125),
        (power, (2, 0.5), None),
    ],
)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_operations_on_constants_fold_where_their_result_is_a_float64(
    row: Primitive, numbers: tuple[float, float], value: float | None, shape: tuple[int, ...]
) -> None:
    builder = Builder(simplify=True)
    args = [builder.spread(builder.constant(number), shape) for number in numbers]
    node = builder.emit(row, args)
    assert builder.number(node) == value
    assert value is None or builder.shape(node) == shape

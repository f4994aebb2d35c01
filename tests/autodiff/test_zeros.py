"""Directions that move some numbers of an array: the others count exactly nothing.

Expected values are limits worked out by hand; an infinite slope stands in its own entry alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.repetition import rolled
from tests.support.rows import for_each

INF = np.inf
X = np.array([0.0, 1.0, 4.0])
BOTH = pytest.mark.parametrize("mode", ["forward", "reverse"])

CASES: dict[str, tuple[Callable[[Any], Any], list[list[float]]]] = {
    "elementwise": (np.sqrt, [[INF, 0, 0], [0, 0.5, 0], [0, 0, 0.25]]),
    "a sum": (lambda x: np.sum(np.sqrt(x)), [[INF, 0.5, 0.25]]),
    "sums and slices": (
        lambda x: np.stack([np.sum(np.log(x + 0.0)), x[1] * x[2], np.sum(np.sqrt(x[1:]))]),
        [[INF, 1, 0.25], [0, 4, 1], [0, 0.5, 0.25]],
    ),
    "neighbours": (lambda x: np.sqrt(x[:-1]) + x[1:] ** 1.5, [[INF, 1.5, 0], [0, 0.5, 3]]),
    "a division": (lambda x: 1 / x, [[-INF, 0, 0], [0, -1, 0], [0, 0, -1 / 16]]),
    "branches": (
        lambda x: np.sum(np.where(x > 0.5, np.log(x), np.sqrt(x) * 2)),
        [[INF, 1, 0.25]],
    ),
    "the larger": (
        lambda x: np.maximum(np.sqrt(x), x / 3),
        [[1 / 3, 0, 0], [0, 0.5, 0], [0, 0, 0.25]],
    ),
}


@BOTH
@for_each("name", CASES)
def test_what_a_direction_leaves_alone_is_exactly_zero(name: str, mode: Any) -> None:
    code, expected = CASES[name]
    function = dl.trace(code, np.ones(3))
    derivative = dl.jacobian(function, mode)
    by_code = dl.jacfwd if mode == "forward" else dl.jacrev
    for found in (
        derivative(X),
        dl.compile(derivative, "numpy")(X),
        dl.sparse_jacobian(function, mode)(X).toarray(),
        np.reshape(by_code(code)(X), np.shape(expected)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)


@BOTH
def test_numbers_beside_each_other(mode: Any) -> None:
    function = dl.parse("[sqrt(x), y]")
    expected = [[INF, 0.0], [0.0, 1.0]]
    assert dl.jacobian(function, mode)(0.0, 3.0).tolist() == expected
    assert dl.sparse_jacobian(function, mode)(0.0, 3.0).toarray().tolist() == expected


@BOTH
def test_columns_and_rows_that_share_a_color(mode: Any) -> None:
    n = 30
    function = dl.trace(lambda x: np.sqrt(x[:-2]) + x[1:-1] ** 1.5 + np.log(x[2:]), np.ones(n))
    x = np.arange(n, dtype=np.float64) % 7
    found = dl.sparse_jacobian(function, mode)
    assert found.function.output_shapes[0][0] == 3
    expected = np.zeros((n - 2, n))
    rows = np.arange(n - 2)
    with np.errstate(divide="ignore"):
        expected[rows, rows] = 0.5 / np.sqrt(x[:-2])
        expected[rows, rows + 1] = 1.5 * np.sqrt(x[1:-1])
        expected[rows, rows + 2] = 1 / x[2:]
    np.testing.assert_allclose(found(x).toarray(), expected, rtol=1e-15, atol=0)
    np.testing.assert_allclose(dl.jacobian(function, mode)(x), expected, rtol=1e-15, atol=0)


def test_second_derivatives() -> None:
    """Of Σ xᵢ¹·⁵ + x₀x₁, whose second derivative by x₀ is infinite at 0."""
    function = dl.trace(lambda x: np.sum(x**1.5) + x[0] * x[1], np.ones(3))
    expected = [[INF, 1, 0], [1, 0.75, 0], [0, 0, 0.375]]
    np.testing.assert_allclose(dl.hessian(function)(X), expected, rtol=1e-15, atol=0)
    found = dl.sparse_hessian(function)(X).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)
    np.testing.assert_allclose(dl.jacfwd(dl.grad(lambda x: function(x)))(X), expected, atol=0)


@BOTH
def test_finite_slopes_need_no_masks(mode: Any) -> None:
    """A sweep has an operation for the slope, and one more where the slope may be infinite."""
    n = 8
    for code, more in ((np.sin, 0), (np.sqrt, 1)):
        derivative = dl.jacobian(dl.trace(lambda x, code=code: code(x) * 2, np.ones(n)), mode)
        rows = [derivative.graph.primitive(node) for node in range(len(derivative.graph))]
        assert sum(row is not None and row.name == "where" for row in rows) == more * n


def test_a_direction_ends_where_it_moves_nothing() -> None:
    """Each of the n directions meets two of the n terms, not all of them."""
    sizes = []
    for n in (20, 40):
        terms = " + ".join(f"sin(x[{i}])*x[{i + 1}]" for i in range(n - 1))
        sizes.append(dl.count(dl.jacobian(dl.parse(f"x: [{n}]\n{terms}"), "forward")).operations)
    assert sizes[1] < 2.2 * sizes[0]


N = 48
SINGULAR = {
    "where": lambda i: f"where(x[{i}] > 0, sqrt(x[{(i + 1) % N}]), x[{i}])",
    "relu": lambda i: f"relu(sqrt(x[{i}]) - 1)*x[{(i + 5) % N}]",
    "max": lambda i: f"max(sqrt(x[{i}]), 0.5 + x[{(i + 1) % N}])",
    "nested": lambda i: (
        f"where(x[{i}] > 0, where(x[{(i + 1) % N}] > 0, log(x[{i}])*sqrt(x[{(i + 1) % N}]), 2),"
        f" x[{7 * i % N}]^1.5)"
    ),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_untaken_branches_of_vectors_count_nothing(name: str) -> None:
    """Repeated terms on vectors have the derivatives of the numbers, at singular points too.

    A chosen branch may be infinite there; nan there is nowhere, for nothing else is singular.
    """
    numbers = dl.parse(f"x: [{N}]\n" + " + ".join(SINGULAR[name](i) for i in range(N)))
    vectors = rolled(numbers, least=0)
    assert len(vectors.graph) * 4 < len(numbers.graph)
    rng = np.random.default_rng(0)
    for x in (np.where(rng.random(N) < 0.4, 0.0, rng.uniform(0.1, 3, N)), np.zeros(N)):
        expected = dl.gradient(numbers)(x)
        assert not np.isnan(expected).any()
        for found in (
            dl.gradient(vectors)(x),
            dl.jacobian(vectors, "forward")(x)[0],
            dl.compile(dl.gradient(vectors), "numpy")(x),
            dl.vjp(vectors)(x, 1.0)[1],
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)
        second = dl.hessian(numbers)(x)
        np.testing.assert_allclose(dl.hessian(vectors)(x), second, rtol=1e-12, atol=0)
        assert not np.isnan(second).any()


@pytest.mark.parametrize("x", [1000.0, np.inf])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    "text",
    ["min(y, relu(exp(x)))", "where(y < 5, y, max(exp(x), x^3))", "max(y, -relu(sinh(x)))"],
)
def test_a_slope_that_overflows_in_branches_that_are_not_taken_counts_as_nothing(
    text: str, mode: str, x: float
) -> None:
    assert dl.jacobian(dl.parse(text), mode)(x=x, y=1.0).tolist() == [[0.0, 1.0]]

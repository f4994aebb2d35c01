"""`differentiate`: shapes, points and callables of every kind, and bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.errors import DifflabError, InputError, PointError, UnsupportedError
from difflab.methods.differentiate import PointDerivative, differentiate

METHODS = [
    "symbolic",
    "finite-forward",
    "finite-central",
    "richardson",
    "complex-step",
    "forward",
    "reverse",
]
SEED = "ln(x1) + x1*x2 - sin(x2)"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_a_function(method: str) -> None:
    found = differentiate(dl.parse(SEED), [2.0, 5.0], method=method)
    assert found.method == method
    assert found.value.shape == (2,)
    np.testing.assert_allclose(found.value, [5.5, 1.7163378145367738], rtol=1e-6)
    if found.error is not None:
        assert (np.abs(found.value - [5.5, 1.7163378145367738]) <= found.error).all()
        assert found.evaluations > 0
    hessian = differentiate(dl.parse(SEED), [2.0, 5.0], method=method, order=2).value
    np.testing.assert_allclose(hessian, [[-0.25, 1.0], [1.0, math.sin(5.0)]], rtol=1e-3)


@pytest.mark.parametrize(
    ("f", "x", "shape"),
    [
        (np.sin, 1.0, ()),
        (np.sin, np.float64(1.0), ()),
        (lambda x: [x, 2 * x], 1.0, (2,)),
        (np.sum, [1.0, 2.0, 3.0], (3,)),
        (np.sin, [1.0, 2.0, 3.0], (3, 3)),
        (lambda x: x[:2] * x[2], [1.0, 2.0, 3.0], (2, 3)),
        (np.sum, [[1.0, 2.0], [3.0, 4.0]], (2, 2)),
        (np.transpose, [[1.0, 2.0, 3.0]], (3, 1, 1, 3)),
        (lambda x: x[0], (1, 2), (2,)),
    ],
)
def test_shapes_of_a_callable(f: Any, x: Any, shape: tuple[int, ...]) -> None:
    found = differentiate(f, x)
    assert np.shape(found.value) == shape
    assert np.shape(found.error) == shape


def test_values_of_a_jacobian() -> None:
    found = differentiate(lambda x: np.array([x[0] * x[1], x[2] ** 2]), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found.value, [[2, 1, 0], [0, 0, 6]], atol=1e-10)
    turned = differentiate(np.transpose, [[1.0, 2.0, 3.0]]).value
    np.testing.assert_allclose(turned[:, 0, 0, :], np.eye(3), atol=1e-12)


def test_shapes_of_a_function() -> None:
    assert np.ndim(differentiate(dl.parse("sin(x)"), 1.0).value) == 0
    assert differentiate(dl.parse("sin(x)"), [1.0]).value.shape == (1,)
    assert differentiate(dl.parse("[x*y, x, y]"), [1.0, 2.0]).value.shape == (3, 2)
    by_name = differentiate(dl.parse(SEED), {"x2": 5.0, "x1": 2.0})
    np.testing.assert_allclose(by_name.value, [5.5, 1.7163378145367738], rtol=1e-12)
    arrays = dl.parse("x: [3]\nx[0]*x[1] + x[2]*y")
    named = differentiate(arrays, {"x": [1.0, 2.0, 3.0], "y": 4.0})
    np.testing.assert_allclose(named.value, [2, 1, 4, 3], rtol=1e-11)
    assert differentiate(arrays, [1.0, 2.0, 3.0, 4.0], order=2).value.shape == (4, 4)


def test_evaluations_of_a_callable_are_counted() -> None:
    calls = 0

    def f(x: NDArray[Any]) -> Any:
        nonlocal calls
        calls += 1
        return np.exp(x).sum()

    found = differentiate(f, [0.5, 1.5])
    assert found.evaluations == calls


def test_callable_may_keep_or_change_its_argument() -> None:
    def f(x: NDArray[Any]) -> Any:
        x *= 2.0
        return x.sum()

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(differentiate(f, x).value, [2.0, 2.0], rtol=1e-12)
    np.testing.assert_array_equal(x, [1.0, 2.0])


@pytest.mark.parametrize("method", ["finite-forward", "finite-central", "richardson"])
@pytest.mark.parametrize(
    ("f", "x", "truth"),
    [
        (math.log, 1e-3, 1e3),
        (lambda x: math.sqrt(x) ** 3 + x, 0.0, 1.0),
        (lambda x: math.asin(x), 0.999, 1 / math.sqrt(1 - 0.999**2)),
        (lambda x: 1 / (2 - x), 1.999, 1e6),
        (lambda x: x**0.5, 1e-6, 500.0),
        (lambda x: math.exp(x), 709.0, math.exp(709.0)),
    ],
)
def test_exceptions_beside_the_point_are_the_edge_of_the_domain(
    method: str, f: Any, x: float, truth: float
) -> None:
    found = differentiate(f, x, method=method)
    assert abs(found.value - truth) <= found.error < 0.1 * truth


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (lambda x: math.log(x), -1.0, "f raised ValueError at the point"),
        (lambda x: {}["no"], 1.0, "f raised KeyError"),
        (lambda x: "text", 1.0, "the value of f is not a number, but text"),
        (lambda x: x * 1j, 1.0, "real numbers"),
        (lambda x: [], 1.0, "empty"),
        (lambda x: [[1.0], [1.0, 2.0]], 1.0, "a list with rows of different lengths"),
        ("x^2", 1.0, "parse"),
        (lambda x: np.ones(2 if x == 1.0 else 3), 1.0, "near"),
        (lambda x: x if x == 1.0 else {}["no"], 1.0, "KeyError"),
    ],
)
def test_bad_functions(f: Any, x: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        differentiate(f, x)


@pytest.mark.parametrize(
    "x", [[], "a", None, [1.0, math.nan], math.inf, [1j], {"x": 1.0}, [[1], [1, 2]]]
)
def test_bad_points(x: Any) -> None:
    with pytest.raises(PointError):
        differentiate(np.sum, x)


@pytest.mark.parametrize(
    "x", [1.0, [1.0], [1.0, 2.0, 3.0], {"x1": 1.0}, {"x1": 1, "x2": 2, "z": 3}]
)
def test_bad_points_of_a_function(x: Any) -> None:
    with pytest.raises(PointError):
        differentiate(dl.parse(SEED), x)


def test_errors_of_difflab_pass_through() -> None:
    def f(x: float) -> float:
        raise UnsupportedError("not today")

    with pytest.raises(UnsupportedError, match="not today"):
        differentiate(f, 1.0)


def test_hessian_needs_one_value() -> None:
    with pytest.raises(DifflabError, match="one output"):
        differentiate(np.sin, [1.0, 2.0], order=2)
    with pytest.raises(DifflabError):
        differentiate(np.sin, 1.0, order=3)


def test_result_is_frozen() -> None:
    found = differentiate(np.sin, 1.0)
    assert isinstance(found, PointDerivative)
    with pytest.raises(AttributeError):
        found.value = 3.0  # type: ignore[misc]


def test_outside_of_the_domain_there_is_no_derivative() -> None:
    found = differentiate(dl.parse("log(x)"), -1.0)
    assert math.isnan(found.value)
    assert math.isinf(found.error)

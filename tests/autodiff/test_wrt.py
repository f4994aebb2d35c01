"""Derivatives by inputs that are chosen by name, held to SymPy's and to those by all inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import difflab as dl
from difflab.errors import InputError

TEXT = "a*x1^2*sin(x2) + exp(-a*x10)*x2"
POINT = {"a": 1.3, "x1": 0.7, "x2": -0.4, "x10": 0.9}
WEIGHTS = {"W": np.array([[0.3, -0.2], [0.5, 0.1]]), "b": 0.4, "x": np.array([1.2, -0.7])}
PROGRAM = "W: [2, 2]; x: [2]; sum(tanh(W @ x + b))"


def by_sympy(names: list[str]) -> Any:
    """Return ∂f/∂name for each name, and the matrix of second derivatives."""
    symbols = {name: sympy.Symbol(name) for name in POINT}
    text = sympy.sympify(TEXT, locals=symbols)
    slope = [text.diff(symbols[name]) for name in names]
    second = [[entry.diff(symbols[name]) for name in names] for entry in slope]
    values = {symbols[name]: value for name, value in POINT.items()}
    return (
        np.array([float(entry.subs(values)) for entry in slope]),
        np.array([[float(entry.subs(values)) for entry in row] for row in second]),
    )


@pytest.mark.parametrize("names", [["x1"], ["x10", "a"], ["x2", "x1", "x10"]])
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_chosen_inputs_are_those_of_sympy(names: list[str], mode: Any) -> None:
    f = dl.parse(TEXT)
    slope, second = by_sympy(names)
    wrt = names[0] if len(names) == 1 else names
    np.testing.assert_allclose(dl.gradient(f, mode, wrt=wrt)(**POINT), slope, rtol=1e-14)
    np.testing.assert_allclose(dl.jacobian(f, mode, wrt=wrt)(**POINT), [slope], rtol=1e-14)
    np.testing.assert_allclose(dl.hessian(f, wrt=wrt)(**POINT), second, rtol=1e-13)
    value, again = dl.value_and_gradient(f, mode, wrt=wrt)(**POINT)
    assert value == f(**POINT)
    np.testing.assert_allclose(again, slope, rtol=1e-14)


@pytest.mark.parametrize(
    ("wrt", "columns"),
    [
        ("W", [0, 1, 2, 3]),
        (["x", "W"], [5, 6, 0, 1, 2, 3]),
        ("W[1,0]", [2]),
        (["x[1]", "b", "W[0,1]"], [6, 4, 1]),
        (["W[1,1]", "x"], [3, 5, 6]),
    ],
)
def test_inputs_and_elements_of_arrays(wrt: Any, columns: list[int]) -> None:
    f = dl.parse(PROGRAM)
    assert f.inputs == ("W", "b", "x")
    for transform in (dl.gradient, dl.jacobian):
        whole = transform(f)(**WEIGHTS)
        chosen = transform(f, wrt=wrt)(**WEIGHTS)
        np.testing.assert_allclose(chosen, whole[..., columns], rtol=1e-14)
    whole = dl.hessian(f)(**WEIGHTS)
    chosen = dl.hessian(f, wrt=wrt)(**WEIGHTS)
    np.testing.assert_allclose(chosen, whole[np.ix_(columns, columns)], rtol=1e-12)


def test_the_derivative_takes_all_inputs_and_batches_and_is_compiled() -> None:
    f = dl.parse("a*x^2 + b")
    slope = dl.gradient(f, wrt=["x", "a"])
    assert slope.inputs == f.inputs
    points = np.array([[1.0, 5.0, 2.0], [3.0, 5.0, 4.0]])
    expected = [[4.0, 4.0], [24.0, 16.0]]
    assert slope(*points.T).tolist() == expected
    assert dl.compile(slope, packed=True)(points).tolist() == expected


def test_trees_of_arguments_remain() -> None:
    f = dl.trace(lambda p, x: p["w"] * x + p["b"], {"w": 1.0, "b": 0.0}, 1.0)
    slope = dl.gradient(f, wrt="p_w")
    assert slope({"w": 2.0, "b": 1.0}, 3.0).tolist() == [3.0]


def test_what_is_not_chosen_costs_nothing() -> None:
    f = dl.parse("x: [1000]; sum(sin(x)*y)")
    chosen = dl.gradient(f, wrt="y")
    assert len(chosen.graph) < len(dl.gradient(f).graph)
    # One sweep, not one for each of the 1,001 elements of the inputs.
    assert len(dl.jacobian(f, "forward", wrt="y").graph) < 20


@pytest.mark.parametrize("transform", [dl.gradient, dl.jacobian, dl.hessian, dl.value_and_gradient])
@pytest.mark.parametrize(
    ("wrt", "said"),
    [
        ("x3", "unknown variable 'x3'"),
        (["x1", "x1"], "names an input twice"),
        ([], "names nothing"),
        (3, "takes the names of inputs, not 3"),
        ("x1[0]", "is not a single element"),
    ],
)
def test_names_that_are_refused(transform: Callable[..., Any], wrt: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        transform(dl.parse(TEXT), wrt=wrt)


@pytest.mark.parametrize("transform", [dl.jacobian, dl.hessian])
def test_python_code_has_no_names(transform: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="names inputs of a Function") as told:
        transform(lambda x: x * x, wrt="x")
    assert "dl.trace" in str(told.value)
    with pytest.raises(InputError, match="exclude each other"):
        transform(dl.parse(TEXT), argnums=0, wrt="x1")

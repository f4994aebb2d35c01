"""Eager, traced and parsed: one set of rules, so the same numbers to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import primitives
from difflab.core.primitive import Primitive
from tests.support.orders import orders
from tests.support.rows import for_each


def eager(function: Callable[..., Any], *values: Any) -> tuple[Any, Any]:
    """Return the value, and the gradient with the arguments flattened."""
    leaves = [dl.tensor(value, requires_grad=True) for value in values]
    result = function(*leaves)
    result.backward()
    return result.item(), np.concatenate([np.ravel(np.asarray(each.grad)) for each in leaves])


def traced(function: Callable[..., Any], *values: Any) -> tuple[Any, Any]:
    recorded = dl.trace(function, *values)
    return float(recorded(*values)), dl.gradient(recorded)(*values)


RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4))
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "seed": (lambda a, b: np.log(a) + a * b - np.sin(b), (2.0, 5.0)),
    "fan-out": (lambda a, b: (a + b) * (a - b) * a / b + a**3, (1.7, 0.3)),
    "selection": (
        lambda a, b: np.sum(np.where(a > b, np.sqrt(np.maximum(a, 0)) * a, a * b)),
        (RNG.normal(size=5), RNG.normal(size=5)),
    ),
    "broadcast": (lambda a, b: np.sum((a * b + b) ** 2), (X, RNG.normal(size=4))),
    "elements": (lambda x: x[0] * x[1] + np.sin(x[1]) * x[2] + np.sum(x[1:] * x[:-1]), (X[0],)),
    "layers": (
        lambda W, b, V, c: np.mean((np.maximum(X @ W + b, 0) @ V + c - 1) ** 2),
        (RNG.normal(size=(4, 6)), RNG.normal(size=6), RNG.normal(size=(6, 2)), np.zeros(2)),
    ),
    "reductions": (
        lambda x: np.max(x) * np.prod(x[0]) + np.linalg.norm(x) + np.sum(np.cumsum(x, axis=1)),
        (X,),
    ),
    "matrices": (
        lambda a: np.sum(np.linalg.inv(a + np.eye(3))) + np.linalg.det(a.T @ a),
        (X[:, :3],),
    ),
    "repeated broadcasts": (
        lambda a, b: np.sum(np.sin(a * b) + (b * b + a) * np.where(a > b, b, a) / b),
        (X, RNG.normal(size=4)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_eager_and_traced_agree_bit_for_bit(name: str) -> None:
    function, values = CASES[name]
    value, gradient = eager(function, *values)
    expected_value, expected = traced(function, *values)
    assert value == expected_value
    assert np.array_equal(gradient, expected)


def test_eager_and_parsed_agree_bit_for_bit() -> None:
    value, gradient = eager(lambda a, b: np.log(a) + a * b - np.sin(b), 2.0, 5.0)
    parsed = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    assert value == float(parsed(2.0, 5.0))
    assert np.array_equal(gradient, dl.gradient(parsed)(2.0, 5.0))


ROWS = [row for row in primitives.TABLE.values() if row.samples and row.arity == len(row.samples)]


@for_each("row", ROWS, ids=lambda row: row.name)
def test_every_row_agrees_bit_for_bit(row: Primitive) -> None:
    if row.boolean or row.name == "as_number":
        pytest.skip("its result has no derivative")
    if orders(row):
        pytest.skip("its order is a plain number: tested by itself")
    rng = np.random.default_rng(3)
    values = [rng.uniform(low, high, 6) for low, high in row.samples]
    weights = rng.normal(size=6)

    def function(*args: Any) -> Any:
        return np.sum(row(*args) * weights)

    value, gradient = eager(function, *values)
    expected_value, expected = traced(function, *values)
    assert value == expected_value
    assert np.array_equal(gradient, expected)


@for_each("row", ROWS, ids=lambda row: row.name)
def test_second_derivatives_of_every_row(row: Primitive) -> None:
    if row.boolean or row.name == "as_number" or orders(row):
        pytest.skip("its result has no derivative")
    rng = np.random.default_rng(4)
    values = [rng.uniform(low, high) for low, high in row.samples]
    recorded = dl.trace(lambda *args: row(*args) * 1.5, *values)
    expected = dl.hessian(recorded)(*values)
    leaves = [dl.tensor(value, requires_grad=True) for value in values]
    (row(*leaves) * 1.5).backward(create_graph=True)
    firsts = [each.grad for each in leaves]
    for first, line in zip(firsts, expected, strict=True):
        for each in leaves:
            each.grad = None
        if first is not None and first.requires_grad:
            first.backward(retain_graph=True)
        found = [0.0 if each.grad is None else each.grad.item() for each in leaves]
        assert np.allclose(found, line, rtol=1e-12, atol=1e-14)

"""Functions of small arrays as programs of scalar operations, against NumPy's own results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.execute.lower.schedule import Schedule, unrolled
from difflab.execute.targets.python.target import PythonTarget
from difflab.graph.repetition import rolled
from tests.support.rows import for_each

RNG = np.random.default_rng(6)
A, B, V, W = (
    RNG.normal(size=(2, 3)),
    RNG.normal(size=(3, 4)),
    RNG.normal(size=3),
    RNG.normal(size=3),
)
T = RNG.normal(size=(5, 2, 3))

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda a: np.sin(a) * 2 + a**2, (A,)),
    "spread": (lambda a, v: a * v + v, (A, V)),
    "vector times vector": (lambda v, w: v @ w, (V, W)),
    "matrix times vector": (lambda a, v: a @ v, (A, V)),
    "vector times matrix": (lambda v, b: v @ b, (V, B)),
    "matrix times matrix": (lambda a, b: a @ b, (A, B)),
    "stack times matrix": (lambda t, b: t @ b, (T, B)),
    "stack times vector": (lambda t, v: t @ v, (T, V)),
    "stack times stack": (lambda t: t @ np.swapaxes(t, -1, -2), (T,)),
    "sum": (lambda t: np.sum(t), (T,)),
    "sum of one axis": (lambda t: np.sum(t, axis=1), (T,)),
    "sum of two axes": (lambda t: np.sum(t, axis=(0, 2)), (T,)),
    "product": (lambda a: np.prod(a, axis=0), (A,)),
    "largest and smallest": (lambda t: np.max(t, axis=0) - np.min(t, axis=(1, 2))[1], (T,)),
    "constants": (lambda a: a + np.arange(6.0).reshape(2, 3), (A,)),
    "moves": (lambda a, v: np.concatenate([a.T[1:], a[:, :2]]) * v[0], (A, V)),
    "neighbours": (lambda v: np.sum((v[1:] - v[:-1] ** 2) * v[1]) * v[0:2], (V,)),
    "choice": (lambda a: np.where(a > 0, np.sqrt(a), 0.0), (A,)),
    "number": (lambda x: x * np.exp(x), (0.5,)),
}


def taken_apart(f: dl.Function, values: Any, most: int = 1000) -> list[Any]:
    target = PythonTarget(unrolled(Schedule.of(f), most), f.input_shapes)
    return target(values, ())


@for_each("case", CASES)
def test_values_are_numpys(case: str) -> None:
    call, values = CASES[case]
    with np.errstate(invalid="ignore"):
        expected = call(*values)
    found = taken_apart(dl.trace(call, *values), values)[0]
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "case", ["matrix times matrix", "sum of one axis", "choice", "moves", "neighbours"]
)
def test_derivatives_are_the_functions_own(case: str) -> None:
    call, values = CASES[case]
    derivative = dl.jacobian(dl.trace(call, *values), "reverse")
    found = taken_apart(derivative, values, 20_000)[0]
    np.testing.assert_allclose(found, derivative(*values), rtol=1e-13, atol=1e-15)


def test_terms_are_added_in_pairs_and_equal_ones_computed_once() -> None:
    f = dl.trace(lambda x: np.sum(np.sin(np.broadcast_to(x, (4, 8)))[1:3], axis=-1), np.ones(8))
    program = unrolled(Schedule.of(f), 100)
    assert [step.row.name for step in program.steps].count("sin") == 8
    depth = dict.fromkeys(range(8), 0)
    for step in program.steps:
        depth[step.node] = 1 + max(depth[arg] for arg in step.args)
    assert max(depth.values()) == 1 + 3
    assert len(program.steps) == 8 + 7


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x: [200]; sum(x)", "more than 100 scalar operations"),
        ("x: [60]; sum(sin(x)*x)", "more than 100 scalar operations"),
        ("a: [8, 8]; b: [8, 8]; a @ b", "more than 100 scalar operations"),
        ("x: [11]; w: [3, 11]; y: [3, 11]; w*x + y", "more than 50 scalar operations"),
        ("x: [3]; logsumexp(x)", "'logsumexp' computes with arrays"),
    ],
)
def test_what_is_too_much_is_refused(text: str, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        unrolled(Schedule.of(dl.parse(text)), 50 if "50" in says else 100)


def test_empty_arrays_are_left_to_numpy() -> None:
    for call in (np.sum, lambda x: np.sum(x, axis=0), lambda x: x + 1.0):
        f = dl.trace(call, np.ones((0, 3)))
        with pytest.raises(UnsupportedError, match="empty"):
            unrolled(Schedule.of(f), 100)


def test_repetition_is_taken_apart_into_the_numbers_it_was() -> None:
    """Sums in order, tables of places and constants, by both the value and the gradient."""
    places = np.random.default_rng(1).permutation(60).tolist()
    text = " + ".join(f"x[{i}]*sin(x[{p // 2}])*{i + 0.5}" for i, p in enumerate(places))
    numbers = dl.parse(f"x: [60]\n{text}")
    vectors = rolled(numbers, least=0)
    assert len(vectors.graph) < 20
    x = np.linspace(-1.0, 2.0, 60)
    value, slope = dl.compile(dl.value_and_gradient(vectors), "python")(x)
    assert value == numbers(x)
    expected = np.sin(x[np.array(places) // 2]) * (np.arange(60) + 0.5)
    weights = x * (np.arange(60) + 0.5) * np.cos(x[np.array(places) // 2])
    np.add.at(expected, np.array(places) // 2, weights)
    np.testing.assert_allclose(slope, expected, rtol=1e-14, atol=1e-14)

"""Code that computes in float32: every row, its edges, and what refuses to."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.optional import installed
from difflab.errors import InputError, UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import TABLE, as_number
from tests.support.orders import orders
from tests.support.rows import for_each

NATIVE = pytest.param(
    "native",
    marks=pytest.mark.skipif(
        not installed("llvmlite"), reason="needs llvmlite: pip install 'difflab[native]'"
    ),
)
TARGETS = pytest.mark.parametrize("target", ["numpy", NATIVE])
EPSILON = 2.0**-23
ROWS = [name for name, row in TABLE.items() if row.samples and len(row.samples) == row.arity]
EDGES = np.array([0.0, -0.0, 40.0, -40.0, 1e-42, -1e-42, np.inf, -np.inf, np.nan, 3e38, 0.5, 2.0])
ELEMENTARY = ("sin", "cos", "exp", "log", "sqrt", "tanh", "atan", "log1p", "expm1", "erf", "abs")
FORMULA = dl.value_and_gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))


def function_of(name: str) -> Function:
    """Return the row's function of its arguments, with its orders as constants."""
    row, builder = TABLE[name], Builder()
    fixed = [low for low, _ in row.samples[: orders(row)]]
    inputs = [builder.input(letter) for letter in "abcd"[orders(row) : row.arity]]
    result = row(*fixed, *(Node(builder, number) for number in inputs))
    node = as_number(result) if row.boolean else result
    return Function.build(builder, inputs, [node.id], ["y"])


@TARGETS
@for_each("name", ROWS)
def test_every_row_is_near_its_float64_value(name: str, target: str) -> None:
    """Within 8 roundings of the value and of each operand, times the slope by it."""
    function = function_of(name)
    draw = np.random.default_rng(3)
    points = [
        draw.uniform(low, high, 40).astype(np.float32).astype(float)
        for low, high in TABLE[name].samples[orders(TABLE[name]) :]
    ]
    wanted = function(*points)
    found = dl.compile(function, target, dtype=np.float32)(*(p.astype(np.float32) for p in points))
    assert found.dtype == np.float32
    slopes = np.abs(dl.gradient(function)(*points)) * np.abs(np.stack(points, -1))
    allowed = 8 * EPSILON * (np.abs(wanted) + slopes.sum(axis=-1))
    assert np.all(np.abs(found - wanted) <= allowed)


@TARGETS
@for_each("name", ELEMENTARY)
def test_edges_are_those_of_numpy_in_float32(name: str, target: str) -> None:
    x = EDGES.astype(np.float32)
    numpys = {"atan": np.arctan, "abs": np.abs, "erf": None}.get(name, getattr(np, name, None))
    with np.errstate(all="ignore"):
        wanted = dl.parse(f"{name}(x)")(x.astype(float)).astype(np.float32)
        wanted = wanted if numpys is None else numpys(x)
    found = dl.compile(dl.parse(f"{name}(x)"), target, dtype="float32")(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    np.testing.assert_allclose(found, wanted, rtol=4 * EPSILON, atol=3e-45)


@TARGETS
@pytest.mark.parametrize("points", [1, 5, 33, 1000, 200_001])
def test_batches_of_every_size_give_the_same_bits(target: str, points: int) -> None:
    draw = np.random.default_rng(0)
    x, y = draw.uniform(0.5, 3, (2, 200_001)).astype(np.float32)
    fast = dl.compile(FORMULA, target, threads=2, dtype=np.float32)
    whole = fast(x, y)
    part = fast(x[:points], y[:points])
    for one, other in zip(part, whole, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, other[:points])
    exact = FORMULA(x.astype(float), y.astype(float))
    np.testing.assert_allclose(whole[1], exact[1], rtol=1e-5, atol=1e-5)


@TARGETS
def test_arguments_of_any_dtype_are_taken_in_float32(target: str) -> None:
    fast = dl.compile(FORMULA, target, dtype=np.float32)
    wanted = fast(np.float32([2.0, 3.0]), np.float32([5.0, 5.0]))[1]
    strided = np.zeros((2, 3))
    strided[:, 1] = 2.0, 3.0
    for x in (np.array([2.0, 3.0]), np.array([2, 3]), [2, 3], strided[:, 1]):
        np.testing.assert_array_equal(fast(x, 5)[1], wanted)
    value, slope = fast(2.0, 5.0)
    assert type(value) is float
    assert value == np.float32(value)
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, wanted[0], rtol=2 * EPSILON)
    packed = dl.compile(FORMULA, target, packed=True, dtype=np.float32)
    np.testing.assert_array_equal(packed(np.array([[2.0, 5.0], [3.0, 5.0]]))[1], wanted)
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again(np.array([2.0, 3.0]), 5)[1], wanted)


@pytest.mark.parametrize("target", ["numpy", "auto"])
def test_arrays_and_their_constants_are_float32(target: str) -> None:
    weights = np.linspace(0, 1, 6).reshape(3, 2)
    code = lambda a: np.linalg.inv(np.eye(2) + np.tanh(a @ weights)) * weights[0]  # noqa: E731
    example = np.sin(np.arange(6.0)).reshape(2, 3)
    fast = dl.compile(dl.trace(code, example), target, dtype=np.float32)
    for point in (example, np.stack([example, 2 * example])):
        found = fast(point.astype(np.float32))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, code(point), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["python", "exact", "cupy"])
def test_targets_of_float64_say_so(target: str) -> None:
    with pytest.raises(UnsupportedError, match="computes in float64, not in float32"):
        dl.compile(FORMULA, target, dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float16, int, complex, "zzz", 3, [1]])
def test_other_dtypes_are_refused(dtype: Any) -> None:
    for make in (dl.compile, dl.jit):
        with pytest.raises(InputError, match="cannot compute in"):
            make(FORMULA, dtype=dtype)


def test_compile_asks_for_a_dtype() -> None:
    with pytest.raises(InputError, match="cannot compute in"):
        dl.compile(FORMULA, dtype=None)


def test_jit_computes_in_float32() -> None:
    code = lambda tree: {"y": np.sin(tree["x"]) * 2.5, "s": np.sum(tree["x"])}  # noqa: E731
    fast = dl.jit(code, dtype=np.float32)
    x = np.linspace(0, 1, 50)
    for given in (x, x.astype(np.float32), x.astype(np.float32)):
        found = fast({"x": given})
        assert found["y"].dtype == np.float32
        np.testing.assert_allclose(found["y"], np.sin(x) * 2.5, rtol=1e-6)
        assert found["s"] == pytest.approx(25.0, rel=1e-6)
    slope = dl.jit(dl.grad(lambda x: np.sum(np.sin(x))), dtype=np.float32)(x)
    assert slope.dtype == np.float32


def test_casts_of_tensors_are_steps_of_the_tape() -> None:
    x = dl.tensor([1.0, 2.0], requires_grad=True, dtype=np.float32)
    wide = x.astype(np.float64)
    assert wide.dtype == np.float64
    (wide * np.array([1.0, 1e-9]) + 1.0).sum().backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(x.grad.numpy(), np.float32([1.0, 1e-9]))
    y = dl.tensor([np.pi], requires_grad=True)
    narrow = y.astype("float32")
    assert narrow.detach().numpy()[0] == np.float32(np.pi)
    narrow.backward()
    assert y.grad.dtype == np.float64
    assert np.result_type(x, y) == np.float64
    assert np.result_type(x, 1.5) == np.float32
    assert (x > 1.5).astype(np.float32).dtype == np.float32
    with pytest.raises(InputError, match="no derivative"):
        x.astype(int)

"""`to_onnx`: models that ONNX's checker accepts and its evaluator and onnxruntime run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.primitives import TABLE

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402 - after the skip

from difflab.interop.formats.onnx.spelling import SPELLINGS  # noqa: E402 - after the skip
from tests.support.rows import for_each  # noqa: E402

ULPS = 4
EDGES = np.array(
    [
        *(0.0, -0.0, 1, -1, 0.5, 40, -40, 700, -700, 1e-300, 1e300, 1e-9, -1e-9, 1e-17),
        *(math.inf, -math.inf, math.nan),
    ]
)
ELEMENTWISE = [
    name
    for name in SPELLINGS
    if name in TABLE
    and TABLE[name].shape is None
    and not TABLE[name].boolean
    and name != "as_number"
]


def run(model: Any, function: dl.Function, point: list[Any]) -> list[Any]:
    onnx.checker.check_model(model, full_check=True)
    given = dict(zip(function.inputs, map(np.asarray, point), strict=True))
    with np.errstate(all="ignore"):
        found: list[Any] = ReferenceEvaluator(model).run(None, given)
    return found


def assert_near(found: Any, expected: Any, ulps: float = ULPS) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        near = np.abs(found - expected) <= ulps * np.spacing(np.abs(expected))
    assert (same | near).all(), (found[~(same | near)], expected[~(same | near)])


@for_each("name", [name for name in ELEMENTWISE if name != "erf"])
def test_rows_at_their_points_and_at_the_edges(name: str) -> None:
    row, rng = TABLE[name], np.random.default_rng(0)
    count = row.arity or 0
    edges = np.array(np.meshgrid(*[EDGES] * count)).reshape(count, -1)
    drawn = [rng.uniform(*interval, 200) for interval in row.samples] or [[]] * count
    point = [np.concatenate(pair) for pair in zip(drawn, edges, strict=True)]
    function = dl.trace(lambda *args: row(*args), *point)
    (found,) = run(dl.to_onnx(function), function, point)
    with np.errstate(all="ignore"):
        assert_near(found, function(*point))


def test_erf_to_the_digits_of_the_evaluator() -> None:
    function = dl.parse("erf(x)")
    (found,) = run(dl.to_onnx(function), function, [0.7])
    assert abs(float(found) - math.erf(0.7)) < 1e-7  # it computes erf in 32 bits


PROGRAMS = (
    "ln(x1) + x1*x2 - sin(x2)",
    "W: [2, 3]; x: [3]; b: [2]; sum(tanh(W @ x + b))",
    "x: [4]; max(x)*norm(x) + logsumexp(x)*min(x)",
    "x: [4]; softmax(x)",
    "x: [5]; x[1:]*x[:-1] + x[::-1][1:]",
    "x: [6]; [x[::-2], x[4:0:-1][:3]]",
    "x: [3]; cumsum(x)*prod(x)",
    "x: [2, 3]; [sum(x), mean(x)]",
    "where(x > y and not (x == 1), x*y, x/y)",
    "A: [3, 3]; x: [3]; A @ x + diag(A)",
    "x: [3]; [x > 0.5, sum(x)]",
    "2",
)


@for_each("text", PROGRAMS)
def test_values_derivatives_and_the_way_back(text: str) -> None:
    assert_written_and_read(dl.parse(text))


@pytest.mark.parametrize(
    "program",
    [
        lambda x, s: x[:, 0:0] * 2.0,
        lambda x, s: np.concatenate([x[0:0], x]) * s,
        lambda x, s: np.einsum("ab,cb->a", x[:, 0:0], x[:, 0:0]) + s,
        lambda x, s: np.diagonal(x, 5) + s,
        lambda x, s: np.trace(x, 3) * s,
        lambda x, s: (x[0:0] > 0.5) * s,
        lambda x, s: s[()] * x,
    ],
)
def test_arrays_without_elements_and_without_axes(program: Any) -> None:
    assert_written_and_read(dl.trace(program, np.ones((2, 3)), 0.5))


def test_reductions_of_one_axis() -> None:
    assert_written_and_read(dl.trace(lambda x: np.sum(x, 0) * np.max(x, 0), np.ones((2, 3))))


def assert_written_and_read(function: dl.Function) -> None:
    derived = [dl.jacobian(function, mode) for mode in ("forward", "reverse")] if function.n else []
    if function.m == 1 and function.n:
        derived += [dl.value_and_gradient(function), dl.hessian(function)]
    rng = np.random.default_rng(1)
    point = [rng.uniform(0.2, 0.9, shape) for shape in function.input_shapes]
    for each in (function, *derived):
        model = dl.to_onnx(each)
        expected = each(*point) if len(each.outputs) > 1 else (each(*point),)
        again = dl.from_onnx(model)
        assert again.inputs == each.inputs
        back = again(*point) if len(each.outputs) > 1 else (again(*point),)
        for found in (run(model, each, point), [value * 1.0 for value in back]):
            for one, other in zip(found, expected, strict=True):
                assert_near(one, other * 1.0, ulps=16)


def test_onnxruntime_runs_a_value_and_its_gradient() -> None:
    runtime = pytest.importorskip("onnxruntime")
    function = dl.value_and_gradient(
        dl.parse("W: [2, 3]; x: [3]; sum(tanh(W @ x))^2 + log1p(x[0])")
    )
    point = [np.arange(6.0).reshape(2, 3) / 5, np.array([0.3, 0.1, -0.5])]
    session = runtime.InferenceSession(dl.to_onnx(function).SerializeToString())
    found = session.run(None, dict(zip(function.inputs, point, strict=True)))
    for one, other in zip(found, function(*point), strict=True):
        assert_near(one, other, ulps=16)


def test_onnxruntime_multiplies_a_vector_and_a_transposed_matrix() -> None:
    runtime = pytest.importorskip("onnxruntime")
    function = dl.trace(
        lambda x, v: v @ np.sin(x).T @ np.ones((2, 4)) * v[0], np.ones((2, 3)), np.ones(3)
    )
    for each in (function, dl.jacobian(function, "reverse")):
        point = [np.arange(6.0).reshape(2, 3) / 5, np.array([0.3, 0.1, -0.5])]
        session = runtime.InferenceSession(dl.to_onnx(each).SerializeToString())
        found = session.run(None, dict(zip(each.inputs, point, strict=True)))[0]
        np.testing.assert_allclose(found, each(*point), rtol=1e-13, atol=1e-15)


def test_entries_that_are_added_to_one_place() -> None:
    function = dl.trace(lambda x: x[np.array([0, 2, 2, 2])] ** 2, np.ones(3))
    slope = dl.vjp(function)
    point = [np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0, 1000.0])]
    (*_, found) = run(dl.to_onnx(slope), slope, point)
    assert found.tolist() == [2.0, 0.0, 6660.0]


def test_a_long_program_is_written_without_recursion() -> None:
    function = dl.parse("x: [10000]; " + "+".join(f"x[{k}]*x[{k + 1}]" for k in range(9999)))
    model = dl.to_onnx(dl.gradient(function))
    assert len(model.graph.node) < 200_000


def test_what_onnx_lacks_is_named() -> None:
    with pytest.raises(UnsupportedError, match="ONNX has no form of 'gamma'"):
        dl.to_onnx(dl.parse("gamma(x)"))
    loop = dl.trace(lambda x: dl.while_loop(lambda y: y < 9, lambda y: y * x, x), 2.0)
    with pytest.raises(UnsupportedError, match="ONNX has no form of 'while"):
        dl.to_onnx(loop)

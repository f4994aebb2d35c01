"""What onnxruntime computes of exported models, in 64 and in 32 bits, held to difflab.

``python -m tests.interop.formats.test_onnxruntime`` measures which operators it has no kernel for,
and writes the record `tests/data/onnxruntime.json` and that part of `docs/reference/formats.md`
anew.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.primitives import TABLE
from difflab.testing.strategies import expressions
from tests.support.documents import ROOT
from tests.support.rows import for_each

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from difflab.interop.formats.onnx.spelling import SPELLINGS  # noqa: E402 - after the skip

RECORD = ROOT / "tests" / "data" / "onnxruntime.json"
PAGE = ROOT / "docs" / "reference" / "formats.md"
START = "<!-- `python -m tests.interop.formats.test_onnxruntime` writes this part. -->\n"
END = "<!-- Here it ends. -->"
EDGES = [
    *(0.0, -0.0, 1, -1, 0.5, 40, -40, 700, -700, 1e-300, 1e300, 3e200, 1e-9, -1e-9, 1e-17, 5e-324),
    *(math.inf, -math.inf, math.nan),
]
ROWS = [
    name
    for name in SPELLINGS
    if name in TABLE
    and TABLE[name].shape is None
    and not TABLE[name].boolean
    and name not in ("as_number", "erf")
]
ABSOLUTE = {"sin": 2e-16, "cos": 2e-16, "versine": 1e-15}
"""What onnxruntime's sine and cosine are off where they are small."""
DTYPES = ("float64", "float32")


def session(function: dl.Function, dtype: str) -> Any:
    runtime.set_default_logger_severity(4)
    return runtime.InferenceSession(dl.to_onnx(function, dtype=dtype).SerializeToString())


def computed(function: dl.Function, point: list[Any], dtype: str) -> Any:
    given = {
        name: np.asarray(value, dtype=dtype)
        for name, value in zip(function.inputs, point, strict=True)
    }
    (found,) = session(function, dtype).run(None, given)
    assert found.dtype == np.dtype(dtype)
    return found


def assert_near(found: Any, expected: Any, ulps: float, absolute: float = 0.0) -> None:
    with np.errstate(all="ignore"):
        expected = np.asarray(expected * 1.0).astype(found.dtype)
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        near = np.abs(found - expected) <= ulps * np.spacing(np.abs(expected)) + absolute
    assert (same | near).all(), (found[~(same | near)], expected[~(same | near)])


def row_and_point(name: str) -> tuple[dl.Function, list[Any]]:
    row, rng = TABLE[name], np.random.default_rng(0)
    count = row.arity or 0
    edges = np.array(np.meshgrid(*[EDGES] * count)).reshape(count, -1)
    drawn = [rng.uniform(*interval, 200) for interval in row.samples] or [[]] * count
    point = [np.concatenate(pair) for pair in zip(drawn, edges, strict=True)]
    return dl.trace(lambda *args: row(*args), *point), point


@for_each("name", ROWS)
def test_rows_in_64_bits(name: str) -> None:
    function, point = row_and_point(name)
    with np.errstate(all="ignore"):
        assert_near(
            computed(function, point, "float64"), function(*point), 4, ABSOLUTE.get(name, 0.0)
        )


@for_each("name", ROWS)
def test_rows_in_32_bits(name: str) -> None:
    function, point = row_and_point(name)
    with np.errstate(all="ignore"):
        point = [value.astype(np.float32).astype(float) for value in point]
        if name == "dpower":  # p - 1 rounds, so that another power is meant
            kept = np.float32(point[1]) - np.float32(1) == point[1] - 1
            point = [value[kept] for value in point]
            function = dl.trace(lambda *args: TABLE[name](*args), *point)
        assert_near(computed(function, point, "float32"), function(*point), 8, 2e-7)


VECTORS = [
    *([1, 2, 3], [3e200, 4e200, 0], [3e-200, 4e-200, 0], [1e308, 1e308, -1e308], [5e-324, 0, 0]),
    *([1, math.nan, 2], [math.nan, 1, 2], [1, 2, math.nan], [math.nan, 1, math.nan]),
    *([math.inf, math.nan, 1], [math.inf, 1, 2], [-math.inf, 1, 2], [math.inf, -math.inf, 1]),
    *([-math.inf] * 3, [math.inf, math.inf, 1], [800, 0, -800], [-800, -900, -1000]),
    *([-0.0, 0, -0.0], [1, 1, 0], [0.1, 1e-9, -40]),
]
REDUCTIONS = (
    *("max(v)", "min(v)", "norm(v)", "prod(v)", "sum(v)", "mean(v)", "cumsum(v)", "argmax(v)"),
    *("logsumexp(v)", "log(v)", "log(sigmoid(v))", "softplus(v)", "v[0]^v[1]", "mod(v[0], v[1])"),
    *("max(v[0], v[1])", "round(v)", "sign(v)", "clip(v, 0, 1)", "atan2(v[0], v[1])"),
)
INFINITE = {"logsumexp(v)"}
"""Where onnxruntime's softmax is nan in every element, if one is infinite."""


@for_each("text", REDUCTIONS)
def test_vectors_with_nan_infinities_and_extreme_elements(text: str) -> None:
    value = dl.parse(f"v: [3]; {text}")
    functions = [value] if text == "argmax(v)" else [value, dl.jacobian(value, "reverse")]
    for function in functions:
        run = session(function, "float64")
        for vector in VECTORS:
            if text in INFINITE and math.inf in vector and function is not value:
                continue
            (found,) = run.run(None, {"v": np.array(vector, dtype=float)})
            with np.errstate(all="ignore"):
                assert_near(found, function(np.array(vector, dtype=float)), 16)


def test_the_digits_of_a_small_sigmoid() -> None:
    function = dl.value_and_gradient(dl.parse("ln(sigmoid(x))"))
    value, slope = session(function, "float64").run(None, {"x": np.array(-40.0)})
    assert math.isclose(float(value), -40.0, rel_tol=1e-15)
    assert math.isclose(float(slope[0]), 1.0, rel_tol=1e-15)
    (found,) = session(dl.parse("softplus(x)"), "float64").run(None, {"x": np.array(-40.0)})
    assert math.isclose(float(found), math.log1p(math.exp(-40.0)), rel_tol=1e-15)


FORMULAS = 200
NAMES = ("x", "y")
POINTS = np.array([[0.3, -0.8, 1.5], [1.2, 0.4, -0.6]])


class _Enough(BaseException):
    """All formulas are drawn."""


def formulas() -> list[dl.Function]:
    """Return random formulas that ONNX has forms for, with their gradients."""
    found: dict[str, dl.Function] = {}

    @seed(36)
    @settings(
        max_examples=20 * FORMULAS,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(expressions(NAMES, max_leaves=6))
    def draw(text: str) -> None:
        if len(found) == FORMULAS:
            raise _Enough
        function = dl.value_and_gradient(dl.parse(f"{text} + 0*x + 0*y"))
        try:
            dl.to_onnx(function)
        except UnsupportedError:
            return
        if "erf" not in {row.name for row in function.graph.primitives}:
            found[text] = function

    with pytest.raises(_Enough):
        draw()
    assert len(found) == FORMULAS
    return list(found.values())


def test_200_formulas_and_their_gradients() -> None:
    for function in formulas():
        for dtype, tolerance in (("float64", 1e-9), ("float32", 2e-2)):
            run = session(function, dtype)
            for point in POINTS.T.astype(np.float32):
                given_point = dict(zip(NAMES, map(np.asarray, point.astype(dtype)), strict=True))
                outputs = run.run(None, given_point)
                expected = function(*point.astype(float))
                for one, other in zip(outputs, expected, strict=True):
                    scale = 1 + np.max(np.abs(other))
                    assert np.all(np.abs(one - other) <= tolerance * scale), (str(function), point)


def lacking(dtype: str) -> list[str]:
    """Return the operators on numbers alone that the runtime has no kernel for, but in 32 bits."""
    names = [
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.domain == ""
        and onnx.defs.has(schema.name, 18, "")
        and schema.min_input
        and not any(attribute.required for attribute in schema.attributes.values())
    ]
    return sorted(name for name in names if not runs(name, dtype) and runs(name, "float32"))


def runs(name: str, dtype: str) -> bool:
    """Return whether a model of one operator can be loaded."""
    helper, runtime_error = onnx.helper, runtime.capi.onnxruntime_pybind11_state
    schema = onnx.defs.get_schema(name, 18)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [f"x{k}" for k in range(schema.min_input)]
    described = [helper.make_tensor_value_info(each, kind, (2, 2)) for each in inputs]
    graph = helper.make_graph(
        [helper.make_node(name, inputs, ["y"])], "f", described, [onnx.ValueInfoProto(name="y")]
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    runtime.set_default_logger_severity(4)
    try:
        runtime.InferenceSession(model.SerializeToString())
    except (
        runtime_error.NotImplemented,
        runtime_error.InvalidGraph,
        runtime_error.Fail,
        runtime_error.InvalidArgument,
    ):
        return False
    return True


def text(record: dict[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in record["float64"])
    return (
        f"onnxruntime {record['version']} has no kernel for 64 bits, but one for 32, of these "
        f"operators on\nnumbers alone:\n\n{names}.\n"
    )


def page(record: dict[str, Any]) -> str:
    before, start, rest = PAGE.read_text("utf-8").partition(START)
    assert start
    return f"{before}{start}\n{text(record)}\n{END}{rest.partition(END)[2]}"


def test_the_page_shows_the_record() -> None:
    assert PAGE.read_text("utf-8") == page(json.loads(RECORD.read_text("utf-8")))


def test_the_operators_without_a_kernel_are_those_of_the_record() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    if runtime.__version__ != record["version"]:
        pytest.skip(f"onnxruntime {runtime.__version__} is not the recorded {record['version']}")
    assert lacking("float64") == record["float64"]


if __name__ == "__main__":
    measured = {"version": runtime.__version__, "float64": lacking("float64")}
    RECORD.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(measured), encoding="utf-8")

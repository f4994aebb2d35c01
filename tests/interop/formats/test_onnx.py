"""`from_onnx` against ONNX's reference evaluator, and gradients against PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - after the skip
from onnx.reference import ReferenceEvaluator  # noqa: E402

from tests.support.rows import for_each  # noqa: E402

OPSET = 18


def model_of(
    nodes: list[Any],
    shapes: dict[str, Any],
    stored: dict[str, Any] | None = None,
    opset: int = OPSET,
) -> Any:
    """Return a model whose output is ``y``; the stored numbers are its weights."""
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)
        for name, shape in shapes.items()
    ]
    output = helper.make_empty_tensor_value_info("y")
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in (stored or {}).items()]
    graph = helper.make_graph(nodes, "model", inputs, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def node(kind: str, *inputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, list(inputs), ["y"], **attributes)


def check(model: Any, seed: int = 0, low: float = 0.2, high: float = 0.9) -> dl.Function:
    """Hold a model's values to those of the reference evaluator."""
    function = dl.from_onnx(model)
    rng = np.random.default_rng(seed)
    values = {
        entry.name: rng.uniform(low, high, [d.dim_value for d in entry.type.tensor_type.shape.dim])
        for entry in model.graph.input
    }
    (expected,) = ReferenceEvaluator(model).run(None, values)
    found = function(**values)
    assert np.shape(found) == np.shape(expected)
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-12), (found, expected)
    return function


UNARY = (
    *("Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp"),
    *("Floor", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "LogSoftmax", "Mish"),
    *("Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax"),
    *("Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu", "Celu", "Transpose"),
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Flatten", "Dropout"),
)


@for_each("kind", UNARY)
def test_functions_of_one_array(kind: str) -> None:
    for low in (0.2, -0.9 if kind not in ("Log", "Sqrt", "ReduceLogSum") else 0.3):
        check(model_of([node(kind, "x")], {"x": [3, 4]}), low=low)


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum"])
def test_functions_of_two_arrays_broadcast(kind: str) -> None:
    check(model_of([node(kind, "a", "b")], {"a": [3, 4], "b": [4]}))


INT = np.int64
CASES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (node("Gemm", "a", "b", "c", alpha=0.5, beta=2.0, transB=1), {"a": [2, 3]},
     {"b": np.arange(12.0).reshape(4, 3), "c": np.arange(4.0)}),
    (node("MatMul", "a", "b"), {"a": [2, 3, 4], "b": [4, 2]}, {}),
    (node("Einsum", "a", "b", equation="ij,kj->ik"), {"a": [2, 3], "b": [4, 3]}, {}),
    (node("Reshape", "a", "s"), {"a": [2, 6]}, {"s": np.array([0, -1, 3], INT)}),
    (node("Squeeze", "a", "s"), {"a": [2, 1, 3]}, {"s": np.array([1], INT)}),
    (node("Unsqueeze", "a", "s"), {"a": [2, 3]}, {"s": np.array([0, -1], INT)}),
    (node("Expand", "a", "s"), {"a": [3, 1]}, {"s": np.array([2, 1, 4], INT)}),
    (node("Concat", "a", "b", axis=1), {"a": [2, 3], "b": [2, 1]}, {}),
    (node("Slice", "a", "s", "e", "x", "t"), {"a": [4, 5]},
     {"s": np.array([3, 1], INT), "e": np.array([-9, 99], INT), "x": np.array([0, 1], INT),
      "t": np.array([-1, 2], INT)}),
    (node("Gather", "a", "i", axis=1), {"a": [2, 3]}, {"i": np.array([[0, -1], [2, 2]], INT)}),
    (node("ReduceSum", "a", "x", keepdims=0), {"a": [2, 3, 4]}, {"x": np.array([0, -1], INT)}),
    (node("CumSum", "a", "x"), {"a": [3, 4]}, {"x": np.array(1, INT)}),
    (node("Clip", "a", "l", "h"), {"a": [5]}, {"l": np.array(0.3), "h": np.array(0.6)}),
    (node("Where", "m", "a", "b"), {"a": [3], "b": [3]}, {"m": np.array([True, False, True])}),
    (node("PRelu", "a", "b"), {"a": [2, 3], "b": [3]}, {}),
    (node("Transpose", "a", perm=[2, 0, 1]), {"a": [2, 3, 4]}, {}),
    (node("Softmax", "a", axis=0), {"a": [2, 3]}, {}),
    (node("Conv", "a", "w", "c", strides=[2, 1], pads=[1, 0, 1, 0]), {"a": [2, 3, 5, 6]},
     {"w": np.linspace(-1, 1, 48).reshape(4, 3, 2, 2), "c": np.arange(4.0)}),
    (node("GlobalAveragePool", "a"), {"a": [2, 3, 4, 4]}, {}),
    (node("BatchNormalization", "a", "s", "b", "m", "v"), {"a": [2, 3, 4]},
     {"s": np.arange(1.0, 4), "b": np.ones(3), "m": np.zeros(3), "v": np.arange(1.0, 4)}),
    (node("LayerNormalization", "a", "s", "b"), {"a": [2, 3]}, {"s": np.ones(3), "b": np.ones(3)}),
]  # fmt: skip


@for_each(("step", "shapes", "stored"), CASES, ids=lambda c: getattr(c, "op_type", ""))
def test_operators(step: Any, shapes: dict[str, Any], stored: dict[str, Any]) -> None:
    check(model_of([step], shapes, stored))


def test_a_split_and_shapes_that_the_model_computes() -> None:
    nodes = [
        helper.make_node("Split", ["a", "parts"], ["p", "q"], axis=0),
        helper.make_node("Shape", ["q"], ["s"]),
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array([1, 1]))),
        helper.make_node("Mul", ["s", "two"], ["same"]),
        helper.make_node("Expand", ["p", "same"], ["wide"]),
        helper.make_node("Sub", ["wide", "q"], ["y"]),
    ]
    check(model_of(nodes, {"a": [3, 4]}, {"parts": np.array([1, 2])}))


def network(tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(2)
    stored = {
        "w.1": rng.normal(size=(4, 3)),
        "b.1": rng.normal(size=4),
        "w.2": rng.normal(size=(1, 4)),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w.1", "b.1"], ["h"], transB=1),
        helper.make_node("Gelu", ["h"], ["g"]),
        helper.make_node("Gemm", ["g", "w.2"], ["z"], transB=1),
        helper.make_node("ReduceMean", ["z"], ["y"], keepdims=0),
    ]
    return model_of(nodes, {"x": ["N", 3]}, stored, opset=20), stored


def test_gradients_of_a_network_are_pytorchs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model, stored = network(tmp_path)
    onnx.save(model, tmp_path / "model.onnx")
    function = dl.from_onnx(tmp_path / "model.onnx", shapes={"x": (5, 3)}, parameters=True)
    assert function.inputs == ("x", "w_1", "b_1", "w_2")
    x = np.random.default_rng(3).normal(size=(5, 3))
    values = [x, *stored.values()]
    leaves = [torch.tensor(value, requires_grad=True) for value in values]
    hidden = torch.nn.functional.gelu(leaves[0] @ leaves[1].T + leaves[2])
    torch.mean(hidden @ leaves[3].T).backward()
    expected = np.concatenate([leaf.grad.numpy().ravel() for leaf in leaves])
    assert np.allclose(dl.gradient(function)(*values), expected, rtol=1e-12, atol=1e-14)


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    model, _ = network(tmp_path)
    with pytest.raises(
        InputError, match=r"leaves the shape of its input 'x' open\nhint: .*shapes="
    ):
        dl.from_onnx(model)
    with pytest.raises(InputError, match=r"operator LSTM \(node 1\)"):
        dl.from_onnx(model_of([node("LSTM", "x")], {"x": [3]}))
    with pytest.raises(InputError, match=r"MatMul \(node 1\)"):
        dl.from_onnx(model_of([node("MatMul", "a", "b")], {"a": [2, 3], "b": [2, 3]}))
    weights = {"a": np.ones(2), "b": np.ones(3)}
    with pytest.raises(InputError, match=r"Add \(node 1\): Issues with types"):
        dl.from_onnx(model_of([node("Add", "a", "b")], {}, weights))
    with pytest.raises(InputError, match="computes 's', which difflab needs as a number"):
        dl.from_onnx(model_of([node("Reshape", "a", "s")], {"a": [4], "s": [1]}))
    with pytest.raises(InputError, match="cannot read"):
        dl.from_onnx(tmp_path / "absent.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(InputError, match="is no model in ONNX's format"):
        dl.from_onnx(str(tmp_path / "text.onnx"))
    with pytest.raises(InputError, match=r"a file or an onnx\.ModelProto, not int"):
        dl.from_onnx(3)

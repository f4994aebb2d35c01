"""Models that are invalid or damaged: an error that names the place, never another function."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, InputError

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - after the skip

from tests.interop.formats.damaged_models import damaged, models  # noqa: E402
from tests.interop.formats.test_onnx import model_of, node  # noqa: E402

INT = np.int64


@pytest.mark.parametrize("index", [3, 99, -4, -(2**40)])
def test_indices_out_of_range_are_refused(index: int) -> None:
    step = node("Gather", "x", "i", axis=0)
    with pytest.raises(InputError, match=rf"Gather \(node 1\): the index {index} is out of bounds"):
        dl.from_onnx(model_of([step], {"x": [3]}, {"i": np.array([0, index], INT)}))
    for inside in (2, -3):
        read = dl.from_onnx(model_of([step], {"x": [3]}, {"i": np.array([inside], INT)}))
        assert read([5.0, 6.0, 7.0]).tolist() == [[5.0, 6.0, 7.0][inside]]


def twice(kind: str) -> Any:
    """Return a model that defines something twice."""
    first = helper.make_node("Sin", ["x"], ["z"])
    model = model_of([first, helper.make_node("Add", ["z", "w"], ["y"])], {"x": [2]}, {"w": [1.0]})
    graph = model.graph
    if kind == "computed":
        graph.node.insert(1, helper.make_node("Cos", ["x"], ["z"]))
    elif kind == "an input":
        graph.node.insert(1, helper.make_node("Cos", ["x"], ["x"]))
    elif kind == "a weight":
        graph.node.insert(1, helper.make_node("Cos", ["x"], ["w"]))
    elif kind == "stored":
        graph.initializer.append(numpy_helper.from_array(np.array([2.0]), "w"))
    elif kind == "given":
        graph.input.append(graph.input[0])
    else:
        graph.output.append(graph.output[0])
    return model


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("computed", "value 'z'"),
        ("an input", "value 'x'"),
        ("a weight", "value 'w'"),
        ("stored", "stored tensor 'w'"),
        ("given", "input 'x'"),
        ("returned", "output 'y'"),
    ],
)
def test_names_that_are_defined_twice_are_refused(kind: str, name: str) -> None:
    with pytest.raises(InputError, match=f"the model defines the {name} twice"):
        dl.from_onnx(twice(kind))


def changed(step: Any, **change: Any) -> Any:
    for name, value in change.items():
        setattr(step, name, value)
    return step


W = {"w": np.ones(3)}
INVALID: list[tuple[Any, str]] = [
    (node("Sin", "x", "w"), r"Sin \(node 1\) has 2 inputs, and the operator at most 1"),
    (node("Relu", "x", "", "w"), r"Relu \(node 1\) has 3 inputs, and the operator at most 1"),
    (node("Add", "x"), r"Add \(node 1\) has 1 input, and the operator at least 2"),
    (node("Add", "x", ""), r"Add \(node 1\) has no input B"),
    (helper.make_node("Add", ["x", "w"], ["y", "z"]), "has 2 outputs, and the operator at most 1"),
    (node("Softmax", "x", axes=[1]), r"the attribute 'axes', and the operator none of it"),
    (node("Softmax", "x", axis=1.5), r"an attribute 'axis' that is no INT"),
    (node("Concat", "x", "w"), r"Concat \(node 1\) lacks the attribute 'axis'"),
    (node("Softmax", "x", axis=5), r"Softmax \(node 1\): "),
    (node("Transpose", "x", perm=[0, 0]), r"Transpose \(node 1\): "),
    (node("Sin", "y"), "uses 'y' before it computes it"),
    (helper.make_node("Sin", ["x"], ["z"]), "uses 'y' before it computes it"),
    (node("Relu", "mask"), r"Relu \(node 1\) takes no bool, which its input 'mask' is"),
    (changed(node("Sin", "x"), domain="com.x"), r"does not read ONNX's operator Sin"),
]


@pytest.mark.parametrize(("step", "message"), INVALID, ids=[text for _, text in INVALID])
def test_nodes_unlike_their_operators_are_refused(step: Any, message: str) -> None:
    stored = {**W, "mask": np.array([True, False])}
    with pytest.raises(InputError, match=message):
        dl.from_onnx(model_of([step], {"x": [3]}, stored))


def test_cycles_are_refused() -> None:
    steps = [helper.make_node("Sin", ["b"], ["a"]), helper.make_node("Sin", ["a"], ["b"])]
    steps.append(helper.make_node("Add", ["x", "b"], ["y"]))
    with pytest.raises(InputError, match="uses 'b' before it computes it"):
        dl.from_onnx(model_of(steps, {"x": [3]}))


def test_operators_and_shapes_that_are_none() -> None:
    for opset, message in ((99, "the installed onnx knows those up to"), (0, "the opset 0")):
        model = model_of([node("Sin", "x")], {"x": [3]})
        model.opset_import[0].version = opset
        with pytest.raises(InputError, match=message):
            dl.from_onnx(model)
    with pytest.raises(InputError, match="opset 11 has no operator Gelu"):
        dl.from_onnx(model_of([node("Gelu", "x")], {"x": [3]}, opset=11))
    with pytest.raises(InputError, match="a negative size of its input 'x'"):
        dl.from_onnx(model_of([node("Sin", "x")], {"x": [-3]}))
    for shapes, message in (
        ({"x": (2,)}, r"the shape \(2,\) is none of the input 'x', whose shape .* as \(3\)"),
        ({"x": (3, 1)}, "is none of the input 'x'"),
        ({"x": "ab"}, "is a tuple of integers, not 'ab'"),
        ({"z": (3,)}, "the model has no input 'z'\nhint: its inputs are x"),
    ):
        with pytest.raises(InputError, match=message):
            dl.from_onnx(model_of([node("Sin", "x")], {"x": [3]}), shapes=shapes)
    text = helper.make_tensor_value_info("x", TensorProto.STRING, [2])
    graph = helper.make_graph([node("Identity", "x")], "g", [text], [text])
    with pytest.raises(InputError, match="'x' of the model is no tensor of real numbers"):
        dl.from_onnx(helper.make_model(graph))


def test_integers_are_divided_and_converted_as_integers() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.INT64, [3])
    z = helper.make_tensor_value_info("z", TensorProto.DOUBLE, [3])
    y = helper.make_tensor_value_info("y", TensorProto.DOUBLE, [3])
    seven = numpy_helper.from_array(np.array([7], INT), "seven")
    steps = [
        helper.make_node("Div", ["x", "seven"], ["q"]),
        helper.make_node("Cast", ["q"], ["f"], to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["z"], ["i"], to=TensorProto.INT64),
        helper.make_node("Cast", ["i"], ["g"], to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["z"], ["t"], to=TensorProto.BOOL),
        helper.make_node("Cast", ["t"], ["h"], to=TensorProto.DOUBLE),
        helper.make_node("Sum", ["f", "g", "h"], ["y"]),
    ]
    read = dl.from_onnx(helper.make_model(helper.make_graph(steps, "g", [x, z], [y], [seven])))
    found = read(np.array([20.0, -20.0, 6.0]), np.array([1.7, -1.7, 0.0]))
    assert found.tolist() == [2 + 1 + 1, -2 - 1 + 1, 0]


def test_training_is_refused() -> None:
    stored = {"p": np.array(0.5), "on": np.array(True)}
    with pytest.raises(InputError, match="the dropout of inference"):
        dl.from_onnx(model_of([node("Dropout", "x", "p", "on")], {"x": [3]}, stored))


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    """Nothing but an error of difflab, whatever the bytes are."""
    path = tmp_path / "model.onnx"
    for model in models():
        dl.from_onnx(model)
    whole = [model.SerializeToString() for model in models()]
    draw = Random(11)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of the reference evaluator
        for _ in range(300):
            path.write_bytes(damaged(draw.choice(whole), draw))
            try:
                dl.from_onnx(path)
            except DifflabError:
                refused += 1
    assert 150 < refused < 300

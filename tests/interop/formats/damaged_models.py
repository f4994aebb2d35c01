"""Small models in ONNX's format, and damages of them."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import numpy as np

from difflab.core.optional import load

ONNX = load("onnx").module
NAMES = ["x", "w", "y", "h", "nothing", ""]
NUMBERS = [-(2**62), -7, -1, 0, 1, 2, 99, 2**40, 10**12]
KINDS = [
    *("Add", "Gemm", "Reshape", "Foo", "Conv", "Slice", "Gather", "Split", "Clip", "Where", "Cast"),
    *("Softmax", "Shape", "BatchNormalization", "Concat", "Einsum", "CumSum", ""),
]


def _model(nodes: list[Any], kind: int, shape: list[int], stored: dict[str, Any]) -> Any:
    helper, arrays = ONNX.helper, ONNX.numpy_helper
    x = helper.make_tensor_value_info("x", kind, shape)
    y = helper.make_tensor_value_info("y", kind, None)
    tensors = [arrays.from_array(np.asarray(value), name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "model", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def models() -> list[Any]:
    """Return models of dense layers, of an image, and of shapes that are computed."""
    node, kinds = ONNX.helper.make_node, ONNX.TensorProto
    draw = np.random.default_rng(2)
    dense = [
        node("Gemm", ["x", "w", "b"], ["h"], transB=1, alpha=0.5),
        node("Softmax", ["h"], ["g"], axis=1),
        node("Gather", ["g", "i"], ["q"], axis=1),
        node("Reshape", ["q", "s"], ["r"]),
        node("ReduceMean", ["r"], ["m"], keepdims=0),
        node("LeakyRelu", ["m"], ["y"], alpha=0.1),
    ]
    weights = {"w": draw.normal(size=(4, 3)), "b": draw.normal(size=4)}
    integers = {"s": np.array([0, -1]), "i": np.array([0, 2, -1])}
    image = [
        node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]),
        node("Relu", ["h"], ["g"]),
        node("GlobalAveragePool", ["g"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Split", ["f", "parts"], ["a", "b"], axis=1),
        node("Concat", ["b", "a"], ["c"], axis=1),
        node("Clip", ["c", "low"], ["d"]),
        node("Slice", ["d", "start", "end"], ["y"]),
    ]
    kernel = {"w": draw.normal(size=(2, 1, 3, 3)).astype(np.float32), "low": np.float32(-1)}
    cuts = {"parts": np.array([1, 1]), "start": np.array([0]), "end": np.array([1])}
    filled = ONNX.numpy_helper.from_array(np.array([1.5]))
    shaped = [
        node("Shape", ["x"], ["sizes"]),
        node("ConstantOfShape", ["sizes"], ["ones"], value=filled),
        node("Mul", ["x", "ones"], ["m"]),
        node("Transpose", ["m"], ["t"], perm=[1, 0]),
        node("Einsum", ["t", "m"], ["e"], equation="ij,jk->ik"),
        node("CumSum", ["e", "axis"], ["c"]),
        node("Where", ["holds", "c", "e"], ["z"]),
        node("Unsqueeze", ["z", "first"], ["u"]),
        node("Expand", ["u", "wide"], ["y"]),
    ]
    known = {"axis": np.array(0), "holds": np.array([True, False, True])}
    known |= {"first": np.array([0]), "wide": np.array([2, 1, 1])}
    return [
        _model(dense, kinds.DOUBLE, [2, 3], weights | integers),
        _model(image, kinds.FLOAT, [2, 1, 4, 4], kernel | cuts),
        _model(shaped, kinds.DOUBLE, [2, 3], known),
    ]


def damaged(content: bytes, draw: Random) -> bytes:
    """Return a file that was cut, has other bytes, or holds a model with one part changed."""
    way = draw.randrange(4)
    if way == 0:
        return content[: draw.randrange(len(content))]
    if way == 1:
        found = bytearray(content)
        for _ in range(draw.randrange(1, 6)):
            found[draw.randrange(len(found))] = draw.randrange(256)
        return bytes(found)
    model = ONNX.ModelProto.FromString(content)
    for _ in range(draw.randrange(1, 3)):
        with suppress(IndexError, KeyError, TypeError, ValueError):  # it is damaged already
            draw.choice(DAMAGES)(model, draw)
    return bytes(model.SerializeToString())


def _node(model: Any, draw: Random) -> Any:
    return draw.choice(model.graph.node)


def _stored(model: Any, draw: Random) -> Any:
    return draw.choice(model.graph.initializer)


def _lost_input(model: Any, draw: Random) -> None:
    node = _node(model, draw)
    del node.input[draw.randrange(len(node.input))]


def _lost_attribute(model: Any, draw: Random) -> None:
    node = _node(model, draw)
    del node.attribute[draw.randrange(len(node.attribute))]


def _other_attribute(model: Any, draw: Random) -> None:
    attribute = draw.choice(_node(model, draw).attribute)
    attribute.i, attribute.f = draw.choice(NUMBERS), draw.choice([float("nan"), 1e30])
    attribute.ints[:] = [draw.randrange(-9, 9) for _ in range(draw.randrange(5))]
    attribute.s = b"\xff\xfe"


def _other_values(model: Any, draw: Random) -> None:
    tensor = _stored(model, draw)
    values = np.array(ONNX.numpy_helper.to_array(tensor))
    values[...] = draw.choice(NUMBERS)
    tensor.CopyFrom(ONNX.numpy_helper.from_array(values, tensor.name))


def _cut_values(model: Any, draw: Random) -> None:
    tensor = _stored(model, draw)
    tensor.raw_data = tensor.raw_data[: draw.randrange(len(tensor.raw_data))]


def _other_order(model: Any, draw: Random) -> None:
    nodes = list(model.graph.node)
    draw.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


DAMAGES: list[Any] = [
    _lost_input,
    _lost_attribute,
    _other_attribute,
    _other_values,
    _cut_values,
    _other_order,
    lambda model, draw: _node(model, draw).input.append(draw.choice(NAMES)),
    lambda model, draw: _node(model, draw).output.append(draw.choice(NAMES)),
    lambda model, draw: _node(model, draw).input.__setitem__(0, draw.choice(NAMES)),
    lambda model, draw: _node(model, draw).output.__setitem__(0, draw.choice(NAMES)),
    lambda model, draw: setattr(
        draw.choice(_node(model, draw).attribute), "type", draw.randrange(14)
    ),
    lambda model, draw: setattr(_node(model, draw), "op_type", draw.choice(KINDS)),
    lambda model, draw: setattr(_node(model, draw), "domain", draw.choice(["com.x", "ai.onnx"])),
    lambda model, draw: setattr(_stored(model, draw), "data_type", draw.randrange(24)),
    lambda model, draw: setattr(_stored(model, draw), "name", draw.choice(NAMES)),
    lambda model, draw: _stored(model, draw).dims.__setitem__(0, draw.choice(NUMBERS)),
    lambda model, draw: model.graph.initializer.append(_stored(model, draw)),
    lambda model, draw: model.graph.node.append(_node(model, draw)),
    lambda model, draw: setattr(
        model.graph.input[0].type.tensor_type, "elem_type", draw.randrange(24)
    ),
    lambda model, draw: setattr(
        draw.choice(model.graph.input[0].type.tensor_type.shape.dim),
        "dim_value",
        draw.choice(NUMBERS),
    ),
    lambda model, draw: setattr(model.graph.output[0], "name", draw.choice(NAMES)),
    lambda model, draw: model.graph.ClearField("output"),
    lambda model, draw: setattr(model.opset_import[0], "version", draw.choice(NUMBERS)),
]
"""Changes of one part of a model."""

"""ONNX's operators in difflab's array functions.

A rule is called with the model, the names of the operator's inputs (empty where one is left out)
and its attributes. Operators that are one row of the table, under its name, are not listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.errors import IndexingError, UnsupportedError
from difflab.graph.node import Node
from difflab.interop.formats.onnx.formulas import OPERATORS as ROWS
from difflab.primitives import TABLE


class ReadModel(Protocol):
    """Interface of the model that is read, for the rules of its operators."""

    opset: int

    def value(self, name: str) -> Node:
        """Return the node of a value."""

    def static(self, name: str) -> np.ndarray[Any, Any]:
        """Return an array that is static."""

    def whole(self, name: str) -> bool:
        """Return whether a value consists of integers."""


Attributes = Mapping[str, Any]
_BOOL = 9
_INTEGERS = frozenset({2, 3, 4, 5, 6, 7, 12, 13})
"""ONNX's numbers of the types that are truth values and integers."""
Rule = Callable[[ReadModel, Sequence[str], Attributes], Any]


def _row(compute: Callable[..., Any]) -> Rule:
    """Return the rule of a function of all inputs."""
    return lambda model, inputs, _: compute(*map(model.value, inputs))


def _folded(compute: Callable[..., Any]) -> Rule:
    """Return the rule of a function of any number of inputs, applied to pairs."""
    return lambda model, inputs, _: reduce(compute, map(model.value, inputs))


def _shaped(compute: Callable[..., Any], **defaults: float) -> Rule:
    """Return the rule of a function of one input with numeric attributes."""

    def rule(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
        settings = {name: attributes.get(name, value) for name, value in defaults.items()}
        return compute(model.value(inputs[0]), **settings)

    return rule


def _elu(x: Node, alpha: float) -> Any:
    return rows.where(x > 0, x, alpha * rows.expm1(rows.minimum(x, 0.0)))


def _selu(x: Node, alpha: float, gamma: float) -> Any:
    return gamma * _elu(x, alpha)


def _celu(x: Node, alpha: float) -> Any:
    return rows.relu(x) + rows.minimum(0.0, alpha * rows.expm1(rows.minimum(x, 0.0) / alpha))


def _hard_sigmoid(x: Node, alpha: float, beta: float) -> Any:
    return rows.clip(alpha * x + beta, 0.0, 1.0)


def _gelu(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x = model.value(inputs[0])
    if attributes.get("approximate", b"none") == b"tanh":
        return 0.5 * x * (1 + rows.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + rows.erf(x / math.sqrt(2)))


def _clip(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    """Limit by inputs that may be left out, before opset 11 by attributes."""
    x = model.value(inputs[0])
    low, high = [*inputs[1:], "", ""][:2]
    if low or "min" in attributes:
        x = rows.maximum(x, model.value(low) if low else attributes["min"])
    if high or "max" in attributes:
        x = rows.minimum(x, model.value(high) if high else attributes["max"])
    return x


def _mod(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    remainder: Callable[..., Any] = np.fmod if attributes.get("fmod") else rows.mod
    return remainder(*map(model.value, inputs))


def _quotient(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    """Divide; the quotient of integers is rounded towards zero."""
    quotient = rows.divide(*map(model.value, inputs))
    return np.trunc(quotient) if all(map(model.whole, inputs)) else quotient


def _cast(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    """Convert to truth values and integers; floats keep their 64 bits."""
    x = model.value(inputs[0])
    if attributes["to"] == _BOOL:
        return rows.not_equal(x, 0.0)
    return np.trunc(x) if attributes["to"] in _INTEGERS else x


def _inference(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    """Return the input; in training elements are dropped at random."""
    if len(inputs) > 2 and inputs[2] and model.static(inputs[2]).any():
        raise UnsupportedError("difflab reads the dropout of inference, not of training")
    return model.value(inputs[0])


def _gemm(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    a, b = map(model.value, inputs[:2])
    a = arrays.transpose(a) if attributes.get("transA") else a
    b = arrays.transpose(b) if attributes.get("transB") else b
    out = _scaled(arrays.matmul(a, b), attributes.get("alpha", 1.0))
    if len(inputs) > 2 and inputs[2]:
        out = out + _scaled(model.value(inputs[2]), attributes.get("beta", 1.0))
    return out


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1.0 else factor * x


# --- shapes -----------------------------------------------------------------------------------


def _axes(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> list[int] | None:
    """Return axes, an attribute before opset 13 or 18, and an input since."""
    if len(inputs) > 1 and inputs[1]:
        return [int(axis) for axis in model.static(inputs[1])]
    axes = attributes.get("axes")
    return None if axes is None else list(axes)


def _reshape(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x = model.value(inputs[0])
    sizes = model.static(inputs[1]).tolist() if len(inputs) > 1 else list(attributes["shape"])
    kept = not attributes.get("allowzero")
    return arrays.reshape(x, [x.shape[k] if s == 0 and kept else s for k, s in enumerate(sizes)])


def _flatten(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x = model.value(inputs[0])
    axis = attributes.get("axis", 1) % (len(x.shape) + 1)
    return arrays.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    axes = _axes(model, inputs, attributes)
    return arrays.squeeze(model.value(inputs[0]), None if axes is None else tuple(axes))


def _unsqueeze(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x, axes = model.value(inputs[0]), _axes(model, inputs, attributes) or []
    rank = len(x.shape) + len(axes)
    sizes = iter(x.shape)
    added = {axis % rank for axis in axes}
    return arrays.reshape(x, [1 if k in added else next(sizes) for k in range(rank)])


def _expand(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x = model.value(inputs[0])
    wanted = tuple(model.static(inputs[1]).tolist())
    return arrays.broadcast_to(x, np.broadcast_shapes(x.shape, wanted))


def _transpose(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    return arrays.transpose(model.value(inputs[0]), attributes.get("perm"))


def _concat(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    return arrays.concatenate([model.value(name) for name in inputs], attributes["axis"])


def _slice(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    """Cut along axes, by attributes before opset 10, by inputs since."""
    x = model.value(inputs[0])
    names = ["starts", "ends", "axes", "steps"]
    parts = {name: list(attributes[name]) for name in names if name in attributes}
    for name, source in zip(names, inputs[1:], strict=False):
        if source:
            parts[name] = model.static(source).tolist()
    count = len(parts["starts"])
    key = [slice(None)] * len(x.shape)
    axes, steps = parts.get("axes", range(count)), parts.get("steps", [1] * count)
    for start, end, axis, step in zip(parts["starts"], parts["ends"], axes, steps, strict=True):
        # Backwards, the first element is behind an end that is below all indices.
        last = None if step < 0 and end < -x.shape[axis] else end
        key[axis] = slice(start, last, step)
    return x[tuple(key)]


def _split(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> list[Any]:
    x, axis = model.value(inputs[0]), attributes.get("axis", 0)
    size = x.shape[axis]
    if len(inputs) > 1 and inputs[1]:
        sizes = model.static(inputs[1]).tolist()
    elif "split" in attributes:
        sizes = list(attributes["split"])
    elif "num_outputs" in attributes:
        each = -(-size // attributes["num_outputs"])
        sizes = [min(each, size - start) for start in range(0, size, each)]
    else:
        raise UnsupportedError("the sizes of the parts are not given")
    ends = np.cumsum(sizes).tolist()
    spans = [range(end - part, end) for part, end in zip(sizes, ends, strict=True)]
    return [arrays.take(x, list(each), axis) for each in spans]


def _gather(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x, indices = model.value(inputs[0]), model.static(inputs[1])
    axis = attributes.get("axis", 0) % len(x.shape)
    size = x.shape[axis]
    if indices.size and not -size <= indices.min() <= indices.max() < size:
        wrong = indices[(indices < -size) | (indices >= size)].flat[0]
        raise IndexingError(f"the index {wrong} is out of bounds for an axis of {size}")
    entries = arrays.take(x, (indices.reshape(-1) % max(size, 1)).tolist(), axis)
    return arrays.reshape(entries, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


# --- reductions and networks ------------------------------------------------------------------


def _reduction(compute: Callable[..., Any]) -> Rule:
    def rule(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
        x, axes = model.value(inputs[0]), _axes(model, inputs, attributes)
        if axes is None or not axes:
            if attributes.get("noop_with_empty_axes"):
                return x
            axes = list(range(len(x.shape)))
        reduced = {axis % len(x.shape) for axis in axes}
        out = compute(x, tuple(sorted(reduced)))
        if not attributes.get("keepdims", 1):
            return out
        return arrays.reshape(out, [1 if k in reduced else s for k, s in enumerate(x.shape)])

    return rule


def _argmax(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x, axis = model.value(inputs[0]), attributes.get("axis", 0)
    if attributes.get("select_last_index"):
        indices = x.shape[axis] - 1 - arrays.argmax(np.flip(x, axis), axis)
    else:
        indices = arrays.argmax(x, axis)
    return np.expand_dims(indices, axis) if attributes.get("keepdims", 1) else indices


def _normalized(compute: Callable[..., Any]) -> Rule:
    def rule(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
        x = model.value(inputs[0])
        axis = attributes.get("axis", -1 if model.opset >= 13 else 1)
        if model.opset < 13 and axis % len(x.shape) != len(x.shape) - 1:
            raise UnsupportedError("before opset 13 it flattens axes, which difflab does not")
        return compute(x, (axis,))

    return rule


def _cumulated(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise UnsupportedError("difflab's running sums are neither exclusive nor reversed")
    return arrays.cumsum(model.value(inputs[0]), int(model.static(inputs[1])))


def _conv(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x, weight, *bias = [model.value(name) for name in inputs if name]
    rank = len(weight.shape) - 2
    pads = list(attributes.get("pads", [0] * 2 * rank))
    automatic = attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")
    if rank != 2 or automatic or pads[:rank] != pads[rank:]:
        raise UnsupportedError("convolutions are of images, with equal padding on both sides")
    return arrays.conv2d(
        x,
        weight,
        bias[0] if bias else None,
        tuple(attributes.get("strides", (1, 1))),
        tuple(pads[:2]),
        tuple(attributes.get("dilations", (1, 1))),
        attributes.get("group", 1),
    )


def _batch_norm(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    if attributes.get("training_mode"):
        raise UnsupportedError("difflab reads the normalization of inference, not of training")
    x, *parts = map(model.value, inputs)
    shape = (-1, *(1,) * (len(x.shape) - 2))
    scale, bias, mean, variance = (arrays.reshape(part, shape) for part in parts)
    return (x - mean) / rows.sqrt(variance + attributes.get("epsilon", 1e-5)) * scale + bias


def _layer_norm(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x, scale = map(model.value, inputs[:2])
    axes = tuple(range(attributes.get("axis", -1) % len(x.shape), len(x.shape)))
    kept = [1 if k in axes else size for k, size in enumerate(x.shape)]
    centred = x - arrays.reshape(arrays.mean(x, axes), kept)
    variance = arrays.reshape(arrays.mean(centred * centred, axes), kept)
    out = centred / rows.sqrt(variance + attributes.get("epsilon", 1e-5)) * scale
    return out + model.value(inputs[2]) if len(inputs) > 2 and inputs[2] else out


def _global_mean(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    x = model.value(inputs[0])
    axes = tuple(range(2, len(x.shape)))
    return arrays.reshape(arrays.mean(x, axes), (*x.shape[:2], *(1,) * len(axes)))


def _unchanged(model: ReadModel, inputs: Sequence[str], attributes: Attributes) -> Any:
    return model.value(inputs[0])


_NAMED = {
    row.name.replace("_", "").capitalize(): _row(row)
    for row in TABLE.values()
    if row.shape is None and row.names and row.arity == 1
}
OPERATORS: Mapping[str, Rule] = {
    **_NAMED,
    **{kind: _row(TABLE[name]) for name, kind in ROWS.items()},
    "ArgMax": _argmax,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Celu": _shaped(_celu, alpha=1.0),
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "CumSum": _cumulated,
    "Det": _row(arrays.det),
    "Div": _quotient,
    "Dropout": _inference,
    "Einsum": lambda model, inputs, given: arrays.einsum(
        given["equation"].decode(), *map(model.value, inputs)
    ),
    "Elu": _shaped(_elu, alpha=1.0),
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gelu": _gelu,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_mean,
    "HardSigmoid": _shaped(_hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": _shaped(lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5)),
    "Identity": _unchanged,
    "LayerNormalization": _layer_norm,
    "LeakyRelu": _shaped(lambda x, alpha: rows.where(x < 0, alpha * x, x), alpha=0.01),
    "LogSoftmax": _normalized(arrays.log_softmax),
    "MatMul": _row(arrays.matmul),
    "Max": _folded(rows.maximum),
    "Mean": lambda model, inputs, given: reduce(rows.add, map(model.value, inputs)) / len(inputs),
    "Min": _folded(rows.minimum),
    "Mish": _row(lambda x: x * rows.tanh(rows.softplus(x))),
    "Mod": _mod,
    "PRelu": _row(lambda x, slope: rows.where(x < 0, slope * x, x)),
    "Reciprocal": _row(lambda x: 1.0 / x),
    "ReduceL1": _reduction(lambda x, axes: arrays.sum(rows.absolute(x), axes)),
    "ReduceL2": _reduction(arrays.norm),
    "ReduceLogSum": _reduction(lambda x, axes: rows.log(arrays.sum(x, axes))),
    "ReduceLogSumExp": _reduction(arrays.logsumexp),
    "ReduceMax": _reduction(arrays.max),
    "ReduceMean": _reduction(arrays.mean),
    "ReduceMin": _reduction(arrays.min),
    "ReduceProd": _reduction(arrays.prod),
    "ReduceSum": _reduction(arrays.sum),
    "ReduceSumSquare": _reduction(lambda x, axes: arrays.sum(x * x, axes)),
    "Reshape": _reshape,
    "Selu": _shaped(_selu, alpha=1.6732632423543772, gamma=1.0507009873554805),
    "Slice": _slice,
    "Softmax": _normalized(arrays.softmax),
    "Softsign": _row(lambda x: x / (1.0 + rows.absolute(x))),
    "Split": _split,
    "Squeeze": _squeeze,
    "Sum": _folded(rows.add),
    "ThresholdedRelu": _shaped(lambda x, alpha: rows.where(x > alpha, x, 0.0), alpha=1.0),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Xor": _row(np.logical_xor),
}

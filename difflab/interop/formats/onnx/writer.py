"""Functions as models in ONNX's format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from difflab.core.optional import require
from difflab.errors import InputError, UnsupportedError
from difflab.execute.compiled import check_dtype
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Shape
from difflab.graph.names import FreshNames
from difflab.graph.passes.expansion import expanded
from difflab.interop.formats.onnx.spelling import SPELLINGS

__all__ = ["to_onnx"]

OPSET = 18
"""Of the operators that are written; since then, axes of every reduction are an input."""


def to_onnx(function: Function, name: str = "f", dtype: DTypeLike = np.float64) -> Any:
    """Return the model in ONNX's format that computes a function.

    Its inputs and outputs have the names and the shapes of the function's. Operations that ONNX
    lacks and that a few of its operators compute as accurately, such as ``log1p``, are written so,
    and so are those that onnxruntime lacks in 64 bits, such as ``atan``, or computes with few
    digits, such as ``sigmoid``; those of every loop are written out.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the model's graph.
    dtype : {float64, float32}
        Of all inputs, outputs and numbers.

    Returns
    -------
    onnx.ModelProto
        For ``onnx.save``, with operators of opset 18.

    Raises
    ------
    InputError
        `function` is not a Function, `name` is not text, or there is no such dtype.
    UnsupportedError
        ONNX has no form of an operation, such as the gamma function; the message names it.
    MissingDependencyError
        The package onnx is not installed.

    Examples
    --------
    >>> import difflab as dl
    >>> model = to_onnx(dl.gradient(dl.parse("x1*x2 - sin(x2)")))
    >>> [step.op_type for step in model.graph.node][:3]
    ['Cos', 'Sub', 'Reshape']
    >>> dl.from_onnx(model)(3.0, 0.0).tolist()
    [0.0, 2.0]
    """
    require_function(function, "to_onnx")
    if not isinstance(name, str):
        raise InputError(f"the name of a model is text, not {type(name).__name__}")
    real = check_dtype("to_onnx", dtype)
    lowered = expanded(function, known=SPELLINGS)
    return Writer(require("onnx", extra="onnx"), lowered, real).model(name)


class Writer:
    """The operators and the stored tensors of a model.

    Attributes
    ----------
    steps, stored : list
        ONNX's nodes and tensors.
    """

    def __init__(self, onnx: Any, function: Function, dtype: np.dtype[Any]) -> None:
        self.onnx = onnx
        self.helper = onnx.helper
        self.function = function
        self.dtype = dtype
        self.kind = self.helper.np_dtype_to_tensor_dtype(self.dtype)
        self.graph = function.graph
        self.steps: list[Any] = []
        self.stored: list[Any] = []
        self.names = FreshNames([*function.inputs, *function.output_names])
        self.values: dict[int, str] = {}
        self.numbers: dict[Any, str] = {}

    def model(self, name: str) -> Any:
        """Return the model of the whole function."""
        function, graph = self.function, self.graph
        self.values.update(zip(function.input_nodes, function.inputs, strict=True))
        for node, (opcode, args) in enumerate(graph.rows()):
            if opcode == CONSTANT:
                self.values[node] = self.number(float(graph.constants[node][0]))
            elif opcode >= FIRST_ROW:
                self.values[node] = self._row(node, graph.primitives[opcode - FIRST_ROW], args)
        for node, label in zip(function.outputs, function.output_names, strict=True):
            self._result(node, label)
        onnx_graph = self.helper.make_graph(
            self.steps,
            name,
            self._described(function.inputs, function.input_shapes),
            self._described(function.output_names, function.output_shapes),
            self.stored,
        )
        opsets = [self.helper.make_opsetid("", OPSET)]
        return self.helper.make_model(
            onnx_graph,
            producer_name="difflab",
            opset_imports=opsets,
            ir_version=self.helper.find_min_ir_version_for(opsets),
        )

    def operator(
        self, kind: str, *inputs: str, result: str | None = None, **attributes: Any
    ) -> str:
        """Append an operator of one result, and return the name of that."""
        name = self.names.numbered("t") if result is None else result
        self.steps.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def number(self, value: float) -> str:
        """Return the name of a stored number."""
        return self.array(value)

    def as_number(self, value: str) -> str:
        """Append a cast of booleans or integers to floating point."""
        return self.operator("Cast", value, to=self.kind)

    def integers(self, values: Any) -> str:
        """Return the name of stored integers: sizes, axes or indices."""
        return self._tensor(np.asarray(values, dtype=np.int64))

    def array(self, values: Any) -> str:
        """Return the name of a stored array."""
        with np.errstate(over="ignore"):
            return self._tensor(np.asarray(values).astype(self.dtype))

    def shaped(self, value: str, shape: Shape) -> str:
        """Return a value in another shape."""
        if 0 in shape:  # without `allowzero`, the value's own size is meant
            return self.operator("Reshape", value, self.integers(shape), allowzero=1)
        return self.operator("Reshape", value, self.integers(shape))

    def _tensor(self, array: Any) -> str:
        key = (array.dtype.char, array.shape, array.tobytes())
        if key not in self.numbers:
            self.numbers[key] = self.names.numbered("c")
            self.stored.append(
                self.onnx.numpy_helper.from_array(np.asarray(array), self.numbers[key])
            )
        return self.numbers[key]

    def _row(self, node: int, row: Any, args: Sequence[int]) -> str:
        spell = SPELLINGS.get(row.name)
        if spell is None or row.holds is not None:
            raise UnsupportedError(f"ONNX has no form of '{row.name}'")
        shape, shapes = self.graph.shape(node), [self.graph.shape(arg) for arg in args]
        if 0 in shape:  # onnxruntime expands to one element what has none
            return self._tensor(np.zeros(shape, dtype=np.bool_ if row.boolean else self.dtype))
        names = [self.values[arg] for arg in args]
        return spell(self, names, shapes, shape, **self.graph.params(node))

    def _result(self, node: int, label: str) -> None:
        """Give an output its name; a truth value becomes a number."""
        row = self.graph.primitive(node)
        if row is not None and row.boolean:
            self.operator("Cast", self.values[node], to=self.kind, result=label)
        else:
            self.operator("Identity", self.values[node], result=label)

    def _described(self, names: Sequence[str], shapes: Sequence[Shape]) -> list[Any]:
        return [
            self.helper.make_tensor_value_info(name, self.kind, shape)
            for name, shape in zip(names, shapes, strict=True)
        ]

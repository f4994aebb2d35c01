"""Models in ONNX's format as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import DifflabError, InputError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import FreshNames
from difflab.graph.node import Node
from difflab.interop.formats.inputs import cleaned_name
from difflab.interop.formats.onnx.operators import OPERATORS
from difflab.primitives import constant_array

__all__ = ["from_onnx"]

_NUMBERS = "fiub"


def from_onnx(
    model: Any,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    parameters: bool = False,
) -> Function:
    """Return the function that a model in ONNX's format computes.

    It computes in float64, also where the model's numbers have 32 bits. Dropout and batch
    normalization are those of inference.

    Parameters
    ----------
    model : path or onnx.ModelProto
        A file, or a model that was loaded.
    shapes : mapping of str to sequence of int, optional
        The shapes of inputs whose sizes the model leaves open, such as a number of examples.
    parameters : bool
        Whether the numbers stored in the model, its weights, are inputs behind those of the model,
        to differentiate by them; by default they are constants.

    Returns
    -------
    Function
        Its inputs and outputs have the model's names, with ``_`` for what a name cannot contain.

    Raises
    ------
    InputError
        The file is no model, a size is unknown, or an operator is not read; the message names it.
    MissingDependencyError
        The package onnx is not installed.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.DOUBLE, [2]) for n in "xy")
    >>> graph = helper.make_graph([helper.make_node("Sin", ["x"], ["y"])], "g", [x], [y])
    >>> f = from_onnx(helper.make_model(graph))
    >>> f.inputs, f([0.0, 1.0]).round(3).tolist()
    (('x',), [0.0, 0.841])
    """
    onnx = require("onnx", extra="onnx")
    reader = _Model(onnx, _loaded(onnx, model), dict(shapes or {}), parameters)
    return reader.function()


def _loaded(onnx: Any, model: Any) -> Any:
    """Return the model, read from its file."""
    if isinstance(model, onnx.ModelProto):
        return model
    if not isinstance(model, str | Path):
        raise InputError(
            f"from_onnx takes a file or an onnx.ModelProto, not {type(model).__name__}"
        )
    try:
        return onnx.load(model)
    except OSError as error:
        raise InputError(f"cannot read {str(model)!r}: {error.strerror or error}") from error
    except Exception as error:  # protobuf's errors have no common class of its own
        raise InputError(f"{str(model)!r} is no model in ONNX's format") from error


class _Model:
    """The nodes of a model's values, by their names in the model."""

    def __init__(self, onnx: Any, model: Any, shapes: dict[str, Any], parameters: bool) -> None:
        self.onnx = onnx
        self.graph = model.graph
        self.shapes = shapes
        self.parameters = parameters
        domains = {entry.domain: entry.version for entry in model.opset_import}
        self.opset: int = domains.get("", domains.get("ai.onnx", 1))
        self.builder = Builder()
        self.names = FreshNames()
        self.inputs: list[int] = []
        self.values: dict[str, Node] = {}
        self.numbers: dict[str, np.ndarray[Any, Any]] = {}

    def function(self) -> Function:
        """Return the function of the whole graph."""
        stored = {tensor.name: tensor for tensor in self.graph.initializer}
        for entry in self.graph.input:
            if entry.name not in stored:
                self._input(entry.name, self._shape(entry))
        for name, tensor in stored.items():
            self.numbers[name] = self.onnx.numpy_helper.to_array(tensor)
            if self.parameters and self.numbers[name].dtype.kind == "f":
                self._input(name, self.numbers[name].shape)
        for position, step in enumerate(self.graph.node):
            self._step(position, step)
        names = [entry.name for entry in self.graph.output]
        outputs = [self.value(name).id for name in names]
        labels = FreshNames(self.builder.names.values())
        shown = [labels.fresh(cleaned_name(name)) for name in names]
        return Function.build(self.builder, self.inputs, outputs, shown)

    def value(self, name: str) -> Node:
        """Return the node of a value; numbers become one when they are used."""
        if name not in self.values:
            if name not in self.numbers:
                raise InputError(f"the model uses {name!r} before it computes it")
            self.values[name] = self.constant(self.numbers[name])
        return self.values[name]

    def constant(self, numbers: Any) -> Node:
        """Return the node of numbers."""
        array = np.asarray(numbers)
        if array.dtype.kind not in _NUMBERS:
            raise InputError(f"the model has numbers of the type {array.dtype}")
        if array.ndim == 0:
            return Node(self.builder, self.builder.constant(array.item()))
        values = np.ascontiguousarray(array, dtype=np.float64).tobytes()
        params = (("shape", array.shape), ("values", values))
        return Node(self.builder, self.builder.emit(constant_array, (), params))

    def static(self, name: str) -> np.ndarray[Any, Any]:
        """Return numbers that must be known when the model is read, such as axes."""
        if name not in self.numbers:
            raise InputError(f"the model computes {name!r}, which difflab needs as a number")
        return self.numbers[name]

    def _input(self, name: str, shape: Sequence[int]) -> None:
        node = self.builder.input(self.names.fresh(cleaned_name(name)), tuple(shape))
        self.inputs.append(node)
        self.values[name] = Node(self.builder, node)

    def _shape(self, entry: Any) -> Sequence[int]:
        """Return the shape of an input, as given or as the model states it."""
        given = self.shapes.pop(entry.name, None)
        kind = entry.type.tensor_type
        if given is not None:
            return tuple(int(size) for size in given)
        if not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
            rank = len(kind.shape.dim)
            example = ", ".join(["1"] * max(rank, 1))
            raise InputError(
                f"the model leaves the shape of its input {entry.name!r} open",
                hint=f"give it: from_onnx(model, shapes={{{entry.name!r}: ({example},)}})",
            )
        return tuple(dim.dim_value for dim in kind.shape.dim)

    def _step(self, position: int, step: Any) -> None:
        """Compute the outputs of one operator."""
        where = f"{step.op_type} (node {position + 1}{f', {step.name}' if step.name else ''})"
        attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in step.attribute}
        inputs = list(step.input)
        if self._computed_now(where, step, inputs):
            return
        rule = OPERATORS.get(step.op_type) if step.domain in ("", "ai.onnx") else None
        if rule is None:
            raise InputError(
                f"difflab does not read ONNX's operator {where}",
                hint="docs/reference/formats.md lists those that it reads",
            )
        try:
            found = rule(self, inputs, attributes)
        except ShapeError as error:
            raise InputError(f"{where}: {error.message}", hint=error.hint) from error
        except (DifflabError, KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{where}: {error}") from error
        results = found if isinstance(found, list) else [found]
        # Further outputs, such as the mask of a dropout, are not computed.
        self.values.update(zip(step.output, results, strict=False))

    def _computed_now(self, where: str, step: Any, inputs: Sequence[str]) -> bool:
        """Compute what depends on no input, such as shapes, by ONNX's own evaluator."""
        if step.op_type == "Shape":
            sizes = self.value(inputs[0]).shape
            self.numbers[step.output[0]] = np.array(sizes, dtype=np.int64)
            return True
        known = all(name in self.numbers and name not in self.values for name in inputs if name)
        if not known or any(a.HasField("g") for a in step.attribute):
            return False
        from onnx.reference import ReferenceEvaluator

        graph = self.onnx.helper.make_graph(
            [step],
            "step",
            [],
            [self.onnx.helper.make_empty_tensor_value_info(name) for name in step.output if name],
            [self.onnx.numpy_helper.from_array(self.numbers[n], n) for n in inputs if n],
        )
        opset = self.onnx.helper.make_opsetid("", self.opset)
        model = self.onnx.helper.make_model(graph, opset_imports=[opset])
        try:
            found = ReferenceEvaluator(model).run(None, {})
        except Exception as error:  # the evaluator's errors have no common class of its own
            raise InputError(f"{where}: {error}") from error
        names = [name for name in step.output if name]
        self.numbers.update(zip(names, map(np.asarray, found), strict=True))
        return True

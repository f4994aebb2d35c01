"""Models in ONNX's format as functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.core.system import require_memory
from difflab.errors import DifflabError, InputError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import FreshNames
from difflab.graph.node import Node
from difflab.interop.formats.onnx.operators import OPERATORS
from difflab.interop.formats.onnx.validity import (
    check_model,
    elements_of,
    has_float_attributes,
    where,
)
from difflab.interop.formats.readers import ReaderSource, cleaned_name, verified
from difflab.primitives import constant_array

_NUMBERS = "fiub"


def from_onnx(
    model: Any,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    parameters: bool = False,
    verify: bool = True,
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
    verify : bool
        Whether to compare values with those of ONNX's reference evaluator, at a few points, beyond
        the rounding of the dtype in which the model computes.

    Returns
    -------
    Function
        Its inputs and outputs have the model's names, with ``_`` for what a name cannot contain.

    Raises
    ------
    InputError
        The file is no model, or an invalid one, a size is unknown, or an operator is not read; the
        message names it.
    GraphMismatchError
        What was read has another value than the reference evaluator computes.
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
    loaded = _loaded(onnx, model)
    try:
        reader = _Model(onnx, loaded, dict(shapes or {}), parameters)
        function = reader.function()
    except DifflabError:
        raise
    except Exception as error:  # a damaged model may have any value in any place
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise InputError(f"the model is damaged, it cannot be read: {what}") from error
    return verified(function, _source(onnx, reader)) if verify else function


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


def _source(onnx: Any, reader: _Model) -> ReaderSource:
    """Return the evaluation by ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    names, fixed = reader.sources, reader.numbers
    evaluator: list[Any] = []

    def call(values: list[Any]) -> list[Any]:
        if not evaluator:
            evaluator.append(ReferenceEvaluator(reader.model))
        feeds = {
            name: value for name, value in zip(names, values, strict=True) if name not in fixed
        }
        outputs: list[Any] = evaluator[0].run(None, feeds)
        return outputs

    convert = onnx.helper.tensor_dtype_to_np_dtype
    return ReaderSource(
        "ONNX's reference evaluator",
        call,
        [convert(reader.elements[name]) for name in names],
        reader.rounding(),
        {k: fixed[name] for k, name in enumerate(names) if name in fixed},
    )


class _Model:
    """The nodes of a model's values, by their names in the model."""

    def __init__(self, onnx: Any, model: Any, shapes: dict[str, Any], parameters: bool) -> None:
        self.onnx = onnx
        self.graph = model.graph
        self.model = model
        self.shapes = shapes
        self.parameters = parameters
        domains = {entry.domain: entry.version for entry in model.opset_import}
        self.opset: int = domains.get("", domains.get("ai.onnx", 1))
        self.elements = elements_of(onnx, model)
        check_model(onnx, model, self.opset, self.elements)
        self.builder = Builder()
        self.names = FreshNames()
        self.inputs: list[int] = []
        self.sources: list[str] = []
        self.values: dict[str, Node] = {}
        self.numbers: dict[str, np.ndarray[Any, Any]] = {}

    def function(self) -> Function:
        """Return the function of the whole graph."""
        stored = {tensor.name: tensor for tensor in self.graph.initializer}
        for entry in self.graph.input:
            if entry.name not in stored:
                self._input(entry.name, self._shape(entry))
        if self.shapes:
            listed = ", ".join(entry.name for entry in self.graph.input)
            unknown = next(iter(self.shapes))
            raise InputError(f"the model has no input {unknown!r}", hint=f"its inputs are {listed}")
        for name, tensor in stored.items():
            self.numbers[name] = self._stored(tensor)
            if self.parameters and self.numbers[name].dtype.kind == "f":
                self._input(name, self.numbers[name].shape)
        for position, step in enumerate(self.graph.node):
            self._step(position, step)
        names = [entry.name for entry in self.graph.output]
        outputs = [self.value(name).id for name in names]
        labels = FreshNames(self.builder.names.values())
        shown = [labels.fresh(cleaned_name(name)) for name in names]
        return Function.build(self.builder, self.inputs, outputs, shown)

    def _stored(self, tensor: Any) -> np.ndarray[Any, Any]:
        """Return the elements of a stored tensor."""
        try:
            elements: np.ndarray[Any, Any] = self.onnx.numpy_helper.to_array(tensor)
        except Exception as error:  # a damaged tensor may have any kind and any number of bytes
            raise InputError(f"the stored tensor {tensor.name!r} is damaged: {error}") from error
        return elements

    def value(self, name: str) -> Node:
        """Return the node of a value; arrays become constants on first use."""
        if name not in self.values:
            if name not in self.numbers:
                raise InputError(f"the model uses {name!r} before it computes it")
            self.values[name] = self.constant(self.numbers[name])
        return self.values[name]

    def constant(self, elements: Any) -> Node:
        """Return the node of a constant array."""
        array = np.asarray(elements)
        if array.dtype.kind not in _NUMBERS:
            raise InputError(f"the model has numbers of the type {array.dtype}")
        if array.ndim == 0:
            return Node(self.builder, self.builder.constant(array.item()))
        values = np.ascontiguousarray(array, dtype=np.float64).tobytes()
        params = (("shape", array.shape), ("values", values))
        return Node(self.builder, self.builder.emit(constant_array, (), params))

    def static(self, name: str) -> np.ndarray[Any, Any]:
        """Return an array that must be static, such as axes."""
        if name not in self.numbers:
            raise InputError(f"the model computes {name!r}, which difflab needs as a number")
        return self.numbers[name]

    def rounding(self) -> float:
        """Return the rounding of the coarsest floats of the model; attributes are float32."""
        kinds = self.onnx.TensorProto
        eps_by_kind = {kinds.FLOAT: 2.0**-23, kinds.FLOAT16: 2.0**-10, kinds.BFLOAT16: 2.0**-7}
        eps = max([2.0**-52, *(eps_by_kind.get(kind, 0.0) for kind in self.elements.values())])
        if any(has_float_attributes(self.onnx, step, self.opset) for step in self.graph.node):
            eps = max(eps, eps_by_kind[kinds.FLOAT])
        return eps

    def _input(self, name: str, shape: Sequence[int]) -> None:
        node = self.builder.input(self.names.fresh(cleaned_name(name)), tuple(shape))
        self.inputs.append(node)
        self.sources.append(name)
        self.values[name] = Node(self.builder, node)

    def _shape(self, entry: Any) -> Sequence[int]:
        """Return the shape of an input, as given or as the model states it."""
        shape = self.shapes.pop(entry.name, None)
        kind = entry.type.tensor_type
        if not entry.type.HasField("tensor_type") or kind.elem_type not in self._numeric:
            raise InputError(f"the input {entry.name!r} of the model is no tensor of real numbers")
        declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        if any(size is not None and size < 0 for size in declared):
            raise InputError(f"the model states a negative size of its input {entry.name!r}")
        if shape is not None:
            try:
                sizes = tuple(int(size) for size in shape)
            except (TypeError, ValueError):
                raise InputError(
                    f"the shape of {entry.name!r} is a tuple of integers, not {shape!r}"
                ) from None
            pairs = zip(sizes, declared, strict=False)
            if min(sizes, default=0) < 0 or (
                kind.HasField("shape")
                and (len(sizes) != len(declared) or any(b not in (a, None) for a, b in pairs))
            ):
                shown = ", ".join("?" if size is None else str(size) for size in declared)
                raise InputError(
                    f"the shape {sizes} is none of the input {entry.name!r}, whose shape the model"
                    f" states as ({shown})"
                )
            return sizes
        if not kind.HasField("shape") or None in declared:
            example = ", ".join(["1"] * max(len(declared), 1))
            raise InputError(
                f"the model leaves the shape of its input {entry.name!r} open",
                hint=f"give it: from_onnx(model, shapes={{{entry.name!r}: ({example},)}})",
            )
        return [size for size in declared if size is not None]

    @property
    def _numeric(self) -> frozenset[int]:
        """The element types of real values."""
        helper = self.onnx.helper
        return frozenset(
            kind
            for kind in helper.get_all_tensor_dtypes()
            if helper.tensor_dtype_to_np_dtype(kind).kind in _NUMBERS
        )

    def whole(self, name: str) -> bool:
        """Return whether a value consists of integers."""
        kind = self.elements.get(name, 0)
        if kind not in self._numeric:
            return False
        return self.onnx.helper.tensor_dtype_to_np_dtype(kind).kind in "iu"

    def _step(self, position: int, step: Any) -> None:
        """Compute the outputs of one operator."""
        location = where(position, step)
        attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in step.attribute}
        inputs = list(step.input)
        if self._computed_now(location, step, inputs):
            return
        rule = OPERATORS.get(step.op_type) if step.domain in ("", "ai.onnx") else None
        if rule is None:
            raise InputError(
                f"difflab does not read ONNX's operator {location}",
                hint="docs/reference/formats.md lists those that it reads",
            )
        try:
            returned = rule(self, inputs, attributes)
        except ShapeError as error:
            raise InputError(f"{location}: {error.message}", hint=error.hint) from error
        except (DifflabError, KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{location}: {error}") from error
        results = returned if isinstance(returned, list) else [returned]
        if isinstance(returned, list) and len(returned) != len(step.output):
            raise InputError(f"{location} names {len(step.output)} of its {len(returned)} results")
        # Further outputs, such as the mask of a dropout, are not computed.
        self.values.update(zip(step.output, results, strict=False))

    def _computed_now(self, location: str, step: Any, inputs: Sequence[str]) -> bool:
        """Evaluate operators that depend on no input, such as shapes, by ONNX's own evaluator."""
        if step.op_type == "Shape":
            sizes = self.value(inputs[0]).shape
            self.numbers[step.output[0]] = np.array(sizes, dtype=np.int64)
            return True
        static = all(name in self.numbers and name not in self.values for name in inputs if name)
        if not static or any(a.HasField("g") for a in step.attribute):
            return False
        self._check_size(location, step, inputs)
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
            outputs = ReferenceEvaluator(model).run(None, {})
        except Exception as error:  # the evaluator's errors have no common class of its own
            raise InputError(f"{location}: {error}") from error
        names = [name for name in step.output if name]
        self.numbers.update(zip(names, map(np.asarray, outputs), strict=True))
        return True

    def _check_size(self, location: str, step: Any, inputs: Sequence[str]) -> None:
        """Raise an error if an operator would make an array that memory cannot hold."""
        if step.op_type in ("ConstantOfShape", "Expand", "Tile"):
            count = math.prod(map(int, self.numbers[inputs[-1]].reshape(-1)))
            require_memory(8 * max(count, 0), location)

"""Checks of a model: names defined twice, and nodes that do not fit their operators.

`onnx.checker` refuses more, such as models that leave the type of an output open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from difflab.core.wording import counted
from difflab.errors import InputError
from difflab.interop.formats.onnx.operators import OPERATORS

_INTERNAL = ("", "ai.onnx")
_TRUTHS = frozenset({"Not", "And", "Or", "Xor", "IsInf", "IsNaN", "Equal", "Greater", "Less"})
_TRUTHS |= {"GreaterOrEqual", "LessOrEqual"}
_COUNTS = frozenset({"Shape", "Size", "ArgMax", "ArgMin", "NonZero"})
_CHECKED = frozenset({"Constant", "Shape", *OPERATORS})
"""Operators that are read; others are refused by name, or computed by ONNX's evaluator."""


def where(position: int, step: Any) -> str:
    """Return the operator and the position of a node."""
    return f"{step.op_type} (node {position + 1}{f', {step.name}' if step.name else ''})"


def check_model(onnx: Any, model: Any, opset: int, elements: dict[str, int]) -> None:
    """Raise an error if a model is invalid; `elements` are the types of its values.

    Raises
    ------
    InputError
        The message names the value or the node.
    """
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise InputError(
            f"the model has the opset {opset}, and the installed onnx knows those up to {newest}",
            hint="install a later onnx" if opset > newest else None,
        )
    graph = model.graph
    if not graph.output:
        raise InputError("the model has no output")
    for tensor in graph.sparse_initializer:
        raise InputError(f"the model stores {tensor.values.name!r} as a sparse tensor")
    provided = {entry.name for entry in graph.input} | {tensor.name for tensor in graph.initializer}
    _require_once((entry.name for entry in graph.input), "input")
    _require_once((tensor.name for tensor in graph.initializer), "stored tensor")
    _require_once((entry.name for entry in graph.output), "output")
    computed = [name for step in graph.node for name in step.output if name]
    _require_once(_after(provided, computed), "value")
    own = {(function.domain, function.name) for function in model.functions}
    for position, step in enumerate(graph.node):
        if (step.domain, step.op_type) in own:
            raise InputError(
                f"{where(position, step)} is a function of the model, which difflab does not read",
                hint="onnx.inliner.inline_local_functions(model) writes it out",
            )
        if step.domain in _INTERNAL and step.op_type in _CHECKED:
            _check_node(onnx, position, step, opset, elements)


def _after(provided: Iterable[str], computed: Iterable[str]) -> Iterator[str]:
    yield from provided
    yield from computed


def _require_once(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise InputError(f"the model has an {what} without a name")
        if name in seen:
            raise InputError(f"the model defines the {what} {name!r} twice")
        seen.add(name)


def _check_node(onnx: Any, position: int, step: Any, opset: int, elements: dict[str, int]) -> None:
    """Raise an error if a node has other inputs, outputs or attributes than its operator."""
    try:
        schema = onnx.defs.get_schema(step.op_type, opset, "")
    except onnx.defs.SchemaError as error:
        raise InputError(f"opset {opset} has no operator {where(position, step)}") from error
    location = where(position, step)
    for what, count, least, most in (
        ("input", len(step.input), schema.min_input, schema.max_input),
        ("output", len(step.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            bound = f"at least {least}" if count < least else f"at most {most}"
            raise InputError(f"{location} has {counted(count, what)}, and the operator {bound}")
    for name, formal in zip(step.input, schema.inputs, strict=False):
        if not name and formal.option == onnx.defs.OpSchema.FormalParameterOption.Single:
            raise InputError(f"{location} has no input {formal.name}")
    _check_attributes(location, step, schema)
    _check_types(onnx, location, step, schema, elements)


def _check_attributes(location: str, step: Any, schema: Any) -> None:
    seen: set[str] = set()
    for attribute in step.attribute:
        name = attribute.name
        formal = schema.attributes.get(name)
        if formal is None:
            raise InputError(f"{location} has the attribute {name!r}, and the operator none of it")
        if name in seen:
            raise InputError(f"{location} has the attribute {name!r} twice")
        seen.add(name)
        if attribute.ref_attr_name or attribute.type != formal.type.value:
            raise InputError(f"{location} has an attribute {name!r} that is no {formal.type.name}")
    for name, formal in schema.attributes.items():
        if formal.required and name not in seen:
            raise InputError(f"{location} lacks the attribute {name!r}")


def has_float_attributes(onnx: Any, step: Any, opset: int) -> bool:
    """Return whether an operator has float32 attributes, stated or by default."""
    if step.op_type in (
        "Erf",
        "Gelu",
        "HardSwish",
    ):  # the reference evaluator computes them in float32
        return True
    try:
        schema = onnx.defs.get_schema(step.op_type, opset, step.domain)
    except onnx.defs.SchemaError:
        return False
    floats = onnx.AttributeProto.FLOAT
    return any(formal.type.value == floats for formal in schema.attributes.values())


def elements_of(onnx: Any, model: Any) -> dict[str, int]:
    """Return the element type of each value: an operator's is that of its first input.

    ONNX's own inference ends the process for some models that are damaged.
    """
    graph, kinds = model.graph, onnx.TensorProto
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for entry in graph.input:
        if entry.type.HasField("tensor_type"):
            types.setdefault(entry.name, entry.type.tensor_type.elem_type)
    for step in graph.node:
        attributes = {attribute.name: attribute for attribute in step.attribute}
        if step.op_type == "Cast" and "to" in attributes:
            kind = attributes["to"].i
        elif step.op_type in ("Constant", "ConstantOfShape"):
            kind = attributes["value"].t.data_type if "value" in attributes else kinds.FLOAT
        elif step.op_type in _TRUTHS:
            kind = kinds.BOOL
        elif step.op_type in _COUNTS:
            kind = kinds.INT64
        else:
            first = 1 if step.op_type == "Where" else 0
            kind = types.get(step.input[first], 0) if len(step.input) > first else 0
        types.update((name, kind) for name in step.output)
    return types


def _check_types(
    onnx: Any, location: str, step: Any, schema: Any, elements: dict[str, int]
) -> None:
    """Raise an error if an input has an element type that the operator does not take.

    Floats of any size are computed in 64 bits.
    """
    floats = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16}
    last = schema.inputs[-1:] * max(len(step.input) - len(schema.inputs), 0)  # of any number
    for name, formal in zip(step.input, [*schema.inputs, *last], strict=False):
        kind = elements.get(name, 0)
        if not kind or not name or kind in floats:
            continue
        if kind not in onnx.TensorProto.DataType.values():
            raise InputError(f"{location} has an input {name!r} of the unknown element type {kind}")
        word = onnx.TensorProto.DataType.Name(kind).lower()
        if f"tensor({word})" not in formal.types:
            raise InputError(f"{location} takes no {word}, which its input {name!r} is")

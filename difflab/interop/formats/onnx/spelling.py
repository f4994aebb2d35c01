"""Difflab's rows in ONNX's operators.

A spelling is called with the model, the names of the arguments, their shapes, the shape of the
result, and the parameters of the row. It returns the name of the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from difflab.core.primitive import Shape
from difflab.errors import UnsupportedError
from difflab.interop.formats.onnx.formulas import ELEMENTWISE, Emitter, Spelling, operator
from difflab.primitives.movement import indices
from difflab.primitives.structure import decoded

Names = Sequence[str]


# --- shapes ------------------------------------------------------------------------------------


def _reshape(model: Emitter, names: Names, _: Any, out: Shape, **__: Any) -> str:
    return model.shaped(names[0], out)


def _broadcast(model: Emitter, names: Names, _: Any, out: Shape, **__: Any) -> str:
    return model.operator("Expand", names[0], model.integers(out))


def _constant(model: Emitter, *_: Any, shape: Shape, values: bytes) -> str:
    return model.array(np.frombuffer(values, dtype=np.float64).reshape(shape))


def _transpose(model: Emitter, names: Names, shapes: Any, _: Any, *, axes: Any) -> str:
    return model.operator("Transpose", names[0], perm=[axis % len(axes) for axis in axes])


def _concatenate(model: Emitter, names: Names, shapes: Any, _: Any, *, axis: int, rank: int) -> str:
    return model.operator("Concat", *names, axis=axis + rank)


def _matmul(model: Emitter, names: Names, shapes: Any, out: Shape, **_: Any) -> str:
    """Multiply matrices; a vector is one of them first.

    onnxruntime 1.32 gives wrong numbers for the product of a vector and a transposed matrix.
    """
    if all(len(shape) > 1 for shape in shapes):
        return model.operator("MatMul", *names)
    opened = [
        model.shaped(name, (1, *shape) if position == 0 else (*shape, 1))
        if len(shape) == 1
        else name
        for position, (name, shape) in enumerate(zip(names, shapes, strict=True))
    ]
    return model.shaped(model.operator("MatMul", *opened), out)


def _index(model: Emitter, names: Names, shapes: Any, out: Shape, *, key: Any, rank: int) -> str:
    """Cut slices, and drop the axes of integers."""
    (source,) = shapes
    if not source:
        return names[0]
    spans = [
        range(*entry.indices(size)) if isinstance(entry, slice) else range(entry, entry + 1)
        for entry, size in zip(decoded(key), source, strict=True)
    ]
    # Backwards, an end in front of the first element is one far below all indices.
    ends = [span.stop if span.step > 0 or span.stop >= 0 else -(2**62) for span in spans]
    parts = [[span.start for span in spans], ends, range(len(spans)), [s.step for s in spans]]
    sliced = model.operator("Slice", names[0], *map(model.integers, parts))
    return sliced if len(out) == len(source) else model.shaped(sliced, out)


def _take(
    model: Emitter, names: Names, shapes: Any, _: Any, *, places: Any, axis: int, rank: int
) -> str:
    return model.operator("Gather", names[0], model.integers(indices(places)), axis=axis + rank)


def _diagonal(model: Emitter, names: Names, shapes: Any, out: Shape) -> str:
    cells = _cells(shapes[0])
    flat = model.shaped(names[0], (-1,))
    return model.operator("Gather", flat, model.integers(np.diagonal(cells, axis1=-2, axis2=-1)))


def _pack(model: Emitter, names: Names, *_: Any, **__: Any) -> str:
    return model.operator("Concat", *[model.shaped(name, (-1,)) for name in names], axis=0)


def _cells(shape: Shape) -> Any:
    """Return the positions of the elements of an array in memory."""
    return np.arange(math.prod(shape)).reshape(shape)


def _scatter(model: Emitter, names: Names, shapes: Any, out: Shape, *, keys: Any, **_: Any) -> str:
    cells = _cells(out)
    targets = [np.ravel(cells[decoded(key)]) for key in keys]
    return _scattered(model, names, np.concatenate(targets), out)


def _put(
    model: Emitter, names: Names, shapes: Any, out: Shape, *, places: Any, axis: int, **_: Any
) -> str:
    return _scattered(model, names, np.take(_cells(out), indices(places), axis), out)


def _diag(model: Emitter, names: Names, shapes: Any, out: Shape) -> str:
    return _scattered(model, names, np.diagonal(_cells(out), axis1=-2, axis2=-1), out)


def _scattered(model: Emitter, names: Names, targets: Any, shape: Shape) -> str:
    """Return zeros with the elements of values added, each at its index.

    Each addend takes one element for every index: the first that belongs there, the second, …
    """
    flat = [model.array(np.zeros(1)), *[model.shaped(name, (-1,)) for name in names]]
    source = model.operator("Concat", *flat, axis=0)
    targets = targets.reshape(-1)
    order = np.argsort(targets, kind="stable")
    arranged = targets[order]
    occurrence = np.arange(len(targets)) - np.searchsorted(arranged, arranged)
    total = ""
    for number in range(occurrence.max(initial=0) + 1):
        chosen = order[occurrence == number]
        sources = np.zeros(math.prod(shape), dtype=np.int64)
        sources[targets[chosen]] = 1 + chosen
        part = model.operator("Gather", source, model.integers(sources.reshape(shape)))
        total = model.operator("Add", total, part) if total else part
    return total


# --- reductions --------------------------------------------------------------------------------


def _reduced(kind: str) -> Spelling:
    def spell(model: Emitter, names: Names, shapes: Any, _: Any, *, axes: Any, rank: int) -> str:
        return model.operator(
            kind, names[0], model.integers([axis % rank for axis in axes]), keepdims=0
        )

    return spell


def _normalized(kind: str) -> Spelling:
    def spell(model: Emitter, names: Names, shapes: Any, _: Any, *, axes: Any, rank: int) -> str:
        return model.operator(kind, names[0], axis=_single(kind, axes, rank))

    return spell


def _single(what: str, axes: Sequence[int], rank: int) -> int:
    if len(axes) != 1:
        raise UnsupportedError(f"ONNX's {what} is along one axis, not along {len(axes)}")
    return axes[0] % rank


def _missing(model: Emitter, x: str) -> str:
    """Return 1 where a value is nan and 0 elsewhere: the largest of them is 1 if any is nan."""
    return model.as_number(model.operator("Not", model.operator("Equal", x, x)))


def _extreme(kind: str) -> Spelling:
    """Return ReduceMax or ReduceMin, in which onnxruntime drops a nan that is not first."""
    plain = _reduced(kind)

    def spell(model: Emitter, names: Names, shapes: Any, out: Shape, **params: Any) -> str:
        reduced = plain(model, names, shapes, out, **params)
        nans = _reduced("ReduceMax")(model, [_missing(model, names[0])], shapes, out, **params)
        some = model.operator("Greater", nans, model.number(0.0))
        return model.operator("Where", some, model.number(math.nan), reduced)

    return spell


def _scaled(model: Emitter, x: str, axes: Any, rank: int, *, least: float) -> tuple[str, str]:
    """Return the largest size or element with its axes kept, 0 or an infinite one replaced."""
    along = model.integers([axis % rank for axis in axes])
    large = model.operator("ReduceMax", x, along, keepdims=1)
    unusable = model.operator("Equal", model.operator("Abs", large), model.number(math.inf))
    if least:  # also divided by
        zero = model.operator("Equal", large, model.number(0.0))
        unusable = model.operator("Or", unusable, zero)
    return model.operator("Where", unusable, model.number(least), large), along


def _norm(model: Emitter, names: Names, shapes: Any, out: Shape, *, axes: Any, rank: int) -> str:
    """By elements over the largest: onnxruntime's ReduceL2 overflows."""
    (x,) = names
    large, along = _scaled(model, model.operator("Abs", x), axes, rank, least=1.0)
    part = model.operator("Div", x, large)
    square = model.operator("ReduceSum", model.operator("Mul", part, part), along, keepdims=0)
    return model.operator("Mul", model.operator("Sqrt", square), model.shaped(large, out))


def _logsumexp(
    model: Emitter, names: Names, shapes: Any, out: Shape, *, axes: Any, rank: int
) -> str:
    """By exponentials of differences: onnxruntime's ReduceLogSumExp drops a nan."""
    large, along = _scaled(model, names[0], axes, rank, least=0.0)
    parts = model.operator("Exp", model.operator("Sub", names[0], large))
    total = model.operator("Log", model.operator("ReduceSum", parts, along, keepdims=0))
    return model.operator("Add", total, model.shaped(large, out))


def _index_of_largest(model: Emitter, x: str, **attributes: Any) -> str:
    """Return ArgMax, of a nan if there is one, which onnxruntime ranks below all else."""
    nans = _missing(model, x)
    plain = model.operator("ArgMax", x, **attributes)
    first = model.operator("ArgMax", nans, **attributes)
    some = model.operator(
        "ReduceMax", nans, model.integers([attributes["axis"]]), keepdims=attributes["keepdims"]
    )
    return model.operator("Where", model.operator("Greater", some, model.number(0.0)), first, plain)


def _argmax(model: Emitter, names: Names, shapes: Any, _: Any, *, axes: Any, rank: int) -> str:
    axis = _single("ArgMax", axes, rank)
    return model.as_number(_index_of_largest(model, names[0], axis=axis, keepdims=0))


def _is_maximum(
    model: Emitter, names: Names, shapes: Any, out: Shape, *, axes: Any, rank: int
) -> str:
    """Return where the last of the largest elements is."""
    (x,) = names
    rest = [size for axis, size in enumerate(out) if axis - rank not in axes]
    if len(axes) > 1 and rest:
        raise UnsupportedError("ONNX's ArgMax is along one axis, or of the whole array")
    axis, flat = (0, (math.prod(out),)) if len(axes) > 1 else (axes[0] % rank, out)
    x = model.shaped(x, flat) if len(axes) > 1 else x
    last = _index_of_largest(model, x, axis=axis, keepdims=1, select_last_index=1)
    counted = np.arange(flat[axis]).reshape([-1 if k == axis else 1 for k in range(len(flat))])
    mask = model.operator("Equal", model.integers(counted), last)
    return model.shaped(mask, out) if len(axes) > 1 else mask


def _running_sum(model: Emitter, names: Names, shapes: Any, _: Any, *, axes: Any, rank: int) -> str:
    return model.operator("CumSum", names[0], model.integers(_single("CumSum", axes, rank)))


SPELLINGS: Mapping[str, Spelling] = {
    **ELEMENTWISE,
    "argmax": _argmax,
    "as_number": lambda model, names, *_, **__: model.as_number(names[0]),
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "constant_array": _constant,
    "cumsum": _running_sum,
    "det": operator("Det"),
    "diag": _diag,
    "diagonal": _diagonal,
    "index": _index,
    "is_maximum": _is_maximum,
    "log_softmax": _normalized("LogSoftmax"),
    "logsumexp": _logsumexp,
    "matmul": _matmul,
    "max": _extreme("ReduceMax"),
    "min": _extreme("ReduceMin"),
    "norm": _norm,
    "pack": _pack,
    "prod": _reduced("ReduceProd"),
    "put": _put,
    "reshape": _reshape,
    "scatter": _scatter,
    "softmax": _normalized("Softmax"),
    "sum": _reduced("ReduceSum"),
    "take": _take,
    "transpose": _transpose,
}
"""What is written, by the name of the row."""

"""Rows of several inputs and outputs that are made for one use, and the functions inside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from difflab.autodiff.engine.argnums import pulled, pushed
from difflab.core.primitive import Primitive, custom
from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.graph.custom.rows import packed
from difflab.graph.evaluate import ArrayInterpreter, Fold, Interpreter
from difflab.graph.function import Function, inline
from difflab.graph.interpreters import CarrierInterpreter, MpmathInterpreter
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.primitives import where

__all__ = [
    "Control",
    "Step",
    "as_nodes",
    "chosen",
    "composed",
    "cotangents_of",
    "function_row",
    "inlined",
    "is_traced",
    "prepared",
    "require_equal_shapes",
    "shapes_of",
    "tangents_of",
    "zeros",
]

Step = Callable[[Sequence[Any]], list[Any]]
"""A function evaluated on one value per input."""


def is_traced(leaves: Sequence[Any]) -> bool:
    """Whether a value is traced, so that what is computed from it must be recorded."""
    return any(isinstance(leaf, Node) for leaf in leaves)


def shapes_of(leaves: Sequence[Any]) -> list[Shape]:
    """Return the shape of each value."""
    return [tuple(np.shape(leaf)) if not hasattr(leaf, "shape") else leaf.shape for leaf in leaves]


def require_equal_shapes(before: Sequence[Shape], after: Sequence[Shape], what: str) -> None:
    """Raise `ShapeError` unless what a loop carries keeps its shapes."""
    for old, new in zip(before, after, strict=True):
        if old != new:
            raise ShapeError(
                f"the {what} changes its shape from {old} to {new}",
                hint="let the first value have the shape of the next ones: np.zeros(shape)",
            )


def prepared(function: Function, interpreter: Interpreter) -> Step:
    """Return a function for many evaluations on values of one kind."""
    fold = Fold(function.graph, function.outputs, interpreter)
    nodes = function.input_nodes

    def step(values: Sequence[Any]) -> list[Any]:
        return fold.again(dict(zip(nodes, values, strict=True)))

    return step


def chosen(
    on: Interpreter, truth: Any, new: Sequence[Any], old: Sequence[Any], shapes: Sequence[Shape]
) -> list[Any]:
    """Return `new` where the truth values of a batch hold, else `old`; values of these shapes."""
    choose = on.operation(where)
    return [
        choose(truth.reshape(truth.shape + (1,) * len(shape)) if truth.shape else truth, one, two)
        for one, two, shape in zip(new, old, shapes, strict=True)
    ]


def as_nodes(builder: Builder, values: Sequence[Any]) -> list[Node]:
    """Return values as nodes of their shapes."""
    return [
        value if isinstance(value, Node) else Node(builder, builder.constant(float(value)))
        for value in values
    ]


def composed(call: Callable[[list[Node]], list[Node]], shapes: Sequence[Shape]) -> Function:
    """Return what code computes from nodes of the given shapes, as a function.

    Examples
    --------
    >>> composed(lambda nodes: [nodes[0] * nodes[1]], [(), (2,)])(3.0, [1.0, 2.0])
    array([3., 6.])
    """
    builder = Builder()
    nodes = [Node(builder, builder.input(f"x{k + 1}", shape)) for k, shape in enumerate(shapes)]
    results = [result.id for result in call(nodes)]
    names = [f"y{k + 1}" for k in range(len(results))]
    return Function.build(builder, [node.id for node in nodes], results, names)


def inlined(function: Function, values: Sequence[Node]) -> list[Node]:
    """Append a function to the graph of its arguments; return its outputs."""
    builder = values[0].builder
    return [Node(builder, node) for node in inline(function, builder, [v.id for v in values])]


def tangents_of(function: Function) -> Function:
    """Return the tangents of all outputs, from the inputs and then their tangents."""
    count, outs = len(function.inputs), len(function.outputs)
    whole = pushed(function, tuple(range(count)), tuple(range(outs)))
    return composed(lambda nodes: inlined(whole, nodes)[outs:], function.input_shapes * 2)


def cotangents_of(function: Function) -> Function:
    """Return the cotangents of all inputs, from the inputs and then the outputs' cotangents."""
    count, outs = len(function.inputs), len(function.outputs)
    whole = pulled(function, tuple(range(count)), tuple(range(outs)))
    shapes = [*function.input_shapes, *function.output_shapes]
    return composed(lambda nodes: inlined(whole, nodes)[outs:], shapes)


def zeros(builder: Builder, shapes: Sequence[Shape]) -> list[Node]:
    """Return nodes of zeros."""
    return [Node(builder, builder.spread(builder.constant(0), shape)) for shape in shapes]


class Control(Protocol):
    """Functions, and when they are computed: what a row of several inputs and outputs holds."""

    @property
    def functions(self) -> Sequence[Function]:
        """The functions inside it."""

    @property
    def input_shapes(self) -> Sequence[Shape]:
        """The shape of each argument."""

    @property
    def output_shapes(self) -> Sequence[Shape]:
        """The shape of each output."""

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs; values may have batch axes in front."""

    def jvp(self, dots: Sequence[Node], y: Node, *args: Node) -> Node:
        """Return the tangent of the packed outputs."""

    def vjp(self, y_bar: Node, y: Node, *args: Node) -> Sequence[Node | None]:
        """Return the cotangents of all arguments."""


def function_row(name: str, control: Control, *, unrolls: bool = True) -> Primitive:
    """Return a row of several outputs, which form one packed vector.

    Parameters
    ----------
    name : str
        The row's name.
    control : Control
        What it computes, and its derivatives.
    unrolls : bool
        Whether its steps can be recorded.
    """
    input_shapes, output_shapes = control.input_shapes, control.output_shapes
    sizes = [math.prod(shape) for shape in output_shapes]

    def kernel(xp: ModuleType, *args: Any) -> Any:
        args = tuple([xp.asarray(arg) for arg in args])
        leading = [
            arg.shape[: arg.ndim - len(own)] for arg, own in zip(args, input_shapes, strict=True)
        ]
        batch = np.broadcast_shapes(*leading)
        results = control.run(ArrayInterpreter(xp), args, batch)
        flat = [
            xp.broadcast_to(xp.asarray(result), batch + shape).reshape((*batch, size))
            for result, shape, size in zip(results, output_shapes, sizes, strict=True)
        ]
        whole = xp.concatenate(flat, axis=-1)
        return whole.astype(np.float64) if whole.dtype.kind in "biu" else whole

    def exact(mp: Any, *args: Any) -> Any:
        results = control.run(MpmathInterpreter(), args, ())
        return np.concatenate([np.asarray(result, dtype=object).ravel() for result in results])

    def expansion(*args: Node) -> Node:
        builder = args[0].builder
        results = as_nodes(builder, control.run(CarrierInterpreter(), args, ()))
        whole: Node = packed(results)
        return whole

    return Primitive(
        name=name,
        arity=len(input_shapes),
        kernel=kernel,
        rule=custom(control.jvp, control.vjp),
        mpmath=exact,
        expansion=expansion if unrolls else None,
        analytic=all(row.analytic for f in control.functions for row in f.graph.primitives),
        shape=lambda _: (sum(sizes),),
        holds=control,
    )

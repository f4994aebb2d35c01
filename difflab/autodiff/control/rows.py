"""Rows of several inputs and outputs that are made for one use, and the functions inside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.autodiff.engine.batching import Arg, packed_stacks
from difflab.core.primitive import Primitive, custom
from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.graph.control import Control
from difflab.graph.custom.rows import packed
from difflab.graph.evaluate import ArrayInterpreter, Interpreter
from difflab.graph.interpreters import CarrierInterpreter, MpmathInterpreter
from difflab.graph.ir import Shape
from difflab.graph.node import Node, as_nodes
from difflab.primitives import where

__all__ = [
    "chosen_stacks",
    "function_row",
    "is_traced",
    "require_equal_shapes",
    "shapes_of",
    "zeros",
]

Rule = Callable[..., Any]


def is_traced(leaves: Sequence[Any]) -> bool:
    """Whether a value is traced, so that what is computed from it must be recorded."""
    for leaf in leaves:  # noqa: SIM110  # a generator costs more, and loops ask in every step
        if isinstance(leaf, Node):
            return True
    return False


def shapes_of(leaves: Sequence[Any]) -> list[Shape]:
    """Return the shape of each value."""
    return [() if type(leaf) in _NUMBERS else _shape_of(leaf) for leaf in leaves]


_NUMBERS = frozenset({float, int, bool})


def _shape_of(leaf: Any) -> Shape:
    shape: Shape | None = getattr(leaf, "shape", None)
    return tuple(np.shape(leaf)) if shape is None else shape


def require_equal_shapes(before: Sequence[Shape], after: Sequence[Shape], what: str) -> None:
    """Raise `ShapeError` unless what a loop carries keeps its shapes."""
    if before == after:
        return
    for old, new in zip(before, after, strict=True):
        if old != new:
            raise ShapeError(
                f"the {what} changes its shape from {old} to {new}",
                hint="let the first value have the shape of the next ones: np.zeros(shape)",
            )


def zeros(builder: Builder, shapes: Sequence[Shape]) -> list[Node]:
    """Return nodes of zeros."""
    return [Node(builder, builder.spread(builder.constant(0), shape)) for shape in shapes]


def chosen_stacks(truth: Node, new: Sequence[Node], old: Sequence[Node]) -> list[Node]:
    """Return for each example `new` where its truth value holds, else `old`."""
    return [
        where(truth.reshape(truth.shape + (1,) * (one.ndim - 1)), one, other)
        for one, other in zip(new, old, strict=True)
    ]


def function_row(
    name: str,
    control: Control,
    jvp: Rule,
    vjp: Rule,
    batched: Rule,
    *,
    unrolls: bool = True,
    single: bool = False,
    selective: bool = False,
    workspace: Callable[[], int] | None = None,
    holding: Callable[[Any], Primitive] | None = None,
) -> Primitive:
    """Return a row of several outputs, which form one packed vector.

    Parameters
    ----------
    name : str
        The row's name.
    control : Control
        What it computes.
    jvp, vjp : callable
        Its derivatives: ``jvp(control, dots, y, *args)`` returns the tangent of the packed outputs
        and ``vjp(control, y_bar, y, *args)`` the cotangents of all arguments.
    batched : callable
        ``batched(control, size, args)`` returns the outputs of a stack of examples; see `Custom`.
    unrolls : bool
        Whether its steps can be recorded.
    single : bool
        Whether the only output is the row's value as it is, not packed.
    selective : bool
        Whether `vjp` also takes which cotangents are wanted.
    workspace, holding : callable, optional
        The row's columns of these names.
    """
    input_shapes, output_shapes = control.input_shapes, control.output_shapes
    sizes = [math.prod(shape) for shape in output_shapes]

    def kernel(xp: ModuleType, *args: Any, on: Interpreter | None = None) -> Any:
        args = tuple([xp.asarray(arg) for arg in args])
        leading = [
            arg.shape[: arg.ndim - len(own)] for arg, own in zip(args, input_shapes, strict=True)
        ]
        batch = np.broadcast_shapes(*leading)
        results = control.run(on or ArrayInterpreter(xp), args, batch)
        if single:
            return _as_floats(xp, xp.broadcast_to(xp.asarray(results[0]), batch + output_shapes[0]))
        flat = [
            xp.broadcast_to(xp.asarray(result), batch + shape).reshape((*batch, size))
            for result, shape, size in zip(results, output_shapes, sizes, strict=True)
        ]
        return _as_floats(xp, xp.concatenate(flat, axis=-1))

    def exact(mp: Any, *args: Any) -> Any:
        results = control.run(MpmathInterpreter(mp), args, ())
        if single:
            return results[0]
        return np.concatenate([np.asarray(result, dtype=object).ravel() for result in results])

    def expansion(*args: Node) -> Node:
        builder = args[0].builder
        results = as_nodes(builder, control.run(CarrierInterpreter(), args, ()))
        whole: Node = packed(results, single)
        return whole

    def stacked(size: int, args: list[Arg]) -> Node:
        results = batched(control, size, args)
        return results[0] if single else packed_stacks(results, list(map(len, output_shapes)))

    return Primitive(
        name=name,
        arity=len(input_shapes),
        kernel=kernel,
        rule=custom(
            partial(jvp, control), partial(vjp, control), selective=selective, batched=stacked
        ),
        mpmath=exact,
        expansion=expansion if unrolls else None,
        analytic=all(row.analytic for f in control.functions for row in f.graph.primitives),
        shape=lambda _: output_shapes[0] if single else (sum(sizes),),
        workspace=workspace,
        holds=control,
        holding=holding,
    )


def _as_floats(xp: ModuleType, value: Any) -> Any:
    """Return truth values and integers as float64."""
    return value.astype(np.float64) if value.dtype.kind in "biu" else value

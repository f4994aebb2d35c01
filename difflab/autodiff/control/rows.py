"""Rows of several inputs and outputs that are made for one use, and the functions inside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.autodiff.recording import Contents, contents_of
from difflab.core.primitive import Primitive, custom
from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.graph.control import Control
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import ArrayInterpreter, Interpreter
from difflab.graph.function import Function
from difflab.graph.interpreters import CarrierInterpreter, MpmathInterpreter
from difflab.graph.ir import Shape
from difflab.graph.node import Node, as_nodes
from difflab.primitives import where
from difflab.primitives.structure import Arg, packed_stacks

Rule = Callable[..., Any]


def is_traced(leaves: Sequence[Any]) -> bool:
    """Whether a value is traced, so that operations on it must be recorded."""
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
    """Raise `ShapeError` unless the carried values of a loop keep their shapes."""
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


@dataclass(frozen=True)
class Rules:
    """How the rows that hold one kind of control are differentiated and batched.

    Attributes
    ----------
    jvp, vjp : callable
        ``jvp(control, dots, y, *args)`` returns the tangents of the outputs and
        ``vjp(control, y_bar, y, *args)`` the cotangents of all arguments; `y` and its cotangent
        are packed.
    batched : callable
        ``batched(control, size, args)`` returns the outputs of a stack of examples; see `Custom`.
    unrolls : callable
        Whether the steps of a control can be recorded.
    selective : bool
        Whether `vjp` also takes which cotangents are wanted.
    workspace : callable, optional
        The column of this name, of a control.
    """

    jvp: Rule
    vjp: Rule
    batched: Rule
    unrolls: Callable[[Any], bool] = lambda control: True
    selective: bool = False
    workspace: Callable[[Any], int] | None = None


RULES: dict[type[Control], Rules] = {}
"""Those of each kind, which its module adds."""


def appended(control: Control, values: Sequence[Any]) -> list[Node]:
    """Append a control to the graph of its arguments; return its outputs."""
    return unpacked(row_of(control)(*values), control.output_shapes, control.single)


def row_of(control: Control) -> Primitive:
    """Return the row that holds a control; equal controls have one row: they become one node."""
    kind: Any = type(control)
    held = {each.name: getattr(control, each.name) for each in fields(control)}
    for name, part in held.items():
        held[name] = contents_of(part) if isinstance(part, Function) else part
    return _row(kind, tuple(held.items()))


@lru_cache(maxsize=2048)
def _row(kind: type[Control], held: tuple[tuple[str, Any], ...]) -> Primitive:
    """Return the row of a control of that kind, of several outputs, which form a packed vector."""
    control = kind(**{n: v.function if isinstance(v, Contents) else v for n, v in held})
    rules, single = RULES[kind], control.single
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

    def pushed(dots: Sequence[Node], y: Node, *args: Node) -> Node:
        whole: Node = packed(rules.jvp(control, dots, y, *args), single)
        return whole

    def expansion(*args: Node) -> Node:
        builder = args[0].builder
        results = as_nodes(builder, control.run(CarrierInterpreter(), args, ()))
        whole: Node = packed(results, single)
        return whole

    def stacked(size: int, args: list[Arg]) -> Node:
        results = rules.batched(control, size, args)
        whole: Node = results[0]
        if not single:
            whole = packed_stacks(results, list(map(len, output_shapes)))
        return whole

    return Primitive(
        name=control.name,
        arity=len(input_shapes),
        kernel=kernel,
        rule=custom(
            pushed, partial(rules.vjp, control), selective=rules.selective, batched=stacked
        ),
        mpmath=exact,
        expansion=expansion if rules.unrolls(control) else None,
        analytic=all(row.analytic for f in control.functions for row in f.graph.primitives),
        shape=lambda _: output_shapes[0] if single else (sum(sizes),),
        workspace=None if rules.workspace is None else partial(rules.workspace, control),
        holds=control,
        holding=row_of,
    )


def _as_floats(xp: ModuleType, value: Any) -> Any:
    """Return truth values and integers as float64."""
    return value.astype(np.float64) if value.dtype.kind in "biu" else value

"""The passes that keep every value: folding, identities, common subexpressions, dead nodes.

They do nothing of their own. Folding and identities are those of `difflab.graph.identities`,
which derivatives are simplified with as they are written; a `Builder` has each computation
once; freezing drops what no output needs.
"""

from __future__ import annotations

from collections.abc import Callable

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.copying import copy_labels
from difflab.graph.function import Function
from difflab.graph.identities import folded
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Params
from difflab.primitives import divide, multiply

__all__ = ["common", "dead", "fold", "simplify", "transcribed"]

Emit = Callable[[Builder, Primitive, tuple[int, ...], Params], int]


def transcribed(function: Function, emit: Emit) -> Function:
    """Return `function` with every operation appended by ``emit(builder, row, args, params)``."""
    graph = function.graph
    builder = Builder(graph.source)
    spans, params = graph.spans.tolist(), graph.param_ids.tolist()
    copied: list[int] = []
    for node, (opcode, args) in enumerate(graph.rows()):
        builder.span = spans[node]
        if opcode == INPUT:
            copied.append(builder.input(graph.input_name(node), graph.shape(node)))
        elif opcode == CONSTANT:
            copied.append(builder.constant(*graph.constants[node]))
        else:
            row = graph.primitives[opcode - FIRST_ROW]
            operands = tuple([copied[arg] for arg in args])
            made = emit(builder, row, operands, graph.param_table[params[node]])
            copied.append(made if row.boolean else builder.spread(made, graph.shape(node)))
    copy_labels(builder, graph, copied)
    inputs = [copied[node] for node in function.input_nodes]
    outputs = [copied[node] for node in function.outputs]
    return Function.build(builder, inputs, outputs, function.output_names, function.structure)


def _folding(builder: Builder, row: Primitive, args: tuple[int, ...], params: Params) -> int:
    found = folded(builder, row, args) if args and not params else None
    return builder.emit(row, args, params) if found is None else found


def _simplifying(builder: Builder, row: Primitive, args: tuple[int, ...], params: Params) -> int:
    annihilates = row in (multiply, divide) and any(builder.number(arg) == 0 for arg in args)
    builder.simplify = not annihilates
    node = builder.emit(row, args, params)
    builder.simplify = False
    return node


def fold(function: Function) -> Function:
    """Compute what depends on numbers only, as NumPy computes it.

    Examples
    --------
    >>> import difflab as dl
    >>> fold(dl.parse("x + 2*3")) == dl.parse("x + 6")
    True
    """
    return transcribed(function, _folding)


def simplify(function: Function) -> Function:
    """Apply the identities that are exact in floating point.

    Not the one by which 0 annihilates: 0·x is nan where x is not finite.

    Examples
    --------
    >>> import difflab as dl
    >>> simplify(dl.parse("x^1 - (-y)")) == dl.parse("x + y")
    True
    """
    return transcribed(function, _simplifying)


def common(function: Function) -> Function:
    """Have each computation once, operands that commute in either order.

    Examples
    --------
    >>> import difflab as dl
    >>> len(common(dl.parse("x*y + y*x")).graph)
    4
    """
    return transcribed(function, Builder.emit)


def dead(function: Function) -> Function:
    """Drop what no output needs; inputs stay.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("sin(x) + 1")
    >>> part = dl.Function(f.graph, f.input_nodes, (f.graph.arguments(f.outputs[0])[0],), ("y",))
    >>> len(part.graph), len(dead(part).graph)
    (4, 2)
    """
    builder = Builder.continuing(function.graph, simplify=False)
    return Function.build(
        builder, function.input_nodes, function.outputs, function.output_names, function.structure
    )

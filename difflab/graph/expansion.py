"""Expansion of companion rows, such as ``dlog``, into ordinary operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from difflab.core.primitive import Custom, Params, Primitive
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.evaluate import Fold, Interpreter, fold
from difflab.graph.ir import Graph
from difflab.graph.node import Node
from difflab.graph.rewrite import Args


def expand(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
    """Append the expansion of a row; None if it has none: a rule of `difflab.graph.rewrite`.

    A companion is simplified. The code of a custom function is not: there, a factor of 0
    need not mean "no dependence".
    """
    if row.expansion is None:
        return None
    builder.simplify = not isinstance(row.rule, Custom)
    made: int = row.expansion(*(Node(builder, arg) for arg in args), **dict(params)).id
    builder.simplify = False
    return made


def expansion_value(row: Primitive, args: Sequence[Any], interpreter: Interpreter) -> Any:
    """Return the value of a row by its expansion, on values of any kind.

    Raises
    ------
    UnsupportedError
        The row has no expansion.

    Examples
    --------
    >>> from difflab.graph.evaluate import ArrayInterpreter
    >>> from difflab.primitives import TABLE
    >>> float(expansion_value(TABLE["dlog"], [4.0], ArrayInterpreter()))
    0.25
    """
    graph, output = _recorded(row, len(args))
    return fold(graph, dict(enumerate(args)), [output], interpreter)[0]


def prepared_expansion(row: Primitive, interpreter: Interpreter) -> Callable[..., Any]:
    """Return `expansion_value` as a function of the arguments, for many calls."""
    if row.arity is None:
        return lambda *args: expansion_value(row, args, interpreter)
    graph, output = _recorded(row, row.arity)
    step = Fold(graph, [output], interpreter)
    return lambda *args: step.again(dict(enumerate(args)))[0]


@cache
def _recorded(row: Primitive, arity: int) -> tuple[Graph, int]:
    """Record an expansion; its first nodes are its arguments."""
    if row.expansion is None:
        raise UnsupportedError(f"'{row.name}' has no such form")
    builder = Builder()
    nodes = [Node(builder, builder.input(f"a{position}")) for position in range(arity)]
    graph, (output,) = builder.freeze([row.expansion(*nodes).id])
    return graph, output

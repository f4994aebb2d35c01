"""Fold a graph over values of any kind: floats, arrays, mpmath numbers, SymPy expressions.

What a primitive and a constant *are* on those values is an `Interpreter`'s business; those of
other libraries are in `difflab.graph.interpreters`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph, Number

__all__ = ["ArrayInterpreter", "Interpreter", "fold", "fold_all"]


class Interpreter(Protocol):
    """What operations and numbers mean on one kind of value."""

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the function of values that `primitive` is."""

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the value of a number in the graph."""


class ArrayInterpreter:
    """Values are numbers and arrays of the array module `xp`, NumPy unless said.

    Examples
    --------
    >>> from difflab.primitives import sin
    >>> float(ArrayInterpreter().operation(sin)(0.0))
    0.0
    """

    def __init__(self, xp: ModuleType = np) -> None:
        self.xp = xp

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the kernel."""
        return primitive.computer(self.xp)

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the nearest float64."""
        return np.float64(value)


def fold(
    graph: Graph,
    environment: dict[int, Any],
    wanted: Iterable[int],
    interpreter: Interpreter,
) -> list[Any]:
    """Return the values of the nodes `wanted`, each node computed once.

    Parameters
    ----------
    graph : Graph
        What to evaluate.
    environment : dict of int to value
        The value of every input node that is needed.
    wanted : iterable of int
        The nodes whose values are returned, in this order.
    interpreter : Interpreter
        The meaning of operations and constants.

    Returns
    -------
    list
        The values of `wanted`. Others are dropped after their last use.
    """
    targets = list(wanted)
    release = graph.last_uses()
    release[np.array(targets, dtype=np.int64)] = -1
    dying = release.tolist()
    operations = [interpreter.operation(row) for row in graph.primitives]
    params = [dict(entry) for entry in graph.param_table]
    param_ids = graph.param_ids.tolist()
    values: list[Any] = [None] * len(graph)
    for node, (opcode, args) in enumerate(graph.rows()):
        if opcode >= FIRST_ROW:
            operation = operations[opcode - FIRST_ROW]
            operands = [values[arg] for arg in args]
            param = param_ids[node]
            values[node] = operation(*operands, **params[param]) if param else operation(*operands)
            for arg in args:
                if dying[arg] == node:
                    values[arg] = None
        elif opcode == INPUT:
            values[node] = environment.get(node)
        elif opcode == CONSTANT:
            values[node] = interpreter.constant(*graph.constants[node])
    return [values[node] for node in targets]


def fold_all(graph: Graph, environment: dict[int, Any], interpreter: Interpreter) -> list[Any]:
    """Return the value of every node."""
    return fold(graph, environment, range(len(graph)), interpreter)

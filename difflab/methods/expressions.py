"""A function as expressions of a library of scalar symbols, such as SymPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.core.quantities import count as shortened
from difflab.errors import UnsupportedError
from difflab.graph.counts import count
from difflab.graph.evaluate import Interpreter, fold
from difflab.graph.function import Function

TREE_LIMIT = 1_000_000
"""Maximum number of tree nodes; SymPy needs ten microseconds or more for each."""


def check_tree_size(function: Function, title: str) -> None:
    """Raise `UnsupportedError` if a library that shares no subexpressions needs too many nodes.

    Array operations are expanded element by element; the largest array bounds the factor.
    """
    tree = count(function).tree * max(map(math.prod, function.graph.shape_table), default=1)
    if tree > TREE_LIMIT:
        raise UnsupportedError(
            f"written out as a tree for {title} it has {shortened(tree)} nodes; "
            f"the limit is {TREE_LIMIT:,}"
        )


def boxed(value: Any) -> Any:
    """Return a scalar as a 0-d array of objects; NumPy might treat it as a sequence."""
    return value if isinstance(value, np.ndarray) else np.fromiter([value], object).reshape(())


def expressions(
    function: Function, symbol: Callable[[int], Any], interpreter: Interpreter
) -> tuple[list[Any], list[Any]]:
    """Return a symbol per flattened input and an expression per flattened output.

    Parameters
    ----------
    function : Function
    symbol : callable
        Returns the symbol of the flattened input with a number.
    interpreter : Interpreter
        Converts constants and operations.
    """
    symbols = [symbol(number) for number in range(function.n)]
    parts = function.split(np.fromiter(symbols, dtype=object))
    environment = {node: part[()] for node, part in zip(function.input_nodes, parts, strict=True)}
    values = fold(function.graph, environment, function.outputs, interpreter)
    return symbols, [entry for value in values for entry in boxed(value).flat]

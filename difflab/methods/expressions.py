"""A function as expressions of a library of scalar symbols, such as SymPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.graph.evaluate import Interpreter, fold
from difflab.graph.function import Function


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

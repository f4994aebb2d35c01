"""Record Python code written with NumPy as a `Function`.

The code runs once on nodes; loops unroll. May import `node`, `builder`, `function`, `errors`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.errors import TraceError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node

__all__ = ["trace"]


def trace(function: Callable[..., Any], *examples: Any) -> Function:
    """Return the graph of `function` on arguments shaped like `examples`.

    Parameters
    ----------
    function : callable
        Python code over numbers and NumPy arrays.
    *examples : float or array
        One value per argument; only their shapes matter.

    Returns
    -------
    Function
        With an input per argument, named as in the signature.

    Raises
    ------
    TraceError
        The code branches on a value, leaves NumPy, or returns something else than values.

    Examples
    --------
    >>> import numpy as np
    >>> f = trace(lambda a, b: np.sin(a) * b, 1.0, 2.0)
    >>> f.inputs, float(f(0.0, 3.0))
    (('a', 'b'), 0.0)
    """
    builder = Builder()
    names = _names(function, len(examples))
    shapes = map(np.shape, examples)
    inputs = [builder.input(name, shape) for name, shape in zip(names, shapes, strict=True)]
    result = function(*(Node(builder, node) for node in inputs))
    outputs = _outputs(builder, result)
    labels = ["y"] if len(outputs) == 1 else [f"y{i + 1}" for i in range(len(outputs))]
    return Function.build(builder, inputs, outputs, labels)


def _names(function: Callable[..., Any], wanted: int) -> list[str]:
    """Return the names of the first `wanted` parameters, else x1, x2 and so on."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(plain) >= wanted:
        return plain[:wanted]
    return [f"x{position + 1}" for position in range(wanted)]


def _outputs(builder: Builder, result: Any) -> list[int]:
    """Return the nodes of what the code returned; numbers become constants."""
    parts: Sequence[Any] = result if isinstance(result, tuple | list) else [result]
    nodes = []
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype == object:
            nodes += _outputs(builder, part.ravel().tolist())
        elif isinstance(part, Node):
            nodes.append(part.id)
        elif isinstance(part, int | float | np.number):
            nodes.append(builder.constant(float(part)))
        else:
            raise TraceError(
                f"traced code returned {type(part).__name__}, not a value of its arguments"
            )
    return nodes

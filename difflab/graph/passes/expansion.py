"""The pass that writes companion rows, such as ``dlog``, as ordinary operations."""

from __future__ import annotations

from difflab.graph.expansion import expand
from difflab.graph.function import Function
from difflab.graph.rewritten import rewritten

__all__ = ["expanded"]


def expanded(function: Function) -> Function:
    """Return the function with companions such as ``dlog`` expanded into ordinary operations.

    Examples
    --------
    >>> import difflab as dl
    >>> expanded(dl.gradient(dl.parse("ln(x)"))).graph.primitives[0]
    <primitive divide>
    """
    if not any(row.expansion for row in function.graph.primitives):
        return function
    return rewritten(function, expand)

"""The pass that writes companion rows, such as ``dlog``, as ordinary operations."""

from __future__ import annotations

from difflab.core.primitive import Custom, Params, Primitive
from difflab.graph.builder import Builder
from difflab.graph.expansion import expand
from difflab.graph.function import Function
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten

__all__ = ["expanded"]


def expanded(function: Function, *, customs: bool = True) -> Function:
    """Return the function with companions such as ``dlog`` expanded into ordinary operations.

    Parameters
    ----------
    function : Function
        The function to rewrite.
    customs : bool
        Whether custom functions and loops are expanded as well, where that is possible.

    Examples
    --------
    >>> import difflab as dl
    >>> expanded(dl.gradient(dl.parse("ln(x)"))).graph.primitives[0]
    <primitive divide>
    """
    if not any(row.expansion for row in function.graph.primitives):
        return function
    return rewritten(function, expand if customs else _expand_companion)


def _expand_companion(
    builder: Builder, node: int, row: Primitive, args: Args, params: Params
) -> int | None:
    return None if isinstance(row.rule, Custom) else expand(builder, node, row, args, params)

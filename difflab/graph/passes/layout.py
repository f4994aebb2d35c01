"""Layout: transposes that undo each other, and those that elementwise operations can precede."""

from __future__ import annotations

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Params
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.primitives import transpose


def layout(function: Function) -> Function:
    """Transpose once instead of twice, or not at all.

    An elementwise operation on arrays that are all transposed in the same way is applied before the
    transpose, so that two transposes become adjacent and cancel. Where that saves none, nothing is
    changed.

    Parameters
    ----------
    function : Function
        The function to rewrite; its values stay the same.

    Examples
    --------
    >>> import numpy as np, difflab as dl
    >>> f = dl.trace(lambda a: np.exp(a.T).T, np.ones((2, 3)))
    >>> transposes(f), transposes(layout(f))
    (2, 0)
    """
    if not transposes(function):
        return function
    moved = rewritten(function, _moved)
    return moved if transposes(moved) < transposes(function) else function


def transposes(function: Function) -> int:
    """Return how often `function` transposes."""
    return int(function.graph.applies(transpose).sum())


def _moved(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
    """Rule of `rewrite`: append an operation, its operands' transpose behind it."""
    if row is transpose:
        return builder.emit_simplified(transpose, args, params)  # merged with one that is there
    axes = _axes(builder, args) if row.shape is None and not row.truths else None
    if axes is None:
        return None
    bare = [arg if arg in builder.constants else builder.arguments(arg)[0] for arg in args]
    return builder.emit_simplified(transpose, (builder.emit(row, bare, params),), axes)


def _axes(builder: Builder, args: tuple[int, ...]) -> Params | None:
    """Return how all arrays among `args` are transposed; None where they are not alike."""
    arrays = [arg for arg in args if arg not in builder.constants]
    if not all(builder.primitive(arg) is transpose for arg in arrays):
        return None
    params = {tuple(sorted(builder.params(arg).items())) for arg in arrays}
    return params.pop() if len(params) == 1 else None

"""The one interception point: every difflab operation passes through `apply`.

Values of a *carrier* type (a graph's `Node`, later an eager tensor) say how they take an
operation by a method `__difflab_apply__(primitive, arguments, params)`; plain numbers and
arrays compute at once. May import `devices`, and `primitive` for types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflab.core.devices import array_module

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive

__all__ = ["apply"]


def apply(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Apply `primitive` to `args`: a carrier records the operation, arrays compute it.

    Parameters
    ----------
    primitive : Primitive
        A row of the table.
    *args : carrier, number or array
        The operands. The first carrier among them takes the operation.
    **params
        Static parameters, such as the key of an indexing.

    Returns
    -------
    carrier or array
        What the carrier makes of it, or the computed value.

    Examples
    --------
    >>> from difflab.primitives import add
    >>> float(apply(add, 1.0, 2.0))
    3.0
    """
    for argument in args:
        take = getattr(argument, "__difflab_apply__", None)
        if take is not None:
            return take(primitive, args, params)
    return primitive.computer(array_module(args, primitive.name))(*args, **params)

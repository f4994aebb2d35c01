"""The one interception point: every difflab operation passes through `apply`.

Values of a *carrier* type (a graph's `Node`, later an eager tensor) say how they take an
operation by a method `__difflab_apply__(primitive, arguments, params)`; plain numbers and
arrays compute at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflab.core.devices import array_module
from difflab.core.place import at_users_line
from difflab.errors import DifflabError, InputError, ShapeError

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
    try:
        return primitive.computer(array_module(args, primitive.name))(*args, **params)
    except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError) as error:
        if isinstance(error, DifflabError):
            raise
        raise computation_error(primitive.name, args, error) from error


def computation_error(name: str, args: tuple[Any, ...], error: Exception) -> DifflabError:
    """Return the error that says what an operation cannot be computed of."""
    shapes = [getattr(arg, "shape", None) for arg in args]
    if any(shapes):
        found = " and ".join(str(shape or ()) for shape in shapes)
        return at_users_line(
            ShapeError, f"{name} cannot be computed of the shapes {found}: {error}"
        )
    found = " and ".join(type(arg).__name__ for arg in args)
    return at_users_line(InputError, f"{name} cannot be computed of {found}: {error}")

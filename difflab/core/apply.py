"""The one interception point: every difflab operation passes through `apply`.

Values of a *carrier* type (a graph's `Node`, an eager tensor) define how to
record an operation in a method `__difflab_apply__(primitive, arguments, params)`; scalars and
arrays are computed immediately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflab.core.devices import array_module
from difflab.core.place import at_users_line
from difflab.errors import DifflabError, InputError, ShapeError, TraceError

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive


class OtherCarrierError(TraceError):
    """An operand belongs to another kind of carrier, which records the operation."""

    def __init__(self, carrier: Any) -> None:
        super().__init__(
            "a traced or complex value cannot be written into a tensor",
            hint="compute a new value: np.where(mask, new, t), or t + x for t += x",
        )
        self.carrier = carrier


def apply(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Apply `primitive` to `args`: a carrier records the operation, arrays compute it.

    Parameters
    ----------
    primitive : Primitive
        A row of the table.
    *args : carrier, number or array
        The operands. The first carrier among them handles the operation.
    **params
        Static parameters, such as the key of an indexing.

    Returns
    -------
    carrier or array
        The recorded operation, or the computed value.

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


def constant(number: float, like: Any, name: str | None = None) -> Any:
    """Return a number whose functions a carrier records, as in ``log(constant(10, x))``.

    A derivative rule that called a function of a Python number would hold its rounded value.

    Parameters
    ----------
    number : int or float
        The number.
    like : carrier, number or array
        An operand of the rule; where it is no carrier, the number itself is returned.
    name : {"pi", "e"}, optional
        The constant that `number` is rounded from.

    Examples
    --------
    >>> constant(10, 2.0)
    10
    """
    make = getattr(like, "__difflab_constant__", None)
    return number if make is None else make(number, name)


def computation_error(name: str, args: tuple[Any, ...], error: Exception) -> DifflabError:
    """Return the error for operands that an operation cannot be applied to."""
    shapes = [getattr(arg, "shape", None) for arg in args]
    if any(shapes):
        found = " and ".join(str(shape or ()) for shape in shapes)
        return at_users_line(
            ShapeError, f"{name} cannot be computed for the shapes {found}: {error}"
        )
    found = " and ".join(type(arg).__name__ for arg in args)
    return at_users_line(InputError, f"{name} cannot be computed for {found}: {error}")

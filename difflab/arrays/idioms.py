"""`Idioms`: the methods of NumPy's arrays, for values that record operations.

Traced values and tensors both inherit them; each is the array function of its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from difflab import arrays
from difflab.arrays import shaped
from difflab.arrays.counterparts import joining, layout, ordering, statistics
from difflab.arrays.counterparts.selection import FUNCTIONS, clipped, nonzero, rounded, taken
from difflab.arrays.in_place import InPlace, overwrite
from difflab.arrays.numpy_names import alternative_to
from difflab.arrays.shaped import Shaped
from difflab.arrays.updates import Updates
from difflab.core.ownership import shared, unchanged
from difflab.core.place import at_users_line
from difflab.errors import InputError, MissingAttributeError
from difflab.primitives import as_number, floor, not_equal

__all__ = ["Idioms"]

LACKING = (*("choose", "partition", "tolist"),)
"""Attributes of NumPy arrays that `Idioms` does not provide."""


class Lacking:
    """A missing NumPy attribute: reading it raises an error that names the alternative."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, owner: type) -> NoReturn:
        raise at_users_line(
            MissingAttributeError,
            f"a {owner.__name__.lower()} has no .{self.name}",
            alternative_to(self.name),
        )


class Idioms(InPlace, Shaped):
    """Methods and operators that are spelled as those of NumPy's arrays."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes that each carrier defines

        @property
        def dtype(self) -> np.dtype[Any]:
            """The dtype of the elements."""

        def copy(self) -> Any:
            """Return a copy."""

        def filled(self, value: float) -> Any:
            """Return an array of the same shape with one value."""

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...

    @property
    def at(self) -> Updates:
        """The parts that ``x.at[key].set(new)`` and its kin replace, in a new array."""
        return Updates(self)

    @property
    def real(self) -> Any:
        """The values, which are real."""
        return shared(self)

    @property
    def imag(self) -> Any:
        """Zeros: the values are real."""
        return self.filled(0.0)

    def __round__(self, ndigits: int | None = None) -> Any:
        return rounded(self, ndigits or 0)

    def __pos__(self) -> Any:
        return unchanged(self)

    def __floordiv__(self, other: Any) -> Any:
        return floor(self / other)

    def __rfloordiv__(self, other: Any) -> Any:
        return floor(other / self)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __and__(self, other: Any) -> Any:
        return shaped.bitwise_and(self, other)

    def __or__(self, other: Any) -> Any:
        return shaped.bitwise_or(self, other)

    def __xor__(self, other: Any) -> Any:
        return shaped.bitwise_xor(self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return shaped.invert(self)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """Handle an operation whose left operand is a CuPy array, as NEP 13 does for NumPy's."""
        ufunc = getattr(np, kernel.name.removeprefix("cupy_"))
        return self.__array_ufunc__(ufunc, "__call__", *args, **kwargs)

    all, any = shaped.all, shaped.any
    argmax, argsort = arrays.argmax, arrays.argsort
    cumprod, cumsum = arrays.cumprod, arrays.cumsum
    diagonal, swapaxes, trace = layout.diagonal, layout.swap_axes, layout.trace
    dot = arrays.dot
    max, min, prod = arrays.max, arrays.min, arrays.prod
    nonzero = nonzero
    repeat = joining.repeated
    round = rounded
    searchsorted = ordering.searched
    squeeze = arrays.squeeze
    take = taken

    def argmin(self, axis: int | None = None) -> Any:
        """Return the index of the first minimum; derivative 0."""
        return arrays.argmax(-self, axis)

    def astype(self, dtype: DTypeLike) -> Any:
        """Return the values as another dtype; cotangents return in the dtype of this value.

        Of tensors that is any floating dtype; traced values are float64, float32 or truth values.
        """
        try:
            wanted = np.dtype(dtype)
        except TypeError as error:
            raise at_users_line(InputError, f"astype needs a NumPy dtype: {error}") from None
        if wanted == self.dtype:
            return self.copy()
        if wanted == np.bool_:
            return not_equal(self, 0)
        if self.dtype == np.bool_ and wanted == np.float64:
            return as_number(self)
        cast: Any = NotImplemented
        if wanted.kind == "f" and hasattr(self, "__difflab_cast__"):
            cast = self.__difflab_cast__(wanted)
        if cast is not NotImplemented:
            return cast
        raise at_users_line(
            InputError,
            f"a conversion from {self.dtype} to {wanted} has no derivative",
            "round by np.floor or np.round, whose results stay floats; choose the dtype of tensors"
            " by dl.tensor(…, dtype=…), and of compiled code by dl.compile(…, dtype=…)",
        )

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Return the values clipped to two bounds, either of which may be None."""
        return clipped(self, min, max)

    def compress(self, condition: Any, axis: int | None = None) -> Any:
        """Return the entries along an axis where a condition holds."""
        return FUNCTIONS["compress"](condition, self, axis)

    def conj(self) -> Any:
        """Return the values, which are real."""
        return shared(self)

    conjugate = conj

    def flatten(self) -> Any:
        """Return all elements in one axis, as a copy."""
        return self.ravel().copy()

    def sort(self, axis: int = -1) -> None:
        """Sort the values in place along an axis."""
        overwrite(self, arrays.sort(self, axis), "sort")

    def std(
        self, axis: arrays.Axis = None, *, ddof: float = 0, keepdims: bool = False, mean: Any = None
    ) -> Any:
        """Return the standard deviation along `axis`; derivative 0 where all are equal."""
        return statistics.std(self, axis, ddof=ddof, keepdims=keepdims, mean=mean)

    def var(
        self, axis: arrays.Axis = None, *, ddof: float = 0, keepdims: bool = False, mean: Any = None
    ) -> Any:
        """Return the variance along `axis`, over all axes when None."""
        return statistics.var(self, axis, ddof=ddof, keepdims=keepdims, mean=mean)


for _name in LACKING:
    setattr(Idioms, _name, Lacking(_name))

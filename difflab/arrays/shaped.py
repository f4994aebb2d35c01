"""`Shaped`: the methods of NumPy's arrays for elements of any kind, and those of truth values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.arrays import reductions, shapes
from difflab.arrays.given import Array, Axis, mismatch
from difflab.core.place import at_users_line
from difflab.errors import InputError, UnsizedError
from difflab.primitives import greater, logical_and, logical_not, logical_or, not_equal, where


class Shaped:
    """Base class of values with a shape, real or complex."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]:
            """The sizes of the axes."""

        def __getitem__(self, key: Any) -> Any: ...

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise mismatch(f"mT needs an array with at least two axes, not the shape {self.shape}")
        return shapes.transpose(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __len__(self) -> int:
        if not self.shape:
            raise at_users_line(UnsizedError, "a number has no length and cannot be iterated over")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    mean, sum = reductions.mean, reductions.sum

    def ravel(self) -> Any:
        """Return all elements in one axis."""
        return shapes.ravel(self)

    def reshape(self, *shape: Any) -> Any:
        """Return the same values in another shape."""
        return shapes.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """Permute the axes, or reverse their order."""
        order: Sequence[int] | None = axes[0] if len(axes) == 1 else axes or None
        return shapes.transpose(self, order)


# --- truth values, which comparisons return ------------------------------------------------------


def _of_truths(value: Any) -> bool:
    """Whether a value is boolean; on other dtypes, `&` would act bitwise."""
    holds_truths = getattr(value, "holds_truths", None)
    if holds_truths is not None:
        return bool(holds_truths())
    kind = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return bool(kind == np.bool_)


def _checked(compute: Callable[..., Any], symbol: str, *values: Any) -> Any:
    values = tuple(np.asarray(part) if isinstance(part, list) else part for part in values)
    for value in values:
        if not _of_truths(value):
            raise at_users_line(
                InputError,
                f"`{symbol}` takes truth values, and an operand is a number",
                f"comparisons need parentheses, since `{symbol}` binds tighter than they do:"
                " (a > 3) & (b < 9); np.logical_and, np.logical_or and np.logical_not take numbers",
            )
    return compute(*values)


def bitwise_and(a: Array, b: Array) -> Array:
    """Return ``a & b`` of truth values.

    Raises
    ------
    InputError
        An operand is a number.

    Examples
    --------
    >>> x = np.array([1.0, 5.0, 9.0])
    >>> bitwise_and(x > 3, x < 9).tolist()
    [False, True, False]
    """
    return _checked(logical_and, "&", a, b)


def bitwise_or(a: Array, b: Array) -> Array:
    """Return ``a | b`` of truth values; see `bitwise_and`."""
    return _checked(logical_or, "|", a, b)


def bitwise_xor(a: Array, b: Array) -> Array:
    """Return ``a ^ b`` of truth values; see `bitwise_and`."""
    return _checked(logical_xor, "^", a, b)


def invert(a: Array) -> Array:
    """Return ``~a`` of truth values; see `bitwise_and`."""
    return _checked(logical_not, "~", a)


def logical_xor(a: Array, b: Array) -> Array:
    """Return `numpy.logical_xor`, for which nonzero values are true."""
    return logical_and(logical_or(a, b), logical_not(logical_and(a, b)))


def all(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether all elements along axes are nonzero.

    Examples
    --------
    >>> bool(all(np.array([1.0, 0.0])))
    False
    """
    return greater(reductions.min(_ones(x), axis, keepdims), 0)


def any(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether any element along axes is nonzero.

    Examples
    --------
    >>> bool(any(np.array([1.0, 0.0])))
    True
    """
    return greater(reductions.max(_ones(x), axis, keepdims), 0)


def count(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the number of nonzero elements along axes, as a float64.

    Examples
    --------
    >>> float(count(np.array([1.0, 0.0, 3.0])))
    2.0
    """
    return reductions.sum(_ones(x), axis, keepdims)


def _ones(x: Array) -> Array:
    return where(not_equal(x, 0), 1.0, 0.0)

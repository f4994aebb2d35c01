"""A kernel as a sequence of NumPy operations, found by running it on recording values.

Kernels are written with array operations only, so one run on values that record the operations
on them gives the universal functions that it consists of; those can then write into buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from difflab.core.primitive import Primitive

__all__ = [
    "BOOL",
    "ELEMENTWISE",
    "FLOAT",
    "KernelTape",
    "RecordedValue",
    "Unrecordable",
    "select_into",
]

FLOAT, BOOL = np.dtype(np.float64), np.dtype(np.bool_)


class Unrecordable(Exception):
    """The kernel uses an operation that is not a universal function."""


class KernelTape:
    """Operations as they are recorded: ``(function, arguments, result)``.

    The functions take the arguments, and the array that they write into as ``out``. Arguments
    are a `RecordedValue`, whose `number` is set by the planner, or plain numbers.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[Callable[..., Any], tuple[Any, ...], RecordedValue]] = []

    def append(
        self, function: Callable[..., Any], args: tuple[Any, ...], dtype: np.dtype[Any]
    ) -> RecordedValue:
        """Record one operation."""
        result = RecordedValue(self, dtype)
        self.entries.append((function, args, result))
        return result

    def run(self, row: Primitive, args: tuple[Any, ...]) -> Any:
        """Record the row's kernel on `args`.

        Raises
        ------
        Unrecordable
            The kernel cannot be recorded and has to be called as a whole.

        Examples
        --------
        >>> from difflab.primitives import softplus
        >>> tape = KernelTape()
        >>> x = RecordedValue(tape, np.dtype(float))
        >>> result = tape.run(softplus, (x,))
        >>> [function.__name__ for function, _, _ in tape.entries]
        ['logaddexp']
        """
        length = len(self.entries)
        try:
            with np.errstate(all="ignore"):
                return row.computer(np)(*args)
        except (Unrecordable, TypeError, ValueError, AttributeError) as error:
            del self.entries[length:]
            raise Unrecordable(row.name) from error


class RecordedValue(NDArrayOperatorsMixin):
    """A placeholder for an array: operations on it are recorded."""

    __slots__ = ("dtype", "number", "tape")

    def __init__(self, tape: KernelTape, dtype: np.dtype[Any], number: int = -1) -> None:
        self.tape = tape
        self.dtype = dtype
        self.number = number

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Unrecordable

    def __bool__(self) -> bool:
        raise Unrecordable

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature is not None:
            raise Unrecordable
        samples = [np.empty(0, _dtype(value)) for value in inputs]
        return self.tape.append(ufunc, inputs, ufunc(*samples).dtype)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None or kwargs:
            raise Unrecordable
        return known(*args)


def _dtype(value: Any) -> np.dtype[Any]:
    if isinstance(value, RecordedValue):
        return value.dtype
    return BOOL if isinstance(value, bool | np.bool_) else FLOAT


def _where(condition: Any, value: Any, other: Any) -> Any:
    tape = next(v.tape for v in (condition, value, other) if isinstance(v, RecordedValue))
    return tape.append(
        select_into,
        (condition, value, other),
        np.result_type(_dtype(value), _dtype(other)),
    )


def select_into(condition: Any, value: Any, other: Any, out: Any) -> None:
    """Write ``where(condition, value, other)`` into `out`, a different array.

    Examples
    --------
    >>> out = np.empty(2)
    >>> select_into(np.array([True, False]), 1.0, np.array([3.0, 4.0]), out=out)
    >>> out
    array([1., 4.])
    """
    np.copyto(out, other)
    np.copyto(out, value, where=np.asarray(condition, dtype=bool))


ELEMENTWISE: dict[Callable[..., Any], Callable[..., Any]] = {
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.iscomplexobj: lambda x: False,
    np.real: lambda x: x,
}
"""NumPy functions of real arguments in terms of universal functions."""

_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {**ELEMENTWISE, np.where: _where}

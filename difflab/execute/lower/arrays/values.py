"""Placeholders for arrays with known shapes: operations on them are recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from difflab.execute.lower.record import ELEMENTWISE, Unrecordable
from difflab.graph.ir import Shape

if TYPE_CHECKING:
    from difflab.execute.lower.arrays.lowering import ArrayLowering

__all__ = ["ShapedValue", "dtype_of", "shape_of"]


class ShapedValue(NDArrayOperatorsMixin):
    """A placeholder for an array of known shape and dtype: operations on it are recorded."""

    __slots__ = ("dtype", "lowering", "number", "shape")

    def __init__(
        self, lowering: ArrayLowering, number: int, shape: Shape, dtype: np.dtype[Any]
    ) -> None:
        self.lowering = lowering
        self.number = number
        self.shape = shape
        self.dtype = dtype

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
        """The array with its axes reversed."""
        return self.transpose(tuple(range(self.ndim))[::-1])

    def reshape(self, *shape: Any) -> Any:
        """Return the same elements in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        known = -math.prod(sizes) if -1 in sizes else 1
        full = tuple(self.size // known if size == -1 else size for size in sizes)
        return self.lowering.view(self, "reshape", full, full)

    def transpose(self, axes: tuple[int, ...]) -> Any:
        """Return the array with its axes in another order."""
        order = tuple(axis % self.ndim for axis in axes)
        shape = tuple(self.shape[axis] for axis in order)
        return self.lowering.view(self, "transpose", order, shape)

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        if not all(e is None or e is Ellipsis or isinstance(e, int | slice) for e in entries):
            raise Unrecordable
        shape = np.broadcast_to(np.float64(0.0), self.shape)[entries].shape
        if shape == self.shape and all(e is Ellipsis or _whole(e) for e in entries):
            return self
        stored = tuple((e.start, e.stop, e.step) if isinstance(e, slice) else e for e in entries)
        return self.lowering.view(self, "index", stored, shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Unrecordable

    def __bool__(self) -> bool:
        raise Unrecordable

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1:
            raise Unrecordable
        if ufunc is np.matmul:
            return self.lowering.product(*inputs)
        if ufunc.signature is not None:
            raise Unrecordable
        return self.lowering.elementwise(ufunc, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Unrecordable
        return known(*args, **kwargs)


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the dtype of a value or an array."""
    return value.dtype if isinstance(value, ShapedValue) else np.asarray(value).dtype


def shape_of(value: Any) -> Shape:
    """Return the shape of a value or an array."""
    return value.shape if isinstance(value, ShapedValue) else np.shape(value)


def _whole(entry: Any) -> bool:
    """Whether a slice that keeps the size also keeps the order: then it selects the whole axis."""
    return isinstance(entry, slice) and (entry.step is None or entry.step > 0)


def _lowering_of(*values: Any) -> ArrayLowering:
    return next(value.lowering for value in values if isinstance(value, ShapedValue))


def _reducing(ufunc: np.ufunc) -> Callable[..., Any]:
    def reduce(x: ShapedValue, axis: Any = None, keepdims: bool = False) -> Any:
        return x.lowering.reduce(ufunc, x, axis, keepdims)

    return reduce


def _where(condition: Any, value: Any, other: Any) -> Any:
    return _lowering_of(condition, value, other).where(condition, value, other)


def _moveaxis(x: ShapedValue, source: Any, destination: Any) -> Any:
    # An array of shape (0, 1, 2, …) shows the permutation of the axes.
    moved = np.moveaxis(np.empty(tuple(range(x.ndim))), source, destination)
    return x.transpose(moved.shape)


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **ELEMENTWISE,
    np.where: _where,
    np.sum: _reducing(np.add),
    np.prod: _reducing(np.multiply),
    np.max: _reducing(np.maximum),
    np.min: _reducing(np.minimum),
    np.broadcast_to: lambda x, shape: x.lowering.view(x, "broadcast", tuple(shape), tuple(shape)),
    np.transpose: lambda x, axes: x.transpose(axes),
    np.moveaxis: _moveaxis,
}

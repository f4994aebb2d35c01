"""Operations of array programs on arrays of known shapes, one point at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.graph.ir import Shape

__all__ = [
    "BYTE",
    "FEW",
    "FLAT",
    "WORD",
    "WRITING",
    "Array",
    "ArrayProgram",
    "Op",
    "OpForm",
    "viewed",
]

BYTE = np.dtype(np.int8)
WORD = np.dtype(np.int64)
FEW = 256
"""Most terms of a sum for which the order of addition makes no significant difference."""

Array = NDArray[Any]
ViewSpec = tuple[str, Any]
FLAT = frozenset({"reshape", "view"})
"""The views that show all elements in order."""


class OpForm:
    """The form of an operation, which determines the content of its `detail`."""

    UFUNC = "ufunc"  # the universal function
    REDUCE = "reduce"  # (universal function, axes, keepdims)
    PRODUCT = "product"  # the product of vectors, matrices or stacks of them
    INNER = "inner"  # the scalar product over all elements
    ALONG = "along"  # the scalar products along the last axis
    VIEW = "view"  # (name, argument)
    ITEM = "item"  # the index of one element; () for an array of one
    WIDEN = "widen"  # a byte to a word
    SELECT = "select"
    SCALAR = "scalar"  # the row, on scalars
    JOIN = "join"  # the axis
    TAKE = "take"  # the axis; the indices are the second value
    PLACE = "place"  # (keys, whether to start from zeros): adds each value into its part
    KERNEL = "kernel"  # (row, params): the kernel, called as a whole


WRITING = frozenset(
    {
        OpForm.UFUNC,
        OpForm.REDUCE,
        OpForm.PRODUCT,
        OpForm.ALONG,
        OpForm.WIDEN,
        OpForm.SELECT,
        OpForm.JOIN,
        OpForm.TAKE,
        OpForm.PLACE,
    }
)
"""The forms that can write their result into a given array."""


class Op(NamedTuple):
    """One operation: it computes the value `number`."""

    form: str
    detail: Any
    reads: tuple[int, ...]
    number: int
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The number of elements of its result."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its result."""
        return self.size * self.dtype.itemsize


@dataclass
class ArrayProgram:
    """A program of array operations in order.

    Attributes
    ----------
    input_shapes : tuple
        The shapes of the inputs, which are the values 0, 1, ….
    ops : list of Op
        The operations of every call.
    known : dict of int to array
        The values that depend on no input.
    outputs : list of int
        The values of the outputs.
    """

    input_shapes: tuple[Shape, ...]
    ops: list[Op] = field(default_factory=list)
    known: dict[int, Array] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)

    def shape(self, number: int, made: dict[int, Op]) -> Shape:
        """Return the shape of a value, given the operations by their numbers."""
        if number in made:
            return made[number].shape
        if number in self.known:
            return self.known[number].shape
        return self.input_shapes[number]


def viewed(array: Array, view: ViewSpec) -> Array:
    """Return a view of an array.

    Examples
    --------
    >>> viewed(np.arange(6), ("reshape", (2, 3))).shape
    (2, 3)
    """
    name, detail = view
    if name == "reshape":
        return array.reshape(detail)
    if name == "transpose":
        return array.transpose(detail)
    if name == "index":
        return np.asarray(array[_key(detail)])
    if name == "broadcast":
        return np.broadcast_to(array, detail)
    return array.view(detail)


def _key(stored: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(slice(*part) if isinstance(part, tuple) else part for part in stored)

"""Operations of NumPy on numbered values: the form in which every target reads a kernel.

The values are scalars or arrays of known shapes; a target may compute them for many points, whose
axes come first and are in no shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.graph.ir import Shape
from difflab.lower.records import Records
from difflab.primitives.casts import ROUNDING

FLOAT, BOOL = np.dtype(np.float64), np.dtype(np.bool_)
SINGLE = np.dtype(np.float32)
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
    SELECT = "select"  # where a condition holds one value, else another
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


_SYNONYMS = {
    "abs": "absolute",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
    "mod": "remainder",
    "true_divide": "divide",
}


class Op(NamedTuple):
    """One operation: it computes the value `number`."""

    form: str
    detail: Any
    reads: tuple[int, ...]
    number: int
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        """The name of a universal function or a selection, the same for synonyms."""
        if self.form == OpForm.SELECT:
            return "where"
        name: str = self.detail.__name__
        return _SYNONYMS.get(name, name)

    @property
    def kernel(self) -> Callable[..., Any]:
        """The function of a kernel that is called as a whole."""
        row, params = self.detail
        return partial(row.computer(np), **dict(params))

    @property
    def size(self) -> int:
        """The number of elements of its result."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its result."""
        return self.size * self.dtype.itemsize

    @property
    def workspace(self) -> int:
        """The bytes that a kernel which evaluates functions holds while it runs, else 0."""
        row = self.detail[0] if self.form == OpForm.KERNEL else None
        return 0 if row is None or row.workspace is None else row.workspace()


@dataclass
class NumpyProgram:
    """Operations of NumPy in order.

    Attributes
    ----------
    input_shapes : sequence of tuple
        The shapes of the inputs, which are the values 0, 1, ….
    made : dict of int to Op
        The operations of every call in order, by the value that each one computes.
    known : dict of int to array
        The values that depend on no input.
    outputs : list of int
        The values of the outputs.
    truths : set of int
        The values that are truth values.
    real : dtype
        The dtype of all other values.
    """

    input_shapes: Sequence[Shape]
    made: dict[int, Op] = field(default_factory=dict)  # of scalar programs `OpColumns`
    known: dict[int, Array] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    truths: set[int] = field(default_factory=set)
    real: np.dtype[Any] = FLOAT

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return len(self.input_shapes)

    def computed_in(self, real: np.dtype[Any]) -> NumpyProgram:
        """Return the same operations in another dtype; in float32, casts to float32 are dropped."""
        if real == self.real:
            return self
        made = {
            op.number: op._replace(dtype=real) if op.dtype == self.real else op for op in self.ops
        }
        if real == SINGLE:
            for number, op in made.items():
                if op.detail is ROUNDING:
                    made[number] = op._replace(detail=np.positive)
        return replace(self, made=made, real=real)

    @property
    def ops(self) -> Collection[Op]:
        """The operations in order."""
        return self.made.values()

    def drop_unused(self) -> None:
        """Drop the operations and constants that no output needs."""
        needed = set(self.outputs)
        for number, op in reversed(self.made.items()):
            if number in needed:
                needed.update(op.reads)
        self.made = {number: op for number, op in self.made.items() if number in needed}
        self.known = {number: array for number, array in self.known.items() if number in needed}

    def shape(self, number: int) -> Shape:
        """Return the shape of a value."""
        if number in self.made:
            return self.made[number].shape
        if number in self.known:
            return self.known[number].shape
        return self.input_shapes[number]


class OpColumns(Records[Op]):
    """The operations of a large program, which are read in order only.

    Examples
    --------
    >>> made = OpColumns()
    >>> made.append(Op(OpForm.UFUNC, np.add, (0, 1), 2, (), FLOAT))
    >>> [(op.name, op.reads) for op in made.values()]
    [('add', (0, 1))]
    """

    def __init__(self) -> None:
        super().__init__(_split, _joined)

    def values(self) -> OpColumns:
        """Return the operations, as the method of a dictionary does."""
        return self


OpTemplate = tuple[str, Any, Shape, np.dtype[Any]]
"""Form, detail, shape and dtype of an operation."""


def _split(op: Op) -> tuple[OpTemplate, tuple[int, ...]]:
    return (op.form, op.detail, op.shape, op.dtype), (op.number, *op.reads)


def _joined(template: OpTemplate, integers: tuple[int, ...]) -> Op:
    form, detail, shape, dtype = template
    return Op(form, detail, integers[1:], integers[0], shape, dtype)


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
        return np.asarray(array[as_index(detail)])
    if name == "broadcast":
        return np.broadcast_to(array, detail)
    return array.view(detail)


def as_index(stored: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index of an array that a parameter stores, where a slice is a tuple.

    Examples
    --------
    >>> as_index(((0, 3, 1), 2))
    (slice(0, 3, 1), 2)
    """
    return tuple(slice(*part) if isinstance(part, tuple) else part for part in stored)


def _uses(program: NumpyProgram) -> dict[int, int]:
    uses: dict[int, int] = {}
    for reads in (*(op.reads for op in program.ops), program.outputs):
        for number in reads:
            uses[number] = uses.get(number, 0) + 1
    return uses


def contract(program: NumpyProgram) -> None:
    """Replace short sums of products by scalar products, which need no array of products."""
    uses = _uses(program)
    for op in list(program.ops):
        products = program.made.get(op.reads[0]) if op.form == OpForm.REDUCE else None
        if products is None or uses[products.number] > 1 or not _sums(op, products):
            continue
        if all(program.shape(number) == products.shape for number in products.reads):
            form = OpForm.INNER if op.shape == () else OpForm.ALONG
            sums = op._replace(form=form, detail=None, reads=products.reads)
            program.made[op.number] = sums


def _sums(op: Op, products: Op) -> bool:
    """Whether `op` sums few products, all of them or along the last axis."""
    ufunc, axes, keepdims = op.detail
    if ufunc is not np.add or keepdims or products.detail is not np.multiply:
        return False
    last = len(products.shape) - 1
    terms = products.size if axes is None else products.shape[last]
    return axes in (None, (last,)) and terms <= FEW

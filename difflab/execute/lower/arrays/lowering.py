"""Lowering of a schedule to NumPy operations on arrays of known shapes, for one point.

The kernels of the table are run once on values with known shapes only, which record the
operations on them. Constant subexpressions are folded; equal operations become one; broadcasts
are left to the operations; the untaken branch of `where` is masked bitwise to exactly zero, which
costs a sixth of NumPy's `where`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from difflab.core.primitive import Primitive
from difflab.execute.lower.ops import (
    BOOL,
    BYTE,
    FLOAT,
    WORD,
    Array,
    NumpyProgram,
    OpForm,
    contract,
    viewed,
)
from difflab.execute.lower.record import (
    RecordedValue,
    Recorder,
    Unrecordable,
    common_shape,
    dtype_of,
    result_dtype,
    shape_of,
)
from difflab.execute.lower.schedule import Schedule, ScheduledStep
from difflab.graph.counts import may_be_long
from difflab.graph.identities import exponent_of
from difflab.graph.ir import Shape
from difflab.primitives import concatenate, pack, replace, scatter, take
from difflab.primitives.movement import indices
from difflab.primitives.replacement import chosen


def lowered(schedule: Schedule) -> NumpyProgram:
    """Return the operations of a schedule on arrays.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda W, x: np.sum(np.tanh(x @ W) * 2.0), np.ones((3, 2)), np.ones(3))
    >>> [op.form for op in lowered(Schedule.of(f)).ops]
    ['product', 'ufunc', 'ufunc', 'reduce']
    """
    program = ArrayLowering(schedule).run()
    contract(program)
    program.drop_unused()
    return program


MANY = 100  # parts of an array; more are placed by one call of the kernel


class ArrayLowering(Recorder):
    """Assigns the values and appends each operation once."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        function = schedule.function
        super().__init__(function.input_shapes)
        self.values: dict[int, Any] = dict(zip(function.input_nodes, self.inputs, strict=True))

    def run(self) -> NumpyProgram:
        """Lower every step, and return the program."""
        with np.errstate(all="ignore"):
            for step in self.schedule.steps:
                args = [self._value(arg) for arg in step.args]
                self.values[step.node] = self._step(step, args)
        for node in self.schedule.outputs:
            self.program.outputs.append(self.number(self._value(node)))
        self.program.drop_unused()
        return self.program

    def _value(self, node: int) -> Any:
        return self.values[node] if node in self.values else self.schedule.known[node]

    def _step(self, step: ScheduledStep, args: Sequence[Any]) -> Any:
        row, shape = step.row, self.schedule.shape(step.node)
        dtype = BOOL if row.boolean else FLOAT
        if not any(isinstance(arg, RecordedValue) for arg in args):
            if may_be_long(row):  # not run one iteration at a time
                return self.add(OpForm.KERNEL, (row, ()), args, shape, dtype)
            return np.asarray(row.computer(np)(*map(np.asarray, args), **step.params))
        if row.shape is None and shape == ():
            return self.scalar(row, args, dtype)
        try:
            value = self._recorded(row, args, step.params)
            if isinstance(value, RecordedValue) and value.shape == shape:
                return value
        except (Unrecordable, TypeError, ValueError, AttributeError):
            pass
        detail = (row, tuple(step.params.items()))
        return self.add(OpForm.KERNEL, detail, args, shape, dtype)

    def scalar(self, row: Primitive, args: Sequence[Any], dtype: np.dtype[Any]) -> RecordedValue:
        """Apply an elementwise row to scalars."""
        return self.add(OpForm.SCALAR, row, args, (), dtype)

    def _recorded(self, row: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run the kernel on the values; rows with lists of indices or many arrays have forms."""
        form = self.forms.get(row)
        if form is None or (len(args) > MANY and row in (scatter, pack)):
            return row.computer(np)(*args, **params)
        return form(self, *args, **params)

    def taken(self, x: Any, *, places: Any, axis: int, rank: int) -> Any:
        """Look up parts along an axis."""
        size = x.shape[axis]
        positions = indices(places).astype(np.intp) % max(size, 1)
        shape = _result_shape(take, [x], places=places, axis=axis, rank=rank)
        return self.add(OpForm.TAKE, axis, [x, positions], shape, x.dtype)

    def concatenated(self, *parts: Any, **params: Any) -> Any:
        """Join arrays along an axis."""
        shape = _result_shape(concatenate, parts, **params)
        return self.add(OpForm.JOIN, params["axis"], parts, shape, FLOAT)

    def scattered(self, *parts: Any, keys: tuple[Any, ...], shape: Shape) -> Any:
        """Place parts in an array of zeros, where they may overlap."""
        return self._placed(parts, keys, shape, overlap=not _apart(keys))

    def packed(self, *parts: Any, ranks: tuple[int, ...]) -> Any:
        """Concatenate flattened parts."""
        shape = _result_shape(pack, parts, ranks=ranks)
        return self._placed([_flat(part) for part in parts], _packed_keys(parts), shape)

    def _placed(
        self, parts: Sequence[Any], keys: tuple[Any, ...], shape: Shape, *, overlap: bool = False
    ) -> Any:
        if len(parts) == 1 and shape_of(parts[0]) == shape and _forward(keys[0]):
            return parts[0]
        gaps = sum(math.prod(shape_of(part)) for part in parts) < math.prod(shape)
        return self.add(OpForm.PLACE, (keys, gaps or overlap), parts, shape, FLOAT)

    def replaced(self, x: Any, part: Any, *, key: Any, ranks: tuple[int, int]) -> Any:
        """Return an array with a part replaced, by a selection."""
        if ranks[1]:
            part = self.scattered(part, keys=(key,), shape=shape_of(x))
        return self.where(chosen(key, shape_of(x)), part, x)

    forms: ClassVar[dict[Primitive, Callable[..., Any]]] = {
        concatenate: concatenated,
        pack: packed,
        replace: replaced,
        scatter: scattered,
        take: taken,
    }
    """Rows that have a form of their own, with the arguments of their kernels."""

    # --- operations on values -----------------------------------------------------------

    def view(self, value: Any, name: str, detail: Any, shape: Shape) -> Any:
        """Return a view of a value; consecutive views of the same kind are merged."""
        if not isinstance(value, RecordedValue):
            return viewed(np.asarray(value), (name, detail))
        if name in ("reshape", "broadcast") and value.shape == shape:
            return value
        made = self.program.made.get(value.number)
        if made is not None and made.form == OpForm.VIEW and made.detail[0] == name:
            if name in ("reshape", "broadcast"):
                below = self.of(made.reads[0])
                return self.view(below, name, detail, shape)
            if name == "transpose":
                inner = made.detail[1]
                detail = tuple(inner[axis] for axis in detail)
                below = self.of(made.reads[0])
                if detail == tuple(range(len(detail))):
                    return below
                return self.add(OpForm.VIEW, (name, detail), [below], shape, value.dtype)
            if name == "view" and self.of(made.reads[0]).dtype == detail:
                return self.of(made.reads[0])
        if shape == () and name in ("reshape", "index"):
            index = tuple(e for e in detail if e is not Ellipsis)
            return self.add(OpForm.ITEM, index, [value], (), value.dtype)
        dtype = detail if name == "view" else value.dtype
        return self.add(OpForm.VIEW, (name, detail), [value], shape, dtype)

    def of(self, number: int) -> Any:
        """Return the value of a number."""
        if number in self.program.known:
            return self.program.known[number]
        if number < len(self.inputs):
            return self.inputs[number]
        made = self.program.made[number]
        return RecordedValue(self, number, made.shape, made.dtype)

    def elementwise(self, ufunc: np.ufunc, args: Sequence[Any]) -> Any:
        """Apply a universal function; broadcast operands are replaced by their sources."""
        if not any(isinstance(arg, RecordedValue) for arg in args):
            return ufunc(*args)
        whole = common_shape(args)
        sources = [self._unbroadcast(arg) for arg in args]
        shape = common_shape(sources)
        sources = [self._fitted(arg, shape) for arg in sources]
        result = self._simplified(ufunc, sources)
        if result is None:
            dtype = result_dtype(ufunc, *[dtype_of(arg) for arg in sources])
            result = self.add(OpForm.UFUNC, ufunc, sources, shape, dtype)
        return self.view(result, "broadcast", whole, whole) if result.shape != whole else result

    def _unbroadcast(self, arg: Any) -> Any:
        """Return the source of a broadcast value, or the value itself."""
        if not isinstance(arg, RecordedValue):
            array = np.asarray(arg)
            return _uniform(array)
        made = self.program.made.get(arg.number)
        if made is None or made.form != OpForm.VIEW:
            return arg
        below = self.of(made.reads[0])
        if made.detail[0] == "broadcast":
            return self._unbroadcast(below)
        return below if isinstance(below, RecordedValue) and below.shape == () else arg

    def _fitted(self, arg: Any, shape: Shape) -> Any:
        """Reshape a value with as many elements as `shape`: equal shapes are fastest."""
        if not isinstance(arg, RecordedValue) or arg.shape == shape or arg.size != math.prod(shape):
            return arg
        made = self.program.made.get(arg.number)
        if arg.shape == () or (made is not None and made.form == OpForm.VIEW):
            return arg
        return arg.reshape(shape)

    def _simplified(self, ufunc: np.ufunc, args: Sequence[Any]) -> Any:
        """Return a simpler equal value, or None: squares, and scalings merged without rounding."""
        if ufunc is np.hypot and self.number(args[0]) > self.number(args[1]):
            return self.elementwise(ufunc, args[::-1])  # as its partial derivatives have it
        if ufunc is np.power and not isinstance(args[1], RecordedValue) and np.all(args[1] == 2.0):
            return self.elementwise(np.multiply, [args[0], args[0]])
        if ufunc is not np.multiply:
            return None
        factor, value = args if not isinstance(args[0], RecordedValue) else args[::-1]
        if isinstance(factor, RecordedValue) or shape_of(factor):
            return None
        if factor == 1.0:
            return value
        made = self.program.made.get(value.number)
        if made is None or made.form != OpForm.UFUNC or made.detail is not np.multiply:
            return None
        inner, below = sorted(
            map(self.of, made.reads), key=lambda arg: isinstance(arg, RecordedValue)
        )
        if isinstance(inner, RecordedValue) or shape_of(inner):
            return None
        product = float(factor) * float(inner)
        exact = any(exponent_of(abs(number)) is not None for number in (factor, inner))
        if not exact or not 1e-290 < abs(product) < 1e290:
            return None
        return self.elementwise(np.multiply, [below, np.float64(product)])

    def where(self, condition: Any, value: Any, other: Any) -> Any:
        """Select elementwise; where one branch is zero, as in derivatives, by masking bits."""
        whole = common_shape([condition, value, other])
        for kept, dropped, negate in ((value, other, False), (other, value, True)):
            if _is_zero(dropped) and _maskable(condition, kept, whole):
                chosen = np.logical_not(condition) if negate else condition
                return self._masked(chosen, kept)
        args = [self._unbroadcast(arg) for arg in (condition, value, other)]
        dtype = np.result_type(dtype_of(value), dtype_of(other))
        return self.add(OpForm.SELECT, whole, args, whole, dtype)

    def _masked(self, condition: Any, value: Any) -> Any:
        """Return the value where the condition holds, else 0, by a bitwise and with its mask."""
        shape = value.shape
        byte = np.negative(self.view(condition, "view", BYTE, shape))
        word = self.add(OpForm.WIDEN, None, [byte], shape, WORD)
        bits = np.bitwise_and(self.view(value, "view", WORD, shape), word)
        return self.view(bits, "view", FLOAT, shape)

    def reduce(self, ufunc: np.ufunc, x: Any, axis: Any, keepdims: bool) -> Any:
        """Reduce along axes; axes of length 1 are dropped."""
        if x.size == 0:
            raise Unrecordable
        axes = tuple(range(x.ndim)) if axis is None else axis
        axes = tuple(a % x.ndim for a in (axes if isinstance(axes, tuple) else (axes,)))
        kept = [1 if a in axes else size for a, size in enumerate(x.shape)]
        shape = tuple(s for a, s in enumerate(kept) if keepdims or a not in axes)
        long = tuple(sorted(a for a in axes if x.shape[a] > 1))
        if not long:
            return x.reshape(shape)
        dtype = ufunc.reduce(np.ones(1, x.dtype)).dtype
        if keepdims:
            return self.add(OpForm.REDUCE, (ufunc, long, True), [x], shape, dtype)
        plain = tuple(s for a, s in enumerate(x.shape) if a not in long)
        if math.prod(plain) == 1:
            return self.add(OpForm.REDUCE, (ufunc, None, False), [x], (), dtype).reshape(shape)
        return self.add(OpForm.REDUCE, (ufunc, long, False), [x], plain, dtype).reshape(shape)

    def product(self, a: Any, b: Any) -> Any:
        """Multiply matrices, vectors or stacks."""
        left, right = shape_of(a), shape_of(b)
        if not left or not right or dtype_of(a) != FLOAT or dtype_of(b) != FLOAT:
            raise Unrecordable
        stack = np.broadcast_shapes(left[:-2], right[:-2])
        rows = left[-2:-1]
        columns = right[-1:] if len(right) > 1 else ()
        return self.add(OpForm.PRODUCT, None, [a, b], (*stack, *rows, *columns), FLOAT)


def _result_shape(row: Primitive, args: Sequence[Any], **params: Any) -> Shape:
    """Return the shape of a row's result."""
    assert row.shape is not None
    return row.shape(tuple(shape_of(arg) for arg in args), **params)


def _uniform(array: Array) -> Any:
    """Return the common value of all elements of an array, or else the array."""
    if array.size == 0:
        return array
    first = array.reshape(-1)[:1]
    same = array.dtype != FLOAT or bool(np.all(array.view(WORD) == first.view(WORD)))
    return first[0] if same and np.all(array == first) else array


def _is_zero(value: Any) -> bool:
    if isinstance(value, RecordedValue):
        return False
    array = np.asarray(value)
    return not np.any(array) and not np.any(np.signbit(array))


def _maskable(condition: Any, value: Any, whole: Shape) -> bool:
    """Whether both are arrays of shape `whole`, of truth values and of floats."""
    values = isinstance(condition, RecordedValue) and isinstance(value, RecordedValue)
    return values and condition.shape == value.shape == whole != () and value.dtype == FLOAT


def _packed_keys(parts: Sequence[Any]) -> tuple[Any, ...]:
    """Return the key of each part in the concatenation of the flattened parts."""
    sizes = [math.prod(shape_of(part)) for part in parts]
    stops = np.cumsum(sizes, dtype=int).tolist()
    return tuple(
        ((stop - size, stop, 1),) if shape_of(part) else (stop - 1,)
        for part, size, stop in zip(parts, sizes, stops, strict=True)
    )


def _apart(keys: Sequence[tuple[Any, ...]]) -> bool:
    """Whether keys select different elements: along one axis, each another stretch.

    Examples
    --------
    >>> whole = (0, 5, 1)
    >>> _apart([(whole, 1), (whole, 0)]), _apart([((0, 3, 1), 0), ((2, 5, 1), 0)])
    (True, False)
    """
    for axis in range(min(map(len, keys))):
        entries = [key[axis] for key in keys]
        if not all(isinstance(e, int) or (isinstance(e, tuple) and e[2] == 1) for e in entries):
            continue
        stretches = sorted((e, e + 1) if isinstance(e, int) else e[:2] for e in entries)
        if all(a[1] <= b[0] for a, b in itertools.pairwise(stretches)):
            return True
    return False


def _forward(key: tuple[Any, ...]) -> bool:
    """Whether a key that selects all elements keeps their order."""
    return all(isinstance(entry, tuple) and (entry[2] or 1) > 0 for entry in key)


def _flat(part: Any) -> Any:
    if not shape_of(part):
        return part
    return part.reshape(-1) if isinstance(part, RecordedValue) else np.reshape(part, -1)

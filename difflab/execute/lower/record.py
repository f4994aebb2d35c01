"""A kernel as a sequence of NumPy operations, found by running it on recording values.

Kernels are written with array operations only, so one run on values that record the operations
on them gives the universal functions that it consists of. A row therefore needs no second
definition, and the guards of a kernel at the edge of its domain are kept. A program of scalars
becomes universal functions likewise.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Container, Hashable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from difflab.arrays.shaped import Shaped
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.ops import BOOL, FLOAT, NumpyProgram, Op, OpColumns, OpForm
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.graph.ir import Shape
from difflab.primitives import as_number


class Unrecordable(Exception):
    """The kernel uses an operation that has no recorded form."""


class Recorder:
    """Numbers values, and records each operation on the same operands once.

    Parameters
    ----------
    input_shapes : sequence of tuple
        The shapes of the inputs, which are the values 0, 1, ….
    dtypes : sequence of dtype, optional
        Their dtypes; float64 when None.

    Examples
    --------
    >>> recorder = Recorder([(), ()])
    >>> x, y = recorder.inputs
    >>> (x * y + x * y).number
    3
    >>> [(op.name, op.reads) for op in recorder.program.ops]
    [('multiply', (0, 1)), ('add', (2, 2))]
    """

    def __init__(
        self, input_shapes: Sequence[Shape], dtypes: Sequence[np.dtype[Any]] | None = None
    ) -> None:
        self.program = NumpyProgram(input_shapes)
        self.next = len(input_shapes)
        self.by_key: dict[Hashable, int] = {}
        kinds = [FLOAT] * self.next if dtypes is None else dtypes
        self.inputs = [
            RecordedValue(self, number, shape, dtype)
            for number, (shape, dtype) in enumerate(zip(input_shapes, kinds, strict=True))
        ]
        self.program.truths.update(number for number, dtype in enumerate(kinds) if dtype == BOOL)

    def number(self, value: Any) -> int:
        """Return the value number of a value, which may be a constant."""
        return value.number if isinstance(value, RecordedValue) else self.constant(value)

    def constant(self, value: Any) -> int:
        """Return the value number of a constant; 0 and -0 differ."""
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "iu":
            array = array.astype(FLOAT)
        key = (array.dtype.str, array.shape, array.tobytes())
        number = self.by_key.get(key)
        if number is None:
            number = self.by_key[key] = self._fresh(array.dtype)
            self.program.known[number] = array
        return number

    def emit(
        self, form: str, detail: Any, reads: tuple[int, ...], shape: Shape, dtype: np.dtype[Any]
    ) -> int:
        """Append an operation unless an equal one exists; return its value number."""
        key = (form, detail, reads)
        number = self.by_key.get(key)
        if number is None:
            number = self.by_key[key] = self._fresh(dtype)
            self.program.made[number] = Op(form, detail, reads, number, shape, dtype)
        return number

    def add(
        self, form: str, detail: Any, args: Sequence[Any], shape: Shape, dtype: np.dtype[Any]
    ) -> RecordedValue:
        """Append an operation on values unless an equal one exists; return its value."""
        number = self.emit(form, detail, tuple(map(self.number, args)), shape, dtype)
        return RecordedValue(self, number, shape, dtype)

    def unused(self) -> int:
        """Return a new value number."""
        self.next += 1
        return self.next - 1

    def _fresh(self, dtype: np.dtype[Any]) -> int:
        if dtype == BOOL:
            self.program.truths.add(self.next)
        return self.unused()

    def inline(self, form: NumpyProgram, args: Sequence[int], shape: Shape = ()) -> int:
        """Append the operations of a form, given the value numbers of its arguments."""
        known = form.known
        if len(form.made) == 1 and not known:  # most rows
            ((kind, detail, reads, number, _, dtype),) = form.ops
            return self.emit(kind, detail, tuple([args[read] for read in reads]), shape, dtype)
        local = dict(enumerate(args))
        for kind, detail, reads, number, _, dtype in form.ops:
            if known:
                local |= {read: self.constant(known[read]) for read in reads if read in known}
            operands = tuple([local[read] for read in reads])
            local[number] = self.emit(kind, detail, operands, shape, dtype)
        result = form.outputs[0]
        return self.constant(known[result]) if result in known else local[result]

    # --- operations on values -------------------------------------------------------------

    def kind_of(self, number: int) -> str:
        """Return the kind of the value of this number, for `kernel_form`."""
        if number in self.program.known:
            return repr(self.program.known[number].item())
        return "truth" if number in self.program.truths else "number"

    def elementwise(self, ufunc: np.ufunc, args: Sequence[Any]) -> Any:
        """Record a universal function."""
        dtype = result_dtype(ufunc, *map(dtype_of, args))
        return self.add(OpForm.UFUNC, ufunc, args, common_shape(args), dtype)

    def where(self, condition: Any, value: Any, other: Any) -> Any:
        """Record an elementwise selection."""
        args = (condition, value, other)
        dtype = np.result_type(dtype_of(value), dtype_of(other))
        return self.add(OpForm.SELECT, None, args, common_shape(args), dtype)

    def view(self, value: Any, name: str, detail: Any, shape: Shape) -> Any:
        """Record a view."""
        raise Unrecordable

    def reduce(self, ufunc: np.ufunc, x: Any, axis: Any, keepdims: bool) -> Any:
        """Record a reduction along axes."""
        raise Unrecordable

    def product(self, a: Any, b: Any) -> Any:
        """Record a product of matrices, vectors or stacks."""
        raise Unrecordable


class StepRecorder(Recorder):
    """Records the kernels of scheduled steps.

    Parameters
    ----------
    steps : Schedule or ScalarProgram
        The steps.
    truths : collection of int, optional
        The inputs that are truth values.
    """

    def __init__(self, steps: Schedule | ScalarProgram, truths: Collection[int] = ()) -> None:
        kinds = [BOOL if source in truths else FLOAT for source in steps.sources]
        super().__init__([steps.shape(source) for source in steps.sources], kinds)
        self.known = steps.known
        self.numbers: Any = {source: number for number, source in enumerate(steps.sources)}

    def read(self, source: int) -> int:
        """Return the value number of a source."""
        number: int | None = self.numbers.get(source)
        if number is None:
            number = self.numbers[source] = self.constant(self.known[source])
        return number

    def read_all(self, sources: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the value numbers of `sources`, in the same shape."""
        flat = [self.read(source) for source in sources.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(sources.shape)

    def kind(self, source: int) -> str:
        """Return the kind of a value, for `kernel_form`."""
        if source in self.known:
            return repr(self.known[source])
        return "truth" if self.numbers[source] in self.program.truths else "number"


class UfuncRecorder(StepRecorder):
    """Records a program of scalars, whose operations may be a million, as columns."""

    def __init__(self, program: ScalarProgram, truths: Collection[int] = ()) -> None:
        super().__init__(program, truths)
        self.columns = OpColumns()
        self.program.made = self.columns  # type: ignore[assignment]  # is not changed any more
        self.numbers = array(
            "q", [*range(program.inputs), *[-1] * (program.cells - program.inputs)]
        )
        self._numbers_of: dict[Any, dict[Any, int]] = {}

    def read(self, source: int) -> int:
        """Return the value number of a cell."""
        number: int = self.numbers[source]
        if number < 0:
            number = self.numbers[source] = self.constant(self.known[source])
        return number

    def emit(
        self, form: str, detail: Any, reads: tuple[int, ...], shape: Shape, dtype: np.dtype[Any]
    ) -> int:
        """Append an operation unless an equal one exists; return its value number."""
        template = (form, detail, shape, dtype)
        numbers = self._numbers_of.get(template)
        if numbers is None:
            numbers = self._numbers_of[template] = {}
        key: Any = reads[0] << 32 | reads[1] if len(reads) == 2 else reads
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = self._fresh(dtype)
            self.columns.append(Op(form, detail, reads, number, shape, dtype))
        return number


@lru_cache(maxsize=4096)
def kernel_form(row: Primitive, kinds: tuple[str, ...]) -> NumpyProgram | None:
    """Return the kernel of an elementwise row on scalars, None if it cannot be recorded.

    Parameters
    ----------
    row : Primitive
        The row.
    kinds : tuple of str
        For each argument ``"number"`` or ``"truth"``, or the text of a constant, of which the
        kernel folds constant expressions.

    Examples
    --------
    >>> from difflab.primitives import softplus
    >>> form = kernel_form(softplus, ("number",))
    >>> [op.name for op in form.ops], form.known, form.outputs
    (['logaddexp'], {1: array(0.)}, [2])
    """
    recorder = Recorder([()] * len(kinds), [BOOL if kind == "truth" else FLOAT for kind in kinds])
    args = [
        value if kind in ("number", "truth") else _read(kind)
        for value, kind in zip(recorder.inputs, kinds, strict=True)
    ]
    try:
        with np.errstate(all="ignore"):
            result = row.computer(np)(*args)
    except (Unrecordable, TypeError, ValueError, AttributeError):
        return None
    recorder.program.outputs.append(recorder.number(result))
    recorder.program.drop_unused()
    return recorder.program


def _read(text: str) -> float | bool:
    return text == "True" if text in ("True", "False") else float(text)


class RecordedValue(Shaped, NDArrayOperatorsMixin):
    """A placeholder for a scalar or an array of known shape: operations on it are recorded."""

    __slots__ = ("dtype", "number", "recorder", "shape")
    shape: Shape

    def __init__(self, recorder: Recorder, number: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.recorder = recorder
        self.number = number
        self.shape = shape
        self.dtype = dtype

    def reshape(self, *shape: Any) -> Any:
        """Return the same elements in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        known = -math.prod(sizes) if -1 in sizes else 1
        full = tuple(self.size // known if size == -1 else size for size in sizes)
        return self.recorder.view(self, "reshape", full, full)

    def transpose(self, axes: tuple[int, ...] | None = None) -> Any:
        """Return the array with its axes in another order, by default the reverse."""
        given = range(self.ndim)[::-1] if axes is None else axes
        order = tuple(axis % self.ndim for axis in given)
        shape = tuple(self.shape[axis] for axis in order)
        return self.recorder.view(self, "transpose", order, shape)

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        if not all(e is None or e is Ellipsis or isinstance(e, int | slice) for e in entries):
            raise Unrecordable
        shape = np.broadcast_to(np.float64(0.0), self.shape)[entries].shape
        if shape == self.shape and all(e is Ellipsis or _whole(e) for e in entries):
            return self
        stored = tuple((e.start, e.stop, e.step) if isinstance(e, slice) else e for e in entries)
        return self.recorder.view(self, "index", stored, shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Unrecordable

    def __bool__(self) -> bool:
        raise Unrecordable

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1:
            raise Unrecordable
        if ufunc is np.matmul:
            return self.recorder.product(*inputs)
        if ufunc.signature is not None:
            raise Unrecordable
        return self.recorder.elementwise(ufunc, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Unrecordable
        return known(*args, **kwargs)


def _whole(entry: Any) -> bool:
    """Whether a slice that keeps the size also keeps the order: then it selects the whole axis."""
    return isinstance(entry, slice) and (entry.step is None or entry.step > 0)


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the dtype of a value or an array; integer scalars count as float64."""
    if isinstance(value, RecordedValue):
        return value.dtype
    dtype: np.dtype[Any] = np.asarray(value).dtype
    return FLOAT if dtype.kind in "iu" and np.ndim(value) == 0 else dtype


def shape_of(value: Any) -> Shape:
    """Return the shape of a value or an array."""
    return value.shape if isinstance(value, RecordedValue) else np.shape(value)


def common_shape(values: Sequence[Any]) -> Shape:
    """Return the shape that values broadcast to, usually their common shape."""
    shapes = {shape_of(value) for value in values}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


@cache
def result_dtype(ufunc: np.ufunc, *dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a universal function's result."""
    result_type: np.dtype[Any] = ufunc(*[np.empty(0, dtype) for dtype in dtypes]).dtype
    return result_type


# --- NumPy functions ----------------------------------------------------------------------


def _reducing(ufunc: np.ufunc) -> Callable[..., Any]:
    def reduce(x: RecordedValue, axis: Any = None, keepdims: bool = False) -> Any:
        return x.recorder.reduce(ufunc, x, axis, keepdims)

    return reduce


def _where(condition: Any, value: Any, other: Any) -> Any:
    values = (condition, value, other)
    recorder = next(value.recorder for value in values if isinstance(value, RecordedValue))
    return recorder.where(*values)


def _moveaxis(x: RecordedValue, source: Any, destination: Any) -> Any:
    # An array of shape (0, 1, 2, …) shows the permutation of the axes.
    moved = np.moveaxis(np.empty(tuple(range(x.ndim))), source, destination)
    return x.transpose(moved.shape)


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.iscomplexobj: lambda x: False,
    np.real: lambda x: x,
    np.where: _where,
    np.sum: _reducing(np.add),
    np.prod: _reducing(np.multiply),
    np.max: _reducing(np.maximum),
    np.min: _reducing(np.minimum),
    np.broadcast_to: lambda x, shape: x.recorder.view(x, "broadcast", tuple(shape), tuple(shape)),
    np.transpose: lambda x, axes: x.transpose(axes),
    np.moveaxis: _moveaxis,
}


# --- programs of scalars as NumPy's universal functions ------------------------------------------
# Targets in other languages implement only the universal functions, each once: in LLVM IR, or in
# CUDA C++.

Forms = Callable[[Primitive, tuple[str, ...]], NumpyProgram | None]


def as_ufuncs(
    program: ScalarProgram,
    spelled: Container[str],
    truths: Collection[int] = (),
    forms: Forms = kernel_form,
) -> NumpyProgram:
    """Return the program's operations as universal functions, each computed once.

    Parameters
    ----------
    program : ScalarProgram
        The program.
    spelled : container of str
        The universal functions that the target implements.
    truths : collection of int, optional
        The inputs that are truth values.
    forms : callable
        Returns the universal functions of a row: `kernel_form`, or `expression_form`.

    Raises
    ------
    UnsupportedError
        A row's kernel uses a function that the target does not implement.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> program = ScalarProgram.of(dl.parse("softplus(x)*y"))
    >>> code = as_ufuncs(program, {"logaddexp", "multiply"})
    >>> [op.name for op in code.ops], code.outputs
    (['logaddexp', 'multiply'], [4])
    """
    recorder = UfuncRecorder(program, truths)
    code, numbers = recorder.program, recorder.numbers
    programs: dict[Any, NumpyProgram | None] = {}
    for cell, row, args, _ in program.steps:
        local = [numbers[arg] for arg in args]
        if -1 in local:
            local = list(map(recorder.read, args))
        kinds = tuple([arg in code.truths for arg in local]) if code.truths else len(args)
        key = row, kinds
        if key not in programs:
            of_truths = [arg in code.truths for arg in local]
            programs[key] = _form(row, _kinds(of_truths), spelled, forms)
        form = programs[key]
        if form is None:
            form = spelled_form(row, [recorder.kind_of(arg) for arg in local], spelled, forms)
        numbers[cell] = recorder.inline(form, local)
    for cells in program.outputs:
        code.outputs += recorder.read_all(cells).ravel().tolist()
    return code


def always_spelled(
    program: ScalarProgram, spelled: Container[str], forms: Forms = kernel_form
) -> bool:
    """Return whether each row has a form whatever its arguments are: `as_ufuncs` cannot raise.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> program = ScalarProgram.of(dl.parse("softplus(x)*y"))
    >>> always_spelled(program, {"logaddexp", "multiply"}), always_spelled(program, {"multiply"})
    (True, False)
    """
    rows = {row: len(args) for _, row, args, _ in program.steps.samples}
    return all(
        _form(row, _kinds([index in row.truths for index in range(arity)]), spelled, forms)
        for row, arity in rows.items()
        if row is not as_number
    )


def spelled_form(
    row: Primitive, kinds: Sequence[str], spelled: Container[str], forms: Forms = kernel_form
) -> NumpyProgram:
    """Return the kernel of an elementwise row in universal functions that a target implements.

    It is the same for all constants if possible; a kernel that inspects its constants, such as the
    orders of a remainder, has a form for each of them.

    Parameters
    ----------
    row : Primitive
        The row.
    kinds : sequence of str
        The kind of each argument, as in `kernel_form`.
    spelled : container of str
        The universal functions that the target implements.
    forms : callable
        Returns them.

    Raises
    ------
    UnsupportedError
        It calls others.

    Examples
    --------
    >>> from difflab.primitives import exp_remainder
    >>> known = {"exp", "multiply", "add", "subtract", "divide", "negative", "where", "absolute"}
    >>> known |= {"less", "greater", "equal", "minimum", "maximum", "isfinite", "power"}
    >>> len(spelled_form(exp_remainder, ("1.0", "0.0", "number"), known).ops) > 100
    True
    >>> spelled_form(exp_remainder, ("number", "0.0", "number"), known)
    Traceback (most recent call last):
    difflab.errors.UnsupportedError: 'exp_remainder' has no machine code
    """
    general = _kinds([kind in ("truth", "True", "False") for kind in kinds])
    form = _form(row, general, spelled, forms) or _form(row, tuple(kinds), spelled, forms)
    if form is None:
        raise UnsupportedError(f"'{row.name}' has no machine code")
    return form


def _kinds(truths: Sequence[bool]) -> tuple[str, ...]:
    return tuple(["truth" if truth else "number" for truth in truths])


def _form(
    row: Primitive, kinds: tuple[str, ...], spelled: Container[str], forms: Forms
) -> NumpyProgram | None:
    form = forms(row, kinds)
    if form is None or not all(op.name in spelled and op.dtype in (FLOAT, BOOL) for op in form.ops):
        return None
    return form

"""Lowering of an array program to loop nests: one operation and one nest per instruction.

Data movement becomes copies; sums, extremes and matrix products accumulate into their results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.errors import ConsistencyError, UnsupportedError
from difflab.execute.lower.arrays.lowering import ArrayLowering
from difflab.execute.lower.ops import BOOL, FLOAT, Op
from difflab.execute.lower.record import as_ufuncs
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.execute.targets.llvm.array_lowering import MachineLowering
from difflab.execute.targets.llvm.arrays.groups import NestLayout, arranged
from difflab.execute.targets.llvm.arrays.subprograms import Subprograms
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.execute.targets.llvm.libraries import (
    FOURIER,
    MATRICES,
    MatrixLoop,
    Transform,
    matrix_loop,
)
from difflab.graph.control import Control
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.rewritten import composed, inlined
from difflab.lower.nests import (
    GATHER,
    RECURRENCES,
    SCATTER,
    Called,
    Instruction,
    Instructions,
    Ref,
    View,
    in_order,
    require_bounds,
)
from difflab.lower.records import Records
from difflab.lower.rows import (
    LOWERED,
    copy,
    joined,
    looked_up,
    nests,
    placed,
    product,
    recurrence,
    reduced,
)
from difflab.primitives import diag, matmul, sum_in_order
from difflab.primitives.movement import Places, indices

MOST_RUNS = 8
"""Evenly spaced runs of indices that are copied one by one; more are looked up in a table."""
_NEUTRAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}


def instructions(schedule: Schedule) -> Instructions:
    """Return a schedule's operations as loop nests.

    Raises
    ------
    UnsupportedError
        An operation has no machine code.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda W, x: np.sum(np.tanh(x @ W)), np.ones((3, 2)), np.ones(3))
    >>> for step in instructions(Schedule.of(f)).code:
    ...     print(step.name, step.domain, step.into)
    copy (2,)
    multiply (3, 2) add
    tanh (2,)
    copy (1,)
    copy (2,) add
    """
    lowering = MachineLowering(schedule)
    lowering.run()
    return _Expansion(lowering).result


def scalar_instructions(function: Function, program: ScalarProgram) -> Instructions:
    """Return a function's operations on scalars as nests of one point.

    Raises
    ------
    UnsupportedError
        An operation has no machine code, or a result is an array of truth values.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [2]; [sin(x[1]), x[0]*x[1]]")
    >>> for step in scalar_instructions(f, ScalarProgram.of(f)).code:
    ...     print(step.name, step.out.root, [ref[:2] for ref in step.args])
    sin 1 [(0, 1)]
    multiply 2 [(0, 0), (0, 1)]
    """
    code = as_ufuncs(program, SPELLINGS)
    sizes = list(map(math.prod, function.input_shapes))
    result = Instructions(len(sizes))
    result.sizes.update(enumerate(sizes))
    count = code.inputs + len(code.ops) + len(code.known)
    roots = np.arange(count) - code.inputs + len(sizes)
    roots[: code.inputs] = np.repeat(np.arange(len(sizes)), sizes)
    offsets = np.zeros(count, dtype=np.int64)
    offsets[: code.inputs] = [place for size in sizes for place in range(size)]
    records = code.ops
    assert isinstance(records, Records)
    values = np.frombuffer(records.integers, np.int64)
    integers = np.stack([roots[values], offsets[values]], axis=-1)
    templates = [
        (op.name, (), "", op.dtype == BOOL, None, None, ((),) * (1 + len(op.reads)))
        for op in records.firsts
    ]
    result.code.adopt(templates, records.kinds, 2 * np.array(records.ends), integers)
    for number, value in code.known.items():
        result.known[int(roots[number])] = len(result.constants)
        result.constants.append(float(value))
    result.truths.update(roots[list(code.truths)].tolist())
    refs = [Ref(int(roots[n]), int(offsets[n]), ()) for n in code.outputs]
    for root, (part, cells) in enumerate(zip(program.parts, program.outputs, strict=True), count):
        own = refs[part]
        if cells.shape == () and own[0].root >= result.inputs:
            result.outputs.append(own[0])
            continue
        if any(ref.root in result.truths for ref in own):
            raise UnsupportedError("an array of truth values has no machine code here")
        result.sizes[root] = len(own)
        for place, ref in enumerate(own):
            result.add(copy(View(Ref(root, place, ()), ()), View(ref, ())))
        result.outputs.append(View.whole(root, cells.shape).ref)
    return result


def routine_layout(function: Function) -> NestLayout:
    """Return the layout of a function as a routine: its last inputs are its output buffers."""
    count, shapes = len(function.inputs), [*function.input_shapes, *function.output_shapes]
    whole = composed(lambda nodes: inlined(function, nodes[:count]), shapes)
    program = instructions(Schedule.of(whole))
    outputs = zip(program.outputs, function.output_shapes, strict=True)
    for number, (ref, shape) in enumerate(outputs, count):
        program.add(copy(View.whole(number, shape), View(ref, shape)))
    program.outputs.clear()
    return arranged(program)


class _Expansion:
    """Writes the instructions."""

    def __init__(self, lowering: ArrayLowering) -> None:
        self.lowering = lowering
        program = self.program = lowering.program
        self.result = Instructions(program.inputs)
        self.views: dict[int, View] = {}
        self.called: dict[Control, Subprograms] = {}
        self.tables: dict[bytes, int] = {}
        for number, shape in enumerate(program.input_shapes):
            self.views[number] = View.whole(number, shape)
            self.result.sizes[number] = math.prod(shape)
        for number, array in program.known.items():
            self._known(number, np.asarray(array))
        for op in program.ops:
            getattr(self, f"_{op.form}", self._refused)(op)
        for number in program.outputs:
            view = self.views[number]
            if view.ref.root < program.inputs:  # whose memory is the caller's
                view = self._copied(lowering.unused(), view)
            size = self.result.sizes[view.ref.root]
            require_bounds(view.ref, view.shape, size, "an output")
            self.result.outputs.append(view.ref)

    def _known(self, number: int, array: Any) -> None:
        self.result.known[number] = len(self.result.constants)
        self.result.sizes[number] = array.size
        self.result.constants += np.ravel(array).astype(np.float64).tolist()
        self.views[number] = View.whole(number, array.shape)
        if array.dtype == BOOL:
            self.result.truths.add(number)

    def _literal(self, value: float) -> int:
        """Return the number of a constant, which the program may have already."""
        number = self.lowering.constant(value)
        if number not in self.views:
            self._known(number, np.float64(value))
        return number

    def _refused(self, op: Op) -> None:
        raise UnsupportedError(f"'{op.form}' has no machine code for arrays")

    def _made(self, number: int, shape: Shape, dtype: Any) -> View:
        """Add a value."""
        if dtype not in (FLOAT, BOOL):
            raise UnsupportedError(f"machine code does not support {dtype}")
        self.result.sizes[number] = math.prod(shape)
        if dtype == BOOL:
            self.result.truths.add(number)
        self.views[number] = View.whole(number, shape)
        return self.views[number]

    def _copied(self, number: int, view: View) -> View:
        """Copy a value to a new contiguous one."""
        out = self._made(number, view.shape, FLOAT)
        self.result.add(copy(out, view))
        return out

    def _filled(self, op: Op, value: float) -> View:
        """Add the value of an operation, and fill it with a constant."""
        out = self._made(op.number, op.shape, op.dtype)
        self._fill(op.number, 0, math.prod(op.shape), value)
        return out

    def _fill(self, number: int, start: int, stop: int, value: float) -> None:
        """Fill a range of a value with a constant."""
        if start < stop:
            literal = self.views[self._literal(value)]
            self.result.add(copy(View.whole(number, (stop - start,), start), literal))

    def _read(self, op: Op) -> list[View]:
        return [self.views[number] for number in op.reads]

    def _add(self, steps: Iterable[Instruction]) -> None:
        for step in steps:
            self.result.add(step)

    # --- the forms --------------------------------------------------------------------------

    def _ufunc(self, op: Op) -> None:
        if op.name not in SPELLINGS:
            raise UnsupportedError(f"'{op.name}' has no machine code")
        args = tuple([view.broadcast(op.shape).ref for view in self._read(op)])
        out = self._made(op.number, op.shape, op.dtype)
        self.result.add(Instruction(op.name, op.shape, out.ref, args))

    _select = _ufunc

    def _reduce(self, op: Op) -> None:
        ufunc, axes, _ = op.detail
        name, (x,) = ufunc.__name__, self._read(op)
        if name not in _NEUTRAL:
            raise UnsupportedError(f"machine code has no reduction by '{name}'")
        axes = range(len(x.shape)) if axes is None else axes
        self.result.add(reduced(name, self._filled(op, _NEUTRAL[name]), x, axes))

    def _product(self, op: Op) -> None:
        self.result.add(product(self._filled(op, 0.0), *self._read(op)))

    # --- data movement ----------------------------------------------------------------------

    def _view(self, op: Op) -> None:
        (name, detail), (x,) = op.detail, self._read(op)
        if name == "broadcast":
            self.views[op.number] = x.broadcast(detail)
        elif name == "transpose":
            self.views[op.number] = x.transposed(detail)
        elif name == "index":
            self.views[op.number] = x.indexed(detail)
        elif name == "reshape":
            view = x.reshaped(detail)
            if view is None:
                view = View.whole(self._copied(op.number, x).ref.root, detail)
            self.views[op.number] = view
        else:
            raise UnsupportedError("machine code does not reinterpret bits")

    def _item(self, op: Op) -> None:
        (x,) = self._read(op)
        self.views[op.number] = x.indexed(op.detail or (0,) * len(x.shape))

    def _join(self, op: Op) -> None:
        out = self._made(op.number, op.shape, FLOAT)
        self._add(joined(out, self._read(op), op.detail))

    def _take(self, op: Op) -> None:
        chosen = np.asarray(self.program.known[op.reads[1]], dtype=np.intp)
        out = self._made(op.number, op.shape, FLOAT)
        self._lookup(GATHER, out, self.views[op.reads[0]], op.detail, chosen)

    def _lookup(self, name: str, out: View, x: View, axis: int, chosen: NDArray[np.intp]) -> None:
        """Gather or scatter-add elements at indices along an axis: by runs, or many by a table."""
        whole, packed = (out, x) if name == SCATTER else (x, out)
        if np.any((chosen < 0) | (chosen >= whole.shape[axis])):
            raise ConsistencyError(f"a {name} leaves an axis of {whole.shape[axis]}")
        runs = list(islice(_runs(chosen), MOST_RUNS + 1))
        if len(runs) > MOST_RUNS:
            self.result.add(looked_up(name, out, x, axis, self._table(chosen)))
            return
        for start, first, step, count in runs:
            apart = whole.stretch(axis, first, step, count)
            beside = packed.stretch(axis, start, 1, count)
            adds = name == SCATTER
            self.result.add(copy(apart, beside, "add") if adds else copy(beside, apart))

    def _table(self, chosen: NDArray[np.intp]) -> int:
        """Return the number of a table of indices, which lookups of the same indices share."""
        table = chosen.astype(np.float64)
        key = table.tobytes()
        if key not in self.tables:
            self.tables[key] = self.lowering.unused()
            self._known(self.tables[key], table)
        return self.tables[key]

    def _place(self, op: Op) -> None:
        keys, gaps = op.detail
        self._placed(op, keys, gaps=gaps)

    def _placed(self, op: Op, keys: Sequence[Any], *, gaps: bool) -> None:
        """Write each part to its indices; where parts may overlap, add the later ones."""
        out, parts = self._made(op.number, op.shape, FLOAT), self._read(op)
        if gaps:
            self._fill_around(op.number, out.indexed(keys[0]))
        self._add(placed(out, parts[:1], keys[:1]))
        self._add(placed(out, parts[1:], keys[1:], "add" if gaps else ""))

    def _fill_around(self, number: int, part: View) -> None:
        """Fill a value with zeros, except for a part that is written next, if it is contiguous."""
        start, stop = part.ref.offset, part.ref.offset + math.prod(part.shape)
        if not in_order(part.ref.strides, part.shape):
            start = stop = 0
        self._fill(number, 0, start, 0.0)
        self._fill(number, stop, self.result.sizes[number], 0.0)

    def _kernel(self, op: Op) -> None:
        row, params = op.detail[0], dict(op.detail[1])
        if row.name == "put":
            self._put(op, **params)
        elif row.name == "scatter":
            self._placed(op, params["keys"], gaps=True)
        elif row in LOWERED and row is not matmul:  # which is a product, unless of truth values
            self._lowered(op, row, params)
        elif row.name in RECURRENCES:
            args, out = self._read(op), self._made(op.number, op.shape, op.dtype)
            *coefficients, terms = args
            axis = params["axes"][0]
            self.result.add(recurrence(row.name, out, terms, *coefficients, axis=axis))
        elif row.name in FOURIER:
            self._transform(op, row.name, **params)
        elif row.name in MATRICES and matrix_loop(row.name):
            self._matrices(op, row.name, **params)
        elif row.holds is not None:
            self._control(op, row.name, row.holds)
        else:
            raise UnsupportedError(f"'{row.name}' has no machine code for arrays")

    def _lowered(self, op: Op, row: Primitive, params: dict[str, Any]) -> None:
        """Write the nests of a row, on zeros where they accumulate or leave elements out."""
        operands, zero = self._read(op), 0.0
        if row is sum_in_order:
            terms, zero = (*op.shape, params["length"]), -0.0
            operands.append(self._made(self.lowering.unused(), terms, FLOAT))
        out = self._made(op.number, op.shape, op.dtype)
        steps = nests(row, params, out, operands)
        if row is diag or any(step.into for step in steps):
            self._fill(op.number, 0, math.prod(op.shape), zero)
        self._add(steps)

    def _control(self, op: Op, name: str, control: Control) -> None:
        """Call functions; the memory that they need lies behind the results."""
        called = self.called.get(control)
        if called is None:
            called = self.called[control] = Subprograms(
                control, tuple(map(routine_layout, control.functions))
            )
        for number, shape in zip(op.reads, control.input_shapes, strict=True):
            own = self.views[number].shape
            if own != shape:
                raise ConsistencyError(f"a value of shape {own} is passed as one of {shape}")
        self._call(op, name, called)

    def _transform(
        self, op: Op, name: str, axes: tuple[int, ...], rank: int, transposed: bool, **params: Any
    ) -> None:
        """Call a Fourier transform."""
        shape = self.views[op.reads[0]].shape
        axis = axes[0]
        size = params.get("size", shape[axis])
        after = math.prod(shape[len(shape) + axis + 1 : len(shape) - len(axes) + 1])
        before = math.prod(shape[: len(shape) + axis])
        self._call(op, name, Transform(FOURIER[name], int(transposed), before, size, after))

    def _matrices(self, op: Op, name: str, ranks: tuple[int, ...] = (2,)) -> None:
        """Call NumPy's loop for a function of matrices."""
        shapes = [view.shape for view in self._read(op)]
        column = ranks[-1] == 1
        stacks = [shape[:-2] for shape in shapes[:-1]]
        stacks.append(shapes[-1][:-1] if column else shapes[-1][:-2])
        whole = np.broadcast_shapes(*stacks)
        if any(0 in shape for shape in shapes) or any(
            stack != whole and math.prod(stack) > 1 for stack in stacks
        ):
            raise UnsupportedError(f"'{name}' of these shapes has no machine code for arrays")
        columns, size = 1 if column else shapes[-1][-1], shapes[0][-1]
        self._call(op, name, MatrixLoop(name, size, columns, tuple(map(math.prod, stacks))))

    def _call(self, op: Op, name: str, called: Called) -> None:
        """Call a function of whole values, of which those that are not contiguous are copied."""
        views = [
            view
            if in_order(view.ref.strides, view.shape)
            else self._copied(self.lowering.unused(), view)
            for view in self._read(op)
        ]
        out, *args = [
            view.ref._replace(strides=())
            for view in (self._made(op.number, op.shape, op.dtype), *views)
        ]
        self.result.sizes[op.number] = called.counts[0]
        self.result.add(Instruction(name, (), out, tuple(args), called=called))

    def _put(self, op: Op, places: Places, size: int, axis: int, rank: int) -> None:
        """Scatter-add the parts along an axis."""
        out, (x,) = self._filled(op, 0.0), self._read(op)
        chosen = (indices(places) % max(size, 1)).astype(np.intp)
        self._lookup(SCATTER, out, x, axis, chosen)


def _runs(chosen: NDArray[np.intp]) -> Iterator[tuple[int, int, int, int]]:
    """Yield indices as evenly spaced runs: ``(start, first index, step, count)``."""
    steps = np.diff(chosen)
    changes = np.flatnonzero(np.diff(steps)) + 1
    start, size = 0, len(chosen)
    while start < size:
        change = np.searchsorted(changes, start, "right")
        stop = int(changes[change]) + 1 if change < len(changes) else size
        step = int(steps[start]) if start + 1 < size else 0
        yield start, int(chosen[start]), step, stop - start
        start = stop

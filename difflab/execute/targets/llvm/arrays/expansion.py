"""Lowering of an array program to loop nests: one operation and one nest per instruction.

Data movement becomes copies; sums, extremes and matrix products accumulate into their results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError, UnsupportedError
from difflab.execute.lower.arrays.lowering import ArrayLowering
from difflab.execute.lower.ops import BOOL, FLOAT, Op
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.array_lowering import MachineLowering
from difflab.execute.targets.llvm.arrays.control import Subprograms
from difflab.execute.targets.llvm.arrays.groups import NestLayout, arranged
from difflab.execute.targets.llvm.arrays.instructions import (
    COPY,
    GATHER,
    RECURRENCES,
    SCATTER,
    Instruction,
    Instructions,
    Lookup,
    Ref,
    contiguous,
    in_order,
    reshaped,
    runs,
    seen,
)
from difflab.execute.targets.llvm.arrays.recurrences import recurrence
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


def routine_layout(function: Function) -> NestLayout:
    """Return a function as a routine: its last inputs are the places of its outputs."""
    count, shapes = len(function.inputs), [*function.input_shapes, *function.output_shapes]
    whole = composed(lambda nodes: inlined(function, nodes[:count]), shapes)
    program = instructions(Schedule.of(whole))
    for number, (ref, shape) in enumerate(
        zip(program.outputs, function.output_shapes, strict=True), count
    ):
        place = Ref(number, 0, contiguous(shape))
        program.add(Instruction(COPY, shape, place, (ref,)))
    program.outputs.clear()
    return arranged(program)


class _Expansion:
    """Writes the instructions."""

    def __init__(self, lowering: ArrayLowering) -> None:
        self.lowering = lowering
        program = self.program = lowering.program
        self.result = Instructions(program.inputs)
        self.refs: dict[int, tuple[Ref, Shape]] = {}
        self.called: dict[Control, Subprograms] = {}
        self.tables: dict[bytes, int] = {}
        for number, shape in enumerate(program.input_shapes):
            self.refs[number] = Ref(number, 0, contiguous(shape)), shape
            self.result.sizes[number] = math.prod(shape)
        for number, array in program.known.items():
            self._known(number, np.asarray(array))
        for op in program.ops:
            getattr(self, f"_{op.form}", self._refused)(op)
        for number in program.outputs:
            ref, shape = self.refs[number]
            if ref.root < program.inputs:  # whose memory is the caller's
                copy = self._made(lowering.unused(), shape, FLOAT)
                self._emit(COPY, shape, copy, [ref])
                ref = copy
            self.result.check(ref, shape, "an output")
            self.result.outputs.append(ref)

    def _known(self, number: int, array: Any) -> None:
        self.result.known[number] = len(self.result.constants)
        self.result.sizes[number] = array.size
        self.result.constants += np.ravel(array).astype(np.float64).tolist()
        self.refs[number] = Ref(number, 0, contiguous(array.shape)), array.shape
        if array.dtype == BOOL:
            self.result.truths.add(number)

    def _literal(self, value: float) -> int:
        """Return the number of a constant, which the program may have already."""
        number = self.lowering.constant(value)
        if number not in self.refs:
            self._known(number, np.float64(value))
        return number

    def _refused(self, op: Op) -> None:
        raise UnsupportedError(f"'{op.form}' has no machine code for arrays")

    def _made(self, number: int, shape: Shape, dtype: Any) -> Ref:
        """Make room for a value."""
        if dtype not in (FLOAT, BOOL):
            raise UnsupportedError(f"machine code does not support {dtype}")
        self.result.sizes[number] = math.prod(shape)
        if dtype == BOOL:
            self.result.truths.add(number)
        ref = Ref(number, 0, contiguous(shape))
        self.refs[number] = ref, shape
        return ref

    def _filled(self, op: Op, value: float) -> Ref:
        """Make room for a result, and fill it with a number."""
        out = self._made(op.number, op.shape, op.dtype)
        self._fill(op.number, 0, math.prod(op.shape), value)
        return out

    def _fill(self, number: int, start: int, stop: int, value: float) -> None:
        """Write a number into a stretch of a value."""
        if start < stop:
            domain, literal = (stop - start,), self._literal(value)
            self._emit(COPY, domain, Ref(number, start, (1,)), [self._spread(literal, domain)])

    def _spread(self, number: int, domain: Shape) -> Ref:
        """Return a value as it is read along a nest that it is broadcast to."""
        ref, shape = self.refs[number]
        if not shape and not domain:
            return ref
        missing = len(domain) - len(shape)
        if any(size not in (1, own) for size, own in zip(shape, domain[missing:], strict=True)):
            raise ConsistencyError(f"an operand of shape {shape} cannot be broadcast to {domain}")
        strides = [
            0 if size == 1 else stride for size, stride in zip(shape, ref.strides, strict=True)
        ]
        return Ref(ref.root, ref.offset, (*[0] * missing, *strides))

    def _emit(
        self, name: str, domain: Shape, out: Ref, args: Sequence[Ref], into: str = ""
    ) -> None:
        truth = out.root in self.result.truths
        self.result.add(Instruction(name, domain, out, tuple(args), into, truth))

    # --- the forms --------------------------------------------------------------------------

    def _ufunc(self, op: Op) -> None:
        if op.name not in SPELLINGS:
            raise UnsupportedError(f"'{op.name}' has no machine code")
        args = [self._spread(number, op.shape) for number in op.reads]
        self._emit(op.name, op.shape, self._made(op.number, op.shape, op.dtype), args)

    _select = _ufunc

    def _reduce(self, op: Op) -> None:
        ufunc, axes, _ = op.detail
        name = ufunc.__name__
        ref, shape = self.refs[op.reads[0]]
        if name not in _NEUTRAL:
            raise UnsupportedError(f"machine code has no reduction by '{name}'")
        reduced = range(len(shape)) if axes is None else axes
        kept = iter(contiguous(tuple(s for a, s in enumerate(shape) if a not in reduced)))
        strides = tuple([0 if a in reduced else next(kept) for a in range(len(shape))])
        self._filled(op, _NEUTRAL[name])
        self._emit(COPY, shape, Ref(op.number, 0, strides), [ref], name)

    def _product(self, op: Op) -> None:
        (a, left), (b, right) = (self.refs[number] for number in op.reads)
        stack = np.broadcast_shapes(left[:-2], right[:-2])
        rows = left[-2:-1]
        columns = right[-1:] if len(right) > 1 else ()
        domain = (*stack, *rows, left[-1], *columns)
        batch = len(stack)

        def stacked(ref: Ref, shape: Shape) -> tuple[int, ...]:
            own = shape[:-2]
            strides = [0 if s == 1 else t for s, t in zip(own, ref.strides, strict=False)]
            return (*[0] * (batch - len(own)), *strides)

        first = (
            *stacked(a, left),
            *a.strides[-2:][: len(rows)],
            a.strides[-1],
            *[0] * len(columns),
        )
        inner = b.strides[-2] if len(right) > 1 else b.strides[-1]
        second = (*stacked(b, right), *[0] * len(rows), inner, *b.strides[-1:][: len(columns)])
        kept = iter(self._filled(op, 0.0).strides)
        place = batch + len(rows)
        strides = tuple([0 if axis == place else next(kept) for axis in range(len(domain))])
        args = [Ref(a.root, a.offset, first), Ref(b.root, b.offset, second)]
        self._emit("multiply", domain, Ref(op.number, 0, strides), args, "add")

    # --- what moves numbers -----------------------------------------------------------------

    def _view(self, op: Op) -> None:
        name, _ = op.detail
        ref, shape = self.refs[op.reads[0]]
        if name == "view":
            raise UnsupportedError("machine code does not reinterpret bits")
        if name == "broadcast":
            self.refs[op.number] = self._spread(op.reads[0], op.shape), op.shape
            return
        if name == "reshape":
            self._reshape(op, ref, shape)
            return
        offset, strides, _ = seen(shape, ref.strides, op.detail)
        self.refs[op.number] = Ref(ref.root, ref.offset + offset, strides), op.shape

    def _reshape(self, op: Op, ref: Ref, shape: Shape) -> None:
        strides = reshaped(shape, ref.strides, op.shape)
        if strides is None:
            out = self._made(op.number, op.shape, FLOAT)
            self._emit(COPY, shape, Ref(out.root, 0, contiguous(shape)), [ref])
        else:
            self.refs[op.number] = Ref(ref.root, ref.offset, strides), op.shape

    def _item(self, op: Op) -> None:
        ref, _ = self.refs[op.reads[0]]
        steps = zip(op.detail, ref.strides, strict=False)
        self.refs[op.number] = Ref(ref.root, ref.offset + sum(i * s for i, s in steps), ()), ()

    def _join(self, op: Op) -> None:
        out = self._made(op.number, op.shape, FLOAT)
        axis = op.detail % len(op.shape)
        start = 0
        for number in op.reads:
            ref, shape = self.refs[number]
            place = Ref(out.root, start * out.strides[axis], out.strides)
            self._emit(COPY, shape, place, [ref])
            start += shape[axis]

    def _take(self, op: Op) -> None:
        ref, shape = self.refs[op.reads[0]]
        axis = op.detail % len(shape)
        places = np.asarray(self.program.known[op.reads[1]], dtype=np.intp)
        out = self._made(op.number, op.shape, FLOAT)
        self._lookup(GATHER, op.shape, out, ref, Lookup(axis, shape[axis]), places)

    def _lookup(
        self,
        name: str,
        domain: Shape,
        out: Ref,
        ref: Ref,
        lookup: Lookup,
        places: NDArray[np.intp],
    ) -> None:
        """Read or add the elements at positions along an axis: by runs, or many by a table."""
        if np.any((places < 0) | (places >= lookup.size)):
            raise ConsistencyError(f"a {name} leaves an axis of {lookup.size}")
        axis, into = lookup.axis, "add" if name == SCATTER else ""
        found = list(islice(runs(places), MOST_RUNS + 1))
        if len(found) > MOST_RUNS:
            strides = tuple([int(place == axis) for place in range(len(domain))])
            args = (ref, Ref(self._table(places), 0, strides))
            self.result.add(Instruction(name, domain, out, args, into, lookup=lookup))
            return
        whole, packed = (out, ref) if name == SCATTER else (ref, out)
        for start, first, step, count in found:
            steps = [stride * (step if k == axis else 1) for k, stride in enumerate(whole.strides)]
            apart = Ref(whole.root, whole.offset + first * whole.strides[axis], tuple(steps))
            beside = packed._replace(offset=packed.offset + start * packed.strides[axis])
            target, source = (apart, beside) if name == SCATTER else (beside, apart)
            self._emit(COPY, (*domain[:axis], count, *domain[axis + 1 :]), target, [source], into)

    def _table(self, places: NDArray[np.intp]) -> int:
        """Return the number of a table of indices, which lookups of the same indices share."""
        table = places.astype(np.float64)
        key = table.tobytes()
        if key not in self.tables:
            self.tables[key] = self.lowering.unused()
            self._known(self.tables[key], table)
        return self.tables[key]

    def _place(self, op: Op) -> None:
        keys, gaps = op.detail
        self._placed(op, keys, gaps=gaps)

    def _placed(self, op: Op, keys: Sequence[Any], *, gaps: bool) -> None:
        """Write each part into its place, and add those that follow where parts may overlap."""
        out = self._made(op.number, op.shape, FLOAT)
        places = [seen(op.shape, out.strides, ("index", key)) for key in keys]
        if gaps:
            self._fill_around(op.number, *places[0])
        for place, number in enumerate(op.reads):
            offset, strides, shape = places[place]
            target, source = Ref(out.root, offset, strides), self._spread(number, shape)
            self._emit(COPY, shape, target, [source], "add" if gaps and place else "")

    def _fill_around(self, number: int, start: int, strides: tuple[int, ...], shape: Shape) -> None:
        """Fill a value with zeros, but for a part that is written next, if it is a stretch."""
        part = (start, start + math.prod(shape)) if in_order(strides, shape) else (0, 0)
        self._fill(number, 0, part[0], 0.0)
        self._fill(number, part[1], self.result.sizes[number], 0.0)

    def _packed(self, op: Op) -> None:
        """Write all elements one after the other."""
        out = self._made(op.number, op.shape, FLOAT)
        start = 0
        for number in op.reads:
            ref, shape = self.refs[number]
            self._emit(COPY, shape, Ref(out.root, start, contiguous(shape)), [ref])
            start += math.prod(shape)

    def _kernel(self, op: Op) -> None:
        row, params = op.detail
        if row.name == "put":
            self._put(op, **dict(params))
        elif row.name == "scatter":
            self._placed(op, dict(params)["keys"], gaps=True)
        elif row.name == "pack":
            self._packed(op)
        elif row.name == "sum_in_order":
            self._in_order(op, **dict(params))
        elif row.name in RECURRENCES:
            refs = (self._made(op.number, op.shape, op.dtype), *(self.refs[n][0] for n in op.reads))
            self.result.add(recurrence(row.name, op.shape, dict(params)["axes"][0], refs))
        elif row.name in FOURIER:
            self._transform(op, row.name, **dict(params))
        elif row.name in MATRICES and matrix_loop(row.name):
            self._matrices(op, row.name, **dict(params))
        elif row.holds is not None:
            self._control(op, row.name, row.holds)
        else:
            raise UnsupportedError(f"'{row.name}' has no machine code for arrays")

    def _in_order(self, op: Op, places: Sequence[tuple[int, int, int]], length: int) -> None:
        """Put the terms in their order, and keep the last of their running sums."""
        shape = (*op.shape, length)
        terms = self._made(self.lowering.unused(), shape, FLOAT)
        for number, (start, stop, step) in zip(op.reads, places, strict=True):
            count = len(range(start, stop, step))
            target = Ref(terms.root, start, (*terms.strides[:-1], step))
            part = (*op.shape, count)
            self._emit(COPY, part, target, [self._spread(number, part)])
        out = self._made(op.number, op.shape, op.dtype)
        self._emit("cumsum", shape, out._replace(strides=(*out.strides, 0)), [terms])

    def _control(self, op: Op, name: str, control: Control) -> None:
        """Call functions; the memory that they need lies behind the results."""
        called = self.called.get(control)
        if called is None:
            called = self.called[control] = Subprograms(
                control, tuple(map(routine_layout, control.functions))
            )
        args = [
            self._contiguous(number, shape)
            for number, shape in zip(op.reads, control.input_shapes, strict=True)
        ]
        out = self._made(op.number, op.shape, op.dtype)
        self.result.sizes[op.number] = called.size
        whole = Ref(out.root, 0, ())
        self.result.add(Instruction(name, (), whole, tuple(args), control=called))

    def _transform(
        self, op: Op, name: str, axes: tuple[int, ...], rank: int, transposed: bool, **params: Any
    ) -> None:
        """Call a Fourier transform."""
        (number,) = op.reads
        shape = self.refs[number][1]
        axis = axes[0]
        size = params.get("size", shape[axis])
        after = math.prod(shape[len(shape) + axis + 1 : len(shape) - len(axes) + 1])
        before = math.prod(shape[: len(shape) + axis])
        transform = Transform(FOURIER[name], int(transposed), before, size, after)
        source = self._contiguous(number, shape)
        out = self._made(op.number, op.shape, op.dtype)
        whole = Ref(out.root, 0, ())
        self.result.add(Instruction(name, (), whole, (source,), library=transform))

    def _matrices(self, op: Op, name: str, ranks: tuple[int, ...] = (2,)) -> None:
        """Call NumPy's loop for a function of matrices."""
        shapes = [self.refs[number][1] for number in op.reads]
        column = ranks[-1] == 1
        stacks = [shape[:-2] for shape in shapes[:-1]]
        stacks.append(shapes[-1][:-1] if column else shapes[-1][:-2])
        whole = np.broadcast_shapes(*stacks)
        if any(0 in shape for shape in shapes) or any(
            stack != whole and math.prod(stack) > 1 for stack in stacks
        ):
            raise UnsupportedError(f"'{name}' of these shapes has no machine code for arrays")
        columns, size = 1 if column else shapes[-1][-1], shapes[0][-1]
        loop = MatrixLoop(name, size, columns, tuple(map(math.prod, stacks)))
        args = tuple(map(self._contiguous, op.reads, shapes))
        out = self._made(op.number, op.shape, op.dtype)
        self.result.add(Instruction(name, (), Ref(out.root, 0, ()), args, library=loop))

    def _contiguous(self, number: int, shape: Shape) -> Ref:
        """Return where a value begins whose numbers lie side by side, a copy if need be."""
        ref, own = self.refs[number]
        if own != shape:
            raise ConsistencyError(f"a value of shape {own} is passed as one of {shape}")
        steps = zip(shape, ref.strides, contiguous(shape), strict=True)
        if any(size > 1 and step != wanted for size, step, wanted in steps):
            copied = self._made(self.lowering.unused(), shape, FLOAT)
            self._emit(COPY, shape, copied, [ref])
            ref = copied
        return Ref(ref.root, ref.offset, ())

    def _put(self, op: Op, places: Places, size: int, axis: int, rank: int) -> None:
        """Scatter-add the parts along an axis."""
        ref, shape = self.refs[op.reads[0]]
        out = self._filled(op, 0.0)
        chosen = (indices(places) % max(size, 1)).astype(np.intp)
        self._lookup(SCATTER, shape, out, ref, Lookup(axis % len(shape), size), chosen)

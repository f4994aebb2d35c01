"""The schedule: the operations of a function in order, independent of the target.

Every target implements the same schedule: operations in order, with constant subexpressions
folded, small integer powers as products, powers to exponents that would be rounded as quotients,
and the steps that loops have in common executed once; and the same as scalar operations, if the
arrays of a graph only collect scalars, or are so small that they are unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Params, Primitive
from difflab.core.system import require_memory
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Shape, packed_slices
from difflab.graph.passes.shared_steps import steps_once
from difflab.lower.records import Records
from difflab.primitives import (
    add,
    broadcast,
    concatenate,
    constant_array,
    cumprod,
    cumsum,
    divide,
    index,
    linear_recurrence,
    matmul,
    max_,
    maximum,
    min_,
    minimum,
    multiply,
    pack,
    power,
    prod,
    put,
    reshape,
    scatter,
    sum_,
    sum_in_order,
    take,
    transpose,
)
from difflab.primitives.movement import indices

CellArray = NDArray[np.int64]

# --- the schedule --------------------------------------------------------------------------------

# The powers that products give to within one ULP. Negative ones, except the reciprocal, would
# lose subnormal numbers.
_LEAST_POWER = -1
_LARGEST_POWER = 4


class ScheduledStep(NamedTuple):
    """One operation: it computes the value `node` from the values `args`."""

    node: int
    row: Primitive
    args: tuple[int, ...]
    params: dict[str, Any]


Step = tuple[int, Primitive, tuple[int, ...], dict[str, Any]]
"""A scheduled step without names, which a program is made of in one pass."""

_named: Callable[[Step], ScheduledStep] = partial(tuple.__new__, ScheduledStep)
"""Give a step names, as `ScheduledStep._make` does at three times the cost."""


def _split(step: ScheduledStep) -> tuple[Any, tuple[int, ...]]:
    """Return the row and the parameters of a step, and its nodes."""
    node, row, args, params = step
    return (row, tuple(params.items())), (node, *args)


def _joined(template: tuple[Primitive, Params], nodes: tuple[int, ...]) -> ScheduledStep:
    row, params = template
    return _named((nodes[0], row, nodes[1:], dict(params)))


@dataclass(frozen=True)
class Schedule:
    """The operations of a function in order.

    Attributes
    ----------
    function : Function
        The function that is computed.
    steps : list of ScheduledStep
        Every operation that depends on an input. The nodes are the graph's; those beyond the
        graph's length are intermediate products of powers.
    known : dict of int to number
        The values of the scalar nodes that depend on no input.
    outputs : list of int
        The nodes of the outputs.
    stands_for : dict of int to int
        For each node beyond the graph's length, the node with the same shape.

    Examples
    --------
    >>> import difflab as dl
    >>> schedule = Schedule.of(dl.parse("x^3 + sin(pi)"))
    >>> [step.row.name for step in schedule.steps]
    ['multiply', 'multiply', 'add']
    """

    function: Function
    steps: list[ScheduledStep] = field(default_factory=list)
    known: dict[int, Any] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    stands_for: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Function) -> Schedule:
        """Schedule `function`."""
        schedule, steps = cls.started(function)
        schedule.steps.extend(map(_named, steps))
        return schedule

    @classmethod
    def started(cls, function: Function) -> tuple[Schedule, Iterator[Step]]:
        """Return an empty schedule, and an iterator over its steps that fills it."""
        schedule = cls(steps_once(function.in_floats))
        return schedule, _Scheduler(schedule).steps()

    @property
    def sources(self) -> Sequence[int]:
        """The values of the inputs."""
        return self.function.input_nodes

    @property
    def places(self) -> list[NDArray[np.int64]]:
        """The value of each output, as an array of one."""
        return [np.array(node) for node in self.outputs]

    def shape(self, node: int) -> Shape:
        """Return the shape of a node at one point."""
        if node in self.known:
            return ()
        return self.function.graph.shape(self.stands_for.get(node, node))


class _Scheduler:
    """Fills a schedule's values; each computation is yielded once: powers may repeat a product."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph = schedule.function.graph
        self.spare = len(self.graph)
        self.by_key: dict[Any, int] = {}
        self.same: dict[int, int] = {}
        opcodes = {row: opcode for opcode, row in enumerate(self.graph.primitives, FIRST_ROW)}
        self.multiplication, self.powers = opcodes.get(multiply, -1), opcodes.get(power, -1)

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order; the schedule is complete when the iterator is exhausted."""
        graph, known, same, by_key = self.graph, self.schedule.known, self.same, self.by_key
        rows, constants, renamed = graph.primitives, graph.constants, same.keys()
        params = [dict(entry) for entry in graph.param_table]
        all_args, ends = tuple(graph.args.tolist()), graph.starts.tolist()
        opcodes = graph.opcode.tolist()
        repeats = self.powers >= 0 and self._repeats(opcodes, all_args, ends)
        columns = zip(opcodes, graph.param_ids.tolist(), strict=True)
        for node, (opcode, param) in enumerate(columns):
            if opcode < FIRST_ROW:
                if opcode == CONSTANT:
                    known[node] = float(constants[node][0])
                continue
            row = rows[opcode - FIRST_ROW]
            args = all_args[ends[node] : ends[node + 1]]
            if same and not renamed.isdisjoint(args):
                args = tuple([same.get(arg, arg) for arg in args])
            if row.shape is None and args[0] in known and known.keys() >= set(args):
                known[node] = _folded(row, [known[arg] for arg in args])
            elif row is power and known.get(args[1]) in _PRODUCTS:
                yield from self._product(node, args)
            elif not repeats or (first := by_key.setdefault((opcode, args, param), node)) == node:
                yield node, row, args, params[param]
            else:
                same[node] = first
        self.schedule.outputs.extend(
            same.get(node, node) for node in self.schedule.function.outputs
        )

    def _repeats(self, opcodes: list[int], all_args: tuple[int, ...], ends: list[int]) -> bool:
        """Whether powers may repeat a product: nodes of a graph differ, but two are of one base."""
        bases = [
            all_args[first]
            for opcode, first in zip(opcodes, ends, strict=False)
            if opcode == self.powers
            or (opcode == self.multiplication and all_args[first] == all_args[first + 1])
        ]
        return len(set(bases)) < len(bases)

    def _product(self, node: int, args: tuple[int, ...]) -> Iterator[Step]:
        """Write a small power as products, or the reciprocal as a quotient."""
        base, exponent = args[0], int(self.schedule.known[args[1]])
        if exponent == _LEAST_POWER:
            self.schedule.known[self._fresh(node)] = 1.0
            yield from self._step(node, (divide, base), divide, (self.spare - 1, base))
            return
        factors = (base, base)
        if exponent > 2:
            square = self._fresh(node)
            yield from self._multiply(square, factors)
            square = self.same.get(square, square)
            factors = (square, base if exponent == 3 else square)
        yield from self._multiply(node, factors)

    def _multiply(self, node: int, factors: tuple[int, int]) -> Iterator[Step]:
        # The key of a product of the graph, so that equal ones match.
        return self._step(node, (self.multiplication, factors, 0), multiply, factors)

    def _step(self, node: int, key: Any, row: Primitive, args: tuple[int, ...]) -> Iterator[Step]:
        """Yield a step unless an equal one exists."""
        first = self.by_key.setdefault(key, node)
        if first == node:
            yield node, row, args, {}
        else:
            self.same[node] = first

    def _fresh(self, node: int) -> int:
        self.schedule.stands_for[self.spare] = node
        self.spare += 1
        return self.spare - 1


def _folded(row: Primitive, operands: Sequence[Any]) -> Any:
    """Return the value of a row whose operands are known."""
    with np.errstate(all="ignore"):
        return row.computer(np)(*map(np.float64, operands)).item()


_PRODUCTS = frozenset({float(_LEAST_POWER), *map(float, range(2, _LARGEST_POWER + 1))})


# --- programs of scalars -------------------------------------------------------------------------


@dataclass(frozen=True)
class ScalarProgram:
    """The schedule as scalar operations on cells 0, 1, …, of which the first are the inputs.

    Attributes
    ----------
    inputs : int
        The number of scalar inputs, which are the first cells.
    steps : sequence of ScheduledStep
        The operations, on cells.
    known : dict of int to number
        The values of the cells that are constants.
    outputs : list of array of int
        The cells of each output, in its shape.
    """

    inputs: int
    steps: Records[ScheduledStep] = field(default_factory=partial(Records, _split, _joined))
    known: dict[int, Any] = field(default_factory=dict)
    outputs: list[CellArray] = field(default_factory=list)

    @classmethod
    def of(cls, function: Function) -> ScalarProgram:
        """Return the program of scalar operations, in one pass over the graph.

        Operations that only move data are carried out once, on the indices of the cells.

        Raises
        ------
        UnsupportedError
            An operation has array operands.

        Examples
        --------
        >>> import difflab as dl
        >>> f = dl.parse("w: [3]; w[0]*w[1] + w[2]")
        >>> program = ScalarProgram.of(dl.gradient(f))
        >>> program.outputs[0].tolist(), program.steps
        ([1, 0, 3], [])
        >>> program.known
        {3: 1.0}
        """
        schedule, steps = Schedule.started(function)
        return Cells(schedule, cls(schedule.function.n)).filled(steps)

    @property
    def sources(self) -> Sequence[int]:
        """The cells of the inputs."""
        return range(self.inputs)

    @property
    def places(self) -> list[CellArray]:
        """The cells of each output."""
        return self.outputs

    @property
    def parts(self) -> list[slice]:
        """The slice of each output among the flattened outputs."""
        return packed_slices(cells.shape for cells in self.outputs)

    @property
    def cells(self) -> int:
        """The number of cells."""
        last = self.steps[-1].node if self.steps else -1
        return 1 + max([self.inputs - 1, *self.known, last])

    def shape(self, cell: int) -> Shape:
        """Return the shape of a cell, which is a scalar."""
        return ()


PICKING = frozenset((broadcast, concatenate, index, pack, reshape, take, transpose))
"""Rows of which each element is one of an argument's; others may leave gaps, or add."""


class _CellsOfNodes(dict[int, Any]):
    """The cells of each node; those of a constant are assigned when they are first looked up."""

    def __init__(self, constant: Callable[[int], int]) -> None:
        self.constant = constant

    def __missing__(self, node: int) -> Any:
        self[node] = cell = self.constant(node)
        return cell


class Cells:
    """Assigns the cells of a program: a value is a cell, or an array of cells."""

    def __init__(self, schedule: Schedule, program: ScalarProgram) -> None:
        self.schedule = schedule
        self.program = program
        self.next = program.inputs
        self.cells = _CellsOfNodes(lambda node: self.constant(schedule.known[node]))
        self.by_key: dict[Any, int] = {}

    def filled(self, steps: Iterable[Step]) -> ScalarProgram:
        """Return the program of steps, of which those on arrays only move data."""
        self.inputs()
        cells, append = self.cells, self.program.steps.append
        arrays = {node for node, cell in cells.items() if cell.__class__ is np.ndarray}
        for node, row, args, params in steps:
            if row.shape is not None:
                cells[node] = self.moved(row, args, params)
                if cells[node].__class__ is np.ndarray:
                    arrays.add(node)
            elif arrays.isdisjoint(args):
                cells[node] = cell = self.next
                self.next = cell + 1
                if len(args) == 2:  # the usual case, twice as fast
                    operands: tuple[int, ...] = (cells[args[0]], cells[args[1]])
                else:
                    operands = tuple([cells[arg] for arg in args])
                append(_named((cell, row, operands, params)))
            else:
                raise UnsupportedError(f"'{row.name}' computes with arrays")
        return self.finished()

    def finished(self) -> ScalarProgram:
        """Return the program with its outputs."""
        for node in self.schedule.outputs:
            self.program.outputs.append(np.asarray(self.cells[node], dtype=np.int64))
        return self.program

    def inputs(self) -> None:
        """Assign the first cells."""
        function = self.schedule.function
        require_memory(8 * function.n, f"a program of {function.n:,} scalar inputs")
        parts = function.split(np.arange(function.n))
        for node, cells in zip(function.input_nodes, parts, strict=True):
            self.cells[node] = cells if cells.ndim else int(cells)

    def fresh(self) -> int:
        """Return a new cell."""
        self.next += 1
        return self.next - 1

    def constant(self, value: Any) -> int:
        """Return the cell of a constant."""
        key = (type(value), repr(value))
        if key not in self.by_key:
            self.by_key[key] = self.fresh()
            self.program.known[self.by_key[key]] = value
        return self.by_key[key]

    def moved(self, row: Primitive, args: tuple[int, ...], params: dict[str, Any]) -> Any:
        """Apply a row's data movement to the cells; gaps are filled with the constant 0."""
        if row is constant_array:
            raise UnsupportedError("one of its values is a constant array")
        if not (row.structural and args):
            raise UnsupportedError(f"'{row.name}' computes with arrays")
        move = row.at_point(np, params)
        operands = [np.asarray(self.cells[arg]) for arg in args]
        if row in PICKING:
            picked = np.asarray(move(*operands))
            return picked if picked.ndim else int(picked)
        moved = np.asarray(move(*[cells + 1 for cells in operands]))
        if row is scatter:  # each element is moved to one index
            added = np.count_nonzero(moved) < sum([cells.size for cells in operands])
        else:
            count = move(*[np.ones_like(cells) for cells in operands])
            added = np.max(count, initial=0) > 1
        if added:
            raise UnsupportedError(f"'{row.name}' adds up parts of arrays")
        if not np.all(moved):
            moved = np.where(moved == 0, self.constant(0.0) + 1, moved)
        return int(moved) - 1 if moved.ndim == 0 else moved - 1


# --- small functions of arrays, unrolled to scalars ----------------------------------------------
# Elementwise operations are unrolled element by element, sums and matrix products term by term.

_TOO_MANY = "it takes more than {:,} scalar operations"
_LAYERS = 20  # arrays of the largest allowed size that one operation may combine


def unrolled(schedule: Schedule, most: int) -> ScalarProgram:
    """Return a schedule's program of scalar operations, with arrays unrolled.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    most : int
        The largest number of scalar operations.

    Raises
    ------
    UnsupportedError
        There are more operations, an operation cannot be unrolled, or an array is empty.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("W: [1, 2]; x: [2]; tanh(W @ x)")
    >>> [step.row.name for step in unrolled(Schedule.of(f), most=10).steps]
    ['multiply', 'multiply', 'add', 'tanh']
    """
    nodes = [*schedule.function.input_nodes, *(step.node for step in schedule.steps)]
    sizes = [math.prod(schedule.shape(node)) for node in nodes]
    if max(sizes, default=1) > most:
        raise UnsupportedError(_TOO_MANY.format(most))
    if min(sizes, default=1) == 0:
        raise UnsupportedError("one of its arrays is empty")
    return _Unrolled(schedule, ScalarProgram(schedule.function.n), most).filled(schedule.steps)


class _Unrolled(Cells):
    """Unrolls arrays; equal operations on equal cells become one."""

    def __init__(self, schedule: Schedule, program: ScalarProgram, most: int) -> None:
        super().__init__(schedule, program)
        self.most = self.left = most

    def filled(self, steps: Iterable[Step]) -> ScalarProgram:
        """Return the program of steps, elementwise ones on arrays element by element."""
        self.inputs()
        for node, row, args, params in steps:
            if row.shape is None:
                operands = np.broadcast_arrays(*[np.asarray(self.cells[arg]) for arg in args])
                self.cells[node] = self._each(row, operands)
            else:
                self.cells[node] = self.moved(row, args, params)
        return self.finished()

    def moved(self, row: Primitive, args: tuple[int, ...], params: dict[str, Any]) -> Any:
        """Unroll reductions, matrix products and scatters; move cells for the other rows."""
        operands = [np.asarray(self.cells[arg]) for arg in args]
        if row not in _UNROLLED or (row is scatter and not any(cells.ndim for cells in operands)):
            return super().moved(row, args, params)
        return _UNROLLED[row](self, *operands, **params)

    def constants(self, **params: Any) -> CellArray:
        """Return the cells of a constant array."""
        values = constant_array.computer(np)(**params)
        cells = [self.constant(value) for value in values.ravel().tolist()]
        return np.array(cells, dtype=np.int64).reshape(values.shape)

    def _each(self, row: Primitive, operands: Sequence[CellArray]) -> Any:
        """Append an operation for each element of operands of one shape."""
        shape = operands[0].shape
        if math.prod(shape) > self.most + self.left:
            raise UnsupportedError(_TOO_MANY.format(self.most))
        rows = zip(*[operand.ravel().tolist() for operand in operands], strict=True)
        cells = [self._one(row, args) for args in rows]
        return cells[0] if shape == () else np.array(cells, dtype=np.int64).reshape(shape)

    def _one(self, row: Primitive, args: tuple[int, ...]) -> int:
        key = (row, args)
        if key not in self.by_key:
            if not self.left:
                raise UnsupportedError(_TOO_MANY.format(self.most))
            self.left -= 1
            self.by_key[key] = self.fresh()
            self.program.steps.append(ScheduledStep(self.by_key[key], row, args, {}))
        return self.by_key[key]

    def folded(self, row: Primitive, cells: CellArray, axes: Sequence[int]) -> Any:
        """Reduce the cells along some axes pairwise, which limits rounding errors."""
        kept = [axis for axis in range(cells.ndim) if axis - cells.ndim not in axes]
        shape = tuple([cells.shape[axis] for axis in kept])
        last = [axis for axis in range(cells.ndim) if axis not in kept]
        terms = cells.transpose(*kept, *last).reshape(*shape, -1)
        while (size := terms.shape[-1]) > 1:
            pairs = terms[..., : size // 2 * 2].reshape(*shape, -1, 2)
            halved = self._each(row, [pairs[..., 0], pairs[..., 1]])
            terms = np.concatenate([halved, terms[..., size // 2 * 2 :]], axis=-1)
        return int(terms[0]) if shape == () else terms[..., 0]

    def accumulated(self, join: Primitive, *operands: CellArray, axis: int) -> Any:
        """Join each element along an axis to the result before it."""
        *coefficients, terms = [np.moveaxis(cells, axis, 0) for cells in operands]
        results = [terms[0]]
        for position in range(1, len(terms)):
            before = results[-1]
            if coefficients:
                before = np.asarray(self._each(multiply, [coefficients[0][position - 1], before]))
            results.append(np.asarray(self._each(join, [before, terms[position]])))
        return np.moveaxis(np.stack(results), 0, axis)

    def in_order(self, *operands: CellArray, places: Sequence[Any], length: int) -> Any:
        """Add the terms of sums from the first to the last."""
        lead = np.broadcast_shapes(*[cells.shape[:-1] for cells in operands])
        terms = np.empty((*lead, length), dtype=np.int64)
        for cells, bounds in zip(operands, places, strict=True):
            terms[..., slice(*bounds)] = cells
        total = self.accumulated(add, terms, axis=-1)[..., -1]
        return int(total) if lead == () else total

    def put(self, cells: CellArray, *, places: Any, axis: int, size: int, rank: int) -> CellArray:
        """Add each part at its index along an axis."""
        moved = np.moveaxis(cells, axis, 0)
        flat = moved.reshape(len(moved), -1)
        sums: list[list[list[int]]] = [[[] for _ in flat[0]] for _ in range(size)]
        for position, row in zip(indices(places).tolist(), flat.tolist(), strict=True):
            for terms, cell in zip(sums[position], row, strict=True):
                terms.append(cell)
        added = np.array([[self._sum(terms) for terms in row] for row in sums], dtype=np.int64)
        return np.moveaxis(added.reshape(size, *moved.shape[1:]), 0, axis)

    def scattered(self, *operands: CellArray, **params: Any) -> Any:
        """Scatter each array into a larger one, and add up where they overlap."""
        if len(operands) * math.prod(params["shape"]) > _LAYERS * self.most:
            raise UnsupportedError(_TOO_MANY.format(self.most))
        layers = []
        for chosen in range(len(operands)):
            # Only one array holds cells, counted from 1: 0 marks elements that it does not reach.
            parts = [(cells + 1) * (k == chosen) for k, cells in enumerate(operands)]
            layers.append(np.asarray(scatter.computer(np)(*parts, **params)))
        places = np.stack(layers, axis=-1).reshape(-1, len(layers))
        sums = [self._sum([cell - 1 for cell in cells if cell]) for cells in places.tolist()]
        return np.array(sums, dtype=np.int64).reshape(layers[0].shape)

    def _sum(self, cells: list[int]) -> int:
        while len(cells) > 1:
            cells = [*cells[2:], self._one(add, (cells[0], cells[1]))]
        return cells[0] if cells else self.constant(0.0)

    def product(self, a: CellArray, b: CellArray, *, ranks: Any) -> Any:
        """Multiply matrices or vectors."""
        rows = a[..., :, None, :] if a.ndim > 1 else a[None, None, :]
        columns = b.swapaxes(-1, -2)[..., None, :, :] if b.ndim > 1 else b[None, None, :]
        terms = self._each(multiply, np.broadcast_arrays(rows, columns))
        summed = self.folded(add, terms, (-1,))
        summed = summed[..., 0] if b.ndim == 1 else summed
        if a.ndim == 1:
            summed = summed[0] if b.ndim == 1 else summed[..., 0, :]
        return int(summed) if summed.ndim == 0 else summed


_UNROLLED: dict[Primitive, Callable[..., Any]] = {
    constant_array: _Unrolled.constants,
    matmul: _Unrolled.product,
    put: _Unrolled.put,
    scatter: _Unrolled.scattered,
    sum_in_order: _Unrolled.in_order,
    cumprod: lambda own, x, axes, rank: own.accumulated(multiply, x, axis=axes[0]),
    cumsum: lambda own, x, axes, rank: own.accumulated(add, x, axis=axes[0]),
    linear_recurrence: lambda own, a, b, axes, rank: own.accumulated(add, a, b, axis=axes[0]),
    max_: lambda own, x, axes, rank: own.folded(maximum, x, axes),
    min_: lambda own, x, axes, rank: own.folded(minimum, x, axes),
    prod: lambda own, x, axes, rank: own.folded(multiply, x, axes),
    sum_: lambda own, x, axes, rank: own.folded(add, x, axes),
}
"""How each row is unrolled, with the arguments of its kernel; others move cells."""


# --- values of batches ---------------------------------------------------------------------------


def point_by_point(value: Any, shape: Shape, batch: Shape) -> NDArray[Any]:
    """Return an input's value in shape ``(points, elements)``, broadcast over the batch.

    Examples
    --------
    >>> point_by_point(5.0, (), (3,)).tolist()
    [[5.0], [5.0], [5.0]]
    """
    return spread(value, batch + shape).reshape(math.prod(batch), math.prod(shape))


def spread(value: Any, shape: Shape) -> NDArray[Any]:
    """Return a value broadcast to a shape; the value itself, not a view, if it has that shape.

    Examples
    --------
    >>> spread(np.array(5.0), (3,))
    array([5., 5., 5.])
    """
    array: NDArray[Any] = value
    return array if getattr(value, "shape", None) == shape else np.broadcast_to(value, shape)


def batch_first(store: NDArray[Any], shape: Shape, batch: Shape) -> NDArray[Any]:
    """Return an output stored as ``(elements, points)`` in the shape ``batch + shape``.

    Examples
    --------
    >>> batch_first(np.arange(6).reshape(2, 3), (2,), (3,)).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    if len(batch) == 1 and len(shape) <= 1:  # the usual case, five times as fast
        return store.T if shape else store[0]
    axes = (*range(len(shape), len(shape) + len(batch)), *range(len(shape)))
    return store.reshape(shape + batch).transpose(axes)

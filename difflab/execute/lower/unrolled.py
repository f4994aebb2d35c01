"""A small function of arrays unrolled into a program of scalar operations.

Elementwise operations are unrolled element by element, sums and matrix products term by term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.schedule import Cells, ScalarProgram, Schedule, ScheduledStep, Step
from difflab.primitives import (
    add,
    constant_array,
    cumprod,
    cumsum,
    linear_recurrence,
    matmul,
    max_,
    maximum,
    min_,
    minimum,
    multiply,
    prod,
    put,
    scatter,
    sum_,
    sum_in_order,
)
from difflab.primitives.movement import indices

Numbers = NDArray[np.int64]
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
        self.most = most

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

    def constants(self, **params: Any) -> Numbers:
        """Return the cells of a constant array."""
        values = constant_array.computer(np)(**params)
        cells = [self.constant(value) for value in values.ravel().tolist()]
        return np.array(cells, dtype=np.int64).reshape(values.shape)

    def _each(self, row: Primitive, operands: Sequence[Numbers]) -> Any:
        """Append an operation for each element of operands of one shape."""
        shape = operands[0].shape
        if math.prod(shape) + len(self.program.steps) > 2 * self.most:
            raise UnsupportedError(_TOO_MANY.format(self.most))
        rows = zip(*[operand.ravel().tolist() for operand in operands], strict=True)
        cells = [self._one(row, args) for args in rows]
        return cells[0] if shape == () else np.array(cells, dtype=np.int64).reshape(shape)

    def _one(self, row: Primitive, args: tuple[int, ...]) -> int:
        key = (row, args)
        if key not in self.found:
            if len(self.program.steps) >= self.most:
                raise UnsupportedError(_TOO_MANY.format(self.most))
            self.found[key] = self.fresh()
            self.program.steps.append(ScheduledStep(self.found[key], row, args, {}))
        return self.found[key]

    def folded(self, row: Primitive, cells: Numbers, axes: Sequence[int]) -> Any:
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

    def accumulated(self, join: Primitive, *operands: Numbers, axis: int) -> Any:
        """Join each element along an axis to the result before it."""
        *coefficients, terms = [np.moveaxis(cells, axis, 0) for cells in operands]
        found = [terms[0]]
        for place in range(1, len(terms)):
            before = found[-1]
            if coefficients:
                before = np.asarray(self._each(multiply, [coefficients[0][place - 1], before]))
            found.append(np.asarray(self._each(join, [before, terms[place]])))
        return np.moveaxis(np.stack(found), 0, axis)

    def in_order(self, *operands: Numbers, places: Sequence[Any], length: int) -> Any:
        """Add the terms of sums from the first to the last."""
        lead = np.broadcast_shapes(*[cells.shape[:-1] for cells in operands])
        terms = np.empty((*lead, length), dtype=np.int64)
        for cells, place in zip(operands, places, strict=True):
            terms[..., slice(*place)] = cells
        total = terms[..., 0]
        for position in range(1, length):
            total = np.asarray(self._each(add, [total, terms[..., position]]))
        return int(total) if lead == () else total

    def put(self, cells: Numbers, *, places: Any, axis: int, size: int, rank: int) -> Numbers:
        """Add each part at its index along an axis."""
        moved = np.moveaxis(cells, axis, 0)
        flat = moved.reshape(len(moved), -1)
        sums: list[list[list[int]]] = [[[] for _ in flat[0]] for _ in range(size)]
        for place, row in zip(indices(places).tolist(), flat.tolist(), strict=True):
            for found, cell in zip(sums[place], row, strict=True):
                found.append(cell)
        added = np.array([[self._sum(found) for found in row] for row in sums], dtype=np.int64)
        return np.moveaxis(added.reshape(size, *moved.shape[1:]), 0, axis)

    def scattered(self, *operands: Numbers, **params: Any) -> Any:
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

    def product(self, a: Numbers, b: Numbers, *, ranks: Any) -> Any:
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

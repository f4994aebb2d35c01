"""A function's values in mpmath, computed again only where an input has moved.

A referee moves one input at a time, and most of a large function does not depend on it: all
values at the unmoved point are kept, for every precision, and a moved point costs only the steps
that the moved inputs reach. Arrays are taken apart into numbers, and long sums are added as
trees, so that each term is a few additions from the total.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import FIRST_ROW
from difflab.graph.repetition import balanced
from difflab.primitives import add, multiply, negative, subtract
from difflab.referee.forms import RefereeProgram, referee_program
from difflab.referee.ulp import nearest

__all__ = ["ExactValues", "TimeSpent"]

MpReal = Any  # an mpmath number
_KEPT = 1_000_000  # values kept in all; beyond it, high precision would fill the memory
_OFTEN = 256  # steps between two looks at the clock
_NUMBER = 5e-6  # seconds that an operation takes for each number of an array, at least


# Exact operations of mpmath, which neither raise nor leave the real numbers.
_PLAIN: dict[Primitive, Callable[..., Any]] = {
    add: operator.add,
    multiply: operator.mul,
    negative: operator.neg,
    subtract: operator.sub,
}
_Operation = tuple[Callable[..., Any], tuple[int, ...], dict[str, Any]]


class TimeSpent(Exception):
    """The time was over in the middle of an evaluation."""


class ExactValues:
    """The function as a map of mpmath numbers, at the precision in force.

    Call it with the ``n`` packed inputs; the flattened outputs come back. Inputs that are the
    same objects as in the first call at this precision count as not moved.

    Attributes
    ----------
    until : float
        The reading of the clock after which an evaluation is given up.

    Examples
    --------
    >>> import difflab as dl, mpmath
    >>> values = ExactValues(dl.parse("x*y + y"))
    >>> values([mpmath.mpf(2), mpmath.mpf(5)])
    [mpf('15.0')]
    >>> values.reached(0)
    [0]
    """

    def __init__(self, function: Function, nudge: Callable[[float], float] | None = None) -> None:
        self.function = function
        self.until = math.inf
        self._nudge = nudge
        self._interpreter = MpmathInterpreter()
        self._inner = balanced(function)
        self._program: RefereeProgram = referee_program(self._inner)
        self._arrays = bool(self._program.shapes)
        self._code: dict[int, _Operation] = {
            place: (self._function(step.row), step.args, step.params)
            for place, step in self._program.steps.items()
        }
        self._precision = 0
        self._kept: dict[int, tuple[Sequence[MpReal], list[Any]]] = {}
        self._cone: tuple[tuple[int, ...], list[int]] = ((), [])

    def __call__(self, point: Sequence[MpReal]) -> list[MpReal]:
        """Return the flattened outputs at `point`."""
        base, values = self._based(point)
        pairs = enumerate(zip(point, base, strict=True))
        moved = {position: new for position, (new, old) in pairs if new is not old}
        outputs = self._read(values, self._program.outputs)
        if moved:
            outputs |= self.near(base, moved)
        return [outputs[row] for row in range(self.function.m)]

    def near(self, base: Sequence[MpReal], moved: Mapping[int, MpReal]) -> dict[int, MpReal]:
        """Return the flattened outputs that move when some inputs do, by their rows.

        Parameters
        ----------
        base : sequence of mpf
            The packed inputs that `__call__` was first given at this precision.
        moved : mapping of int to mpf
            The inputs that are not there, and where they are.
        """
        _, values = self._based(base)
        key = tuple(moved)
        if key != self._cone[0]:
            self._cone = (key, self._program.reach(key))
        cone = self._cone[1]
        inputs = {self._program.inputs[position][0] for position in key}
        before = [(place, values[place]) for place in (*inputs, *cone)]
        try:
            self._move(values, moved)
            self._evaluate(values, cone)
            return self._read(values, (*inputs, *cone))
        finally:
            for place, value in before:
                values[place] = value

    def _based(self, point: Sequence[MpReal]) -> tuple[Sequence[MpReal], list[Any]]:
        """Return the first point at this precision, with all values there."""
        precision = self._interpreter.mp.prec
        if precision not in self._kept:
            values: list[Any] = [None] * self._program.size
            for place, (number, name) in self._program.constants.items():
                values[place] = self._constant(number, name)
            self._place(values, point)
            self._evaluate(values, self._program.steps)
            if len(self._kept) * self._program.size > _KEPT:
                self._kept.clear()
            self._kept[precision] = (list(point), values)
        self._precision = precision
        return self._kept[precision]

    def _place(self, values: list[Any], point: Sequence[MpReal]) -> None:
        """Put the packed inputs where the steps take them: as numbers, or as arrays."""
        if any(within >= 0 for _, within in self._program.inputs):
            parts = self.function.split(np.array(point, dtype=object))
            for node, part in zip(self._inner.input_nodes, parts, strict=True):
                values[node] = part if part.shape else part.item()
            return
        for (place, _), number in zip(self._program.inputs, point, strict=True):
            values[place] = number

    def _move(self, values: list[Any], moved: Mapping[int, MpReal]) -> None:
        """Put the moved numbers into the inputs that they are, or are parts of."""
        copied: set[int] = set()
        for position, number in moved.items():
            place, within = self._program.inputs[position]
            if within < 0:
                values[place] = number
                continue
            if place not in copied:
                values[place] = values[place].copy()
                copied.add(place)
            values[place].flat[within] = number

    def reached(self, position: int) -> list[int]:
        """Return the flattened outputs that are made of the packed input `position`."""
        key = (position,)
        if key != self._cone[0]:
            self._cone = (key, self._program.reach(key))
        outputs = self._program.outputs
        places = (self._program.inputs[position][0], *self._cone[1])
        found = [output for place in places for output in outputs.get(place, ())]
        return sorted({row for output in found for row in output.rows})

    def _evaluate(self, values: list[Any], places: Any) -> None:
        """Fill in the values of steps, which are in topological order."""
        code = self._code
        for count, place in enumerate(places, 1):
            operation, args, params = code[place]
            if self._arrays or not count % _OFTEN:
                self._look(math.prod(self._program.shapes[place]) if self._arrays else 0)
            given = [values[arg] for arg in args]
            values[place] = operation(*given, **params) if params else operation(*given)

    def _look(self, numbers: int) -> None:
        """Raise when the time is over, or would be after an operation on so many numbers."""
        if perf_counter() + _NUMBER * numbers > self.until:
            raise TimeSpent

    def _function(self, row: Primitive) -> Callable[..., Any]:
        """Return what computes a row; sums and products need no guards on single numbers."""
        if not self._arrays and row in _PLAIN:
            return _PLAIN[row]
        return self._interpreter.operation(row)

    def _constant(self, number: float, name: str | None) -> MpReal:
        """Return the literal as the double that it is; integers and names have no rounding."""
        value = self._interpreter.constant(number, name)
        if self._nudge is None or name is not None or isinstance(number, int):
            return value
        return value + self._interpreter.mp.mpf(self._nudge(number))

    def magnitude(self) -> float:
        """Return the largest size that a number computed on the way has at the last base point."""
        if self._precision not in self._kept:
            return 0.0
        base, values = self._kept[self._precision]
        computed: Any = (values[place] for place in self._program.steps)
        if self._inner is not self.function:
            # The partial sums are those of the function as it is written.
            point = np.array([nearest(number) for number in base])
            inputs = dict(zip(self.function.input_nodes, self.function.split(point), strict=True))
            rows = self.function.graph.rows()
            with np.errstate(all="ignore"):
                values = fold_all(self.function.graph, inputs, ArrayInterpreter())
            computed = (
                v for (opcode, _), v in zip(rows, values, strict=False) if opcode >= FIRST_ROW
            )
        largest = 0.0
        for value in computed:
            for part in np.ravel(value) if isinstance(value, np.ndarray) else (value,):
                size = abs(nearest(part))
                if largest < size < math.inf:
                    largest = size
        return largest

    def nudged(self, nudge: Callable[[float], float]) -> ExactValues:
        """Return the same function with every decimal literal moved by ``nudge(literal)``."""
        return ExactValues(self.function, nudge)

    def _read(self, values: list[Any], places: Any) -> dict[int, MpReal]:
        """Return the flattened outputs among some values, by their rows."""
        found: dict[int, MpReal] = {}
        for place in places:
            for rows, shape in self._program.outputs.get(place, ()):
                value = values[place]
                if shape:
                    value = np.broadcast_to(np.asarray(value, dtype=object), shape)
                    found.update(zip(rows, value.ravel().tolist(), strict=True))
                else:
                    found[rows[0]] = value.item() if isinstance(value, np.ndarray) else value
        return found

"""A function's values in mpmath, re-evaluated only where an input has moved.

The referee moves one input at a time, and most of a large function does not depend on it: all
values at the unmoved point are stored for every precision, and a moved point costs only the steps
that depend on the moved inputs. Arrays are split into scalars, and long sums are added as trees, so
that each term is a few additions away from the total. The precision of the values is that of a
context that belongs to one referee alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from time import perf_counter
from types import FunctionType
from typing import Any

import numpy as np

from difflab.balls import limit
from difflab.core.primitive import Primitive
from difflab.graph.control import Loop
from difflab.graph.counts import operation_count
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import FIRST_ROW
from difflab.graph.repetition import balanced
from difflab.primitives import TABLE
from difflab.referee.forms import RefereeProgram, referee_program
from difflab.referee.ulp import nearest

MpReal = Any  # an mpmath number
_KEPT = 1_000_000  # values that are stored at most, which bounds the memory
_OFTEN = 256  # steps between two checks of the clock
_ELEMENT = 5e-6  # minimum seconds of an operation for each element of an array


SLOW = limit.SLOW | frozenset(
    TABLE[name]
    for name in (
        *("cos_remainder", "cosh_remainder", "exp_remainder", "log_remainder"),
        *("dawsn_derivative", "erfcx_derivative", "log_ndtr_derivative", "polygamma_difference"),
    )
)
"""Rows with parameters for which a call of mpmath may take minutes."""

_Operation = tuple[Callable[..., Any], tuple[int, ...], dict[str, Any]]

STIRLING = 1000
"""Bits from which Stirling's series computes the gamma function in these contexts.

mpmath's default, a table of Taylor coefficients up to 5000 bits, costs seconds for every precision.
"""
_GAMMA = {
    "gamma": "gamma",
    "rgamma": "rgamma",
    "loggamma": "loggamma",
    "fac": "factorial",
    "factorial": "factorial",
    "digamma": "psi0",
    "harmonic": "harmonic",
    "_zeta": "zeta",
    "_altzeta": "altzeta",
}
"""Functions of a context, and what mpmath calls those that compute them."""


class BudgetSpent(Exception):
    """The time budget is exhausted."""


class ExactValues:
    """The function evaluated on mpmath values, at the precision of their context.

    It is called with the ``n`` packed inputs and returns the flattened outputs. Inputs that are
    the same objects as in the first call at this precision count as unmoved.

    Parameters
    ----------
    function : Function
        The function.
    nudge : callable, optional
        Added to each decimal literal.
    context : MPContext, optional
        The context of the values; by default that of the module mpmath.

    Attributes
    ----------
    slow : bool
        Whether one operation may take longer than any time limit, which `until` does not stop.
    until : float
        The clock time (`time.perf_counter`) at which an evaluation is stopped.

    Examples
    --------
    >>> import difflab as dl, mpmath
    >>> values = ExactValues(dl.parse("x*y + y"))
    >>> values([mpmath.mpf(2), mpmath.mpf(5)])
    [mpf('15.0')]
    >>> values.reached(0)
    [0]
    """

    def __init__(
        self,
        function: Function,
        nudge: Callable[[float], float] | None = None,
        context: Any = None,
    ) -> None:
        self.function = function
        self.until = math.inf
        self.slow = not SLOW.isdisjoint(function.graph.primitives)
        self._nudge = nudge
        self._interpreter = MpmathInterpreter(context)
        self.mp = self._interpreter.mp
        self._inner = balanced(function)
        self._program: RefereeProgram = referee_program(self._inner)
        self._arrays = bool(self._program.shapes)
        # The number of elements that a step computes, as far as it is known in advance.
        self._sizes = dict.fromkeys(self._program.steps, 1)
        if self._arrays:
            self._sizes = {slot: self._size(slot, s.row) for slot, s in self._program.steps.items()}
        self._code: dict[int, _Operation] = {
            slot: (
                self._operation(step.row),
                step.args,
                step.params,
            )
            for slot, step in self._program.steps.items()
        }
        self._precision = 0
        self._kept: dict[int, tuple[Sequence[MpReal], list[Any]]] = {}
        self._cone: tuple[tuple[int, ...], list[int]] = ((), [])

    def _operation(self, row: Primitive) -> Callable[..., Any]:
        """Return the function of a row, without guards where it never raises and is real."""
        plain = not self._arrays and (row.signs or row.degrees == (1, 1))
        if plain and row.unbatched is not None:
            operator: Callable[..., Any] = row.unbatched(self.mp)
            return operator
        return self._interpreter.operation(row)

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
        """Return the flattened outputs that depend on moved inputs, keyed by row.

        Parameters
        ----------
        base : sequence of mpf
            The packed inputs of the first `__call__` at this precision.
        moved : mapping of int to mpf
            The positions of the moved inputs and their new values.
        """
        _, values = self._based(base)
        key = tuple(moved)
        if key != self._cone[0]:
            self._cone = (key, self._program.reach(key))
        cone = self._cone[1]
        inputs = {self._program.inputs[position][0] for position in key}
        before = [(slot, values[slot]) for slot in (*inputs, *cone)]
        try:
            self._move(values, moved)
            self._evaluate(values, cone)
            return self._read(values, (*inputs, *cone))
        finally:
            for slot, value in before:
                values[slot] = value

    def _based(self, point: Sequence[MpReal]) -> tuple[Sequence[MpReal], list[Any]]:
        """Return the first point at this precision, with all values there."""
        precision = self.mp.prec
        if precision not in self._kept:
            values: list[Any] = [None] * self._program.size
            for slot, (number, name) in self._program.constants.items():
                values[slot] = self._constant(number, name)
            self._place(values, point)
            self._evaluate(values, self._program.steps)
            if len(self._kept) * self._program.size > _KEPT:
                self._kept.clear()
            self._kept[precision] = (list(point), values)
        self._precision = precision
        return self._kept[precision]

    def _place(self, values: list[Any], point: Sequence[MpReal]) -> None:
        """Store the packed inputs in their slots, as scalars or as arrays."""
        if any(within >= 0 for _, within in self._program.inputs):
            parts = self.function.split(np.array(point, dtype=object))
            for node, part in zip(self._inner.input_nodes, parts, strict=True):
                values[node] = part if part.shape else part.item()
            return
        for (slot, _), number in zip(self._program.inputs, point, strict=True):
            values[slot] = number

    def _move(self, values: list[Any], moved: Mapping[int, MpReal]) -> None:
        """Store the moved inputs in their slots, or in copies of the arrays that contain them."""
        copied: set[int] = set()
        for position, number in moved.items():
            slot, within = self._program.inputs[position]
            if within < 0:
                values[slot] = number
                continue
            if slot not in copied:
                values[slot] = values[slot].copy()
                copied.add(slot)
            values[slot].flat[within] = number

    def reached(self, position: int) -> list[int]:
        """Return the flattened outputs that depend on the packed input `position`."""
        key = (position,)
        if key != self._cone[0]:
            self._cone = (key, self._program.reach(key))
        outputs = self._program.outputs
        slots = (self._program.inputs[position][0], *self._cone[1])
        reached = [output for slot in slots for output in outputs.get(slot, ())]
        return sorted({row for output in reached for row in output.rows})

    def _evaluate(self, values: list[Any], slots: Any) -> None:
        """Compute the values of steps, given in topological order."""
        code = self._code
        for count, slot in enumerate(slots, 1):
            operation, args, params = code[slot]
            if self._arrays or not count % _OFTEN:
                self._check_time(self._sizes[slot] if self._arrays else 0)
            operands = [values[arg] for arg in args]
            values[slot] = operation(*operands, **params) if params else operation(*operands)

    def _size(self, slot: int, row: Primitive) -> int:
        if isinstance(row.holds, Loop):
            return row.holds.steps * operation_count(row.holds.body)
        return math.prod(self._program.shapes[slot])

    def seconds(self) -> float:
        """Return about how long one evaluation takes at the least, as far as sizes determine it."""
        return _ELEMENT * sum(self._sizes.values())

    def _check_time(self, elements: int) -> None:
        """Raise `BudgetSpent` if an operation on `elements` elements would end after `until`."""
        if perf_counter() + _ELEMENT * elements > self.until:
            raise BudgetSpent

    def _constant(self, number: float, name: str | None) -> MpReal:
        """Return a constant in mpmath, nudged unless it is an integer or has a name."""
        value = self._interpreter.constant(number, name)
        if self._nudge is None or name is not None or isinstance(number, int):
            return value
        return value + self.mp.mpf(self._nudge(number))

    def magnitude(self) -> float:
        """Return the largest magnitude of a computed value at the last base point."""
        if self._precision not in self._kept:
            return 0.0
        base, values = self._kept[self._precision]
        computed: Any = (values[slot] for slot in self._program.steps)
        if self._inner is not self.function:
            # Use the partial sums of the function as written, not of the balanced trees.
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
        """Return the same function with ``nudge(literal)`` added to every decimal literal."""
        return ExactValues(self.function, nudge, self.mp)

    def _read(self, values: list[Any], slots: Any) -> dict[int, MpReal]:
        """Return the flattened outputs among the values at `slots`, keyed by row."""
        outputs: dict[int, MpReal] = {}
        for slot in slots:
            for rows, shape in self._program.outputs.get(slot, ()):
                value = values[slot]
                if shape:
                    value = np.broadcast_to(np.asarray(value, dtype=object), shape)
                    outputs.update(zip(rows, value.ravel().tolist(), strict=True))
                else:
                    outputs[rows[0]] = value.item() if isinstance(value, np.ndarray) else value
        return outputs


def own_context() -> Any:
    """Return a context of mpmath with a precision of its own.

    Examples
    --------
    >>> import mpmath
    >>> mp = own_context()
    >>> with mp.workdps(40):
    ...     print(mp.sqrt(2), mpmath.sqrt(2))
    1.41421356237309504880168872420969807857 1.4142135623731
    """
    from mpmath.ctx_mp import MPContext

    mp = MPContext()
    functions = _by_stirling()
    for name, computed in _GAMMA.items():
        real, complex_ = functions[f"mpf_{computed}"], functions[f"mpc_{computed}"]
        setattr(mp, name, mp._wrap_libmp_function(real, complex_))
    return mp


class _Tables(dict[int, Any]):
    """A cache that one thread may extend while another one iterates over it, as mpmath does."""

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self.keys()))


@cache
def _by_stirling() -> dict[str, Callable[..., Any]]:
    """Return copies of mpmath's functions around gamma, which take its series from `STIRLING` on.

    They read the limit as a global variable of their module, which other threads read too.
    """
    from mpmath.libmp import gammazeta

    module = vars(gammazeta)
    copies = {**module, "MAX_GAMMA_TAYLOR_PREC": STIRLING, "gamma_taylor_cache": _Tables()}
    for name, function in module.items():
        if isinstance(function, FunctionType) and function.__globals__ is module:
            code, defaults, cells = function.__code__, function.__defaults__, function.__closure__
            copies[name] = FunctionType(code, copies, name, defaults, cells)
    return copies


def shared(number: Any) -> Any:
    """Return a real number of any context as one of `mpmath.mp`, without rounding.

    Examples
    --------
    >>> import mpmath
    >>> isinstance(shared(own_context().mpf(2)), mpmath.mpf)
    True
    """
    import mpmath

    return mpmath.mp.make_mpf(number._mpf_)


def exact_number(value: float) -> Any:
    """Return a float64 as a number of `mpmath.mp`, without rounding to the precision in force."""
    import mpmath

    return mpmath.mp.make_mpf(mpmath.libmp.from_float(value))

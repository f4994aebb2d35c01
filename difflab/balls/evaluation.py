"""A function on balls, at a working precision, with derivatives up to order 2.

The derivatives are those of the function's values: a rule that a user gave is not called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.balls import (
    arrays,
    distributions,
    elementary,
    reductions,
    roots,
    special,
)
from difflab.balls.jets import Fault, Jet, Truth, Undecided, jet
from difflab.balls.library import Ball, arb, exactly, precision
from difflab.balls.limit import within
from difflab.balls.slopes import Recorded, Slopes, swept
from difflab.core.primitive import Custom, Primitive
from difflab.errors import UnsupportedError
from difflab.graph.control import Solution
from difflab.graph.evaluate import Fold, fold_all
from difflab.graph.expansion import expansion_value, prepared_expansion
from difflab.graph.function import Function
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import Number
from difflab.primitives import TABLE, constant_array

PRECISIONS = (80, 160, 320, 640, 1280, 2560, 5120)
"""Bits to compute with, one after the other, until a result is as sharp as requested."""

FRACTIONS_FROM = 320
"""Bits from which rational operations are exact: a cancellation may be complete."""

MANY = 32
"""Inputs for each output above which slopes are recorded, and added up in reverse."""

PREPARED = 10_000
"""Nodes of a graph up to which its evaluation is prepared for further points."""

HOMES: tuple[ModuleType, ...] = (
    elementary,
    special,
    distributions,
    reductions,
    arrays,
)
NAMES = {name for row in TABLE.values() for name in (row.name, row.flint) if isinstance(name, str)}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: form for home in reversed(HOMES) for name, form in vars(home).items() if name in NAMES
}
"""The functions of balls by the names of rows, or those in their column `flint`."""


class BallInterpreter(ElementInterpreter):
    """Values are expansions whose coefficients are balls, and arrays of them.

    Parameters
    ----------
    exact : bool
        Whether values are fractions, so that rational operations are exact.

    Examples
    --------
    >>> from difflab.primitives import sin
    >>> BallInterpreter().operation(sin)(Jet(arb(0)))
    Jet(0, {}, None, None)
    """

    def __init__(self, exact: bool = False) -> None:
        super().__init__()
        self.exact = exact

    def constant(self, value: Number, name: str | None) -> Jet:
        """Return the number exactly: ``pi`` and ``e`` at the working precision."""
        if name:
            return Jet(arb.pi() if name == "pi" else arb.const_e())
        ball = jet(value)
        return Jet(exactly(ball.value)) if self.exact else ball

    def _make(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.holds is not None:
            return partial(_controlled, self, primitive)
        if isinstance(primitive.rule, Custom):
            if primitive.expansion is None:
                raise UnsupportedError(
                    f"{primitive.name} cannot be recorded, so it can only be evaluated in float64"
                )
            return lambda *args: expansion_value(primitive, args, self)
        return super()._make(primitive)

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive is constant_array:
            return partial(_constants, self)
        return within(_form(primitive) or super()._whole(primitive))

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        form = _form(primitive)
        return within(form or prepared_expansion(primitive, self))


def _form(primitive: Primitive) -> Callable[..., Any] | None:
    """Return the function of balls of a primitive's name, or else of its column `flint`."""
    stated = primitive.flint
    if primitive.name in FUNCTIONS:
        return FUNCTIONS[primitive.name]
    if not isinstance(stated, str):
        return partial(stated, elementary) if callable(stated) else None
    if stated not in FUNCTIONS:
        raise UnsupportedError(f"FLINT has no function for '{primitive.name}'")
    return FUNCTIONS[stated]


def _constants(on: BallInterpreter, *, shape: tuple[int, ...], values: bytes) -> Any:
    """Return a constant array of balls."""
    numbers = np.frombuffer(values, dtype=np.float64).tolist()
    balls = (on.constant(number, None) for number in numbers)
    return np.fromiter(balls, dtype=object).reshape(shape)


def _controlled(on: BallInterpreter, primitive: Primitive, *args: Any) -> Any:
    """Compute a loop or a choice, whose predicates must be decided."""
    control = primitive.holds
    shapes = control.output_shapes
    try:
        if isinstance(control, Solution) and hasattr(control.rule, "equations"):
            results = roots.solved(on, control, args)
        else:
            results = control.run(on, args, ())
    except Undecided as undecided:
        unknown = Jet(arb.nan(), fault=undecided.fault)
        results = [np.full(shape, unknown, dtype=object)[()] for shape in shapes]
    if control.single:
        return results[0]
    return np.concatenate([np.asarray(result, dtype=object).ravel() for result in results])


def _seeds(
    balls: Sequence[Ball],
    order: int,
    exact: bool,
    wrt: Collection[int] | None = None,
    recorded: bool = False,
) -> list[Jet]:
    """Return the inputs as expansions of an order, the balls as fractions if they are exact."""
    moved = range(len(balls)) if wrt is None else wrt
    one = exactly(arb(1)) if exact else arb(1)
    values = [exactly(ball) for ball in balls] if exact else balls
    slopes: list[Slopes | None] = [None] * len(balls)
    for place in moved if order else ():
        slopes[place] = Recorded((one, place)) if recorded else {place: one}
    return [
        Jet(value, slope, {} if order == 2 else None)
        for value, slope in zip(values, slopes, strict=True)
    ]


def evaluated(
    function: Function,
    balls: Sequence[Ball],
    bits: int,
    order: int = 0,
    wrt: Collection[int] | None = None,
) -> list[Jet]:
    """Return the flattened outputs as expansions about all points of a box.

    Parameters
    ----------
    function : Function
        The function.
    balls : sequence of arb, length n
        The flattened inputs.
    bits : int
        The working precision; from `FRACTIONS_FROM`, rational operations are exact.
    order : int
        How many derivatives: 0, 1 or 2.
    wrt : collection of int, optional
        The inputs to differentiate with respect to; all of them by default.

    Examples
    --------
    >>> import difflab as dl
    >>> (y,) = evaluated(dl.parse("x*exp(x)"), [arb(1)], 80, order=1)
    >>> float(y.value), float(y.slopes[0]), float(y.value.rad()) < 1e-22
    (2.718281828459045, 5.43656365691809, True)
    """
    with precision(bits):
        return evaluator(function, bits, order, wrt)(balls)


def evaluator(
    function: Function, bits: int, order: int, wrt: Collection[int] | None = None
) -> Callable[[Sequence[Ball]], list[Jet]]:
    """Return `evaluated` for many points, to be called at that precision."""
    exact = bits >= FRACTIONS_FROM
    key = f"balls of {bits} bits"  # constants are computed once
    step: Fold | None = function.derived_cache.get(key)
    if step is None:
        step = Fold(function.graph, function.outputs, BallInterpreter(exact))
        function.derived_cache[key] = step
    compute = step.again if len(function.graph) < PREPARED else step

    moved = function.n if wrt is None else len(wrt)
    recorded = order == 1 and moved > MANY * function.m

    def outputs(balls: Sequence[Ball]) -> list[Jet]:
        seeds = _seeds(balls, order, exact, wrt, recorded)
        expansions = _flattened(function, compute(_environment(function, seeds)))
        if not recorded:
            return expansions
        return [Jet(out.value, swept(out.slopes), None, out.fault) for out in expansions]

    return outputs


def _environment(function: Function, inputs: Sequence[Jet]) -> dict[int, Any]:
    """Return the value of each input node."""
    parts = function.split(np.fromiter(inputs, dtype=object))
    return {node: part[()] for node, part in zip(function.input_nodes, parts, strict=True)}


def _flattened(function: Function, values: Sequence[Any]) -> list[Jet]:
    jets: list[Jet] = []
    for value, shape in zip(values, function.output_shapes, strict=True):
        if isinstance(value, Jet):
            jets += [value] * math.prod(shape)
            continue
        whole = np.broadcast_to(np.asarray(value, dtype=object), shape)
        jets += map(jet, whole.ravel().tolist())
    return jets


@dataclass(frozen=True)
class FaultNode:
    """A fault and the node of the graph where it arose."""

    fault: Fault
    node: int


def fault_nodes(
    function: Function, balls: Sequence[Ball], bits: int, order: int
) -> list[FaultNode | None]:
    """Return for each flattened output why it has no derivative, and the node where that arose."""
    exact = bits >= FRACTIONS_FROM
    with precision(bits):
        environment = _environment(function, _seeds(balls, order, exact))
        values = fold_all(function.graph, environment, BallInterpreter(exact))
        outputs = _flattened(function, [values[node] for node in function.outputs])
    first: dict[int, int] = {}
    for node in range(len(values) - 1, -1, -1):
        value = values[node]
        for entry in value.ravel().tolist() if isinstance(value, np.ndarray) else (value,):
            if isinstance(entry, Jet | Truth) and entry.fault is not None:
                first[id(entry.fault)] = node
    return [
        None if out.fault is None else FaultNode(out.fault, first[id(out.fault)]) for out in outputs
    ]

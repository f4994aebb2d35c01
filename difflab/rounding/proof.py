"""Proof of an error budget by ball arithmetic.

The computed result of every operation is its exact result plus an error of at most δᵢ. By the mean
value theorem the error of an output is ∑ āᵢ eᵢ, |eᵢ| ≤ δᵢ, with adjoints āᵢ at numbers between the
exact and the computed ones. Ball arithmetic encloses those: each result is a ball that is widened
by its δᵢ. The sum of sup|āᵢ| δᵢ, less that of the first order, is the remainder. The error itself
is that of the computed numbers against FLINT's values and derivatives, which use no rule of
difflab.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.evaluation import PRECISIONS, evaluated
from difflab.balls.interpreter import BallInterpreter
from difflab.balls.jets import Jet, Truth, Undecided
from difflab.balls.library import Ball, arb, precision, upward
from difflab.balls.limit import time_limit
from difflab.core.primitive import Primitive
from difflab.errors import DifflabError, UnsupportedError
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph

__all__ = ["SECONDS", "distances", "exact_results", "largest_adjoints"]

Array = NDArray[np.float64]
SECONDS = 20.0
"""Time limit of each part of a proof."""
SHARP = 2.0**-20
"""Radius of an enclosure relative to the error that it is to show."""
WIDER = 1 + 8 * SHARP
"""So that a measured error is a bound of what another enclosure shows of it."""


def _lifted(value: Any) -> Any:
    """Return numbers as exact balls; truth values are unchanged."""
    array = np.asarray(value)
    if array.dtype == np.bool_:
        return value if array.ndim else bool(value)
    flat = [Jet(arb(number)) for number in array.astype(np.float64).ravel().tolist()]
    if not array.ndim:
        return flat[0]
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found.reshape(array.shape)


def _jets(value: Any) -> list[Any]:
    return list(value.ravel().tolist()) if isinstance(value, np.ndarray) else [value]


def _far(ball: Ball) -> float:
    """Return an upper bound of the absolute value of a ball; infinite if it is undefined."""
    found = upward(abs(arb(ball)))
    return math.inf if math.isnan(found) else found


def _is_sharp(error: Ball, far: float) -> bool:
    """Whether the enclosure of an error is narrow beside it."""
    return float(arb(error).rad()) <= SHARP * far


def distances(
    row: Primitive, operands: Sequence[Any], result: Any, params: Mapping[str, Any]
) -> Array:
    """Return proved bounds of how far a result is from that of exact arithmetic.

    Raises
    ------
    UnsupportedError
        Ball arithmetic has no such operation, or a bound is infinite.

    Examples
    --------
    >>> from difflab.primitives import exp
    >>> bool(distances(exp, [1.0], np.exp(1.0), {}) < 4.5e-16)
    True
    """
    try:
        operation = BallInterpreter().operation(row)
        for bits in PRECISIONS[:4]:
            with precision(bits):
                exact = _jets(operation(*map(_lifted, operands), **params))
                numbers = np.asarray(result, np.float64)
                errors = [
                    jet.value - arb(number)
                    for jet, number in zip(exact, numbers.ravel().tolist(), strict=True)
                ]
                found = list(map(_far, errors))
                sharp = all(map(_is_sharp, errors, found))
            if all(map(math.isfinite, found)) and (sharp or bits == PRECISIONS[3]):
                return WIDER * np.array(found).reshape(numbers.shape)
    except (Undecided, UnsupportedError):
        pass
    raise UnsupportedError(f"the rounding error of '{row.name}' is unknown: it cannot be bounded")


def exact_results(
    function: Function,
    point: Sequence[float],
    order: int,
    computed: Array,
    chosen: Sequence[int],
) -> tuple[Array, str]:
    """Return proved bounds of the errors of computed values or derivatives.

    Parameters
    ----------
    function : Function
    point : sequence of float
        The flattened inputs.
    order : int
        0 for the values, 1 for the Jacobian, row after row.
    computed : array
        Flattened.
    chosen : sequence of int
        Those to compare.

    Returns
    -------
    errors : array
        Infinite where nothing is proved.
    reason : str
        Why; empty if all are bounded.
    """
    found, reason = np.full(len(chosen), math.inf), ""
    for bits in PRECISIONS:
        try:
            outputs = evaluated(function, [arb(number) for number in point], bits, order)
        except DifflabError as error:
            reason = str(error).splitlines()[0]
            return found, reason
        with precision(bits):
            balls = [ball for output in outputs for ball in _read(output, order, function.n)]
            errors = [arb(float(computed[place])) - balls[place] for place in chosen]
            found = np.array(list(map(_far, errors)))
            sharp = map(_is_sharp, errors, found)
        faults = [output.fault for output in outputs if output.fault is not None]
        reason = f"{faults[0].kind}: {faults[0].reason}" if faults and order else ""
        if all(sharp) and np.all(np.isfinite(found)):
            return found, ""
    return found, reason or "the exact result could not be enclosed"


def _read(output: Jet, order: int, n: int) -> list[Ball]:
    if order == 0:
        return [arb(output.value)]
    if output.fault is not None:
        return [arb.nan()] * n
    return [arb(output.slopes.get(place, 0)) for place in range(n)]


def largest_adjoints(
    graph: Graph,
    known: Mapping[int, Any],
    errors: Sequence[Any],
    wanted: Mapping[int, int],
    outputs: Sequence[int],
) -> tuple[dict[int, Array], str]:
    """Return upper bounds of adjoints while every operation errs by its bound.

    Parameters
    ----------
    graph : Graph
        A function's nodes, then those of its reverse sweep, which are computed exactly.
    known : mapping of int to array
        The values of the inputs.
    errors : sequence of array
        The bounds of the function's nodes.
    wanted : mapping of int to int
        The cotangent's node for each node.
    outputs : sequence of int
        The results, which must be continuous for the mean value theorem; at a kink, adjoints lie
        between those of both sides.

    Returns
    -------
    bounds : dict of int to array
        Empty if there are none.
    reason : str
        Why; empty if there are bounds.
    """
    interpreter = BallInterpreter()
    operations = [interpreter.operation(row) for row in graph.primitives]
    values: list[Any] = [None] * len(graph)
    last = graph.last_uses()
    kept = {*wanted.values(), *outputs}
    with precision(PRECISIONS[0]), time_limit(SECONDS):
        for node, (opcode, args) in enumerate(graph.rows()):
            try:
                if node in known:
                    values[node] = _lifted(known[node])
                elif opcode == CONSTANT:
                    values[node] = interpreter.constant(*graph.constants[node])
                elif opcode >= FIRST_ROW:
                    operands = [values[arg] for arg in args]
                    values[node] = operations[opcode - FIRST_ROW](*operands, **graph.params(node))
            except (Undecided, DifflabError) as error:
                return {}, _undecided(graph, node, error)
            if node < len(errors) and np.any(errors[node]):
                values[node] = _widened(values[node], errors[node])
            for arg in args:
                if last[arg] == node and arg not in kept:
                    values[arg] = None
        for jet in (each for node in outputs for each in _jets(values[node])):
            if jet.fault is not None and jet.fault.kind != "kink":
                kind, why = jet.fault.kind, jet.fault.reason
                return {}, f"{kind} within the rounding of the operations: {why}"
        return _bounds(graph, values, wanted)


def _bounds(
    graph: Graph, values: Sequence[Any], wanted: Mapping[int, int]
) -> tuple[dict[int, Array], str]:
    """Return the largest absolute values of the adjoints."""
    found = {}
    for node, bar in wanted.items():
        sizes = np.array([_far(jet.value) for jet in _jets(values[bar])])
        if not np.all(np.isfinite(sizes)):
            return {}, _undecided(graph, node, None)
        found[node] = np.broadcast_to(sizes.reshape(np.shape(values[bar])), graph.shape(node))
    return found, ""


def _widened(value: Any, error: Any) -> Any:
    """Return balls with their radii enlarged."""
    jets, radii = _jets(value), np.broadcast_to(error, np.shape(value)).ravel().tolist()
    wide = [
        each if isinstance(each, Truth) else Jet(each.value + arb(0, radius), fault=each.fault)
        for each, radius in zip(jets, radii, strict=True)
    ]
    if not isinstance(value, np.ndarray):
        return wide[0]
    found = np.empty(len(wide), dtype=object)
    found[:] = wide
    return found.reshape(value.shape)


def _undecided(graph: Graph, node: int, error: Exception | None) -> str:
    """Return why adjoints are unbounded, with the operation's location."""
    row, site = graph.primitive(node), str(graph.place(node))
    name = row.name if row is not None else "an input"
    where = f" ({site})" if site else ""
    if error is None:
        return f"the adjoint of '{name}'{where} is unbounded within the rounding of the operations"
    return f"'{name}'{where} is undecided within the rounding of the operations"

"""Proof of an error budget by ball arithmetic.

The computed result of every operation is its exact result plus an error of at most δᵢ. By the mean
value theorem the error of an output is ∑ āᵢ eᵢ, |eᵢ| ≤ δᵢ, with adjoints āᵢ at points between the
exact and the computed ones. Ball arithmetic encloses those: each result is a ball that is widened
by its δᵢ. The sum of sup|āᵢ| δᵢ, less that of the first order, is the remainder. The error itself
is that of the computed values against FLINT's values and derivatives, which use no rule of
difflab.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from difflab.balls.evaluation import PRECISIONS, BallInterpreter, evaluated
from difflab.balls.jets import Jet, Truth, Undecided
from difflab.balls.library import Ball, arb, precision
from difflab.balls.limit import time_limit
from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph
from difflab.rounding.local import apart, farthest, jets, lifted
from difflab.rounding.sweeps import Array, Sweeps, effect

SECONDS = 20.0
"""Time limit of each part of a proof."""

_widened = np.frompyfunc(
    lambda each, radius: (
        each if isinstance(each, Truth) else Jet(each.value + arb(0, radius), fault=each.fault)
    ),
    2,
    1,
)


def exact_results(
    function: Function, point: Sequence[float], order: int, computed: Mapping[int, float]
) -> tuple[list[float], str]:
    """Return proved bounds of the errors of computed values or derivatives.

    Parameters
    ----------
    function : Function
    point : sequence of float
        The flattened inputs.
    order : int
        0 for the values, 1 for the Jacobian, row after row.
    computed : mapping of int to float
        The elements to compare, by their index in the flattened values or Jacobian.

    Returns
    -------
    errors : list of float
        Infinite where nothing is proved.
    reason : str
        Why; empty if all are bounded.
    """
    bounds, reason = np.full(len(computed), math.inf), ""
    for bits in PRECISIONS:
        try:
            outputs = evaluated(function, [arb(number) for number in point], bits, order)
        except DifflabError as error:
            return bounds.tolist(), str(error).splitlines()[0]
        with precision(bits):
            balls = [ball for output in outputs for ball in _read(output, order, function.n)]
            bounds, sharp = apart(computed.values(), (balls[place] for place in computed))
        if sharp:
            return bounds.tolist(), ""
        faults = [output.fault for output in outputs if output.fault is not None]
        reason = f"{faults[0].kind}: {faults[0].reason}" if faults and order else ""
    return bounds.tolist(), reason or "the exact result could not be enclosed"


def _read(output: Jet, order: int, n: int) -> list[Ball]:
    if order == 0:
        return [output.value]
    if output.fault is not None:
        return [arb.nan()] * n
    return [output.slopes.get(place, 0) for place in range(n)]


def largest_effect(
    sweeps: Sweeps, point: Array, errors: Sequence[Any], output: int
) -> tuple[float, str]:
    """Return a bound of the rounding error of an output, the terms of higher order included.

    Parameters
    ----------
    sweeps : Sweeps
    point : array
        The packed inputs.
    errors : sequence of array
        The bound of the error of each operation.
    output : int
        The number of the output.

    Returns
    -------
    bound : float
        The sum of sup|ā| δ, where every operation errs by at most its δ; infinite if there is none.
    reason : str
        Why; empty if there is one.
    """
    graph, results = sweeps.combined.graph, sweeps.function.outputs
    wanted = {node: bar for node, bar in sweeps.combined.bars.items() if np.any(errors[node])}
    known = {**sweeps.inputs(point), **sweeps.seeds(output)}
    with precision(PRECISIONS[0]), time_limit(SECONDS):
        values, reason = _wide_values(graph, known, errors, {*wanted.values(), *results})
        # The mean value theorem needs continuous results; at a kink, adjoints lie between those
        # of both sides.
        for jet in (each for node in results for each in jets(values[node])):
            if not reason and jet.fault is not None and jet.fault.kind != "kink":
                kind, why = jet.fault.kind, jet.fault.reason
                reason = f"{kind} within the rounding of the operations: {why}"
        bound = 0.0
        for node, bar in wanted.items() if not reason else ():
            sizes = np.array([farthest(jet.value) for jet in jets(values[bar])])
            if not np.all(np.isfinite(sizes)):
                text = f"the adjoint of {_named(graph, node)} is unbounded"
                return math.inf, f"{text} within the rounding of the operations"
            bound += effect(sizes.reshape(np.shape(values[bar])), errors[node])
    return (math.inf if reason else bound), reason


def _wide_values(
    graph: Graph, known: Mapping[int, Any], errors: Sequence[Any], kept: set[int]
) -> tuple[list[Any], str]:
    """Return the kept nodes as balls, each widened by its error, and why one is undecided."""
    interpreter = BallInterpreter()
    operations = [interpreter.operation(row) for row in graph.primitives]
    values: list[Any] = [None] * len(graph)
    last = graph.last_uses()
    for node, (opcode, args) in enumerate(graph.rows()):
        try:
            if node in known:
                values[node] = lifted(known[node])
            elif opcode == CONSTANT:
                values[node] = interpreter.constant(*graph.constants[node])
            elif opcode >= FIRST_ROW:
                operands = [values[arg] for arg in args]
                values[node] = operations[opcode - FIRST_ROW](*operands, **graph.params(node))
        except (Undecided, DifflabError):
            name = _named(graph, node)
            return values, f"{name} is undecided within the rounding of the operations"
        if node < len(errors) and np.any(errors[node]):
            values[node] = _widened(values[node], errors[node])
        for arg in args:
            if last[arg] == node and arg not in kept:
                values[arg] = None
    return values, ""


def _named(graph: Graph, node: int) -> str:
    """Return an operation's name and location."""
    row, site = graph.primitive(node), str(graph.place(node))
    name = row.name if row is not None else "an input"
    return f"'{name}' ({site})" if site else f"'{name}'"

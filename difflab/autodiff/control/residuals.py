"""Residuals of a loop: the values kept of each step, and those recomputed in reverse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.argnums import part_of, read_until
from difflab.graph.counts import node_arithmetic
from difflab.graph.function import Function
from difflab.graph.ir import INPUT

WORTH_KEEPING = 8
"""Scalar operations that a number must save for it to be kept of each step.

It is written once and read once, after all steps in between.
"""


@dataclass(frozen=True)
class Divided:
    """A function of early and late inputs, split into its early part, which is kept, and the rest.

    Attributes
    ----------
    ahead : Function
        From the early inputs, the values that are kept.
    rest : Function
        From these values and all inputs, the outputs.
    reads : tuple of bool
        Which inputs `rest` reads.
    """

    ahead: Function
    rest: Function
    reads: tuple[bool, ...]


def divided(function: Function, early: int, *, keeps: bool = True) -> Divided:
    """Divide a function behind values that depend on its first `early` inputs alone.

    A value is kept if it takes `WORTH_KEEPING` operations for each of its numbers to compute it
    again. The results of loops and choices are not kept, and nothing is without `keeps`.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("A: [9, 9]; b: [9]; t: [9]; sum(t * exp(A @ b) * sin(b))")
    >>> parts = divided(f, 2)
    >>> print(parts.ahead)
    x1: [9, 9]
    x2: [9]
    kept1 = exp(x1 @ x2)
    >>> print(parts.rest)
    kept1: [9]
    x1: [9, 9]
    x2: [9]
    x3: [9]
    sum(x3*kept1*sin(x2))
    >>> parts.reads
    (False, True, True)
    """
    graph, inputs = function.graph, function.input_nodes
    late = np.frombuffer(graph.reached_from(inputs[early:]), np.bool_)
    kept = _kept(function, late) if keeps else []
    read = read_until(graph, function.outputs, kept)
    operations = graph.opcode != INPUT
    names = {node: f"x{k + 1}" for k, node in enumerate(inputs)}
    labels = [f"kept{k + 1}" for k in range(len(kept))]
    first = {node: names[node] for node in inputs[:early]}
    known = {**dict(zip(kept, labels, strict=True)), **names}
    return Divided(
        part_of(function, first, ~late & operations, kept, labels),
        part_of(function, known, read & operations, function.outputs, function.output_names),
        tuple([bool(read[node]) for node in inputs]),
    )


def _kept(function: Function, late: NDArray[np.bool_]) -> list[int]:
    """Return the early values that are worth keeping, in order."""
    graph = function.graph
    asked = set(_asked(function, late))
    numbers = ~graph.matching(lambda row: row.boolean or row.holds is not None)
    cost = [0] * len(graph)
    kept = []
    for node, (_, args) in enumerate(graph.rows()):
        if late[node]:
            continue
        cost[node] = node_arithmetic(graph, node) + sum([cost[arg] for arg in set(args)])
        saved = max(math.prod(graph.shape(node)), 1) * WORTH_KEEPING
        if node in asked and numbers[node] and cost[node] >= saved:
            cost[node] = 0
            kept.append(node)
    return kept


def _asked(function: Function, late: NDArray[np.bool_]) -> Iterator[int]:
    """Yield the early values that late operations and the outputs are computed from.

    Those that only move data are computed again from what they move.
    """
    graph = function.graph
    moves = graph.structural_rows()
    reads = graph.args[np.repeat(late, np.diff(graph.starts))].tolist()
    waiting = [node for node in {*reads, *function.outputs} if not late[node]]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if not moves[node]:
            yield node
            continue
        new = set(graph.arguments(node)) - seen
        seen |= new
        waiting += new

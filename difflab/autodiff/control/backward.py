"""Reverse mode of a loop: a loop that keeps values of each step, and a loop back over the steps.

Values that are cheap to compute are recomputed, not kept. A sum over the steps whose terms are
matrix products is one product after the loop: the sum of L₁ᵀR₁, L₂ᵀR₂, … is LᵀR, with the rows of
all Lₜ in L and those of all Rₜ in R.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.control.rows import zeros
from difflab.autodiff.engine.argnums import cotangents_of, part_of, read_until
from difflab.graph.algebra import degrees, signs, unspread
from difflab.graph.control import Checkpoint, Loop
from difflab.graph.counts import node_arithmetic
from difflab.graph.function import Function
from difflab.graph.ir import INPUT, Graph, Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined, selected
from difflab.primitives import matmul, transpose

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

    A value is kept if recomputing it takes `WORTH_KEEPING` operations or more for each of its
    elements. The results of loops and choices are not kept, and nothing is without `keeps`.

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
    numeric = ~graph.matching(lambda row: row.boolean or row.holds is not None)
    cost = [0] * len(graph)
    kept = []
    for node, (_, args) in enumerate(graph.rows()):
        if late[node]:
            continue
        cost[node] = node_arithmetic(graph, node) + sum([cost[arg] for arg in set(args)])
        saved = max(math.prod(graph.shape(node)), 1) * WORTH_KEEPING
        if node in asked and numeric[node] and cost[node] >= saved:
            cost[node] = 0
            kept.append(node)
    return kept


def _asked(function: Function, late: NDArray[np.bool_]) -> Iterator[int]:
    """Yield the early values that late operations and the outputs are computed from.

    Those that only move data are recomputed from the values that they move.
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


class Factor(NamedTuple):
    """A factor Lₜ or Rₜ: a node, and whether it has to be transposed; a vector is a single row."""

    node: int
    turned: bool

    def rows(self, stack: Node) -> Any:
        """Return the rows of all steps, given the node's values along a new first axis."""
        turned: Any = np.swapaxes(stack, 1, 2) if self.turned else stack
        return np.reshape(turned, (-1, turned.shape[-1]))


Pair = tuple[Factor, Factor]


def product_of(pair: Pair, left: Node, right: Node) -> Any:
    """Return the sum of LₜᵀRₜ over the steps, given the values of both nodes in all steps."""
    return pair[0].rows(left).T @ pair[1].rows(right)


def products_in(graph: Graph, node: int) -> list[Pair]:
    """Return products LᵀR that a node is the sum of; none if it is not, or little is saved.

    Keeping the factors of each step has to save `WORTH_KEEPING` operations for each number.
    """
    shape = graph.shape(node)
    if len(shape) != 2 or 2 * shape[0] * shape[1] < WORTH_KEEPING * sum(shape):
        return []
    args = graph.arguments(node)
    if signs(graph, node) == (1, 1):
        terms = [products_in(graph, arg) for arg in args]
        return [pair for term in terms for pair in term] if all(terms) else []
    if (factor := _factor(graph, node)).turned:
        return [(right, left) for left, right in products_in(graph, factor.node)]
    if graph.primitive(node) is matmul and all(len(graph.shape(arg)) == 2 for arg in args):
        left, right = (_factor(graph, arg) for arg in args)
        return [(left._replace(turned=not left.turned), right)]
    if degrees(graph, node) == (1, 1):
        for first, second in (args, args[::-1]):
            column = _vector(graph, first, (shape[0], 1))
            line = _vector(graph, second, (1, shape[1]))
            if column is not None and line is not None:
                return [(Factor(column, turned=False), Factor(line, turned=False))]
    return []


def _vector(graph: Graph, node: int, shape: Shape) -> int | None:
    """Return the vector that a matrix of one row or column consists of, before it is spread."""
    node = unspread(graph, node)
    own, row = graph.shape(node), graph.primitive(node)
    if own == shape and row is not None and row.in_order:
        (node,) = graph.arguments(node)
        return node if len(graph.shape(node)) == 1 else None
    return node if (1, *own) == shape else None


def _factor(graph: Graph, node: int) -> Factor:
    """Return a matrix, or the one that it is the transpose of."""
    if graph.primitive(node) is transpose and _turns(graph, node):
        return Factor(graph.arguments(node)[0], turned=True)
    return Factor(node, turned=False)


def _turns(graph: Graph, node: int) -> bool:
    """Whether the transpose of a matrix is not the matrix as it is."""
    return bool(graph.params(node)["axes"][0] == -1)


class Backward:
    """The two loops of reverse mode (Griewank and Walther, 2008, section 3.2).

    The first one, `history`, keeps the values that a step back reads and that are not cheap. The
    second, `sweep`, goes from the last step to the first. Its carries are the cotangents of the
    carries, then the sums of those of the constants, except sums that are products at the end.

    Parameters
    ----------
    loop : Loop
        The loop to differentiate.
    wanted : sequence of bool
        Which arguments' cotangents are wanted.
    """

    def __init__(self, loop: Loop, wanted: Sequence[bool]) -> None:
        body, c, end = loop.body, loop.carries, loop.carries + loop.arrays
        sources = [k for k, flows in enumerate(wanted) if k < c or flows]
        checkpoints = any(isinstance(row.holds, Checkpoint) for row in body.graph.primitives)
        parts = divided(cotangents_of(body, sources), len(body.inputs), keeps=not checkpoints)
        self.loop = loop
        self.ahead, self.rest = parts.ahead, parts.rest
        self.read = list(compress(range(end), parts.reads))
        self.bars = dict(zip(sources, self.rest.outputs, strict=True))
        graph = self.rest.graph
        products = {k: products_in(graph, node) for k, node in self.bars.items() if k >= end}
        self.products = {k: pairs for k, pairs in products.items() if pairs}
        self.summed = [k for k in products if k not in self.products]
        factors = [factor.node for pairs in products.values() for pair in pairs for factor in pair]
        looped = set(self._looped)
        arrays = [node for k, node in self.bars.items() if c <= k < end]
        self.results = list(dict.fromkeys([*arrays, *(n for n in factors if n not in looped)]))

    @cached_property
    def _looped(self) -> list[int]:
        """The inputs of the step back that are elements of arrays, in their order in `sweep`."""
        loop, inputs = self.loop, self.rest.input_nodes
        kept = len(self.ahead.outputs)
        bars = kept + len(loop.body.inputs) + loop.carries
        return [*inputs[:kept], *(inputs[kept + k] for k in self.read), *inputs[bars:]]

    @property
    def history(self) -> Loop:
        """The loop forward. Its results are the values that are kept, then the carries read."""
        loop, c = self.loop, self.loop.carries

        def keep(nodes: list[Node]) -> list[Node]:
            before = [nodes[k] for k in self.read if k < c]
            return [*inlined(loop.body, nodes)[:c], *inlined(self.ahead, nodes), *before]

        body = composed(keep, loop.body.input_shapes)
        return Loop(body, c, loop.arrays, loop.steps, loop.reverse)

    @property
    def sweep(self) -> Loop:
        """The reverse loop, over the arrays of `history` and the results' cotangents."""
        loop, rest, c = self.loop, self.rest, self.loop.carries
        kept, count = len(self.ahead.outputs), len(loop.body.inputs)
        constants = rest.input_nodes[kept + c + loop.arrays : kept + count]
        bars = rest.input_nodes[kept + count :][:c]
        sums = [self.bars[k] for k in self.summed]
        results = [*(self.bars[k] for k in range(c)), *sums, *self.results]
        carried = c + len(sums)
        step = selected(rest, results, [f"y{k + 1}" for k in range(len(results))])

        def back(nodes: list[Node]) -> list[Node]:
            read = dict(zip(bars, nodes, strict=False))
            read |= dict(zip([*self._looped, *constants], nodes[carried:], strict=True))
            absent = zeros(nodes[0].builder, step.input_shapes)  # what the step does not read
            pairs = zip(rest.input_nodes, absent, strict=True)
            after = inlined(step, [read.get(node, zero) for node, zero in pairs])
            totals = [one + other for one, other in zip(nodes[c:carried], after[c:], strict=False)]
            return [*after[:c], *totals, *after[carried:]]

        inputs = [*bars, *sums, *self._looped, *constants]
        body = composed(back, [rest.graph.shape(node) for node in inputs])
        return Loop(body, carried, len(self._looped), loop.steps, not loop.reverse)

    def cotangents(self, results: Sequence[Node], looped: Sequence[Node]) -> list[Node | None]:
        """Return the arguments' cotangents from the results of `sweep` and its operands."""
        c, end = self.loop.carries, self.loop.carries + self.loop.arrays
        carried = c + len(self.summed)
        stacks = dict(zip(self._looped, looped, strict=True))
        stacks |= dict(zip(self.results, results[carried:], strict=True))
        bars: dict[int, Node] = dict(enumerate(results[:c]))
        bars |= {k: stacks[node] for k, node in self.bars.items() if c <= k < end}
        bars |= dict(zip(self.summed, results[c:carried], strict=True))
        for k, pairs in self.products.items():
            bars[k] = sum(product_of((a, b), stacks[a.node], stacks[b.node]) for a, b in pairs)
        return [bars.get(k) for k in range(len(self.loop.body.inputs))]
